"""Throughput that has one level for a part of the trial, and another for the rest."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.analysis import series
from pgdyno.analysis.levels import SMALLEST, level_change
from pgdyno.diagnosis import contrast, dips
from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.finding import THROUGHPUT, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.recorded import Recorded
from pgdyno.diagnosis.thresholds import LevelChange
from pgdyno.message import Message, Text, message
from pgdyno.model import EventKind
from pgdyno.units import Quantity, Share

#: Events whose time is not known: they lie between the beginning and the end of the trial.
_ANYWHERE = (EventKind.SCHEMA_CHANGED, EventKind.SETTING_CHANGED, EventKind.PLAN_CHANGED)
_DEFINED = (EventKind.SCHEMA_CHANGED, EventKind.SETTING_CHANGED)
_NEAR = (
    EventKind.CONFIGURATION_RELOADED, EventKind.SERVER_RESTARTED, EventKind.RECOVERY, EventKind.SERVER_PROCESS_DIED,
    EventKind.COUNTERS_RESET, EventKind.AUTOVACUUM, EventKind.CHECKPOINT_BEGINS,
)  # fmt: skip


@dataclass(frozen=True)
class _Change:
    recorded: Recorded
    at_ns: int
    before: float
    after: float

    @property
    def loss(self) -> float:
        """Throughput that the lower level costs, over the whole trial, as a part of what the higher one would give."""
        start, end = self.recorded.window
        at = (self.at_ns - start) / (end - start)
        return (1 - min(self.before, self.after) / max(self.before, self.after)) * (1 - at if self.falls else at)

    @property
    def falls(self) -> bool:
        """The second level is the lower one."""
        return self.after < self.before

    @property
    def slow(self) -> tuple[int, int]:
        """The times of the lower level."""
        start, end = self.recorded.window
        return (self.at_ns, end) if self.falls else (start, self.at_ns)


def _change(r: Recorded) -> _Change | None:
    s = r.trial.summary
    if s is None:
        return None
    if s.regimes is None or s.regimes.change_at_s is None:
        return _step(r, LevelChange.STEP) if any(e.kind in _DEFINED for e in r.events) else None
    if any(d.frozen_ns for d in dips.dips_of(r)):
        # Stretches in which nothing went on are no level.
        return _step(r, SMALLEST)
    at_ns = r.window[0] + round((s.warmup_dropped_s + s.regimes.change_at_s) * 1e9)
    return _Change(r, at_ns, s.regimes.before_tps, s.regimes.after_tps)


def _step(r: Recorded, smallest: float) -> _Change | None:
    """Return the step of the throughput by `smallest` or more, freezes aside."""
    frozen = [d for d in dips.dips_of(r) if d.frozen_ns]
    rows = [
        i
        for i in series.measured(r.intervals)
        if not any(d.start_ns <= i.start_ns and i.end_ns <= d.end_ns for d in frozen)
    ]
    found = level_change(series.tps_of(rows), smallest)
    return _Change(r, rows[found.index].start_ns, found.before, found.after) if found is not None else None


def _judge(e: Observed) -> Finding | None:
    changes = [c for r in e.trials if (c := _change(r)) is not None]
    if not changes or e.is_open_loop:
        return None
    loss = sum(c.loss for c in changes) / len(e.trials)
    if loss < LevelChange.LOSS:
        return None
    worst = max(changes, key=lambda c: c.loss)
    events = _events(worst)
    # A changed plan is a cause of its own; what was defined or set otherwise is not.
    is_known = any(e.kind in _DEFINED for e in worst.recorded.events)
    evidence: list[Text] = [*events, *contrast.observations(contrast.separators(worst.recorded, [worst.slow]))]
    seconds = Quantity((worst.at_ns - worst.recorded.window[0]) / 1e9, "seconds")
    return e.finding(
        CAUSE,
        message(
            "level-change-fell" if worst.falls else "level-change-rose", at=seconds,
            before=Quantity(worst.before, "count"), after=Quantity(worst.after, "count"),
            seen=contrast.sentence(evidence),
        ),
        Share(loss, 0.0, loss), THROUGHPUT,
        # Of an observed server the mix of statements may have changed.
        Confidence.HIGH if is_known else Confidence.LOW if e.is_observation else Confidence.MEDIUM,
        message("level-change-remedy"),
        [Fact("trials-with-change", len(changes)), Fact("trials", len(e.trials))],
    )  # fmt: skip


def _events(c: _Change) -> list[Text]:
    near = [e for e in c.recorded.events if not e.at_ns or abs(e.at_ns - c.at_ns) <= LevelChange.NEAR_NS]
    found = [_shown(e.kind, e.text) for kind in _ANYWHERE for e in near if e.kind == kind]
    kinds = dict.fromkeys(str(e.kind) for e in near if e.kind in _NEAR and e.at_ns)
    return [*found, *map(_kind, kinds)]


def _shown(kind: object, text: Text) -> Text:
    return message("contrast-plan", plan=text) if kind == EventKind.PLAN_CHANGED else text


def _kind(kind: str) -> Message:
    return message("dip-event", event=message(f"event-{kind.replace(' ', '-')}"))


CAUSE = Cause("level-change", Kind.TROUBLE, "a level that changed", _judge, is_generic=True)
