"""The highest rate that a server sustains under a latency objective: a search by bracketing. docs/math.md, Capacity."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

#: The search ends when the bracket is so narrow: the highest good rate and the lowest bad one, 3% apart.
NARROW = 1.03
#: A rate counts as sustained when so much of it was done.
SUSTAINED = 0.98
_STEP = 2.0
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

    `start` is a first guess, such as half of what a closed loop reaches. The rate that is the answer was tried
    `confirm`
    times and held each time: one lucky trial is no capacity. Assumes that a rate above one that fails fails as well.
    """

    objective: Objective
    start: float
    confirm: int = 2
    most_trials: int = 40
    probes: list[Probe] = field(default_factory=list)
    #: The lowest rate that failed.
    bad: float = math.inf
    #: How often each rate held, of those that never failed.
    _held: dict[float, int] = field(default_factory=dict)

    @property
    def good(self) -> float:
        """The highest rate that held as often as asked; 0: none."""
        return max((r for r, n in self._held.items() if n >= self.confirm), default=0.0)

    def next_rate(self) -> float | None:
        """The rate to try next; None: the search is over."""
        if len(self.probes) >= self.most_trials or self.is_bracketed:
            return None
        highest = max(self._held, default=0.0)
        if math.isinf(self.bad):
            return highest * _STEP or self.start
        if highest == 0:
            # Nothing held yet: not even a thousandth of the guess would be an answer.
            return self.bad / 2 if self.bad / 2 > self.start / 1000 else None
        if self.bad / highest <= NARROW:
            return highest
        return math.sqrt(highest * self.bad)

    def tell(self, probe: Probe) -> None:
        """What came of the rate that was asked for."""
        self.probes.append(probe)
        if probe.holds(self.objective):
            self._held[probe.rate] = self._held.get(probe.rate, 0) + 1
            return
        self.bad = min(self.bad, probe.rate)
        self._held = {r: n for r, n in self._held.items() if r < self.bad}

    @property
    def is_bracketed(self) -> bool:
        """Whether the answer is known to within the narrow bracket."""
        return self.good > 0 and self.bad / self.good <= NARROW
