"""Further tables on trials: what the server did meanwhile, how transactions ended, and each trial by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pgdyno.figures import BY_NAME, Figure, is_known
from pgdyno.format import percent, size
from pgdyno.judge.groups import Group, variant_column
from pgdyno.model import TrialSummary
from pgdyno.report.cells import TOO_FEW, Cell, Table, all_linked, linked
from pgdyno.store.reading import RunData

_OF_A_TRIAL = tuple(BY_NAME[name] for name in ("TPS", "p99", "max", "client CPU"))


def activity(groups: Sequence[Group]) -> Table:
    """Return the table of the server's activity during the trials."""
    column = variant_column(list(groups))
    cells: list[list[str | Cell]] = []
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
        checkpoints = (mean("checkpoints_timed") or 0) + (mean("checkpoints_requested") or 0)
        cells.append(
            [
                g.workload,
                *([g.variant] if column else []),
                f"{g.hot_set * 100:g}%",
                str(g.clients),
                *all_linked(
                    [
                        "–" if wal is None else size(max(0.0, wal)),
                        "–" if not done else f"{written / done:,.0f}",
                        percent(hot / updated) if updated and hot is not None else "–",
                        _signed(mean("table_bytes_growth")),
                        _signed(mean("index_bytes_growth")),
                        f"{checkpoints:.3g}",
                    ],
                    trials,
                ),
            ]
        )
    more = [column] if column else []
    return Table(
        "server",
        "Server activity",
        ["workload", *more, "hot set", "clients", "WAL", "WAL B/row", "HOT", "tables", "indexes", "checkpoints"],
        cells,
        "From before each trial to after it, warm-up included; mean of the repetitions. WAL B/row: bytes for each "
        "row that "
        "was inserted or updated. HOT: updates that left the indexes alone. Tables, indexes: growth of all of the "
        "database.",
        3 if column else 2,
        ["hot set", "clients", "checkpoints", "indexes"],
    )


def _signed(n: float | None) -> str:
    if n is None:
        return "–"
    return f"{'-' if n < 0 else '+' if n > 0 else ''}{size(abs(n))}"


def _outcomes_text(s: TrialSummary) -> str:
    codes = ", ".join(f"{n:,} failed with {code}" for code, n in sorted(s.failed.items()))
    parts = [codes] if codes else []
    for n, what in (
        (s.unknown, "unknown"),
        (s.skipped, "skipped"),
        (s.unfinished, "unfinished"),
        (s.lost, "lost connections"),
    ):
        if n:
            parts.append(f"{n:,} {what}")
    return "; ".join(parts)


def outcomes(data: RunData) -> Table:
    """Only trials in which something but commits happened."""
    cells: list[list[str | Cell]] = []
    for t in data.trials:
        text = _outcomes_text(t.summary) if t.summary else ""
        if t.summary and t.summary.warmup_dropped_s:
            text = "; ".join(x for x in (text, f"first {t.summary.warmup_dropped_s:.1f} s left out as warm-up") if x)
        text = "; ".join(x for x in (text, " ".join(t.error.split())) if x)
        if text:
            cells.append([linked(t.plan.folder, [t]), t.state, text])
    return Table("outcomes", "What went wrong", ["trial", "state", "outcomes"], cells, "", 3)


def _shown(s: TrialSummary, f: Figure) -> str:
    if f.beyond is not None and not is_known(s.latency.count, f):
        return TOO_FEW
    return "–" if f.beyond is not None and s.regimes is not None else f.cell(f.of(s))


def trials(data: RunData) -> Table:
    """All of them."""
    cells: list[list[str | Cell]] = []
    for t in data.trials:
        s = t.summary
        if s is None:
            cells.append([t.plan.folder, t.state, "–", "–", "–", "–", "–"])
            continue
        cells.append(
            [
                t.plan.folder,
                t.state,
                f"{s.committed:,}",
                *(_shown(s, f) for f in _OF_A_TRIAL),
            ]
        )
    return Table(
        "trials",
        "Every trial",
        ["trial", "state", "committed", *(f.heading for f in _OF_A_TRIAL)],
        cells,
        "client CPU: of the busiest worker thread's time, the part on a CPU. Each trial's folder under trials/ has its "
        "time series (intervals.parquet), its latencies (latency.hlog) and its events (events.jsonl).",
        2,
        folders=[f"trials/{t.plan.folder}" for t in data.trials],
    )
