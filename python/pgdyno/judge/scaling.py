"""The scaling law over an axis of a run, or over the columns of a CSV file."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgdyno.analysis.scaling import Scaling, fit
from pgdyno.errors import UsageError, msg, reason
from pgdyno.judge.groups import groups_of
from pgdyno.model import spelled
from pgdyno.store import reading


@dataclass(frozen=True)
class Fitted:
    """One curve: its name, the points, and the law; None if there are fewer than 4 different levels."""

    label: str
    levels: list[float]
    throughputs: list[float]
    scaling: Scaling | None


def fit_run(path: Path, axis: str, figure: str, until: float | None) -> list[Fitted]:
    """Return one curve for each configuration of the other axes; `figure` is tps or qps."""
    data = reading.read(path)
    found: dict[str, tuple[list[float], list[float]]] = {}
    places = {p.target: p for p in data.manifest.places.values()}
    for g in groups_of(data):
        if any(t.parameters.get("rate") is not None for t in g.trials):
            # Of an open loop the throughput is what was asked for.
            continue
        # What else is varied tells curves apart.
        others = {k: v for k, v in g.varied.items() if k != axis}
        if axis == "clients":
            level: Any = g.clients
        elif axis == "cpus":
            place = places.get(str(others.pop("target", None)))
            level = place.cpus if place else None
        else:
            level = g.varied.get(axis)
        named = [f"{k}={spelled(v)}" for k, v in others.items()]
        hot = [f"{g.hot_set * 100:g}%"] if g.hot_set != 1 else []
        label = " ".join([g.workload, *named, *hot, *([f"c={g.clients}"] if axis != "clients" else [])])
        if not isinstance(level, int | float) or isinstance(level, bool):
            continue
        levels, throughputs = found.setdefault(label, ([], []))
        # Each repetition is a point.
        for t in g.trials:
            if t.summary:
                levels.append(float(level))
                throughputs.append(float(getattr(t.summary, figure)))
    if not found:
        raise UsageError(
            msg("error-no-numbers-along-axis", path=path, axis=axis), msg("remedy-axis-clients-cpus-or-axis")
        )
    return [_fitted(label, *points, until) for label, points in found.items()]


def fit_csv(path: Path, x: str | None, y: str | None, group: str | None, until: float | None) -> list[Fitted]:
    """Return curves from the columns of a file.

    The columns are the level, the throughput, and the group that separates curves. The defaults are the first column,
    the last column, and no group.
    """
    try:
        with path.open(newline="", encoding="utf-8") as f:
            reader = csv.DictReader(line for line in f if not line.startswith("#"))
            names = list(reader.fieldnames or [])
            rows = list(reader)
    except (OSError, UnicodeDecodeError) as e:
        why = reason(e) if isinstance(e, OSError) else msg("why-not-text")
        raise UsageError(
            msg("error-cannot-read", path=path, reason=why),
            msg("remedy-name-run-directory-or-csv"),
        ) from e
    if len(names) < 2:
        raise UsageError(msg("error-no-columns", path=path), msg("remedy-line-names-then-line-for"))
    x, y = x or names[0], y or names[-1]
    for name in filter(None, (x, y, group)):
        if name not in names:
            raise UsageError(msg("error-no-column", path=path, name=name), msg("remedy-it-has", names=", ".join(names)))
    found: dict[str, tuple[list[float], list[float]]] = {}
    for number, row in enumerate(rows, 2):
        levels, throughputs = found.setdefault(row[group] if group else y, ([], []))
        try:
            levels.append(float(row[x]))
            throughputs.append(float(row[y]))
        except (TypeError, ValueError) as e:
            raise UsageError(msg("error-row-must-be-numbers", path=path, number=number, x=x, y=y)) from e
    return [_fitted(label, *points, until) for label, points in found.items()]


def _fitted(label: str, levels: list[float], throughputs: list[float], until: float | None) -> Fitted:
    try:
        return Fitted(label, levels, throughputs, fit(levels, throughputs, until=until))
    except ValueError:
        return Fitted(label, levels, throughputs, None)
