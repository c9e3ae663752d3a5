"""End of a trial whose length is open: its throughput is steady, and its 95% interval is narrow.

See docs/math.md, Length of a trial.
"""

from __future__ import annotations

from collections.abc import Callable

from pgdyno.message import Message, message
from pgdyno.model import IntervalRow
from pgdyno.run.trials.steadiness import known_to
from pgdyno.spec.experiment import Run
from pgdyno.units import Quantity

#: Half the 95% interval of the throughput that ends a trial, as a share of the mean.
PRECISION = 0.01
#: And of the latency of an open loop, whose throughput is given.
_LATENCY_PRECISION = 0.05
#: A trial is judged again when it is longer by this share. Each look at the figures is a chance to stop too early.
_AGAIN = 0.1


class LongEnoughError(Exception):
    """Ends the load of a trial: it has been long enough."""


class UntilSteady:
    """Observer of one trial's intervals."""

    def __init__(self, run: Run, has_cycle: Callable[[], bool]) -> None:
        """`has_cycle` returns True if the server has been through a whole period of its own, or has none."""
        self._run = run
        self._has_cycle = has_cycle
        self._rows: list[IntervalRow] = []
        self._precision = PRECISION if run.rate is None else _LATENCY_PRECISION
        self._next_s = run.duration_s
        self.ended = False

    def add(self, row: IntervalRow) -> None:
        """Add an interval. Raise LongEnoughError if no further one is needed."""
        if row.phase != "measure":
            return
        self._rows.append(row)
        if self.ended or self._seconds < self._next_s:
            return
        self._next_s = (1 + _AGAIN) * self._seconds
        known = self._known()
        if known is not None and known <= self._precision and self._has_cycle():
            self.ended = True
            raise LongEnoughError

    def _known(self) -> float | None:
        return known_to(self._rows, self._precision, open_loop=self._run.rate is not None)

    @property
    def _seconds(self) -> float:
        return (self._rows[-1].end_ns - self._rows[0].start_ns) / 1e9

    @property
    def result(self) -> Message:
        """Description of how the trial ended."""
        time = Quantity(self._seconds if self._rows else 0.0, "duration")
        known = self._known() if self._rows else None
        if known is None:
            return message("event-length-not-steady", time=time)
        precision = Quantity(known, "percent")
        return message("event-length-enough" if self.ended else "event-length-limit", time=time, precision=precision)
