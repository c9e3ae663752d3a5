"""`pgdyno new --from`: an experiment of a schema, with all its tables filled."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from pgdyno.cli import console, streams
from pgdyno.cli.cluster import settings_of
from pgdyno.cli.viewers import stream_for
from pgdyno.cluster import administration, binaries
from pgdyno.cluster import target as targets
from pgdyno.cluster.embedded import EmbeddedCluster
from pgdyno.errors import LocalError, TargetError, UsageError, msg
from pgdyno.load.own import dataset as own
from pgdyno.load.own import dump, statistics
from pgdyno.load.own.dataset import OwnDataset
from pgdyno.load.own.decide import key_of
from pgdyno.load.own.outline import MOST, Outline, OutlinedTable, outlined
from pgdyno.load.own.statistics import Shape
from pgdyno.message import Name, Text, listed, message
from pgdyno.stream.events import Noted

_SIZES = """
select c.oid::pg_catalog.regclass::pg_catalog.text,
  (greatest(c.reltuples, 0) + (select coalesce(sum(greatest(p.reltuples, 0)), 0)
   from pg_catalog.pg_partition_tree(c.oid::pg_catalog.regclass) t join pg_catalog.pg_class p on p.oid = t.relid
   where t.isleaf and p.oid <> c.oid) * (c.relkind = 'p')::int4)::int8
from pg_catalog.pg_class c where c.relkind in ('r', 'p') and not c.relispartition"""


def main(path: Path, source: str, head: Callable[[Path], str], tail: str) -> int:
    """Make the schema in a private server, look at it, and write the experiment. Raise UsageError, TargetError."""
    path = path if path.suffix == ".toml" else path.with_name(f"{path.name}.toml")
    is_database = not Path(source).exists() and ("=" in source or "://" in source)
    if not is_database and not Path(source).exists():
        raise UsageError(msg("error-from-there-no-file", source=source), msg("remedy-file-sql-dump-or-connection"))
    is_archive = not is_database and not dump.is_plain(Path(source))
    schema = path.with_name(f"{path.stem}-schema.sql") if is_database else Path(source)
    if not path.parent.is_dir():
        raise UsageError(
            msg("error-there-no-folder-nothing-was", parent=path.parent), msg("remedy-make-or-name-another-file")
        )
    for each in (path, schema) if is_database else (path,):
        if each.exists():
            raise UsageError(
                msg("error-there-already-nothing-was-written-2", each=each), msg("remedy-name-another-file")
            )
    stream = stream_for(console.errors(), quiet=False)
    try:
        sizes, shapes = _dumped(source, schema) if is_database else (None, {})
        kind = "dump" if is_archive else "sql"
        data = OwnDataset(kind, () if is_archive else (schema,), dump=schema if is_archive else None)
        data.check()
        stream.emit(Noted(message("progress-making-schema")))
        with EmbeddedCluster(settings_of([], 4, None)) as cluster:
            programs = cluster.binaries
            assert programs is not None
            own.make(
                cluster.target,
                data,
                programs=programs.program,
                force=False,
                replace=False,
                claim=None,
                stream=stream,
            )
            with closing(administration.connect(cluster.target, patience_s=None)) as conn:
                found = outlined(conn, sizes, shapes)
    except BaseException:
        if is_database:
            schema.unlink(missing_ok=True)
        raise
    finally:
        stream.close()
    name = os.path.relpath(schema, path.parent or ".")
    text = head(path) + _dataset(kind, name, found, sizes is not None) + _workloads(found) + tail
    with path.open("x", encoding="utf-8") as f:
        f.write(text)
    rows = sum(t.rows for t in found.filled)
    files = listed(Name(str(x)) for x in (path, *([schema] if is_database else [])))
    lines: list[Text] = [message("new-written", files=files)]
    if kind == "sql":
        lines.append(message("new-filled", tables=len(found.filled), rows=rows))
    lines += [message("new-empty", table=Name(table), why=reason) for table, reason in found.empty.items()]
    lines.append(message("new-look", file=Name(str(path))))
    for line in lines:
        sys.stdout.write(streams.written(line) + "\n")
    return 0


def _dumped(conninfo: str, schema: Path) -> tuple[dict[str, int], dict[str, dict[str, Shape]]]:
    """Write a database's schema into a file; return the sizes and shapes of its tables.

    The sizes are estimated row counts. The shapes describe the columns.
    """
    target = targets.resolve(conninfo, named="--from")
    with closing(administration.connect(target)) as conn:
        sizes = {str(name): int(n) for name, n in conn.execute(_SIZES).fetchall()}
        shapes = statistics.read(conn)
    folder = binaries.wheel_folder()
    program = folder / "pg_dump" if folder is not None else Path("pg_dump")
    environment = {**os.environ, **({"PGPASSWORD": target.password} if target.password else {})}
    argv = [str(program), "--schema-only", "--no-owner", "--no-privileges", "-d", dump.without_password(target)]
    try:
        done = subprocess.run(argv, capture_output=True, env=environment, check=False)
    except OSError as e:
        raise LocalError(
            msg("error-pg-dump-could-not-be", reason=e), msg("remedy-install-postgresql-s-client-programs")
        ) from e
    if done.returncode:
        raise TargetError(
            msg("error-pg-dump-failed", split=" ".join(done.stderr.decode(errors="replace").split())[:400])
        )
    with schema.open("xb") as f:
        f.write(done.stdout)
    return sizes, shapes


def _dataset(kind: str, file: str, found: Outline, is_sized: bool) -> str:
    if kind == "dump":
        return f'[dataset]\nkind = "dump"\ndump = {key_of_text(file)}\n\n'
    out = ["[dataset]", 'kind = "sql"', f"files = [{key_of_text(file)}]"]
    why = msg("new-rows-of-database", most=f"{MOST:,}") if is_sized else msg("new-rows-guessed")
    out += [
        "",
        f"# {streams.written(msg('new-order', why=why))}",
        f"# {streams.written(msg('new-columns'))} columns.NAME = {{ type = ... }}",
    ]
    for t in found.filled:
        out += [f"[dataset.fill.{_key(t)}]", f"rows = {t.rows:_}"]
        out += [f"# {_line(streams.written(text))}" for text in t.columns]
        out += [f"columns.{key_of(name)} = {_inline(how)}" for name, how in t.requested.items()]
        out += [f"# {_line(streams.written(note))}" for note in t.notes]
        out += (
            [f"# {_line(streams.written(msg('new-constants', columns=', '.join(t.constants))))}"] if t.constants else []
        )
    for table, reason in found.empty.items():
        out += ["", f"# {_line(streams.written(msg('new-left-empty', table=table, reason=reason)))}"]
    return "\n".join(out) + "\n\n"


def _inline(how: Mapping[str, Any]) -> str:
    """Return an inline table of TOML; its values are written as in JSON."""
    import json

    return "{ " + ", ".join(f"{k} = {json.dumps(v, ensure_ascii=False)}" for k, v in how.items()) + " }"


def key_of_text(text: str) -> str:
    """Return a text as a string of TOML."""
    import json

    return json.dumps(text, ensure_ascii=False)


def _key(t: OutlinedTable) -> str:
    return key_of(t.name)


def _line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:200]


def _workloads(found: Outline) -> str:
    scripts = [(t.name, t.script) for t in (*found.filled, *found.there) if t.script]
    out = [
        f"# {streams.written(msg('new-scripts'))}",
        f"# {streams.written(msg('new-variables'))}",
        "[workloads.read]",
        "scripts = [",
    ]
    if not scripts:
        scripts = [("nothing", "SELECT 1;")]
    for name, text in scripts:
        title = key_of_text(f"read {_line(name)}"[:60])
        out.append(f"  {{ name = {title}, text = '''\n{text}\n''' }},")
    return "\n".join([*out, "]", "", ""])
