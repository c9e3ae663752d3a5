"""TPC-C's own figures: new orders a minute, the standard's limits, and whether the tables are consistent."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from pgdyno.judge.groups import Group, variant_column
from pgdyno.message import Message, Name, Text, counted, listed, message
from pgdyno.model import UNCOUNTED
from pgdyno.report import names, tpcc_ranges
from pgdyno.report.cells import (
    COUNT,
    HALF_WIDTH,
    MS,
    NUMBER,
    Cell,
    Column,
    Form,
    Table,
    Value,
    all_linked,
    cells,
    column,
    own_column,
)
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store import hlog
from pgdyno.store.reading import RunData
from pgdyno.units import Quantity

#: Of the standard (clauses 5.2.5.3 and 5.2.3), by transaction: seconds that nine of ten must keep, and the least part.
_LIMITS = {
    "new-order": (5.0, 0.0),
    "payment": (5.0, 0.43),
    "order-status": (5.0, 0.04),
    "delivery": (80.0, 0.04),
    "stock-level": (20.0, 0.04),
}
#: Cards of a deck, and of them by transaction.
_DECK = 23
_CARDS = {"new-order": 10, "payment": 10, "order-status": 1, "delivery": 1, "stock-level": 1}
#: Transactions from which on a mean above their 90th percentile says something.
_MANY = 100
#: New orders a minute that a terminal asks for at most, with the standard's waits and the deck of 23 cards, were
#: answers there at once: ten in 10 (18 + 12) + 10 (3 + 12) + (2 + 10) + (2 + 5) + (2 + 5) s.
_MOST_A_TERMINAL = 60 * 10 / 476
_COMMENT = re.compile(r"/\*.*?\*/|--[^\n]*", re.DOTALL)
_WORD = re.compile(r"\s*\(?\s*([a-zA-Z]+)")
#: What begins and ends transactions, and what changes no rows and reads none.
_OTHERS = {
    "begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release", "prepare", "set", "reset",
    "discard", "deallocate", "lock",
}  # fmt: skip
_READS = {"select", "with", "values", "table", "show", "explain", "fetch"}
_WRITING = re.compile(
    r"\b(?:insert\s+into|update\s+\S+\s+(?:as\s+\w+\s+)?set|delete\s+from|merge\s+into)\b", re.IGNORECASE
)
#: Functions that write; the others read.
_WRITES = re.compile(r"^select \w+_(transaction|payment|delivery)\(")


@dataclass(frozen=True)
class Rates:
    """TPC-C figures of a configuration."""

    group: Group
    #: A minute: new orders that were carried out, of them those that were committed, and all transactions.
    new_orders: float
    committed: float
    transactions: float
    #: Half the width of the 95% interval of the first, as a part of it; None: not known.
    half_width: float | None
    #: Statements a second: reads, writes, and what begins and ends transactions.
    reads: float
    writes: float
    others: float
    #: Transactions a second that met a serialization failure or a deadlock and were tried again.
    retried: float
    #: The standard's waits are times this.
    waits: float
    #: Of all sets, and of each.
    warehouses: int
    of_a_set: int


def is_tpcc(data: RunData, workload: str) -> bool:
    """Return True if a workload is TPC-C."""
    return _definition(data, workload) is not None


def _definition(data: RunData, workload: str) -> dict[str, Any] | None:
    workloads = (data.manifest.experiment or {}).get("workloads")
    found = workloads.get(workload, {}).get("tpcc") if isinstance(workloads, dict) else None
    return found if isinstance(found, dict) else None


def _number(value: Any, default: float) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return default


def rates(data: RunData, g: Group) -> Rates | None:
    """Return the TPC-C figures of a configuration.

    Return None if the workload is not TPC-C or if nothing was committed.
    """
    definition = _definition(data, g.workload)
    # Before histograms are read: a run may have thousands of configurations that are not.
    if definition is None:
        return None
    scripts = {s.name: s.latency.count for s in data.pooled_scripts[g.key]}
    whole = sum(scripts.values())
    if not whole or "new-order" not in scripts:
        return None
    tps, qps, half = g.over("tps").mean, g.over("qps").mean, g.half_width()
    share = scripts["new-order"] / whole
    kinds = dict.fromkeys(("read", "write", "other"), 0)
    undone = 0
    for s in data.pooled_statements[g.key]:
        kinds[kind_of(s.text)] += s.latency.count
        undone += s.latency.count if s.script == "new-order" and s.text == "rollback" else 0
    sent = sum(kinds.values()) or 1
    parameters = g.trials[0].parameters
    return Rates(
        g,
        60 * tps * share,
        60 * tps * share * (1 - undone / scripts["new-order"]) if scripts["new-order"] else 0.0,
        60 * tps,
        half,
        qps * kinds["read"] / sent,
        qps * kinds["write"] / sent,
        qps * kinds["other"] / sent,
        retried=_retried(data, g),
        waits=_number(parameters.get("waits"), _number(definition.get("waits"), 0.0)),
        warehouses=int(_number(parameters.get("warehouses"), 0) * _number(parameters.get("sets"), 1)),
        of_a_set=int(_number(parameters.get("warehouses"), 0)),
    )


def as_json(run: RunAnalysis) -> list[dict[str, Any]]:
    """Return the TPC-C figures for machines.

    Each name states whether the figure is per minute or per second. The half width is a ratio of the figure.
    """
    found = [r for g in run.groups if (r := rates(run.data, g)) is not None]
    return [
        {
            "workload": r.group.workload,
            "clients": r.group.clients,
            **r.group.varied,
            "warehouses": r.warehouses,
            "waits": r.waits,
            "new_orders_per_min": r.new_orders,
            "new_orders_half_width": r.half_width,
            "committed_per_min": r.committed,
            "transactions_per_min": r.transactions,
            "reads_per_s": r.reads,
            "writes_per_s": r.writes,
            "other_per_s": r.others,
            "retried_per_s": r.retried,
        }
        for r in found
    ]


@dataclass(frozen=True)
class Limit:
    """The standard's limits on a kind of transaction, and what became of them."""

    name: str
    count: int
    part: float
    least: float
    p90_ns: float
    mean_ns: float
    limit_s: float

    def verdict(self, clients: int, whole: int) -> str:
        """Return the verdict on the limits: "met", "not-met" or "too-short".

        Each client is in the middle of a deck, of which all cards of a kind may be dealt, or none. If that decides the
        verdict, the run was too short to say.
        """
        if not self.count or self.p90_ns > self.limit_s * 1e9:
            return "not-met"
        if self.p90_ns < self.mean_ns:
            # One stall among a few is above all the others together.
            return "not-met" if self.count >= _MANY else "too-short"
        if self.count >= self.least * whole:
            return "met"
        cards = _CARDS.get(self.name, 0)
        undealt = cards * (_DECK - cards) / _DECK * clients
        return "not-met" if self.count + undealt < self.least * whole else "too-short"


def _limits_of(data: RunData, g: Group) -> tuple[list[Limit], int]:
    """Return the limits by kind of transaction, and the total number of transactions."""
    scripts = data.pooled_scripts[g.key]
    whole = sum(s.latency.count for s in scripts)
    found = []
    for n, s in enumerate(scripts):
        h = data.histogram(hlog.script(n), g.key)
        limit, least = _LIMITS.get(s.name, (0.0, 0.0))
        part = s.latency.count / whole if whole else 0.0
        p90 = float(h.percentile(90.0)) if h.count else math.inf
        found.append(Limit(s.name, s.latency.count, part, least, p90, h.mean, limit))
    return found, whole


def _missed(data: RunData, r: Rates) -> Message | None:
    """Return a sentence on the limits of the standard that a run at the standard's pace did not meet.

    Return None if it met all limits, or if it ran at another pace.
    """
    if r.waits != 1:
        return None
    found, whole = _limits_of(data, r.group)
    missed: list[Text] = [Name(x.name) for x in found if x.verdict(r.group.clients, whole) == "not-met"]
    missed += tpcc_ranges.missed(tpcc_ranges.ranges(r.group, r.of_a_set))
    return message("answer-limits-missed", what=listed(missed, "list")) if missed else None


def _retried(data: RunData, g: Group) -> float:
    rows = [r for t in g.trials for r in data.series[t.plan.number] if r.phase not in UNCOUNTED and r.phase != "drain"]
    seconds = sum(r.end_ns - r.start_ns for r in rows) / 1e9
    return sum(r.retried for r in rows) / seconds if seconds else 0.0


def kind_of(sql: str) -> str:
    """Return the kind of a statement: "read", "write" or "other".

    The kind "other" covers statements that begin or end a transaction, and those that control the transaction or the
    session. The kinds are those by which sysbench counts its queries.
    """
    bare = _COMMENT.sub(" ", sql)
    match = _WORD.match(bare)
    word = match[1].lower() if match else ""
    if word in _OTHERS:
        return "other"
    # Of a WITH what it does with it: its parts may write, too.
    writes = _WRITES.match(bare) or (word == "with" and _WRITING.search(bare))
    return "read" if word in _READS and not writes else "write"


def sentences(run: RunAnalysis) -> list[Text]:
    """Return the best result of each workload for the answer.

    If tables are inconsistent, a sentence about them comes first.
    """
    out: list[Text] = []
    broken = sorted({c["clause"] for found in run.data.checks.values() for c in found if not c["holds"]})
    if broken:
        clauses = listed(map(Name, broken), "list")
        one = len(broken) == 1
        out.append(message("answer-broken-one", clauses=clauses) if one else message("answer-broken", clauses=clauses))
    every = [r for g in run.groups if (r := rates(run.data, g)) is not None]
    for workload in dict.fromkeys(r.group.workload for r in every):
        best = max((r for r in every if r.group.workload == workload), key=lambda r: r.new_orders)
        out.append(_new_orders(best))
        if missed := _missed(run.data, best):
            out.append(missed)
    return out


def _new_orders(r: Rates) -> Message:
    """Return a sentence with the new orders per minute of a configuration."""
    g = r.group
    pace = {0.0: message("pace-none"), 1.0: message("pace-standard")}.get(r.waits, message("pace-scaled"))
    parts: list[Text] = [Name(g.workload), pace, names.clients(g.clients), *([Name(g.variant)] if g.variant else [])]
    share = Quantity(r.new_orders / (_MOST_A_TERMINAL * g.clients), "percent")
    return message(
        "answer-new-orders",
        n=Quantity(r.new_orders, "count"),
        sure=None if r.half_width is None else message("plus-minus", half=Quantity(r.half_width, "half-width")),
        where=listed([*parts, counted("n-warehouses", r.warehouses)]),
        of=message("answer-of-the-most", share=share) if r.waits == 1 else None,
    )


#: What goes first where there is no room.
_LESS = ["transactions/min", "waits", "retried/s", "other/s", "writes/s", "reads/s", "committed/min", "clients",
         "warehouses"]  # fmt: skip


def figures(run: RunAnalysis) -> Table:
    """Return the table of new orders per minute without waits, and of other figures that people quote."""
    columns, rows, labels = _figures(run, paced=False)
    return Table("tpcc", message("table-tpcc"), columns, rows, [message("note-tpcc")], labels, _LESS)


def paced(run: RunAnalysis) -> Table:
    """Return the table of new orders per minute with the standard's keying and think times, or parts of them.

    These figures measure something else than those without waits, so they have a table of their own.
    """
    columns, rows, labels = _figures(run, paced=True)
    return Table("tpcc-paced", message("table-tpcc-paced"), columns, rows, [message("note-tpcc-paced")], labels, _LESS)


def _figures(run: RunAnalysis, *, paced: bool) -> tuple[list[Column], list[list[Cell]], int]:
    """Return columns, rows, and the number of columns that tell configurations apart."""
    variant = variant_column(list(run.groups))
    rows = []
    for g in run.groups:
        r = rates(run.data, g)
        if r is None or bool(r.waits) is not paced:
            continue
        values = [r.new_orders, r.half_width, r.committed, r.transactions, r.reads, r.writes, r.others, r.retried]
        label: list[Value | str] = [
            g.workload,
            *([g.variant] if variant else []),
            r.warehouses,
            g.clients,
            *([r.waits] if paced else []),
        ]
        rows.append([*cells(label), *all_linked(values, g.trials)])
    waits = [column("waits", Form(lambda v: f"{v:g}×"))] if paced else []
    per_time = ("committed/min", "transactions/min", "reads/s", "writes/s", "other/s", "retried/s")
    columns = [
        column("workload"), *([own_column(variant)] if variant else []), column("warehouses", COUNT),
        column("clients", COUNT), *waits, column("new orders/min", NUMBER), column("±", HALF_WIDTH),
        *(column(x, NUMBER) for x in per_time),
    ]  # fmt: skip
    return columns, rows, 3 + bool(variant) + paced


def _at_pace(run: RunAnalysis) -> list[tuple[Group, Rates]]:
    """Return the configurations that ran with the standard's waits."""
    return [(g, r) for g in run.groups if (r := rates(run.data, g)) is not None and r.waits == 1]


def _labels(run: RunAnalysis, last: Column) -> list[Column]:
    """Return the columns that tell rows of a configuration apart."""
    variant = variant_column(list(run.groups))
    return [column("workload"), *([own_column(variant)] if variant else []), column("clients", COUNT), last]


def limits(run: RunAnalysis) -> Table:
    """Return the table of the standard's limits on the transaction mix and on response times.

    It covers runs at the standard's pace.
    """
    variant = variant_column(list(run.groups))
    rows = []
    for g, _ in _at_pace(run):
        found, whole = _limits_of(run.data, g)
        for x in found:
            times = [x.mean_ns, x.p90_ns] if x.count else [None, None]
            values = [x.count, x.part, x.least or None, *times, x.limit_s * 1e9]
            label = cells([g.workload, *([g.variant] if variant else []), g.clients, x.name])
            verdict = cells([message(f"limit-{x.verdict(g.clients, whole)}")])
            rows.append([*label, *all_linked(values, g.trials), *verdict])
    of = _labels(run, column("transaction"))
    return Table(
        "tpcc-limits",
        message("table-tpcc-limits"),
        [
            *of, column("count", COUNT), column("share", Form(lambda v: f"{v * 100:.2f}%")),
            column("at least", Form(lambda v: f"{v * 100:g}%")), column("mean ms", MS), column("p90 ms", MS),
            column("limit ms", Form(lambda v: f"{v / 1e6:,.0f}", "s", 1e-9, True)), column("verdict"),
        ],
        rows,
        [message("note-tpcc-limits")],
        len(of),
        ["count", "at least", "mean ms", "clients"],
    )  # fmt: skip


def drawn(run: RunAnalysis) -> Table:
    """Return the table of the clients' random inputs and of the deliveries that skipped a district.

    It covers runs at the standard's pace.
    """
    variant = variant_column(list(run.groups))
    rows = []
    for g, r in _at_pace(run):
        for x in tpcc_ranges.ranges(g, r.of_a_set):
            shown = [x.shown(v) for v in (x.value, x.low, x.high)]
            label = cells([g.workload, *([g.variant] if variant else []), g.clients, x.title])
            verdict = cells([message(f"limit-{x.verdict}")])
            rows.append([*label, *all_linked([x.count, *shown], g.trials), *verdict])
    of = _labels(run, column("input"))
    return Table(
        "tpcc-ranges",
        message("table-tpcc-ranges"),
        [*of, column("drawn", COUNT), column("measured"), column("from"), column("to"), column("verdict")],
        rows,
        [message("note-tpcc-ranges")],
        len(of),
        ["drawn", "from", "to", "clients"],
    )


def condition_title(clause: str, title: str) -> Text:
    """Return the title of a condition by its clause; a condition of another version keeps its own."""
    section, _, number = clause.rpartition(".")
    return message(f"condition-{number}") if section == "3.3.2" else Name(title)


def checks(data: RunData) -> Table:
    """Return the table of the consistency conditions that were checked after trials."""
    found: dict[tuple[str, str], list[tuple[int, dict[str, Any]]]] = {}
    for number, of in data.checks.items():
        for c in of:
            found.setdefault((c["clause"], c["title"]), []).append((number, c))
    rows = []
    for (clause, title), times in found.items():
        result = message("condition-holds")
        if broken := [(n, c) for n, c in times if not c["holds"]]:
            number, first = broken[0]
            example = Name(str(first["example"]))
            result = message("condition-broken", n=int(first["broken"]), trial=number, example=example)
        rows.append(cells([clause, condition_title(clause, title), len(times), result]))
    return Table(
        "checks",
        message("table-checks"),
        [column("clause"), column("condition", is_long=True), column("checked", COUNT), column("result")],
        rows,
        [message("note-checks")],
        2,
    )
