"""The answer: the sentences that every report begins with, whatever form it has."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from pgdyno.analysis.compare import Comparison, Verdict
from pgdyno.diagnosis.difference import whole_pages_share
from pgdyno.figures import COMPARED, PERCENTILES, TPS, is_known
from pgdyno.judge.compared import ENOUGH, Pair, Row, starts, units_more
from pgdyno.judge.groups import Group
from pgdyno.message import Argument, Listed, Message, Name, Text, listed, message
from pgdyno.model import Regimes, spelled
from pgdyno.report import names, verdicts
from pgdyno.report.comparisons import figure_name
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store.manifest import Capacity
from pgdyno.store.reading import RunData
from pgdyno.units import Quantity

Args = dict[str, Argument]
#: Sentences about configurations; the tables have all.
_SOME = 4
#: Variants that are a comparison rather than a matrix.
_FEW_VARIANTS = 2
#: Clients that give this part of the best throughput are as many as are worth having.
_ENOUGH = 0.95
#: Axes whose values say what they are of.
_NAMED_BY_VALUE = {"target", "dataset", "protocol"}
#: What stands behind the first figure, where it changes.
_BESIDES = tuple(COMPARED[name] for name in ("p99", "WAL/tx", "CPU/tx"))
#: A change is said as a factor from here on.
_FACTOR = 2.0
#: From this share on, a part is most of the whole.
_MOSTLY = 0.5
#: Attribute of the figure that is of the loading of the data.
_LOAD = "load_s"
#: A shorter interval, in percent, is written without digits behind the point.
_TEN_PERCENT = 9.95
#: What a crash may cost, by setting and value.
_RISKY = {
    "synchronous_commit": {"off": "risk-commits"},
    "fsync": {"off": "risk-cluster"},
    "full_page_writes": {"off": "risk-pages"},
}
#: Verdicts that are counted.
_COUNTED = {
    Verdict.FASTER: "counted-faster", Verdict.SLOWER: "counted-slower", Verdict.SAME: "counted-same",
    Verdict.UNKNOWN: "counted-unknown",
}  # fmt: skip


def _number(value: float) -> Quantity:
    return Quantity(value, "count")


def without_work(run: RunAnalysis) -> list[Text]:
    """Return what the answer begins with where statements did nothing: the throughput counts them all the same."""
    found: dict[str, tuple[int, int, list[str]]] = {}
    for g in run.groups:
        for s in (s for t in g.trials if t.summary for s in t.summary.statements if s.does_nothing):
            empty, count, where = found.get(s.title, (0, 0, []))
            where = where if g.workload in where else [*where, g.workload]
            found[s.title] = (empty + s.empty, count + s.executed, where)
    return [
        message(
            "answer-no-work", statement=Name(title[:80]), share=Quantity(empty / count, "share"), count=count,
            where=listed(map(Name, where), "list"),
        )
        for title, (empty, count, where) in list(found.items())[:_SOME]
    ]  # fmt: skip


def without_one_level(run: RunAnalysis) -> list[Text]:
    """Return what the answer begins with where the throughput changed its level, or stood still."""
    if run.data.manifest.capacity is not None:
        return []
    if run.data.manifest.run.is_duet:
        return _without_one_ratio(run)
    mixed = [g for g in run.groups if any(t.plan.number in run.spoiling for t in g.mixed)]
    out: list[Text] = []
    for g in mixed[:_SOME]:
        some = g.mixed
        worst = max((t.summary.regimes for t in some if t.summary and t.summary.regimes), key=_how_far)
        trials = names.trials_of(len(some), len(g.trials))
        out.append(message("answer-no-one-level", where=names.configuration(g), events=_happened(worst), trials=trials))
    if len(mixed) > _SOME:
        out.append(message("answer-more-without-level", n=len(mixed) - _SOME))
    return out


def _without_one_ratio(run: RunAnalysis) -> list[Text]:
    """Return a sentence for each configuration of a duet that changed against its partner in too many trials."""
    found = []
    for g in dict.fromkeys(pair.b for pair in run.comparisons.pairs):
        n = sum(t.plan.number in run.spoiling for t in g.trials)
        if n:
            trials = names.trials_of(n, len(g.trials))
            found.append(message("answer-no-one-ratio", where=names.configuration(g), trials=trials))
    return [*found[:_SOME], *([message("answer-more-without-level", n=len(found) - _SOME)] if found[_SOME:] else [])]


def _how_far(r: Regimes) -> tuple[float, float]:
    levels = sorted((r.before_tps, r.after_tps))
    return (levels[1] / max(levels[0], 1e-9) if r.change_at_s is not None else 0.0, r.stall_s)


def _happened(r: Regimes) -> Listed:
    found: list[Message] = []
    if r.change_at_s is not None:
        levels = {"before": _number(r.before_tps), "after": _number(r.after_tps)}
        at = Quantity(r.change_at_s, "factor")
        fell = r.after_tps < r.before_tps
        found.append(message("level-fell", **levels, at=at) if fell else message("level-rose", **levels, at=at))
    if r.stall_s:
        length, at = Quantity(r.stall_s, "factor"), Quantity(r.stall_at_s, "factor")
        found.append(message("stall", length=length, at=at))
    return listed(found, "comma")


def main_sentences(run: RunAnalysis) -> list[Text]:
    """Return the main result of a run in sentences.

    A capacity search reports its rate, a comparison its verdicts, and a matrix its best results.
    """
    found = run.comparisons
    capacity = run.data.manifest.capacity
    if capacity is not None:
        return _capacity(run.data, capacity)
    if found.rows and is_matrix(run):
        return [*_levels(run), *_counted(found.rows), *_unfinished(run.data)]
    if found.rows:
        written = run.data.manifest.run.order == "written" or run.data.manifest.batched
        drift = [message("answer-drift-counts")] if written else []
        advice = _advice(run.data, found.rows)
        sentences = comparison_sentences(found.rows, _values, lambda row: _mostly_images(run, row))
        return [*sentences, *_unfinished(run.data), *drift, *advice, *_risk(found.rows)]
    return _levels(run)


# -------------------------------------------------------------------- comparisons


def is_matrix(run: RunAnalysis) -> bool:
    """Return True if a run measures many variants and shows no difference: its levels are the answer."""
    throughputs = [r for r in run.comparisons.rows if r.figure is TPS]
    if any(r.comparison.verdict is not Verdict.UNKNOWN for r in throughputs):
        return False
    return len({tuple(g.varied.items()) for g in run.groups}) > _FEW_VARIANTS


def _counted(rows: Sequence[Row]) -> list[Text]:
    """Return the sentence that counts the comparisons of throughput by their verdicts."""
    every = [r.comparison.verdict for r in rows if r.figure is TPS]
    counts = [Message(id, {"n": every.count(v)}) for v, id in _COUNTED.items() if v in every]
    return [message("answer-comparisons", n=len(every), counts=listed(counts))] if every else []


def _values(pair: Pair) -> tuple[Text, Text]:
    """Return the names of A and B on the compared axis.

    A number or a switch needs the name of its axis before it.
    """
    a, b = (spelled(g.varied[pair.axis]) for g in (pair.a, pair.b))
    of = "" if pair.axis in _NAMED_BY_VALUE else f"{pair.axis} = "
    return Name(f"{of}{a}"), Name(f"{of}{b}")


def comparison_sentences(
    rows: Sequence[Row],
    names: Callable[[Pair], tuple[Text, Text]],
    remark: Callable[[Row], Message | None] = lambda _: None,
) -> list[Text]:
    """Return a sentence for each of the clearest pairs, and one that counts the other pairs.

    Pairs whose verdict is not known come last. `names` returns the names of A and B in a pair, `remark` a text that
    stands beside a figure that moved.
    """
    by_pair: dict[int, dict[str, Row]] = {}
    for row in rows:
        by_pair.setdefault(id(row.pair), {})[row.figure.name] = row
    first = {id(of): next(iter(of.values())) for of in by_pair.values()}
    leading = sorted(by_pair.values(), key=lambda of: _rank(first[id(of)].comparison))
    out: list[Text] = [_sentence(of, names(first[id(of)].pair), remark) for of in leading[:_SOME]]
    rest = [first[id(of)].comparison.verdict for of in leading[_SOME:]]
    if rest:
        counts = [Message(id, {"n": rest.count(v)}) for v, id in _COUNTED.items() if v in rest]
        out.append(message("answer-more-comparisons", n=len(rest), counts=listed(counts)))
    return out


def _rank(c: Comparison) -> tuple[float, float]:
    order = {Verdict.FASTER: 0, Verdict.SLOWER: 0, Verdict.SAME: 1, Verdict.UNKNOWN: 2}
    nearest = 0.0 if c.verdict is Verdict.UNKNOWN else -max(c.ratio, 1 / c.ratio)
    return order[c.verdict] + (0.5 if c.is_negligible else 0), nearest


def _sentence(rows: Mapping[str, Row], names: tuple[Text, Text], remark: Callable[[Row], Message | None]) -> Message:
    a, b = names
    row = next(iter(rows.values()))
    c, where = row.comparison, _where(row)
    if c.verdict is Verdict.UNKNOWN:
        return _not_known(row, a, b)
    if c.verdict is Verdict.SAME:
        return message("answer-same", a=a, b=b, margin=verdicts.margin(c), where=where, more=_and_more(rows, remark))
    if row.figure.is_cost:
        return message(
            "answer-cost", b=b, word=verdicts.direction(c, row.figure), moved=_moved(row, remark), where=where
        )
    # As a speed: of a latency its inverse.
    low, high = (c.low, c.high) if row.figure.higher_is_better else (1 / c.high, 1 / c.low)
    rest: Args = {"where": where, "of": _limits(row), "more": _and_more(rows, remark)}
    rest["negligible"] = message("answer-negligible", margin=verdicts.margin(c)) if c.is_negligible else None
    if low > 1:
        if low >= _FACTOR:
            return Message("answer-times", {"fast": b, "slow": a, "times": verdicts.times(low, high), **rest})
        return Message("answer-faster", {"a": a, "b": b, "by": _by(low, high), **rest})
    if 1 / high >= _FACTOR:
        return Message("answer-times", {"fast": a, "slow": b, "times": verdicts.times(1 / high, 1 / low), **rest})
    return Message("answer-slower", {"a": a, "b": b, "by": _by(high, low), **rest})


def _not_known(row: Row, a: Text, b: Text) -> Message:
    c, between = row.comparison, None
    if verdicts.is_readable(c.low, c.high):
        # As a speed: of a latency its inverse.
        ends = (1 / c.high, 1 / c.low) if row.figure.unit == "ns" else (c.low, c.high)
        between = message("answer-between", interval=verdicts.between(*ends))
    time = verdicts.time_that_would_tell(row)
    more = message("answer-time-that-would-tell", time=time) if time else None
    word = message("less-or-more") if row.figure.is_cost else message("faster-or-slower")
    return message("answer-not-known", a=a, b=b, word=word, where=_where(row), between=between, more=more)


def _limits(row: Row) -> Listed:
    """Return the text that limits the verdict of a duet to two servers that were started once.

    The limit matters because equal servers may differ by some percent.
    """
    a, b = row.pair.a.trials, row.pair.b.trials
    parts: list[Message] = [message("answer-together")] if row.from_slices and row.together else []
    if row.from_slices and starts(a) == 1 and a[0].place != b[0].place:
        parts.append(message("answer-as-running") if row.running else message("answer-as-started"))
    return listed(parts, "none")


def _where(row: Row) -> Listed:
    if row.figure.attribute == _LOAD:
        # The loading of the data, before all clients and workloads.
        return listed([figure_name(row)])
    g = row.pair.b
    of = [Name(g.workload), *names.varied(g, row.pair.axis), names.clients(g.clients)]
    return listed([figure_name(row), *of])


def _by(near: float, far: float) -> Message:
    """Return two ratios as changes in percent, the one nearer to 1 first, e.g. "4.2% to 9.1%".

    For a very wide interval, return only the nearer end, e.g. "at least 4.2%".
    """
    parts = [abs(x - 1) for x in (near, far)]
    if not verdicts.is_readable(*sorted((near, far))):
        digits = 0 if parts[0] * 100 >= _TEN_PERCENT else 1
        return message("by-at-least", near=Quantity(parts[0], "share", digits))
    digits = 0 if min(parts) * 100 >= _TEN_PERCENT else 1
    return message("by-from-to", near=Quantity(parts[0], "share", digits), far=Quantity(parts[1], "share", digits))


def _and_more(rows: Mapping[str, Row], remark: Callable[[Row], Message | None]) -> Listed:
    """Return the changes of p99 and of the costs of a transaction that are known and not negligible."""
    known = [rows[f.name] for f in _BESIDES if f.name in rows and _is_known(rows[f.name])]
    return listed([message("answer-and-moved", moved=_moved(r, remark)) for r in known], "none")


def _is_known(row: Row) -> bool:
    return row.comparison.verdict in (Verdict.FASTER, Verdict.SLOWER) and not row.comparison.is_negligible


def _moved(row: Row, remark: Callable[[Row], Message | None]) -> Message:
    c, figure = row.comparison, row.figure
    args: Args = {
        "figure": Name(figure.name),
        "a": figure.quantity(c.mean_a),
        "b": figure.quantity(c.mean_b),
        "remark": remark(row),
    }
    if c.high >= _FACTOR:
        return message("moved-times", **args, times=verdicts.times(c.low, c.high))
    if c.ratio < 1:
        return message("moved-falls", **args, by=_by(c.high, c.low))
    return message("moved-rises", **args, by=_by(c.low, c.high))


def _mostly_images(run: RunAnalysis, row: Row) -> Message | None:
    """Return the remark that most WAL of A and of B is full-page images, or None.

    A page is written whole once after a checkpoint: the more transactions fit between two checkpoints, the fewer images
    a transaction writes.
    """
    if row.figure is not COMPARED["WAL/tx"]:
        return None
    a, b = (whole_pages_share(run.observed(g.trials)) for g in (row.pair.a, row.pair.b))
    if a is None or b is None or min(a, b) < _MOSTLY:
        return None
    return message("remark-images")


def _unfinished(data: RunData) -> list[Text]:
    """Trials that are in no verdict."""
    lost = [t for t in data.trials if t.state != "finished"]
    planned = data.manifest.trials or len(data.trials)
    missing = max(len(lost), planned - len(data.trials) + len(lost))
    if not missing or data.under_way:
        return []
    return [message("answer-unfinished", n=missing, of=planned)]


def _advice(data: RunData, rows: Sequence[Row]) -> list[Text]:
    """Return the options to run again with if the verdict on throughput is not known yet."""
    unknown = [r for r in rows if r.figure is TPS and r.comparison.verdict is Verdict.UNKNOWN and r.comparison.more]
    if not unknown:
        return []
    run = data.manifest.run
    from_slices = unknown[0].from_slices
    if 1 < run.restarts < ENOUGH or (not from_slices and run.restarts == 1 and run.repetitions < ENOUGH):
        name, n = ("restarts", run.restarts) if run.restarts > 1 else ("repetitions", run.repetitions)
        # As many more as there were take as long as these have.
        so_far = run.seconds_of_a_trial * (data.manifest.trials or len(data.trials))
        time = Quantity(so_far * ENOUGH / n, "seconds")
        return [message("advice-tells-more", option=Name(f"--{name} {ENOUGH}"), time=time)]
    if max(r.seconds or 0.0 for r in unknown) > verdicts.MOST_S:
        return [_below_what_can_be_told(unknown)]
    factor = max(units_more(r.comparison) / min(r.comparison.n_a, r.comparison.n_b) + 1 for r in unknown)
    if run.restarts > 1:
        option = f"--restarts {math.ceil(run.restarts * factor)}"
    elif from_slices:
        option = f"--duration {math.ceil((run.duration_s or 0) * factor)}"
    else:
        option = f"--repetitions {math.ceil(run.repetitions * factor)}"
    return [message("advice-tells", option=Name(option))]


def _below_what_can_be_told(unknown: Sequence[Row]) -> Message:
    """Return the sentence about differences that an hour of measuring would not show."""
    known = [c for r in unknown if verdicts.is_readable((c := r.comparison).low, c.high)]
    if not known:
        return message("advice-disturbed")
    widest = max(max(c.high, 1 / c.low) - 1 for c in known)
    return message("advice-below", most=Quantity(widest, "%", 2))


def _risk(rows: Sequence[Row]) -> list[Text]:
    """Return a warning for each compared setting that trades safety in a crash for speed."""
    found = dict.fromkeys(
        (r.pair.axis, value)
        for r in rows
        for g in (r.pair.a, r.pair.b)
        if (value := spelled(g.varied.get(r.pair.axis))) in _RISKY.get(r.pair.axis, {})
    )
    return [
        message("answer-risk", setting=Name(f"{axis} = {value}"), risk=Message(_RISKY[axis][value]))
        for axis, value in found
    ]


# -------------------------------------------------------------------- levels


def short_levels(run: RunAnalysis) -> list[Text]:
    """Return the best throughput of each workload and hot set, each in one line of a terminal.

    Return an empty list for a comparison or a search, whose answers are other sentences.
    """
    if run.comparisons.rows or run.data.manifest.capacity is not None:
        return []
    several = len({g.hot_set for g in run.groups}) > 1
    best: dict[tuple[str, float], Group] = {}
    for g in run.groups:
        key = (g.workload, g.hot_set)
        if key not in best or g.over("tps").mean > best[key].over("tps").mean:
            best[key] = g
    out: list[Text] = []
    for (workload, hot), g in best.items():
        tps = g.over("tps").mean
        if g.mixed or not tps > 0:
            # The sentences of the answer say why.
            return []
        pooled = run.data.pooled[g.key]
        own, half = sorted(t.summary.tps for t in g.trials if t.summary), g.half_width()
        spread = message("level-of-one")
        if half is not None:
            # The interval of the tiles, the bars and the table.
            spread = message("level-interval", half=Quantity(half, "half-width"), n=len(own))
        elif len(own) > 1:
            spread = message("level-range", low=_number(own[0]), high=_number(own[-1]), n=len(own))
        known = is_known(pooled.count, PERCENTILES[2])
        p99 = message("level-p99", p99=Quantity(pooled.p99_ns, "latency")) if known else None
        where = listed([Name(workload), *([message("hot-set", share=Quantity(hot, "%"))] if several else [])])
        out.append(
            message(
                "level",
                where=where,
                speed=_speed(g, tps),
                spread=spread,
                p99=p99,
                clients=names.clients(g.clients),
                workload=Name(workload),
                tps=_number(tps),
            )
        )
    if len(out) > _SOME:
        return [*out[:_SOME], Name(f"+ {len(out) - _SOME}")]
    return out


def _speed(g: Group, tps: float) -> Message:
    rows = g.trials[0].rows_per_transaction
    return message("speed-rows", n=_number(tps * rows)) if rows else message("speed-tps", n=_number(tps))


def _levels(run: RunAnalysis) -> list[Text]:
    """Return the best throughput of each workload and hot set over the numbers of clients.

    Each sentence also names the smallest number of clients that comes near this throughput.
    """
    curves: dict[tuple[str, float], list[Group]] = {}
    for g in run.groups:
        curves.setdefault((g.workload, g.hot_set), []).append(g)
    several = len({hot for _, hot in curves}) > 1
    out: list[Text] = []
    for (workload, hot), of in curves.items():
        best = max(of, key=lambda g: g.over("tps").mean)
        most = best.over("tps").mean
        if best.mixed:
            # Said above, with its levels.
            continue
        if not most > 0:
            out.append(message("answer-nothing-committed", workload=Name(workload)))
            continue
        # Of all repetitions' transactions together, as in the tables.
        pooled = run.data.pooled[best.key]
        known = pooled.p99_ns and is_known(pooled.count, PERCENTILES[2])
        where = message("answer-over", share=Quantity(hot, "%")) if several else None
        out.append(
            message(
                "answer-level", workload=Name(workload), over=where, speed=_speed(best, most), sure=_sure(best),
                p99=message("answer-p99", p99=Quantity(pooled.p99_ns, "latency")) if known else None,
                clients=listed([*(Name(f"{k} = {spelled(v)}") for k, v in best.varied.items()),
                names.clients(best.clients)]), enough=_enough(of, best),
            )
        )  # fmt: skip
    if len(out) > _SOME:
        return [*out[:_SOME], message("answer-more-in-tables", n=len(out) - _SOME)]
    return out


def _sure(best: Group) -> Message | None:
    """Return how sure the throughput is: its interval, or the range of the trials if there is none."""
    half = best.half_width()
    if half is not None:
        return message("plus-minus", half=Quantity(half, "half-width"))
    own = sorted(t.summary.tps for t in best.trials if t.summary)
    if len(own) < 2:
        return None
    return message("answer-range", low=_number(own[0]), high=_number(own[-1]), n=len(own))


def _enough(of: Sequence[Group], best: Group) -> Message | None:
    """Return the smallest number of clients that comes near the best throughput, or None."""
    most = best.over("tps").mean
    fewest = min((g for g in of if g.over("tps").mean >= _ENOUGH * most), key=lambda g: g.clients)
    if fewest.clients >= best.clients:
        return None
    return message("answer-enough", clients=fewest.clients, share=Quantity(fewest.over("tps").mean / most, "share"))


# -------------------------------------------------------------------- capacity


def _capacity(data: RunData, c: Capacity) -> list[Text]:
    t = data.trials[0].plan if data.trials else None
    where = listed([Name(t.workload), names.clients(t.clients)] if t else [])
    slo, closed, rate = Name(c.objective), _number(c.closed_tps), _number(c.rate or 0.0)
    if not c.rate:
        if c.held:
            return [message("capacity-not-known", slo=slo, where=where, held=_number(c.held))]
        return [message("capacity-none", slo=slo, where=where, closed=closed)]
    if c.low is None or c.high is None:
        return [message("capacity-rate", rate=rate, slo=slo, closed=closed)]
    level = Quantity(c.level, "%")
    args: Args = {
        "slo": slo, "rate": rate, "low": _number(c.low), "high": _number(c.high), "level": level, "where": where,
        "trials": len(c.probes), "closed": closed,
    }  # fmt: skip
    if c.most is not None:
        # What one would promise somebody comes first; the rate that half of the trials hold is what is measured best.
        most: Args = {
            "most": _number(c.most.rate),
            "most_low": _number(c.most.low),
            "most_high": _number(c.most.high),
        }
        out: list[Text] = [Message("capacity-most", {**args, **most})]
    else:
        out = [Message("capacity-half", args)]
    if not c.narrow:
        out.append(message("capacity-not-narrow"))
    if c.contradiction is not None:
        failed, held = c.contradiction
        out.append(message("capacity-not-monotone", failed=Quantity(failed, "rate"), held=Quantity(held, "rate")))
    return out
