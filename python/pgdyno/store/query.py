"""DuckDB over run directories.

Views: `trials`, one row a trial, with its configuration and its figures; `intervals`, the time series of all of them.
The intervals are read where they lie, as Parquet, when a query asks for them: they do not pass through Python.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

from pgdyno.errors import UsageError
from pgdyno.figures import FIGURES
from pgdyno.model import TrialRecord, spelled
from pgdyno.store import hlog, reading
from pgdyno.store.manifest import FILE, Manifest
from pgdyno.store.reading import RunData

#: Statements that ask, and those that make something in memory to ask of. What lies in run directories is nobody's to
#: change here: COPY, ATTACH and whatever could carry them (PREPARE, EXPLAIN ANALYZE) are refused.
_ALLOWED = {"SELECT", "MULTI", "CREATE", "CREATE_FUNC", "INSERT", "UPDATE", "DELETE", "DROP", "RELATION"}


def run(text: str, runs: Path) -> tuple[list[str], list[tuple[Any, ...]], list[str]]:
    """Column names, rows, and what could not be read."""
    if not text.strip(" ;\n\t"):
        raise UsageError("the query is empty", 'Try: pgdyno sql "select * from trials"')
    if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        raise UsageError("the query is not UTF-8", "Write it as the terminal's encoding has it, which must be UTF-8.")
    folders = [runs] if (runs / FILE).exists() else sorted(p.parent for p in runs.glob(f"*/{FILE}"))
    if not folders:
        raise UsageError(f"there is no run in {runs}", "Name a run directory, or a folder of them: --runs FOLDER.")
    rows: list[dict[str, Any]] = []
    files: list[dict[str, Any]] = []
    unreadable: list[str] = []
    wants_intervals = "intervals" in text.lower()
    cut_off: list[dict[str, Any]] = []
    for folder in folders:
        try:
            data = reading.read(folder)
        except UsageError as e:
            # One run that is damaged does not hide the others.
            unreadable.append(e.message)
            continue
        for t in data.trials:
            facts = _trial(folder, data, t)
            rows.append(facts)
            if not wants_intervals:
                continue
            known = _configuration(facts)
            file = folder / "trials" / t.plan.folder / reading.INTERVALS
            if not file.exists():
                # Under way, or killed: lines of text.
                cut_off += [{**known, **asdict(r)} for r in data.series[t.plan.number]]
            elif why := _damage(file):
                unreadable.append(f"{folder.name}/trials/{t.plan.folder}/{file.name}: {why}")
            else:
                files.append({**known, "path": str(file)})
        unreadable += [f"{folder.name}/{path}: {why}" for path, why in data.unreadable]
    if unreadable and (not rows or (wants_intervals and not files and not cut_off)):
        raise UsageError(f"nothing can be read: {unreadable[0]}", "pgdyno report names what is wrong with a run.")
    with tempfile.TemporaryDirectory(prefix="pgdyno-sql-") as scratch, duckdb.connect() as db:
        try:
            _table(db, Path(scratch), "trials", rows)
            if wants_intervals:
                _intervals(db, Path(scratch), files, cut_off)
            # The user's query sees these tables and nothing else of this machine.
            db.execute("set allowed_paths = ?", [[f["path"] for f in files]])
            db.execute("set enable_external_access = false")
            for statement in duckdb.extract_statements(text):
                if statement.type.name not in _ALLOWED:
                    raise UsageError(f"{statement.type.name} is not for here: a query only asks", "Use select.")
            result = db.execute(text)
            columns = [d[0] for d in result.description or []]
            return columns, result.fetchall(), unreadable
        except duckdb.Error as e:
            raise UsageError(f"the query failed: {e}", "Tables: trials, intervals. Try: describe trials") from e


def _damage(file: Path) -> str:
    """Why a Parquet file cannot be read; empty where it can."""
    try:
        pq.read_schema(file)
    except reading.DAMAGED_PARQUET as e:
        return " ".join(str(e).split())[:200]
    return ""


def _trial(folder: Path, data: RunData, t: TrialRecord) -> dict[str, Any]:
    """A row of `trials`: what it was, where it was run, and what it came to."""
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
    return hlog.start_of(folder / "trials" / t.plan.folder / reading.LOG)


def _configuration(facts: dict[str, Any]) -> dict[str, Any]:
    """The part of a trial's row that each of its intervals has as well."""
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
    """The view `intervals`: Parquet files where they lie, each with its trial; and the lines of those without."""
    parts = []
    if files:
        _table(db, scratch, "interval_files", files)
        paths = ", ".join("'" + f["path"].replace("'", "''") + "'" for f in files)
        parts.append(
            f"""select f.* exclude (path), p.* exclude (filename), f.trial_start_ns + p.start_ns as at_ns,
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
