"""A long command of another session: VACUUM FULL, CREATE INDEX, COPY, a base backup."""

from __future__ import annotations

from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.finding import THROUGHPUT, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.recorded import Recorded
from pgdyno.message import Name, message
from pgdyno.units import Quantity

_LOSS = 0.03
#: Share of a sample in which the command ran, from which the sample counts as disturbed.
_OVERLAP = 0.5


def commands(r: Recorded) -> list[tuple[int, int, str, str]]:
    """Return when commands of other sessions were seen: start and end in ns, command, relation.

    The progress views do not name the session, so a command that a script of the workload has is left out.
    """
    return [
        (row["start_ns"], row["end_ns"], str(row["command"]), str(row["relation"]))
        for row in r.rows("progress")
        if not row["auto"] and not r.mentions(_verb(str(row["command"])))
    ]


def _verb(command: str) -> str:
    """Return the words that a script would have: "vacuum" of "vacuum full", "create index" of "create index x"."""
    parts = command.split()
    return " ".join(parts[:2] if parts[:1] in (["create"], ["base"]) else parts[:1])


def _judge(e: Observed) -> Finding | None:
    seconds: dict[tuple[str, str], float] = {}
    for r in e.trials:
        for start, end, command, relation in commands(r):
            seconds[command, relation] = seconds.get((command, relation), 0.0) + (end - start) / 1e9
    if not seconds:
        return None

    def is_disturbed(r: Recorded, start: int, end: int) -> bool:
        covered = sum(max(0, min(end, last) - max(start, first)) for first, last, _, _ in commands(r))
        return covered >= _OVERLAP * (end - start)

    cost = e.throughput_loss(is_disturbed)
    if cost is None or cost.low <= 0 or cost.mean < _LOSS:
        return None
    command, relation = max(seconds, key=lambda x: seconds[x])
    on = message("foreign-command-on", relation=Name(relation)) if relation else None
    return e.finding(
        CAUSE,
        message(
            "foreign-command", command=Name(command.upper()), on=on, share=cost,
            seconds=Quantity(seconds[command, relation], "seconds"),
        ),
        cost, THROUGHPUT, Confidence.HIGH,
        message("foreign-command-remedy"),
        [Fact("seen-s", seconds[command, relation] * 1e9, "ns"), Fact("commands", len(seconds))],
    )  # fmt: skip


CAUSE = Cause("foreign-command", Kind.TROUBLE, "a long command of another session", _judge)
