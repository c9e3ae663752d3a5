"""A run for machines."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pgdyno.figures import FIGURES
from pgdyno.store.reading import RunData


def as_json(data: RunData | None, exit_code: int, error: str) -> dict[str, Any]:
    """A run for machines: times in nanoseconds, sizes in bytes."""
    if data is None:
        return {"exit_code": exit_code, "error": error}
    # First: on the way more may be found that cannot be read.
    pooled = [
        {"workload": key[0], "hot_set": key[1], "clients": key[2], **dict(key[3:]), **asdict(data.pooled[key])}
        for key in data.pooled
    ]
    return {
        "exit_code": exit_code,
        "error": error,
        "path": data.path,
        "manifest": data.manifest.as_json(),
        "unreadable": [{"file": file, "reason": why} for file, why in data.unreadable],
        "trials": [
            {
                **asdict(t.plan),
                "state": t.state,
                "error": t.error,
                "activity": t.activity,
                "caveats": [c.name for c in t.caveats],
                "summary": asdict(t.summary) if t.summary else None,
                "figures": {f.column: f.of(t.summary) for f in FIGURES} if t.summary else None,
            }
            for t in data.trials
        ],
        "pooled": pooled,
    }
