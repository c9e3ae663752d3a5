"""Findings of a drill in sentences, for the terminal and the page."""

from __future__ import annotations

from pgdyno.drill.drill import Drill
from pgdyno.drill.modes import Mode
from pgdyno.drill.rounds import Options
from pgdyno.drill.verdict import Verdict
from pgdyno.format import count
from pgdyno.report.page import Answer

METHOD = [
    "Each client writes rows with its number, a sequence and a content that follows from both, a transaction each, and "
    "writes down what it was told of each. Lost is what was acknowledged, by the answer to COMMIT, and is missing on "
    "the surviving primary. Where the connection was lost between COMMIT and its answer it is unknown, not lost.",
    "The same transaction updates the client's register, and deletes and inserts its token: afterwards both must be "
    "where its last row is, and every row must have the content that was written.",
    "The primary is taken for dead when most of its standbys cannot reach it by pg_isready, twice in a row, half a "
    "second apart. It is killed then, and the standby that has received most is promoted.",
    "An outage is the longest time between two acknowledged commits of a client behind the fault.",
    "Killed are processes: the kernel's memory survives, so this does not test disks. Clients and members share this "
    "machine's processors.",
]
#: Less than this part of the commits/s of before is worth a sentence.
_SLOWER = 0.9
#: An outage that is worth a sentence where nobody was promoted.
_NOTABLE_S = 0.5
METHOD_FOREIGN = [
    METHOD[0],
    "Another tool manages this cluster: who is promoted, when, and how the others come back is its own. The fault is a "
    "command of the user's. Roles are looked at each 50 ms, over the network as clients do.",
    METHOD[1],
    METHOD[3],
]
FALLS_BACK = (
    "PostgreSQL does not fall back by itself where no standby is there: in maximum availability pgdyno empties "
    "synchronous_standby_names then, as Patroni's synchronous_mode does. What is acknowledged from then on only the "
    "primary has."
)


def by_mode(drill: Drill) -> dict[Mode, list[Verdict]]:
    """Return the verdicts of each mode.

    The mode has no name if the drill kept the configuration of the cluster.
    """
    found: dict[Mode, list[Verdict]] = {}
    for mode, v in drill.verdicts:
        found.setdefault(mode, []).append(v)
    return found


def answers(drill: Drill) -> list[Answer]:
    """Return one sentence for each mode, or for each fault."""
    found = []
    for mode, verdicts in by_mode(drill).items():
        if mode.name:
            why = list(dict.fromkeys(n for v in verdicts for n in notes(v)))
            found.append(Answer(mode.name, f"{mode.name} ({mode.settings}): {of_mode(verdicts)}", why))
        else:
            found += [
                Answer(v.fault, f"{v.fault}: {v.sentence}", [*notes(v), *timing(v, drill.options)]) for v in verdicts
            ]
    return found


def of_mode(verdicts: list[Verdict]) -> str:
    """Return a sentence about the losses of a mode, over all faults."""
    lost, acknowledged = sum(v.lost for v in verdicts), sum(v.acknowledged for v in verdicts)
    rounds = sum(v.rounds - len(v.errors) for v in verdicts)
    if lost:
        faults = ", ".join(v.fault for v in verdicts if v.lost)
        return f"LOST {lost:,} of {acknowledged:,} acknowledged commits ({faults})"
    return f"nothing lost of {acknowledged:,} acknowledged commits in {rounds} rounds"


def notes(v: Verdict) -> list[str]:
    """Return sentences that give the reason for a verdict and name anything odd."""
    found = [v.why] if v.why else []
    if v.only_warned and v.lost_in_silence:
        found.append(
            f"{v.lost_in_silence:,} of them were lost without a warning: that must not be, with this fault either."
        )
    elif v.lost and v.may_lose:
        found.append("That must be so with this fault: the drill shows that it can see a loss.")
    if v.must_lose and not v.lost:
        found.append("With this fault some must be lost: this drill has not shown that it can see a loss.")
    found += v.inconsistent[:3]
    if v.errors:
        found.append(f"{len(v.errors)} of {v.rounds} rounds do not count: {v.errors[0]}")
    if v.seen_and_missing:
        found.append(f"{v.seen_and_missing:,} commits could be read before the failover and are gone.")
    if v.phantoms:
        found.append(f"{v.phantoms:,} rows are there that no client wrote: round.json names them (phantoms).")
    if v.changed:
        found.append(f"{count(v.changed, 'row')} changed in place since written: round.json names them (changed).")
    if v.torn:
        found.append(
            f"The updates or deletes of {count(v.torn, 'client')} are not where their inserts are, of one transaction: "
            "round.json names them (torn)."
        )
    if v.twice:
        found.append(f"{v.twice:,} rows are there more than once, against the primary key: run pg_amcheck.")
    if v.resurrected:
        found.append(f"{v.resurrected:,} transactions that had failed are there.")
    if v.holes:
        found.append(f"{v.holes:,} lost commits are older than others of the same client that are there.")
    if v.differing:
        found.append(f"The ledger differs on {', '.join(v.differing)} after joining again.")
    if v.divided:
        found.append(
            f"{v.divided:,} acknowledged commits were on one of two primaries only, before anything was mended: "
            "whichever of the two is made to follow loses what it alone has."
        )
    if v.split_brain:
        found.append(f"Split brain in {_rounds(v.split_brain)}: two primaries acknowledged writes.")
    elif v.two_primaries and not v.divided:
        found.append(
            f"In {_rounds(v.two_primaries)} two members were primaries at once: both could have taken writes; none was "
            "acknowledged by the one that should have followed."
        )
    if v.not_back:
        found.append(
            f"{v.not_back} client{'s were' if v.not_back != 1 else ' was'} not served again before the round's end: "
            f"for at least {seconds(v.not_back_s)} s."
        )
    return found


def _rounds(n: int) -> str:
    return f"{n} round{'s' if n != 1 else ''}"


def timing(v: Verdict, options: Options) -> list[str]:
    """Return sentences about the phases of a failover's outage and the fault's effect on the speed.

    They also mention the workload that ran beside the ledger.
    """
    beside = [] if v.beside_tps is None else [f"Beside it {v.beside_tps:,.0f} transactions/s."]
    return [*_outage(v, options), *_speed(v), *beside]


def _speed(v: Verdict) -> list[str]:
    """Return sentences about the change of throughput and latency, if it is notable."""
    if not v.tps or v.after_tps is None:
        return []
    out = []
    if v.after_tps < _SLOWER * v.tps or (v.during_tps or 0.0) < _SLOWER * v.tps:
        during = "" if v.during_tps is None else f"{v.during_tps:,.0f} until all were served again, "
        out.append(
            f"Commits/s: {v.tps:,.0f} before the fault, {during}{v.after_tps:,.0f} behind that (p99 "
            f"{milliseconds(v.p99_s)}, {milliseconds(v.after_p99_s)} ms)."
        )
    first = "" if v.first_commit_s is None else f"The first commit came {seconds(v.first_commit_s)} s after the fault; "
    if v.recovered_s is not None and v.recovered_s >= _NOTABLE_S:
        out.append(
            f"{first or 'After the fault '}90% of the commits/s of before were reached after "
            f"{seconds(v.recovered_s)} s."
        )
    if v.not_recovered:
        out.append(
            f"{_rounds(v.not_recovered)} did not reach 90% of the commits/s of before within the {v.watched_s:.1f} s "
            "that were watched behind the fault (--after)."
        )
    return out


def _outage(v: Verdict, options: Options) -> list[str]:
    if v.promote_s is None:
        if v.outage_p50_s is None or v.outage_p50_s < _NOTABLE_S:
            return []
        return [
            f"Clients were not served for {seconds(v.outage_p50_s)} s (95% within {seconds(v.outage_p95_s)}, longest "
            f"{seconds(v.outage_max_s)})."
        ]
    new = (
        ""
        if v.promoted_s is None
        else (
            f" The new primary took writes {seconds(v.promoted_s)} s after the fault. A client notices later: it waits "
            f"up to {options.answer_timeout_s:g} s for an answer (--answer-timeout) and "
            f"{options.connect_timeout_s:g} s for a connection, and that is in its outage."
        )
    )
    found = f"the primary was found dead after {seconds(v.detected_s)} s, " if v.detected_s is not None else ""
    return [
        f"Clients were not served for {seconds(v.outage_p50_s)} s (95% within {seconds(v.outage_p95_s)}, longest "
        f"{seconds(v.outage_max_s)}): {found}pg_promote took {seconds(v.promote_s)} s.{new}"
    ]


def milliseconds(value: float | None) -> str:
    """Three digits, or a dash."""
    return "–" if value is None else f"{value * 1e3:.3g}"


def seconds(value: float | None) -> str:
    """Hundredths, or a dash."""
    return "–" if value is None else f"{value:.2f}"
