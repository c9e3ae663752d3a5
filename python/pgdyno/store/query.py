"""DuckDB over run directories.

Views: `trials`, one row a trial, with its configuration and its figures; `intervals`, the time series of all of them.
The intervals are read where they lie, as Parquet, when a query asks for them: they do not pass through Python.
"""

from __future__ import annotations

import csv
import json
import re
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from pgdyno.errors import UsageError, msg, reason
from pgdyno.figures import FIGURES
from pgdyno.message import Text
from pgdyno.model import TrialRecord, spelled
from pgdyno.samples import SAMPLES
from pgdyno.store import hlog, layout, manifest, reading, samples, trials
from pgdyno.store.manifest import FILE, Manifest
from pgdyno.store.reading import RunData
from pgdyno.store.writing import writing

#: Statements that ask, and those that make something in memory to ask of. What lies in run directories is nobody's to
#: change here: ATTACH and whatever could carry it (PREPARE, EXPLAIN ANALYZE) are refused, and COPY but into files that
#: the user names elsewhere.
_ALLOWED = {"SELECT", "MULTI", "CREATE", "CREATE_FUNC", "INSERT", "UPDATE", "DELETE", "DROP", "RELATION"}
_COPY_TO = re.compile(r"\bto\s+'((?:[^']|'')+)'", re.IGNORECASE)
#: What makes one figure of many.
_AGGREGATES = re.compile(r"\b(avg|mean|median|sum|min|max|quantile\w*|mode|stddev\w*|geomean)\s*\(", re.IGNORECASE)
#: What is said of a query that failed.
_TRY = "Tables: trials, intervals, capacity, findings, waits, ...; views: closed, open. Try: describe trials"
#: Who names one of these knows that there are two kinds of loop.
_KINDS = re.compile(r"\b(closed|open|capacity|loop|rate)\b", re.IGNORECASE)


class Rows(NamedTuple):
    """Result of a query, and a list of what could not be read for it."""

    columns: list[str]
    rows: list[tuple[Any, ...]]
    unreadable: list[Text]


def write_csv(found: Rows, to: TextIO) -> None:
    """Write the result as CSV with a heading.

    A value that is not known is an empty field.
    """
    writer = csv.writer(to, lineterminator="\n")
    writer.writerow(found.columns)
    writer.writerows(found.rows)


def refuse_a_run_directory(path: Path) -> None:
    """Raise UsageError if a file would be written into a run directory."""
    for folder in path.resolve().parents:
        if (folder / FILE).exists():
            raise UsageError(msg("error-lies-run-directory-which-not", path=path), msg("remedy-name-another-folder"))


def write(found: Rows, output: Path) -> None:
    """Write a CSV, Parquet or JSON file, according to the suffix of its name."""
    refuse_a_run_directory(output)
    # A struct may have no fields, which Parquet does not know.
    rows = [[json.dumps(v, default=str) if isinstance(v, dict) else v for v in row] for row in found.rows]
    columns = [list(c) for c in zip(*rows, strict=True)] if rows else [[] for _ in found.columns]
    with writing(output):
        if output.suffix == ".parquet":
            try:
                pq.write_table(pa.table(dict(zip(found.columns, columns, strict=True))), output)
            except pa.ArrowException as e:
                raise UsageError(
                    msg("error-column-cannot-be-written-parquet", reason=e), msg("remedy-cast-query")
                ) from e
        elif output.suffix == ".json":
            named = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
            output.write_text(json.dumps(named, indent=2, default=str) + "\n", encoding="utf-8")
        else:
            with output.open("w", newline="", encoding="utf-8") as f:
                write_csv(found, f)


def run(text: str, runs: Path) -> Rows:
    """Run a query. Raise UsageError if it is none, or would mix trials of open and closed loops unasked."""
    if not text.strip(" ;\n\t"):
        raise UsageError(msg("error-query-empty"), msg("remedy-try-pgdyno-sql-select-from"))
    if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        raise UsageError(msg("error-query-not-utf-8"), msg("remedy-write-terminal-s-encoding-which"))
    folders = [runs] if (runs / FILE).exists() else sorted(p.parent for p in runs.glob(f"*/{FILE}"))
    if not runs.is_dir():
        raise UsageError(msg("error-no-folder", folder=runs), msg("remedy-name-run-directory-or-folder"))
    if not folders:
        raise UsageError(msg("error-there-no-run", folder=runs), msg("remedy-name-run-directory-or-folder"))
    rows: list[dict[str, Any]] = []
    files: list[dict[str, Any]] = []
    unreadable: list[Text] = []
    wants_intervals = "intervals" in text.lower()
    cut_off: list[dict[str, Any]] = []
    searches: list[dict[str, Any]] = []
    causes: list[dict[str, Any]] = []
    wanted = _sampled_names(text)
    sampled: dict[str, list[dict[str, Any]]] = {}
    for folder in folders:
        try:
            data = reading.read(folder)
        except UsageError as e:
            # One run that is damaged does not hide the others.
            unreadable.append(e.whole)
            continue
        if (c := data.manifest.capacity) is not None:
            found = {"rate": c.rate, "low": c.low, "high": c.high, "closed_tps": c.closed_tps}
            searches.append({"run": folder.name, "objective": c.objective, **found})
        causes += _findings(folder)
        for t in data.trials:
            facts = _trial(folder, data, t)
            rows.append(facts)
            for name in wanted:
                file = samples.file_of(folder / "trials" / t.plan.folder, name)
                if file is not None:
                    sampled.setdefault(name, []).append({"run": folder.name, "trial": t.plan.number, "path": str(file)})
            if not wants_intervals:
                continue
            known = _configuration(facts)
            file = folder / "trials" / t.plan.folder / layout.INTERVALS
            if not file.exists():
                # Under way, or killed: lines of text.
                cut_off += [{**known, **asdict(r)} for r in data.series[t.plan.number]]
            elif why := _damage(file):
                unreadable.append(_named(folder, file.relative_to(folder), why))
            else:
                files.append({**known, "path": str(file)})
        unreadable += [_named(folder, path, why) for path, why in data.unreadable]
    if unreadable and (not rows or (wants_intervals and not files and not cut_off)):
        raise UsageError(
            msg("error-nothing-can-be-read", unreadable=unreadable[0]), msg("remedy-pgdyno-report-names-what-wrong")
        )
    with tempfile.TemporaryDirectory(prefix="pgdyno-sql-") as scratch, duckdb.connect() as db:
        try:
            _table(db, Path(scratch), "trials", rows)
            _views(db, Path(scratch), searches)
            _table(db, Path(scratch), "findings", causes)
            for name, where in sampled.items():
                _samples(db, Path(scratch), name, where)
            _refuse_a_mixture(text, rows)
            if wants_intervals:
                _intervals(db, Path(scratch), files, cut_off)
            # The user's query sees these tables and nothing else of this machine.
            statements = duckdb.extract_statements(text)
            outputs = [o for s in statements if s.type.name == "COPY" for o in _output(s.query, folders)]
            db.execute(
                "set allowed_paths = ?",
                [[*(f["path"] for f in files), *(f["path"] for of in sampled.values() for f in of), *outputs]],
            )
            db.execute("set enable_external_access = false")
            for statement in statements:
                if statement.type.name not in {*_ALLOWED, "COPY"}:
                    raise UsageError(
                        msg("error-not-for-here-query-only", name=statement.type.name), msg("remedy-use-select")
                    )
            result = db.execute(text)
            columns = [d[0] for d in result.description or []]
            return Rows(columns, result.fetchall(), unreadable)
        except duckdb.Error as e:
            raise UsageError(
                msg("error-query-failed", reason=e),
                _TRY,
            ) from e


def _output(statement: str, folders: list[Path]) -> list[str]:
    """Return the file that a COPY writes, and DuckDB's temporary file beside it.

    DuckDB writes the temporary file first if the named file exists. Raise UsageError if the statement does anything
    else, or writes into a run directory.
    """
    match = _COPY_TO.search(statement)
    if match is None or re.search(r"\bfrom\s+'", statement[match.start() :], re.IGNORECASE):
        raise UsageError(msg("error-copy-for-writing-here"), msg("remedy-copy-select-x-csv"))
    named = match[1].replace("''", "'")
    path = Path(named).resolve()
    if any(path.is_relative_to(folder.resolve()) for folder in folders):
        raise UsageError(msg("error-lies-run-directory-which-not", path=path), msg("remedy-name-another-folder"))
    return [named, str(Path(named).with_name(f"tmp_{Path(named).name}"))]


def _refuse_a_mixture(text: str, rows: list[dict[str, Any]]) -> None:
    kinds = {r["loop"] for r in rows}
    if len(kinds) > 1 and _AGGREGATES.search(text) and not _KINDS.search(text):
        raise UsageError(
            msg("error-this-would-make-one-figure"),
            msg("remedy-ask-one-kind-from-closed"),
        )


def _views(db: duckdb.DuckDBPyConnection, scratch: Path, searches: list[dict[str, Any]]) -> None:
    """Create the views `closed` and `open`, and the table `capacity`.

    Each view has the trials of one kind of loop. The table has the results of the searches for a capacity.
    """
    db.execute("create view closed as select * from trials where loop = 'closed'")
    db.execute("create view open as select * from trials where loop = 'open'")
    if searches:
        _table(db, scratch, "capacity", searches)
    else:
        db.execute(
            "create table capacity (run text, objective text, rate double, low double, high double, closed_tps double)"
        )


#: What is sampled beside trials, as tables are called.
SAMPLED = tuple(SAMPLES)


def _sampled_names(text: str) -> list[str]:
    """Return the names of the sample tables that a query mentions."""
    return [name for name in SAMPLED if re.search(rf"\b{name}\b", text, re.IGNORECASE)]


def _findings(folder: Path) -> list[dict[str, Any]]:
    """Return one row per finding that the run has recorded."""
    try:
        found = json.loads(manifest.text_of(folder / layout.FINDINGS))
        names = ("workload", "hot_set", "clients", "cause", "kind", "of", "confidence", "sentence", "remedy")
        return [
            {"run": folder.name, **{n: f[n] for n in names}, "cost": f["cost"]["mean"], "low": f["cost"]["low"],
             "high": f["cost"]["high"], "varied": ", ".join(f"{k}={v}" for k, v in f["varied"].items())}
            for f in found
            if f["kind"] != "not judged"
        ]  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError):
        # Of an older version, or damaged: pgdyno explain finds them anew.
        return []


def _samples(db: duckdb.DuckDBPyConnection, scratch: Path, name: str, files: list[dict[str, Any]]) -> None:
    """Create a view of the samples of one source, over all trials."""
    _table(db, scratch, f"{name}_files", files)
    paths = ", ".join("'" + f["path"].replace("'", "''") + "'" for f in files)
    db.execute(
        f"""create view {name} as select f.run, f.trial, p.* exclude (filename)
            from read_parquet([{paths}], filename = true, union_by_name = true) p
                 join {name}_files f on f.path = p.filename"""
    )


def _named(run: Path, file: Path | str, why: Text) -> Text:
    return msg("error-file-reason", path=f"{run.name}/{file}", reason=why)


def _damage(file: Path) -> Text | None:
    """Return why a Parquet file cannot be read, or None if it can."""
    try:
        pq.read_schema(file)
    except trials.damaged_parquet() as e:
        return reason(e)
    return None


def _trial(folder: Path, data: RunData, t: TrialRecord) -> dict[str, Any]:
    """Return a row of `trials`: the trial, the place where it was run, and its results."""
    m: Manifest = data.manifest
    place = m.places.get(t.place)
    server = place.server if place else m.server
    loaded = place.dataset if place else m.dataset
    rate = t.plan.varied.get("rate", t.parameters.get("rate", m.run.rate))
    varied = {axis: spelled(value) for axis, value in t.plan.varied.items()}
    base: dict[str, Any] = {
        "run": folder.name,
        "trial": t.plan.number,
        "workload": t.plan.workload,
        "hot_set": t.plan.hot_set,
        "clients": t.plan.clients,
        "repetition": t.plan.repetition,
        "variant": t.plan.label,
        # As text: of two runs, one may have a number where the other has a word.
        "target": varied.get("target") or (place.target if place else m.target.host),
        "server_version": server.setting("server_version") or server.version,
        "dataset": varied.get("dataset") or (loaded.name if loaded else ""),
        "loaded": loaded.name if loaded else "",
        "scale": _number(varied.get("scale", t.parameters.get("scale", m.scale))),
        "loop": "open" if isinstance(rate, int | float) else "closed",
        "rate": float(rate) if isinstance(rate, int | float) else None,
        "duration_s": m.run.duration_s,
    }
    base |= {axis: value for axis, value in varied.items() if axis not in base}
    base |= {"state": t.state, "started_at": t.started_at.replace("T", " ").rstrip("Z"), "start_ns": _start(folder, t)}
    base |= {f.column: (f.of(t.summary) if t.summary else None) for f in FIGURES}
    base |= {name: value for name, value in t.activity.items() if name not in base}
    settings = {n: s.value for n, s in sorted(server.settings.items()) if s.source not in (None, "", "default")}
    # The place was described in its first configuration; this trial may have had others.
    base["settings"] = settings | {n: spelled(v) for n, v in (t.parameters.get("settings") or {}).items()}
    return base


def _number(value: object) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None


def _start(folder: Path, t: TrialRecord) -> int | None:
    """Nanoseconds since 1970: where the times of its intervals count from; of older files to the millisecond."""
    if t.start_ns:
        return t.start_ns
    return hlog.start_of(folder / "trials" / t.plan.folder / layout.LOG)


def _configuration(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a trial's row that each of its intervals has as well."""
    names = list(facts)
    return {n: facts[n] for n in names[: names.index("state")]} | {"trial_start_ns": facts["start_ns"]}


def _table(db: duckdb.DuckDBPyConnection, scratch: Path, name: str, rows: list[dict[str, Any]]) -> None:
    file = scratch / f"{name}.json"
    file.write_text("\n".join(json.dumps(r) for r in rows), encoding="utf-8")
    if rows:
        options = "format='newline_delimited', sample_size=-1"
        db.execute(f"create table {name} as select * from read_json(?, {options})", [str(file)])


def _intervals(
    db: duckdb.DuckDBPyConnection, scratch: Path, files: list[dict[str, Any]], cut_off: list[dict[str, Any]]
) -> None:
    """Create the view `intervals`.

    It consists of the Parquet files in place, each with its trial, and of the lines of trials without such a file.
    """
    parts = []
    if files:
        _table(db, scratch, "interval_files", files)
        there = {name for f in files for name in pq.read_schema(f["path"]).names}
        added = "".join(f", {name}" for name in layout.ADDED if name in there)
        paths = ", ".join("'" + f["path"].replace("'", "''") + "'" for f in files)
        parts.append(
            f"""select f.* exclude (path), p.* exclude (filename{added}), f.trial_start_ns + p.start_ns as at_ns,
                       make_timestamp_ns(f.trial_start_ns + p.start_ns) as time
                from read_parquet([{paths}], filename = true, union_by_name = true) p
                     join interval_files f on f.path = p.filename"""
        )
    if cut_off:
        _table(db, scratch, "interval_lines", cut_off)
        parts.append(
            """select *, trial_start_ns + start_ns as at_ns, make_timestamp_ns(trial_start_ns + start_ns) as time
               from interval_lines"""
        )
    if parts:
        db.execute(f"create view intervals as {' union all by name '.join(parts)}")
