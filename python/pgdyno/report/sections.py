"""The page's sections: one for each question, with the charts and tables that answer it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pgdyno.message import Message
from pgdyno.report.cells import Table
from pgdyno.report.charts import Chart

if TYPE_CHECKING:
    from pgdyno.report.view import View


@dataclass(frozen=True)
class Section:
    """A question: its charts, the tables behind them, and tables for who wants more."""

    name: str
    title: Message
    charts: list[Chart] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    folded: list[Table] = field(default_factory=list)


#: Name, charts, tables, folded tables. The catalogues have the title as `section-` and the name.
_PLAN = (
    ("differences", ("ratios", "sides"), ("comparisons",), ()),
    ("standbys", ("standbys",), ("replication", "standby-reads"), ()),
    ("objective", ("capacity",), ("capacity",), ()),
    (
        "speed",
        ("tps", "scaling", "new-orders", "qps"),
        ("tpcc", "tpcc-paced", "tpcc-limits", "drivers", "detail", "qps", "rows"),
        (),
    ),
    ("right", (), ("tpcc-ranges", "checks"), ()),
    ("latency", ("latency",), ("scripts",), ("statements",)),
    ("why", ("client-time",), (), ("findings",)),
    ("steadiness", ("timeline-1", "timeline-2", "throughput", "latency-time"), (), ("time",)),
    ("fidelity", (), ("fidelity",), ()),
    ("server", (), ("server",), ("devices", "processes", "server-statements", "buffers", "locks", "growth")),
    ("data", (), ("storage", "syncs"), ("loading", "sizes")),
    ("trouble", (), ("outcomes",), ()),
)  # fmt: skip


def sections(view: View) -> list[Section]:
    """Return the sections that have content, in reading order.

    The table of trials is not among them, because the page adds it itself.
    """
    # The first screen's chart stands there alone.
    charts = {c.name: c for c in view.charts if c is not view.lead}
    if view.lead is not None and view.lead.name == "tps":
        # The same bars in another unit; the table has both.
        charts.pop("qps", None)
    tables = {t.name: t for t in view.tables}
    found = []
    for name, wanted, open_, folded in _PLAN:
        section = Section(
            name,
            Message(f"section-{name}"),
            [charts[c] for c in wanted if c in charts],
            [tables[t] for t in open_ if t in tables],
            [tables[t] for t in folded if t in tables],
        )
        if section.charts or section.tables or section.folded or (name == "why" and view.why):
            found.append(section)
    return found
