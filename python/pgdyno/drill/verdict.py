"""Verdict on the rounds of one fault: a sentence and the reason."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import scipy

from pgdyno import i18n
from pgdyno.drill.faults import FAULTS
from pgdyno.drill.records import Round
from pgdyno.message import Message, Name, Text, counted, message
from pgdyno.units import Quantity

#: Of the statement about what was not seen.
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Verdict:
    """Rounds of one fault with one configuration."""

    fault: str
    synchronous_standby_names: str
    synchronous_commit: str
    rounds: int
    #: Rounds that are worth nothing, with their reasons.
    errors: list[Text]
    acknowledged: int
    lost: int
    #: Of them, without a warning of the server's.
    lost_in_silence: int
    #: Rounds that have lost some.
    losing: int
    unknown: int
    unknown_there: int
    resurrected: int
    seen_and_missing: int
    holes: int
    #: Rows that no client wrote, and rows that are there more than once.
    phantoms: int
    twice: int
    #: Rows with another content than was written, and clients whose updates or deletes do not fit their inserts.
    changed: int
    torn: int
    differing: list[str]
    #: Rounds in which two members acknowledged commits as primaries; in which two were primaries at all; and how many
    #: acknowledged commits only one of them had before anything was mended.
    split_brain: int
    two_primaries: int
    divided: int
    #: Medians over the rounds: commits a second, latency, both before the fault.
    tps: float
    p50_s: float | None
    p99_s: float | None
    #: The same of the workload beside the ledger; None: there was none.
    beside_tps: float | None
    #: Seconds that clients were not served: of all clients of all rounds the median, the 95th percentile, the longest;
    #: and how many did not come back.
    outage_p50_s: float | None
    outage_p95_s: float | None
    outage_max_s: float | None
    not_back: int
    #: Seconds for which those were not served, at least: the longest.
    not_back_s: float
    #: Medians over the rounds: commits a second and p99 from the fault until all were served, and behind that; seconds
    #: from the fault to a new primary, to the first commit, and to a second with 90% of the commits of before.
    during_tps: float | None
    during_p99_s: float | None
    after_tps: float | None
    after_p99_s: float | None
    promoted_s: float | None
    first_commit_s: float | None
    recovered_s: float | None
    #: Rounds that did not come back to that, and how long they were watched, seconds: the longest.
    not_recovered: int
    watched_s: float
    #: Medians over the rounds: to finding the primary dead, and of pg_promote.
    detected_s: float | None
    promote_s: float | None
    #: Why commits were lost, or could be; None: none were, or nothing explains it.
    why: Message | None
    #: Conditions of the workload beside the ledger that its tables broke.
    inconsistent: list[Text]
    #: The fault may lose commits; it must, to show that a loss is seen; and if, only behind a warning.
    may_lose: bool
    must_lose: bool
    only_warned: bool

    @property
    def is_sound(self) -> bool:
        """Every round counts, nothing is odd, and everybody is served again."""
        odd = self.resurrected or self.differing or self.two_primaries or self.holes or self.inconsistent
        odd = odd or self.split_brain or self.divided
        odd = odd or self.changed or self.torn
        return not (odd or self.phantoms or self.twice or self.errors or self.not_back)

    @property
    def is_good(self) -> bool:
        """Sound, and nothing lost."""
        return self.is_sound and not self.lost

    @property
    def is_as_expected(self) -> bool:
        """Sound, and commits are lost just where the fault must lose some."""
        if not self.is_sound or (self.only_warned and self.lost_in_silence):
            return False
        return self.may_lose if self.lost else not self.must_lose

    @property
    def most_losing(self) -> float:
        """Return the largest share of such failures that may lose commits.

        It is the one-sided bound at 95% confidence of Clopper and Pearson (1934), from `losing` in the rounds that
        count.
        """
        counted = self.rounds - len(self.errors)
        losing = min(self.losing, counted)
        if counted == 0 or losing == counted:
            return 1.0
        if losing == 0:
            return float(1 - (1 - _CONFIDENCE) ** (1 / counted))
        return float(scipy.special.betaincinv(losing + 1, counted - losing, _CONFIDENCE))

    @property
    def sentence(self) -> Message:
        """The answer."""
        counted = self.rounds - len(self.errors)
        of, rounds = self.acknowledged, counted_rounds(counted)
        if self.divided:
            lost = message("drill-and-lost", n=self.lost) if self.lost else None
            every = counted_rounds(self.rounds)
            return message("drill-split-brain", n=self.divided, of=of, lost=lost, rounds=every)
        if self.lost:
            behind = self.lost - self.lost_in_silence
            warned = message("drill-behind-warning", n=behind) if behind else None
            every = counted_rounds(self.rounds)
            return message("drill-lost", n=self.lost, of=of, warned=warned, losing=self.losing, rounds=every)
        if not counted:
            return message("drill-no-round", why=self.errors[0])
        if self.phantoms:
            return message("drill-wrong-phantoms", n=self.phantoms, of=of, rounds=rounds)
        if self.twice:
            return message("drill-wrong-twice", n=self.twice, of=of, rounds=rounds)
        if self.changed:
            return message("drill-wrong-changed", n=self.changed, of=of, rounds=rounds)
        if self.torn:
            return message("drill-wrong-torn", n=self.torn, of=of, rounds=rounds)
        return message("drill-nothing-lost", of=of, rounds=rounds, bound=Quantity(self.most_losing, "share", 0))

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        why = i18n.text(self.why) if self.why else ""
        verdict = i18n.text(self.sentence)
        texts = {
            "errors": [i18n.text(x) for x in self.errors],
            "inconsistent": [i18n.text(x) for x in self.inconsistent],
        }
        return {
            **self.__dict__, **texts, "why": why, "verdict": verdict, "good": self.is_good,
            "most_losing": self.most_losing,
        }  # fmt: skip


def counted_rounds(n: int) -> Message:
    """Return a number of rounds."""
    return counted("n-rounds", n)


def _took_writes_s(r: Round) -> float | None:
    """Return the seconds from the fault until the new primary took writes, or None if there was no new primary.

    A client that commits sees it before pg_promote returns, or before the next look of pgdyno's at its role.
    """
    if not r.promoted_ns or not r.fault_ns:
        return None
    seen = (r.promoted_ns - r.fault_ns) / 1e9
    return seen if r.first_commit_s is None else min(seen, r.first_commit_s)


def judge_rounds(rounds: Sequence[Round]) -> Verdict:
    """Return the verdict on rounds with the same fault and configuration."""
    first = rounds[0]
    counted = [r for r in rounds if r.error is None and r.audit is not None]
    # What was lost is lost, however the round went on.
    audits = [r.audit for r in rounds if r.audit is not None]
    outages = [o for r in counted for o in r.outages]
    # One that has not ended is longer than all that have.
    seconds = sorted(math.inf if o.seconds is None else o.seconds for o in outages)
    lost = sum(len(a.lost) for a in audits)
    return Verdict(
        fault=first.fault,
        synchronous_standby_names=first.synchronous_standby_names,
        synchronous_commit=first.synchronous_commit,
        rounds=len(rounds),
        errors=[r.error for r in rounds if r.error is not None],
        acknowledged=sum(a.acknowledged for a in audits),
        lost=lost,
        lost_in_silence=sum(len(a.lost_in_silence) for a in audits),
        losing=sum(bool(a.lost) for a in audits),
        unknown=sum(a.unknown for a in audits),
        unknown_there=sum(a.unknown_there for a in audits),
        resurrected=sum(len(a.resurrected) for a in audits),
        seen_and_missing=sum(a.seen_and_missing for a in audits),
        holes=sum(len(a.holes) for a in audits),
        phantoms=sum(len(a.phantoms) for a in audits),
        twice=sum(a.twice for a in audits),
        changed=sum(len(a.changed) for a in audits),
        torn=sum(len(a.torn) for a in audits),
        differing=sorted({m for r in rounds for m in r.differing}),
        split_brain=sum(r.split_brain for r in rounds),
        two_primaries=sum(bool(r.other_primaries) for r in rounds),
        divided=sum(n for r in rounds for n in r.divided.values()),
        tps=statistics.median([r.tps for r in counted]) if counted else 0.0,
        p50_s=_median([r.p50_s for r in counted]),
        p99_s=_median([r.p99_s for r in counted]),
        beside_tps=_median([r.beside_tps for r in counted]),
        outage_p50_s=_rank(seconds, 0.5),
        outage_p95_s=_rank(seconds, 0.95),
        outage_max_s=_rank(seconds, 1.0),
        not_back=sum(o.seconds is None for o in outages),
        not_back_s=max((o.at_least_ns / 1e9 for o in outages if o.seconds is None), default=0.0),
        during_tps=_median([r.during_tps for r in counted]),
        during_p99_s=_median([r.during_p99_s for r in counted]),
        after_tps=_median([r.after_tps for r in counted]),
        after_p99_s=_median([r.after_p99_s for r in counted]),
        promoted_s=_median([_took_writes_s(r) for r in counted]),
        first_commit_s=_median([r.first_commit_s for r in counted]),
        recovered_s=_median([r.recovered_s for r in counted]),
        not_recovered=sum(bool(r.tps) and r.recovered_s is None for r in counted),
        watched_s=max((r.watched_s for r in counted), default=0.0),
        detected_s=_median([(r.detected_ns - r.down_ns) / 1e9 for r in counted if r.detected_ns and r.down_ns]),
        promote_s=_median([r.promote_s for r in counted]),
        why=_why(rounds),
        inconsistent=[words for r in rounds for words in r.inconsistent],
        **_expectation(first),
    )


def _why(rounds: Sequence[Round]) -> Message | None:
    """Return the rule that was broken, as far as it is known.

    Return None if no commit was lost and no row vanished after it was read.
    """
    audits = [r.audit for r in rounds if r.audit is not None]
    if not audits:
        return None
    first = rounds[0]
    silent = any(a.lost_in_silence for a in audits)
    if any(r.split_brain for r in rounds) and silent:
        return message("drill-why-not-fenced")
    if any(a.holes for a in audits):
        # Observed before what the settings allow: no setting loses a piece and keeps what came after it.
        return message("drill-why-holes")
    if silent:
        return _why_in_silence(first)
    if any(a.lost for a in audits):
        return message("drill-why-cancelled")
    if any(a.seen_and_missing for a in audits):
        return message("drill-why-seen")
    return None


def _why_in_silence(r: Round) -> Message:
    """Return the reason why acknowledged commits were lost without a warning."""
    if r.fault == "stale-promotion":
        return message("drill-why-stale")
    if r.fault == "double-failure":
        names = r.synchronous_standby_names
        survives = Name(names) if names else message("drill-asynchronous-standbys")
        return message("drill-why-double", survives=survives)
    if r.synchronous_commit == "off":
        return message("drill-why-commit-off")
    if not r.synchronous_standby_names or r.synchronous_commit == "local":
        return message("drill-why-asynchronous")
    return message("drill-why-fell-back") if r.fell_back else message("drill-why-promise")


def _expectation(r: Round) -> dict[str, bool]:
    """Return the expected outcome of the fault.

    Nothing is known about the outcome on a cluster that another tool manages.
    """
    may_lose = r.standbys > 0 and r.fault in FAULTS and FAULTS[r.fault].must_lose
    return {
        "may_lose": may_lose,
        # Where more standbys have each commit, or another is left, they outlive it.
        "must_lose": may_lose and r.waits_for <= 1 and r.standbys == 2,
        "only_warned": may_lose and FAULTS[r.fault].only_warned and r.waits_for > 0,
    }


def _rank(values: Sequence[float], part: float) -> float | None:
    """Return the quantile `part` of outages by nearest rank, or None if that outage has not ended."""
    found = values[math.ceil(part * len(values)) - 1] if values else math.inf
    return None if math.isinf(found) else found


def _median(values: Sequence[float | None]) -> float | None:
    some = [v for v in values if v is not None]
    return statistics.median(some) if some else None
