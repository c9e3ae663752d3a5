"""The page's sections: one for each question, with the charts and tables that answer it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pgdyno.report.cells import Table

if TYPE_CHECKING:
    from pgdyno.report.view import Chart, View


@dataclass(frozen=True)
class Section:
    """A question: its charts, the tables behind them, and tables for who wants more."""

    name: str
    title: str
    charts: list[Chart] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    folded: list[Table] = field(default_factory=list)


#: Name, title, charts, tables, folded tables.
_PLAN = (
    ("why", "Why", ("timeline-1", "timeline-2"), (), ("findings",)),
    ("differences", "What differs", ("ratios", "sides"), ("comparisons",), ()),
    ("standbys", "What standbys cost", ("standbys",), ("replication", "standby-reads"), ()),
    ("objective", "How much it bears", ("capacity",), ("capacity",), ()),
    (
        "speed",
        "How fast it is",
        ("scaling", "new-orders", "qps"),
        ("tpcc", "tpcc-paced", "tpcc-limits", "qps", "rows"),
        ("detail",),
    ),
    ("latency", "How long a transaction takes", ("latency",), ("scripts", "statements"), ()),
    ("fidelity", "Is it production's work", (), ("fidelity",), ()),
    ("steadiness", "How steady it was", ("throughput", "latency-time"), (), ("time",)),
    ("right", "Is it right", (), ("tpcc-ranges", "checks"), ()),
    (
        "server",
        "Server activity",
        (),
        ("server",),
        ("devices", "processes", "server-statements", "buffers", "locks", "growth"),
    ),
    ("data", "What it was measured on", (), ("storage", "syncs"), ("loading", "sizes")),
    ("trouble", "What went wrong", (), ("outcomes",), ()),
)


def sections(view: View) -> list[Section]:
    """Return the sections that have content, in reading order.

    The table of trials is not among them, because the page adds it itself.
    """
    charts = {c.name: c for c in view.charts}
    tables = {t.name: t for t in view.tables}
    found = []
    for name, title, wanted, open_, folded in _PLAN:
        section = Section(
            name,
            title,
            [charts[c] for c in wanted if c in charts],
            [tables[t] for t in open_ if t in tables],
            [tables[t] for t in folded if t in tables],
        )
        if section.charts or section.tables or section.folded or (name == "why" and view.why):
            found.append(section)
    return found
