"""Further tables on trials: what the server did meanwhile, how transactions ended, and each trial by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pgdyno.figures import BY_NAME, Figure, is_known
from pgdyno.judge.groups import Group, variant_column
from pgdyno.message import Message, Name, Text, listed, message, single_line
from pgdyno.model import TrialSummary
from pgdyno.report.cells import (
    BY_UNIT,
    COUNT,
    DASH,
    GROWTH,
    PERCENT,
    SHARE,
    SIZE,
    TOO_FEW,
    Column,
    Table,
    Value,
    all_linked,
    cells,
    column,
    linked,
    own_column,
    significant,
)
from pgdyno.store.reading import RunData
from pgdyno.units import Quantity

_OF_A_TRIAL = tuple(BY_NAME[name] for name in ("TPS", "p99", "max", "client CPU"))


def activity(groups: Sequence[Group]) -> Table:
    """Return the table of the server's activity during the trials."""
    variant = variant_column(list(groups))
    rows = []
    for g in groups:
        # What TPC-C's clients drew is none of the server's.
        trials = [t for t in g.trials if t.summary and any(not n.startswith("tpcc_") for n in t.activity)]
        if not trials:
            continue

        def mean(name: str, trials: list[Any] = trials) -> float | None:
            values = [t.activity[name] for t in trials if name in t.activity]
            return sum(values) / len(values) if values else None

        updated, hot, wal = mean("rows_updated"), mean("rows_hot_updated"), mean("wal_bytes")
        done = sum((t.activity.get("rows_inserted", 0) + t.activity.get("rows_updated", 0)) for t in trials)
        written = sum(t.activity.get("wal_bytes", 0) for t in trials)
        figures = [
            None if wal is None else max(0.0, wal),
            written / done if done else None,
            hot / updated if updated and hot is not None else None,
            mean("table_bytes_growth"),
            mean("index_bytes_growth"),
            (mean("checkpoints_timed") or 0.0) + (mean("checkpoints_requested") or 0.0),
        ]
        label = cells([g.workload, *([g.variant] if variant else []), g.hot_set, g.clients])
        rows.append([*label, *all_linked(figures, trials)])
    return Table(
        "server",
        message("table-server"),
        [
            column("workload"), *([own_column(variant)] if variant else []), column("hot set", SHARE),
            column("clients", COUNT), column("WAL", SIZE), column("WAL B/row", COUNT), column("HOT", PERCENT),
            column("tables", GROWTH), column("indexes", GROWTH), column("checkpoints", significant(3)),
        ],
        rows,
        [message("note-server")],
        3 if variant else 2,
        ["hot set", "clients", "checkpoints", "indexes"],
    )  # fmt: skip


def _outcomes(s: TrialSummary) -> list[Text]:
    parts: list[Text] = [message("outcome-failed", n=n, code=Name(code)) for code, n in sorted(s.failed.items())]
    for n, id in (
        (s.unknown, "outcome-unknown"),
        (s.skipped, "outcome-skipped"),
        (s.unfinished, "outcome-unfinished"),
        (s.lost, "outcome-lost"),
    ):
        if n:
            parts.append(Message(id, {"n": n}))
    return parts


def outcomes(data: RunData) -> Table:
    """Only trials in which something but commits happened."""
    rows = []
    for t in data.trials:
        found = _outcomes(t.summary) if t.summary else []
        if t.summary and t.summary.warmup_dropped_s:
            found.append(message("outcome-dropped", seconds=Quantity(t.summary.warmup_dropped_s, "factor")))
        if t.error is not None:
            found.append(single_line(t.error))
        if found:
            rows.append(cells([linked(Name(t.plan.folder), [t]), t.state_name, listed(found, "semicolon")]))
    columns = [column("trial"), column("state"), column("outcomes", is_long=True)]
    return Table("outcomes", message("table-outcomes"), columns, rows, [], 3)


def _shown(s: TrialSummary, f: Figure) -> Value:
    if f.beyond is not None and not is_known(s.latency.count, f):
        return TOO_FEW
    value = float(f.of(s))
    if (f.beyond is not None and s.regimes is not None) or (f.unit == "ns" and not value):
        return DASH
    return value


def trials(data: RunData) -> Table:
    """All of them."""
    rows = []
    for t in data.trials:
        s = t.summary
        figures: list[Value | None] = [None] * (1 + len(_OF_A_TRIAL))
        if s is not None:
            figures = [s.committed, *(_shown(s, f) for f in _OF_A_TRIAL)]
        rows.append(cells([t.plan.folder, t.state_name, *figures]))
    columns = [column("trial"), column("state"), column("committed", COUNT)]
    columns += [Column(f.heading, column(f.heading).title, BY_UNIT[f.unit]) for f in _OF_A_TRIAL]
    folders = [f"trials/{t.plan.folder}" for t in data.trials]
    return Table("trials", message("table-trials"), columns, rows, [message("note-trials")], 2, folders=folders)
