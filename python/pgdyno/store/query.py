"""DuckDB over run directories."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import duckdb

from pgdyno.errors import UsageError
from pgdyno.model import spelled
from pgdyno.store import rundir


def run(text: str, runs: Path) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Column names and rows. Views: `trials` (one row a trial, with its summary) and `intervals` (the time series)."""
    folders = [runs] if (runs / "manifest.json").exists() else sorted(p.parent for p in runs.glob("*/manifest.json"))
    if not folders:
        raise UsageError(f"there is no run in {runs}", "Name a run directory, or a folder of them: --runs FOLDER.")
    trials, intervals = [], []
    for folder in folders:
        data = rundir.read(folder)
        for t in data.trials:
            base = {"run": folder.name, "trial": t.plan.number, "workload": t.plan.workload, "hot_set": t.plan.hot_set}
            base |= {"clients": t.plan.clients, "repetition": t.plan.repetition, "variant": t.plan.label}
            # As text: of two runs, one may have a number where the other has a word.
            base |= {axis: spelled(value) for axis, value in t.plan.varied.items() if axis not in base}
            s = t.summary
            figures: dict[str, Any] = {"state": t.state, "started_at": t.started_at.replace("T", " ").rstrip("Z")}
            figures |= {
                name: getattr(s, name) if s else None
                for name in (
                    "tps",
                    "qps",
                    "elapsed_s",
                    "committed",
                    "unknown",
                    "lost",
                    "reconnects",
                    "client_cpu_share",
                    "steady",
                    "warmup_dropped_s",
                )
            }
            figures |= {
                name: getattr(s.latency, name) if s else None
                for name in ("mean_ns", "p50_ns", "p95_ns", "p99_ns", "p999_ns", "max_ns")
            }
            figures |= {name: value for name, value in t.activity.items() if name not in base}
            figures["failed"] = sum(s.failed.values()) if s else None
            trials.append({**base, **figures})
            intervals += [{**base, **vars(r)} for r in data.series[t.plan.number]]
    with tempfile.TemporaryDirectory(prefix="pgdyno-sql-") as scratch, duckdb.connect() as db:
        for name, rows in (("trials", trials), ("intervals", intervals)):
            file = Path(scratch) / f"{name}.json"
            file.write_text("\n".join(json.dumps(r) for r in rows), encoding="utf-8")
            if rows:
                db.execute(
                    f"create table {name} as select * from read_json(?, format='newline_delimited', sample_size=-1)",
                    [str(file)],
                )
        # The user's query sees these tables and nothing else of this machine.
        db.execute("set enable_external_access = false")
        try:
            if not text.strip(" ;\n\t"):
                raise UsageError("the query is empty", 'Try: pgdyno sql "select * from trials"')
            result = db.execute(text)
            columns = [d[0] for d in result.description or []]
            return columns, result.fetchall()
        except duckdb.Error as e:
            raise UsageError(f"the query failed: {e}", "Tables: trials, intervals. Try: describe trials") from e
