"""The highest rate that a server sustains under a latency objective: a search by bracketing. docs/math.md, Capacity."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

#: The search ends when the bracket is so narrow: the highest good rate and the lowest bad one, 3% apart.
NARROW = 1.03
#: A rate is sustained when so much of what became due was done in time.
SUSTAINED = 0.98
#: Trials that must agree.
_AGREE = 2
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
    #: Whether what became due was done: of Poisson arrivals another number each time, so not of the rate.
    kept_up: bool = True

    def holds(self, wanted: Objective) -> bool:
        """Whether the rate was sustained, within the objective."""
        return self.kept_up and self.latency_ns < wanted.below_ns


@dataclass
class Search:
    """Asks for rates, is told what came of them, and narrows the bracket.

    `start` is a first guess, such as half of what a closed loop reaches. A rate is good, or bad, when two of its trials
    say so: neither a lucky nor an unlucky one decides. On the way up one that holds is enough to go on. Assumes that a
    rate above a bad one is bad as well.
    """

    objective: Objective
    start: float
    most_trials: int = 50
    probes: list[Probe] = field(default_factory=list)
    #: By rate: trials that held, and trials that did not.
    _votes: dict[float, tuple[int, int]] = field(default_factory=dict)

    @property
    def bad(self) -> float:
        """The lowest rate that failed twice."""
        return min((r for r, (_, no) in self._votes.items() if no >= _AGREE), default=math.inf)

    @property
    def good(self) -> float:
        """The highest rate, below all bad ones, that held twice; 0: none."""
        return max((r for r, (yes, _) in self._votes.items() if yes >= _AGREE and r < self.bad), default=0.0)

    def next_rate(self) -> float | None:
        """The rate to try next; None: the search is over."""
        if len(self.probes) >= self.most_trials or self.is_bracketed:
            return None
        below = {r: v for r, v in self._votes.items() if r < self.bad}
        doubtful = [r for r, (yes, no) in below.items() if no and yes < _AGREE]
        if doubtful:
            return min(doubtful)
        highest = max(below, default=0.0)
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
        yes, no = self._votes.get(probe.rate, (0, 0))
        holds = probe.holds(self.objective)
        self._votes[probe.rate] = (yes + holds, no + (not holds))

    @property
    def is_bracketed(self) -> bool:
        """Whether the answer is known to within the narrow bracket."""
        return self.good > 0 and self.bad / self.good <= NARROW
