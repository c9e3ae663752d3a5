"""The highest rate that a server sustains under a latency objective: a search by bracketing. docs/math.md, Capacity."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

#: The search ends when the bracket is so narrow: the highest good rate and the lowest bad one, 3% apart.
NARROW = 1.03
#: A rate counts as sustained when so much of it was done.
SUSTAINED = 0.98
_STEP = 1.5
_UNITS = {"us": 1e3, "ms": 1e6, "s": 1e9}
_OBJECTIVE = re.compile(r"^\s*(p50|p95|p99|p99\.9|mean|max)\s*<=?\s*(\d+(?:\.\d+)?)\s*(us|ms|s)\s*$")


@dataclass(frozen=True)
class Objective:
    """A latency objective: a figure of the distribution, and what it must stay below."""

    figure: str
    below_ns: float

    def __str__(self) -> str:
        return f"{self.figure} < {self.below_ns / 1e6:g} ms"


def objective(text: str) -> Objective:
    """Reads "p99<5ms". Raises ValueError."""
    match = _OBJECTIVE.match(text)
    if match is None:
        raise ValueError(
            f'"{text}" is no latency objective: write it as p99<5ms (p50, p95, p99, p99.9, mean, max; us, ms, s)'
        )
    return Objective(match[1], float(match[2]) * _UNITS[match[3]])


@dataclass(frozen=True)
class Probe:
    """What a trial at a rate came to."""

    rate: float
    #: Transactions per second that were done.
    done: float
    latency_ns: float

    def holds(self, wanted: Objective) -> bool:
        """Whether the rate was sustained, within the objective."""
        return self.done >= SUSTAINED * self.rate and self.latency_ns < wanted.below_ns


@dataclass
class Search:
    """Asks for rates, is told what came of them, and narrows the bracket.

    `start` is a first guess, such as half of what a closed loop reaches. A rate that holds is tried again before it
    counts as good: one lucky trial is no capacity. Assumes that a rate above one that fails fails as well.
    """

    objective: Objective
    start: float
    confirm: int = 2
    most_trials: int = 40
    probes: list[Probe] = field(default_factory=list)
    #: The highest rate that held each time, and the lowest that failed.
    good: float = 0.0
    bad: float = math.inf
    _held: int = 0

    def next_rate(self) -> float | None:
        """The rate to try next; None: the search is over."""
        if len(self.probes) >= self.most_trials or (self.good > 0 and self.bad / self.good <= NARROW):
            return None
        if self._held:
            return self.probes[-1].rate
        if math.isinf(self.bad):
            return self.start if self.good == 0 else self.good * _STEP
        if self.good == 0:
            # Nothing held yet: not even a thousandth of the guess would be an answer.
            lower = self.bad / 2
            return lower if lower > self.start / 1000 else None
        return math.sqrt(self.good * self.bad)

    def tell(self, probe: Probe) -> None:
        """What came of the rate that was asked for."""
        self.probes.append(probe)
        if not probe.holds(self.objective):
            self._held = 0
            self.bad = min(self.bad, probe.rate)
            if self.good >= self.bad:
                self.good = 0.0
            return
        self._held += 1
        if self._held >= self.confirm:
            self._held = 0
            self.good = max(self.good, probe.rate)

    @property
    def is_bracketed(self) -> bool:
        """Whether the answer is known to within the narrow bracket."""
        return self.good > 0 and self.bad / self.good <= NARROW
