"""TPC-C's own figures: new orders a minute, the standard's limits, and whether the tables are consistent."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from pgdyno.format import integer, milliseconds, percent, plus_minus
from pgdyno.judge.groups import Group, variant_column
from pgdyno.model import UNCOUNTED
from pgdyno.report import tpcc_ranges
from pgdyno.report.cells import Cell, Table, all_linked
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store import hlog
from pgdyno.store.reading import RunData

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
        """Return the verdict on the limits: "met", "not met" or "too short to say".

        Each client is in the middle of a deck, of which all cards of a kind may be dealt, or none. If that decides the
        verdict, the run was too short to say.
        """
        if not self.count or self.p90_ns > self.limit_s * 1e9:
            return "not met"
        if self.p90_ns < self.mean_ns:
            # One stall among a few is above all the others together.
            return "not met" if self.count >= _MANY else "too short to say"
        if self.count >= self.least * whole:
            return "met"
        cards = _CARDS.get(self.name, 0)
        undealt = cards * (_DECK - cards) / _DECK * clients
        return "not met" if self.count + undealt < self.least * whole else "too short to say"


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


def _missed(data: RunData, r: Rates) -> str:
    """Return a sentence on the limits of the standard that a run at the standard's pace did not meet.

    Return an empty string if it met all limits, or if it ran at another pace.
    """
    if r.waits != 1:
        return ""
    found, whole = _limits_of(data, r.group)
    missed = [x.name for x in found if x.verdict(r.group.clients, whole) == "not met"]
    missed += tpcc_ranges.missed(tpcc_ranges.ranges(r.group, r.of_a_set))
    return f" The standard's limits are not met by {', '.join(missed)}." if missed else ""


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


def sentences(run: RunAnalysis) -> list[str]:
    """Return the best result of each workload for the answer.

    If tables are inconsistent, a sentence about them comes first.
    """
    out = []
    broken = {c["clause"] for found in run.data.checks.values() for c in found if not c["holds"]}
    if broken:
        out.append(
            f"The tables are not consistent: TPC-C's condition{'s' if len(broken) > 1 else ''} "
            f"{', '.join(sorted(broken))} did not hold after a trial."
        )
    every = [r for g in run.groups if (r := rates(run.data, g)) is not None]
    for workload in dict.fromkeys(r.group.workload for r in every):
        best = max((r for r in every if r.group.workload == workload), key=lambda r: r.new_orders)
        sure = f" ±{plus_minus(best.half_width)}" if best.half_width is not None else ""
        how = {0.0: "without waits", 1.0: "at the standard's pace"}.get(best.waits, "with scaled waits")
        where = f"{best.group.clients} client{'s' if best.group.clients != 1 else ''}"
        text = f"{integer(best.new_orders)}{sure} new orders a minute ({workload}, {how}, {where}"
        text += f", {best.group.variant}" if best.group.variant else ""
        text += f", {best.warehouses} warehouse{'s' if best.warehouses != 1 else ''})"
        if best.waits == 1:
            text += f": {percent(best.new_orders / (_MOST_A_TERMINAL * best.group.clients))} of what these can ask for"
        out.append(f"{text}. TPC-C-like, not audited.{_missed(run.data, best)}")
    return out


#: What goes first where there is no room.
_LESS = ["transactions/min", "waits", "retried/s", "other/s", "writes/s", "reads/s", "committed/min", "clients",
         "warehouses"]  # fmt: skip


def figures(run: RunAnalysis) -> Table:
    """Return the table of new orders per minute without waits, and of other figures that people quote."""
    columns, cells, keys = _figures(run, paced=False)
    return Table(
        "tpcc",
        "TPC-C: new orders a minute",
        columns,
        cells,
        "TPC-C-like, not audited. New orders: as tpmC counts them, with the one in a hundred that the standard has "
        "rolled back; committed: without those. Transactions: all five kinds, times 60, which some reports call tpmC. "
        "Reads, writes, other: statements, as sysbench splits them; other is BEGIN, COMMIT and ROLLBACK. As a "
        "function a whole transaction is one statement, so compare transactions. Retried: met "
        "a serialization failure or a deadlock, and were begun again.",
        keys,
        _LESS,
    )


def paced(run: RunAnalysis) -> Table:
    """Return the table of new orders per minute with the standard's keying and think times, or parts of them.

    These figures measure something else than those without waits, so they have a table of their own.
    """
    columns, cells, keys = _figures(run, paced=True)
    return Table(
        "tpcc-paced",
        "TPC-C with waits: new orders a minute",
        columns,
        cells,
        "TPC-C-like, not audited. Waits: the standard's keying and think times; figures with and without them are not "
        "comparable.",
        keys,
        _LESS,
    )


def _figures(run: RunAnalysis, *, paced: bool) -> tuple[list[str], list[list[str | Cell]], int]:
    """Columns, rows, and how many columns say which configuration."""
    column = variant_column(list(run.groups))
    cells: list[list[str | Cell]] = []
    for g in run.groups:
        r = rates(run.data, g)
        if r is None or bool(r.waits) is not paced:
            continue
        half = "–" if r.half_width is None else plus_minus(r.half_width)
        values = [integer(r.new_orders), half, integer(r.committed), integer(r.transactions)]
        values += [integer(q) for q in (r.reads, r.writes, r.others, r.retried)]
        what = [g.workload, *([g.variant] if column else []), str(r.warehouses), str(g.clients)]
        cells.append([*what, *([f"{r.waits:g}×"] if paced else []), *all_linked(values, g.trials)])
    columns = [
        "workload", *([column] if column else []), "warehouses", "clients", *(["waits"] if paced else []),
        "new orders/min", "±", "committed/min", "transactions/min", "reads/s", "writes/s", "other/s", "retried/s",
    ]  # fmt: skip
    return columns, cells, 3 + bool(column) + paced


def _at_pace(run: RunAnalysis) -> list[tuple[Group, Rates]]:
    """Return the configurations that ran with the standard's waits."""
    return [(g, r) for g in run.groups if (r := rates(run.data, g)) is not None and r.waits == 1]


def limits(run: RunAnalysis) -> Table:
    """Return the table of the standard's limits on the transaction mix and on response times.

    It covers runs at the standard's pace.
    """
    column = variant_column(list(run.groups))
    cells: list[list[str | Cell]] = []
    for g, _ in _at_pace(run):
        found, whole = _limits_of(run.data, g)
        for x in found:
            least = f"{x.least * 100:g}%" if x.least else "–"
            p90 = milliseconds(x.p90_ns) if x.count else "–"
            mean = milliseconds(x.mean_ns) if x.count else "–"
            values = [f"{x.count:,}", f"{x.part * 100:.2f}%", least, mean, p90, f"{x.limit_s * 1000:,.0f}"]
            what = [g.workload, *([g.variant] if column else []), str(g.clients), x.name]
            cells.append([*what, *all_linked(values, g.trials), x.verdict(g.clients, whole)])
    return Table(
        "tpcc-limits",
        "TPC-C: the standard's limits",
        ["workload", *([column] if column else []), "clients", "transaction", "count", "share", "at least", "mean ms",
         "p90 ms", "limit ms", "verdict"],
        cells,
        "Clauses 5.2.3 and 5.2.5.3: the least share of each transaction, and what nine of ten must keep, which "
        "must not be below the mean; of a delivery until it is carried out. A terminal's own session carries out its "
        "deliveries, while it thinks; the standard's queue is not there. An audited run measures for two hours at "
        "least.",
        4 if column else 3,
        ["count", "at least", "mean ms", "clients"],
    )  # fmt: skip


def drawn(run: RunAnalysis) -> Table:
    """Return the table of the clients' random inputs and of the deliveries that skipped a district.

    It covers runs at the standard's pace.
    """
    column = variant_column(list(run.groups))
    cells: list[list[str | Cell]] = []
    for g, r in _at_pace(run):
        for x in tpcc_ranges.ranges(g, r.of_a_set):
            shown = [x.shown(v) for v in (x.value, x.low, x.high)]
            what = [g.workload, *([g.variant] if column else []), str(g.clients), x.name]
            cells.append([*what, *all_linked([f"{x.count:,}", *shown], g.trials), x.verdict])
    return Table(
        "tpcc-ranges",
        "TPC-C: what was drawn",
        ["workload", *([column] if column else []), "clients", "input", "drawn", "measured", "from", "to", "verdict"],
        cells,
        "Clauses 5.5.1.5 and 2.7.4.2: ranges for what clients draw by chance, the warm-up included, and for deliveries "
        "that found a district without a new order, which are to be reported where they are more than one, and "
        "more than 1%. Outside of a range by no more than chance does to so few once in a thousand times: too short to "
        "say.",
        4 if column else 3,
        ["drawn", "from", "to", "clients"],
    )


def checks(data: RunData) -> Table:
    """Return the table of the consistency conditions that were checked after trials."""
    found: dict[tuple[str, str], list[tuple[int, dict[str, Any]]]] = {}
    for number, of in data.checks.items():
        for c in of:
            found.setdefault((c["clause"], c["title"]), []).append((number, c))
    cells: list[list[str | Cell]] = []
    for (clause, title), times in found.items():
        words = "holds"
        if broken := [(n, c) for n, c in times if not c["holds"]]:
            number, first = broken[0]
            words = f"broken: {first['broken']:,} after trial {number}, e.g. {first['example']}"
        cells.append([clause, title, f"{len(times)}", words])
    return Table(
        "checks",
        "TPC-C: consistency",
        ["clause", "condition", "checked", "result"],
        cells,
        "Clause 3.3.2 of the standard, checked in the tables after each trial. 3.3.2.11 counts deliveries, which the "
        "standard's wording, made for tables that are just populated, does not.",
        2,
        [],
    )
