"""Fidelity of a captured workload to its source: production's figures beside those of the run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from pgdyno.judge.groups import Group
from pgdyno.message import Message, Name, Text, listed, message
from pgdyno.report.cells import Form, Table, cells, column, linked
from pgdyno.results.analysis import RunAnalysis
from pgdyno.samples import CATALOG
from pgdyno.store.reading import RunData
from pgdyno.units import Quantity

#: Within this part figures are said to agree.
_AGREE = 0.2
#: Names in the sentence.
_SOME = 4
#: A larger part of a table's rows is worth the first line.
_LOST = 0.1
_FIGURES = ("rows", "blocks", "wal_bytes", "ms")


@dataclass(frozen=True)
class _Script:
    """A script: its share of the calls and its figures for one call, in production and here; None: not known."""

    name: str
    there: Mapping[str, float | None]
    here: Mapping[str, float | None]
    #: In production and here; empty: not known.
    plans: tuple[str, str] = ("", "")

    @property
    def has_the_same_plan(self) -> bool | None:
        """None: one of them is not known."""
        return None if "" in self.plans else self.plans[0] == self.plans[1]

    def agrees(self, figure: str) -> bool | None:
        """Return True if a figure differs by at most 20%, or if both values are close to 0.

        Return None if one of the values is not known.
        """
        a, b = self.there.get(figure), self.here.get(figure)
        if a is None or b is None:
            return None
        return abs(b - a) <= _AGREE * max(abs(a), abs(b)) or max(abs(a), abs(b)) < 0.01


def _production(data: RunData, workload: str) -> Mapping[str, Any] | None:
    experiment = data.manifest.experiment or {}
    found = (experiment.get("workloads") or {}).get(workload) or {}
    production = found.get("production")
    return production if isinstance(production, dict) and production.get("scripts") else None


def _compared(run: RunAnalysis, g: Group, production: Mapping[str, Any]) -> list[_Script]:
    counted: dict[str, dict[str, float]] = {}
    for row in run.observed(g.trials).whole("statements"):
        name = PurePath(str(row.get("script") or "")).name
        if not name:
            continue
        total = counted.setdefault(name.removesuffix(".sql"), {})
        for key in ("calls", "ms", "rows", "blocks_hit", "blocks_read", "wal_bytes"):
            total[key] = total.get(key, 0.0) + float(row.get(key) or 0.0)
    # How often a script was carried out is known exactly; of its statements the server counted some.
    executed = {PurePath(s.name).name.removesuffix(".sql"): s.latency.count for s in run.data.pooled_scripts[g.key]}
    whole = sum(executed.values()) or 1
    plans = {
        PurePath(str(row.get("script") or "")).name.removesuffix(".sql"): str(row.get("plan") or "")
        for row in run.observed(g.trials).whole("plans")
    }
    found = []
    for name, there in production["scripts"].items():
        total, statements = counted.get(name, {}), max(1, int(there.get("statements") or 1))
        calls = total.get("calls", 0.0) / statements
        here: dict[str, float | None] = {"share": executed[name] / whole if name in executed else None}
        if calls:
            here |= {
                "rows": total["rows"] / calls, "blocks": (total["blocks_hit"] + total["blocks_read"]) / calls,
                "wal_bytes": total["wal_bytes"] / calls, "ms": total["ms"] / calls,
            }  # fmt: skip
        plan = there.get("plan")
        found.append(_Script(name, there, here, (plan if isinstance(plan, str) else "", plans.get(name, ""))))
    return found


def _known(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


#: Three digits, and whole numbers from a hundred on.
_THREE = Form(lambda v: f"{v:,.0f}" if abs(v) >= 100 else f"{v:.3g}")
_SHARE = Form(lambda v: f"{v * 100:.3g}%")
_MILLISECONDS = Form(_THREE.write, "s", 1e-3, True)


def table(run: RunAnalysis) -> Table:
    """Return the table of the figures of one call in production and in the run, by script."""
    rows = []
    plan = {True: message("plan-same"), False: message("plan-other"), None: None}
    for g in run.fastest:
        production = _production(run.data, g.workload)
        for s in _compared(run, g, production) if production is not None else ():
            row = cells([s.name, _known(s.there.get("share")), _known(s.here.get("share")), plan[s.has_the_same_plan]])
            for figure in _FIGURES:
                row += [*cells([_known(s.there.get(figure))]), linked(_known(s.here.get(figure)), g.trials)]
            rows.append(row)
    return Table(
        "fidelity",
        message("table-fidelity"),
        [
            column("script"), column("calls", _SHARE), column("calls here", _SHARE), column("plan"),
            *(column(x, _THREE) for x in ("rows", "rows here", "blocks", "blocks here", "WAL B", "WAL B here")),
            *(column(x, _MILLISECONDS) for x in ("ms", "ms here")),
        ],
        rows,
        [message("note-fidelity")],
        1,
        ["WAL B", "WAL B here", "plan"],
    )  # fmt: skip


def sentences(run: RunAnalysis) -> list[Text]:
    """Return sentences on how well the workload covers production.

    They state the share of production's time that is in the workload. They also state for how many scripts the rows
    per call agree.
    """
    for g in run.fastest[:1]:
        production = _production(run.data, g.workload)
        if production is not None:
            return _covered(run, g, production)
    return []


def _covered(run: RunAnalysis, g: Group, production: Mapping[str, Any]) -> list[Text]:
    scripts = _compared(run, g, production)
    compared = [(s, agrees) for s in scripts if (agrees := s.agrees("rows")) is not None]
    others = [s.name for s, agrees in compared if not agrees]
    names = [*others[:_SOME], *(["..."] if len(others) > _SOME else [])]
    out: list[Text] = [
        message(
            "answer-covered", share=Quantity(float(production.get("covered") or 0.0), "share", 0),
            of=Name(str(production.get("of") or "")),
        )
    ]  # fmt: skip
    if compared:
        differ = message("answer-rows-differ", names=listed(map(Name, names))) if others else None
        fine = len(compared) - len(others)
        out.append(message("answer-rows-agree", n=fine, of=len(compared), differ=differ))
    else:
        out.append(message("answer-rows-unknown"))
    return [*out, *_plans(scripts), *_rates(production, g)]


def _plans(scripts: Sequence[_Script]) -> list[Text]:
    """Return a sentence on the number of plans that equal those of production; none if no plan is known."""
    known = [s for s in scripts if s.has_the_same_plan is not None]
    others = [s for s in known if not s.has_the_same_plan]
    if not known:
        return []
    some = listed((Name(f"{s.name}: {s.plans[0]} -> {s.plans[1]}") for s in others[:2]), "semicolon")
    examples = message("in-brackets", text=some) if others else None
    return [message("answer-plans", n=len(known) - len(others), of=len(known), examples=examples)]


def _rates(production: Mapping[str, Any], g: Group) -> list[Text]:
    """Return a sentence on the transactions per second in production and in the run.

    Return none if the throughput of production is not known.
    """
    there = production.get("tps")
    if not isinstance(there, int | float) or not math.isfinite(there):
        return []
    here = sum(t.summary.tps for t in g.trials if t.summary) / max(1, len(g.trials))
    return [message("answer-production-tps", there=Quantity(there, "rate4"), here=Quantity(here, "rate4"))]


def _changed(run: RunAnalysis) -> list[tuple[str, float, float]]:
    """Return the tables whose number of rows changed in the trials of a captured workload.

    Each item has the name, the rows at the start and the rows at the end. The numbers come from the server's
    statistics, which lag slightly.
    """
    captured = [g for g in run.groups if _production(run.data, g.workload) is not None]
    trials = sorted((t for g in captured for t in g.trials), key=lambda t: t.plan.number)
    change: dict[str, float] = {}
    first: dict[str, float] = {}
    for t in trials:
        for row in run.observed([t]).whole("tables"):
            name = str(row.get("table") or "")
            if name.startswith(CATALOG):
                continue
            made, gone = (float(row.get(key) or 0.0) for key in ("rows_inserted", "rows_deleted"))
            # Of a database that was copied the server counts what came since; the planner's estimate is older.
            there = float(row.get("rows") or 0.0) - made + gone
            first.setdefault(name, max(0.0, there, float(row.get("estimated_rows") or 0.0)))
            change[name] = change.get(name, 0.0) + made - gone
    return [(name, first[name], max(0.0, first[name] + n)) for name, n in change.items() if round(n)]


def lost(run: RunAnalysis) -> list[Text]:
    """Return the first sentence of an answer if a captured workload removed many rows from tables.

    Later trials then found other work.
    """
    gone = [x for x in _changed(run) if x[1] - x[2] > _LOST * x[1]]
    if not gone:
        return []
    return [message("answer-rows-lost", tables=listed(_table_rows(*x) for x in gone[:_SOME]))]


def _table_rows(name: str, before: float, after: float) -> Message:
    return message("table-rows-from-to", table=Name(name), a=round(before), b=round(after))


def gained(run: RunAnalysis) -> list[Text]:
    """Return a sentence on the number of rows that tables gained or lost, the largest share of rows first."""
    changed = sorted(_changed(run), key=lambda x: -abs(x[2] - x[1]) / max(1.0, x[1]))
    if not changed:
        return []
    # A table that grew to many times its size says nothing in percent.
    shown = [
        f"{name} {b - a:+,.0f}" + (f" ({(b - a) / a * 100:+,.3g}%)" if a >= abs(b - a) else "")
        for name, a, b in changed[:_SOME]
    ]
    return [message("answer-rows-changed", tables=listed(map(Name, shown)))]
