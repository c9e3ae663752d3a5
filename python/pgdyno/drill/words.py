"""Findings of a drill in sentences, for the terminal and the page."""

from __future__ import annotations

from pgdyno.drill.drill import Drill
from pgdyno.drill.modes import Mode
from pgdyno.drill.records import Options
from pgdyno.drill.verdict import Verdict, counted_rounds
from pgdyno.message import Listed, Message, Name, Text, counted, listed, message
from pgdyno.report.page import Answer
from pgdyno.units import Quantity

METHOD: list[Text] = [
    message("drill-method-ledger"),
    message("drill-method-register"),
    message("drill-method-detector"),
    message("drill-method-outage"),
    message("drill-method-killed"),
]
METHOD_FOREIGN: list[Text] = [
    message("drill-method-ledger"),
    message("drill-method-foreign"),
    message("drill-method-register"),
    message("drill-method-outage"),
]
#: Less than this part of the commits/s of before is worth a sentence.
_SLOWER = 0.9
#: An outage that is worth a sentence where nobody was promoted.
_NOTABLE_S = 0.5


def verdicts_by_mode(drill: Drill) -> dict[Mode, list[Verdict]]:
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
    for mode, verdicts in verdicts_by_mode(drill).items():
        if mode.name:
            why: list[Text] = []
            for v in verdicts:
                why += [n for n in notes(v) if n not in why]
            label = Name(f"{mode.name} ({mode.settings})")
            found.append(Answer(Name(mode.name), message("labelled", label=label, text=mode_sentence(verdicts)), why))
            continue
        for v in verdicts:
            named = listed([Name(v.fault), message("in-brackets", text=waited_for(v))], "none")
            sentence = message("labelled", label=named, text=v.sentence)
            found.append(Answer(Name(v.fault), sentence, [*notes(v), *timing(v, drill.options)]))
    return found


def waited_for(v: Verdict) -> Listed:
    """Return what an acknowledged commit has waited for: a loss is judged by it."""
    names = v.synchronous_standby_names
    is_alone = not names or v.synchronous_commit in ("off", "local")
    waits_for = message("drill-asynchronous-standbys") if is_alone else message("drill-waits-for", names=Name(names))
    return listed([Name(f"synchronous_commit = {v.synchronous_commit}"), waits_for])


def mode_sentence(verdicts: list[Verdict]) -> Message:
    """Return a sentence about the losses of a mode, over all faults."""
    lost, acknowledged = sum(v.lost for v in verdicts), sum(v.acknowledged for v in verdicts)
    if lost:
        faults = listed((Name(v.fault) for v in verdicts if v.lost), "list")
        return message("drill-mode-lost", n=lost, of=acknowledged, faults=faults)
    rounds = counted_rounds(sum(v.rounds - len(v.errors) for v in verdicts))
    return message("drill-mode-kept", of=acknowledged, rounds=rounds)


def notes(v: Verdict) -> list[Text]:
    """Return sentences that give the reason for a verdict and name anything odd."""
    found: list[Text] = [v.why] if v.why else []
    if v.only_warned and v.lost_in_silence:
        found.append(message("drill-note-silent", n=v.lost_in_silence))
    elif v.lost and v.may_lose:
        found.append(message("drill-note-may-lose"))
    if v.must_lose and not v.lost:
        found.append(message("drill-note-must-lose"))
    found += v.inconsistent[:3]
    if v.errors:
        found.append(message("drill-note-errors", fault=Name(v.fault), n=len(v.errors), of=v.rounds, why=v.errors[0]))
    odd = (
        (v.seen_and_missing, "drill-note-seen"), (v.phantoms, "drill-note-phantoms"), (v.changed, "drill-note-changed"),
        (v.torn, "drill-note-torn"), (v.twice, "drill-note-twice"), (v.resurrected, "drill-note-resurrected"),
        (v.holes, "drill-note-holes"),
    )  # fmt: skip
    found += [Message(id, {"n": n}) for n, id in odd if n]
    if v.differing:
        found.append(message("drill-note-differing", members=listed(map(Name, v.differing), "list")))
    if v.divided:
        found.append(message("drill-note-divided", n=v.divided))
    if v.split_brain:
        found.append(message("drill-note-split-brain", rounds=counted_rounds(v.split_brain)))
    elif v.two_primaries and not v.divided:
        found.append(message("drill-note-two-primaries", rounds=counted_rounds(v.two_primaries)))
    if v.not_back:
        clients = counted("n-clients", v.not_back)
        found.append(message("drill-note-not-back", clients=clients, seconds=_seconds(v.not_back_s)))
    return found


def timing(v: Verdict, options: Options) -> list[Text]:
    """Return sentences about the phases of a failover's outage and the fault's effect on the speed.

    They also mention the workload that ran beside the ledger.
    """
    beside = [] if v.beside_tps is None else [message("drill-beside", tps=Quantity(v.beside_tps, "fixed", 0))]
    return [*_outage(v, options), *_speed(v), *beside]


def _rate(value: float) -> Quantity:
    return Quantity(value, "fixed", 0)


def _speed(v: Verdict) -> list[Text]:
    """Return sentences about the change of throughput and latency, if it is notable."""
    if not v.tps or v.after_tps is None:
        return []
    out: list[Text] = []
    if v.after_tps < _SLOWER * v.tps or (v.during_tps or 0.0) < _SLOWER * v.tps:
        during = None if v.during_tps is None else message("drill-during", tps=_rate(v.during_tps))
        out.append(
            message(
                "drill-speed", before=_rate(v.tps), during=during, after=_rate(v.after_tps),
                p99_before=_milliseconds(v.p99_s), p99_after=_milliseconds(v.after_p99_s),
            )
        )  # fmt: skip
    if v.recovered_s is not None and v.recovered_s >= _NOTABLE_S:
        recovered = _seconds(v.recovered_s)
        out.append(
            message("drill-recovered", seconds=recovered)
            if v.first_commit_s is None
            else message("drill-first-and-recovered", first=_seconds(v.first_commit_s), seconds=recovered)
        )
    if v.not_recovered:
        watched = Quantity(v.watched_s, "fixed", 1)
        out.append(message("drill-not-recovered", rounds=counted_rounds(v.not_recovered), seconds=watched))
    return out


def _outage(v: Verdict, options: Options) -> list[Text]:
    if v.promote_s is None and (v.outage_p50_s is None or v.outage_p50_s < _NOTABLE_S):
        return []
    times = {"p50": _seconds(v.outage_p50_s), "p95": _seconds(v.outage_p95_s), "longest": _seconds(v.outage_max_s)}
    if v.promote_s is None:
        return [Message("drill-outage", times)]
    found = message("drill-found-dead", seconds=_seconds(v.detected_s)) if v.detected_s is not None else None
    out: list[Text] = [Message("drill-outage-failover", {**times, "found": found, "promote": _seconds(v.promote_s)})]
    if v.promoted_s is not None:
        waits = {
            "answer": Quantity(options.answer_timeout_s, "plain"),
            "connect": Quantity(options.connect_timeout_s, "plain"),
        }
        out.append(Message("drill-new-primary", {"seconds": _seconds(v.promoted_s), **waits}))
    return out


def _seconds(value: float | None) -> Quantity | Name:
    return Name("–") if value is None else Quantity(value, "fixed", 2)


def _milliseconds(value: float | None) -> Quantity | Name:
    return Name("–") if value is None else Quantity(value * 1e3, "factor")


def milliseconds(value: float | None) -> str:
    """Three digits, or a dash."""
    return "–" if value is None else f"{value * 1e3:.3g}"


def seconds(value: float | None) -> str:
    """Hundredths, or a dash."""
    return "–" if value is None else f"{value:.2f}"
