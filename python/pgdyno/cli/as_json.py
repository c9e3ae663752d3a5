"""Runs and judgements for machines."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict
from enum import Enum
from typing import Any

from pgdyno import i18n
from pgdyno.figures import FIGURES
from pgdyno.judge.compared import Row
from pgdyno.message import Text
from pgdyno.report import replication, tpcc, verdicts, view
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store.texts import english


def run_as_json(run: RunAnalysis | None, exit_code: int, error: Text | None) -> dict[str, Any]:
    """Return a run as data for machines: times in nanoseconds, sizes in bytes."""
    if run is None:
        return {"exit_code": exit_code, "error": english(error)}
    data, causes = run.data, run.diagnosis
    # First: on the way more may be found that cannot be read.
    pooled = [
        {"workload": key[0], "hot_set": key[1], "clients": key[2], **dict(key[3:]), **asdict(data.pooled[key])}
        for key in data.pooled
    ]
    return {
        "exit_code": exit_code,
        "error": english(error),
        "answer": [i18n.text(x) for x in view.answered(run)],
        "comparisons": [row(r) for r in run.comparisons.rows],
        "path": data.path,
        "manifest": data.manifest.as_json(),
        "unreadable": [{"file": file, "reason": english(why)} for file, why in data.unreadable],
        "trials": [
            {
                **asdict(t.plan),
                "state": t.state,
                "error": english(t.error),
                "activity": t.activity,
                "caveats": [c.name for c in t.caveats],
                "summary": asdict(t.summary) if t.summary else None,
                "figures": {f.column: f.of(t.summary) for f in FIGURES} if t.summary else None,
            }
            for t in data.trials
        ],
        "pooled": pooled,
        "findings": [f.as_json() for f in causes.findings],
        "not_judged": [n.as_json() for n in causes.not_judged],
        "judged_configurations": len(run.diagnosed),
        "tpcc": tpcc.as_json(run),
        "replication": replication.as_json(run),
        "checks": [{"trial": n, **c} for n, found in data.checks.items() for c in found],
    }


def row(r: Row) -> dict[str, Any]:
    """Return a comparison of B with A as data for machines."""
    c, p = r.comparison, r.pair
    return {
        "configuration": p.label,
        "axis": p.axis,
        "a": p.a.varied.get(p.axis),
        "b": p.b.varied.get(p.axis),
        "figure": r.figure.name,
        "unit": r.figure.unit,
        "mean_a": c.mean_a,
        "mean_b": c.mean_b,
        "n_a": c.n_a,
        "n_b": c.n_b,
        "paired": c.paired,
        "ratio": c.ratio,
        "low": c.low,
        "high": c.high,
        "level": c.level,
        "margin": c.margin,
        "verdict": c.verdict.value,
        "is_negligible": c.is_negligible,
        "words": i18n.text(verdicts.verdict(r)),
        "seconds_more": r.seconds,
    }


def write(data: Any) -> None:
    """To standard output."""
    sys.stdout.write(json.dumps(plain(data), indent=2) + "\n")


def plain(value: Any) -> Any:
    """For JSON: no infinities, enums by value."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, Enum):
        return value.value
    return None if isinstance(value, float) and not math.isfinite(value) else value
