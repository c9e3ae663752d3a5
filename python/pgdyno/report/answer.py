"""The answer: the sentences that every report begins with, whatever form it has."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from pgdyno.analysis.compare import Comparison, Verdict
from pgdyno.figures import COMPARED, PERCENTILES, TPS, is_known
from pgdyno.format import integer, milliseconds, plus_minus, span
from pgdyno.judge.compared import ENOUGH, Pair, Row, starts, units_more
from pgdyno.judge.groups import Group
from pgdyno.model import Regimes, spelled
from pgdyno.report import verdicts
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store.manifest import Capacity
from pgdyno.store.reading import RunData

#: Sentences about configurations; the tables have all.
_SOME = 4
#: Clients that give this part of the best throughput are as many as are worth having.
_ENOUGH = 0.95
#: Axes whose values say what they are of.
_NAMED_BY_VALUE = {"target", "dataset", "protocol"}
#: What stands behind the first figure, where it changes.
_BESIDES = tuple(COMPARED[name] for name in ("p99", "WAL/tx", "CPU/tx"))
#: Half an interval, as a part of its figure, beyond which the trials are told instead.
_WIDE = 0.5
#: A change is said as a factor from here on.
_FACTOR = 2.0
#: What a crash may cost, by setting and value.
_RISKY = {
    "synchronous_commit": {"off": "a crash can lose the last commits"},
    "fsync": {"off": "a crash can destroy the cluster"},
    "full_page_writes": {"off": "a crash can leave torn pages"},
}


def without_work(run: RunAnalysis) -> list[str]:
    """Return what the answer begins with where statements did nothing: the throughput counts them all the same."""
    found: dict[str, tuple[int, int, list[str]]] = {}
    for g in run.groups:
        for s in (s for t in g.trials if t.summary for s in t.summary.statements if s.does_nothing):
            empty, count, where = found.get(s.title, (0, 0, []))
            where = where if g.workload in where else [*where, g.workload]
            found[s.title] = (empty + s.empty, count + s.latency.count, where)
    return [
        f"Work that was not done is counted: {title[:80]} found or changed no row in {empty / count * 100:.0f}% of its "
        f"{count:,} executions ({', '.join(where)})."
        for title, (empty, count, where) in list(found.items())[:_SOME]
    ]


def without_one_level(run: RunAnalysis) -> list[str]:
    """Return what the answer begins with where the throughput changed its level, or stood still."""
    mixed = [g for g in run.groups if g.mixed] if run.data.manifest.capacity is None else []
    out = []
    for g in mixed[:_SOME]:
        some = g.mixed
        worst = max((t.summary.regimes for t in some if t.summary and t.summary.regimes), key=_how_far)
        where = ", ".join([g.workload, *_varied(g), f"{g.clients} client{'s' if g.clients != 1 else ''}"])
        out.append(
            f"{where}: no one figure holds: {_happened(worst)} ({len(some)} of {len(g.trials)} "
            f"trial{'s' if len(g.trials) != 1 else ''})."
        )
    return [*out, *([f"{len(mixed) - _SOME} more configurations have no one level."] if len(mixed) > _SOME else [])]


def _how_far(r: Regimes) -> tuple[float, float]:
    levels = sorted((r.before_tps, r.after_tps))
    return (levels[1] / max(levels[0], 1e-9) if r.change_at_s is not None else 0.0, r.stall_s)


def _happened(r: Regimes) -> str:
    said = []
    if r.change_at_s is not None:
        verb = "fell" if r.after_tps < r.before_tps else "rose"
        said.append(
            f"throughput {verb} from {integer(r.before_tps)} to {integer(r.after_tps)} TPS after {r.change_at_s:.3g} s"
        )
    if r.stall_s:
        said.append(f"nothing was committed for {r.stall_s:.3g} s, from {r.stall_at_s:.3g} s on")
    return ", and ".join(said)


def of_run(run: RunAnalysis) -> list[str]:
    """Return the main result of a run in sentences.

    A capacity search reports its rate, a comparison its verdicts, and a matrix its best results.
    """
    found = run.comparisons
    capacity = run.data.manifest.capacity
    if capacity is not None:
        return _capacity(run.data, capacity)
    if found.rows:
        written = run.data.manifest.run.order == "written" or run.data.manifest.batched
        drift = ["The trials of each were run one after the other: a drift of the machine counts as a difference."]
        said = of_rows(found.rows, _values)
        return [
            *said,
            *_unfinished(run.data),
            *(drift if written else []),
            *_advice(run.data, found.rows),
            *_risk(found.rows),
        ]
    return _levels(run)


# -------------------------------------------------------------------- comparisons


def _values(pair: Pair) -> tuple[str, str]:
    """Return the names of A and B on the compared axis.

    A number or a switch needs the name of its axis before it.
    """
    a, b = (spelled(g.varied[pair.axis]) for g in (pair.a, pair.b))
    return (a, b) if pair.axis in _NAMED_BY_VALUE else (f"{pair.axis} = {a}", f"{pair.axis} = {b}")


def of_rows(rows: Sequence[Row], names: Callable[[Pair], tuple[str, str]]) -> list[str]:
    """Return a sentence for each of the clearest pairs, and one that counts the other pairs.

    Pairs whose verdict is not known come last. `names` returns the names of A and B in a pair.
    """
    by_pair: dict[int, dict[str, Row]] = {}
    for row in rows:
        by_pair.setdefault(id(row.pair), {})[row.figure.name] = row
    first = {id(of): next(iter(of.values())) for of in by_pair.values()}
    leading = sorted(by_pair.values(), key=lambda of: _rank(first[id(of)].comparison))
    out = [_sentence(of, names(first[id(of)].pair)) for of in leading[:_SOME]]
    rest = [first[id(of)].comparison.verdict for of in leading[_SOME:]]
    if rest:
        words = {
            Verdict.FASTER: "faster", Verdict.SLOWER: "slower", Verdict.SAME: "within the margin",
            Verdict.UNKNOWN: "not yet known",
        }  # fmt: skip
        counted = ", ".join(f"{rest.count(v)} {text}" for v, text in words.items() if v in rest)
        out.append(f"{len(rest)} more comparisons: {counted}.")
    return out


def _rank(c: Comparison) -> tuple[float, float]:
    order = {Verdict.FASTER: 0, Verdict.SLOWER: 0, Verdict.SAME: 1, Verdict.UNKNOWN: 2}
    nearest = 0.0 if c.verdict is Verdict.UNKNOWN else -max(c.ratio, 1 / c.ratio)
    return order[c.verdict] + (0.5 if c.is_negligible else 0), nearest


def _sentence(rows: Mapping[str, Row], names: tuple[str, str]) -> str:
    a, b = names
    row = next(iter(rows.values()))
    c, where = row.comparison, f"({', '.join(filter(None, [row.figure.name, *_where(row.pair)]))})"
    if c.verdict is Verdict.UNKNOWN:
        text = f"Not yet known whether {b} is {_ways(row)} than {a} {where}"
        if verdicts.is_readable(c.low, c.high):
            # As a speed: of a latency its inverse.
            ends = (1 / c.high, 1 / c.low) if row.figure.unit == "ns" else (c.low, c.high)
            text += f": between {verdicts.between(*ends).replace(' to ', ' and ')}"
        return text + (f"; about {told} more would tell." if (told := verdicts.time_that_would_tell(row)) else ".")
    if c.verdict is Verdict.SAME:
        return f"{b} and {a} are within {verdicts.margin(c)} of each other {where}{_and_more(rows)}."
    # As a speed: of a latency its inverse.
    if row.figure.is_cost:
        return f"{b} has {verdicts.direction(c, row.figure)} {_moved(row)} {where}."
    low, high = (c.low, c.high) if row.figure.higher_is_better else (1 / c.high, 1 / c.low)
    if low > 1:
        text = _times(a, b, low, high) or f"{b} is {_by(low, high)} faster than {a}"
    else:
        text = _times(b, a, 1 / high, 1 / low) or f"{b} is {_by(high, low)} slower than {a}"
    of_these = _of_these_starts(row)
    negligible = f", which is within {verdicts.margin(c)}" if c.is_negligible else ""
    return f"{text} {where}{of_these}{negligible}{_and_more(rows)}."


def _of_these_starts(row: Row) -> str:
    """Return the text that limits the verdict of a duet to two servers that were started once.

    The limit matters because equal servers may differ by some percent.
    """
    a, b = row.pair.a.trials, row.pair.b.trials
    if not row.by_slices:
        return ""
    together = ", both under load at once" if row.together else ""
    if starts(a) > 1 or a[0].place == b[0].place:
        return together
    return f"{together}, as these two servers {'run now' if row.running else 'were started'}"


def _ways(row: Row) -> str:
    return "less or more" if row.figure.is_cost else "faster or slower"


def _varied(g: Group, but: str = "") -> list[str]:
    hot = [f"{g.hot_set * 100:g}% hot"] if g.hot_set != 1 else []
    return [*(f"{k} = {spelled(v)}" for k, v in g.varied.items() if k != but), *hot]


def _where(pair: Pair) -> list[str]:
    g = pair.b
    return [g.workload, *_varied(g, pair.axis), f"{g.clients} client{'s' if g.clients != 1 else ''}"]


def _times(slower: str, faster: str, low: float, high: float) -> str:
    return f"{faster} is {verdicts.times(low, high)} as fast as {slower}" if low >= 2 else ""


def _by(near: float, far: float) -> str:
    """Return two ratios as changes in percent, the one nearer to 1 first, e.g. "4.2% to 9.1%".

    For a very wide interval, return only the nearer end, e.g. "at least 4.2%".
    """
    if not verdicts.is_readable(*sorted((near, far))):
        part = abs(near - 1) * 100
        return f"at least {part:.{0 if part >= 9.95 else 1}f}%"
    parts = [abs(x - 1) * 100 for x in (near, far)]
    digits = 0 if min(parts) >= 9.95 else 1
    return " to ".join(f"{p:.{digits}f}%" for p in parts)


def _and_more(rows: Mapping[str, Row]) -> str:
    """Return the changes of p99 and of the costs of a transaction that are known and not negligible."""
    return "".join(f"; {_moved(rows[f.name])}" for f in _BESIDES if f.name in rows and _is_known(rows[f.name]))


def _is_known(row: Row) -> bool:
    return row.comparison.verdict in (Verdict.FASTER, Verdict.SLOWER) and not row.comparison.is_negligible


def _moved(row: Row) -> str:
    c, figure = row.comparison, row.figure
    verb, (near, far) = ("falls", (c.high, c.low)) if c.ratio < 1 else ("rises", (c.low, c.high))
    means = f" ({figure.cell(c.mean_a)} to {figure.shown(c.mean_b)})"
    if c.high >= _FACTOR:
        return f"{figure.name} {verb} {verdicts.times(c.low, c.high)}{means}"
    return f"{figure.name} {verb} by {_by(near, far)}{means}"


def _unfinished(data: RunData) -> list[str]:
    """Trials that are in no verdict."""
    lost = [t for t in data.trials if t.state != "finished"]
    planned = data.manifest.trials or len(data.trials)
    missing = max(len(lost), planned - len(data.trials) + len(lost))
    if not missing or data.under_way:
        return []
    return [f"{missing} of {planned} trials were not finished; the verdicts stand on the others."]


def _advice(data: RunData, rows: Sequence[Row]) -> list[str]:
    """Return the options to run again with if the verdict on throughput is not known yet."""
    unknown = [r for r in rows if r.figure is TPS and r.comparison.verdict is Verdict.UNKNOWN and r.comparison.more]
    if not unknown:
        return []
    run = data.manifest.run
    by_slices = unknown[0].by_slices
    if 1 < run.restarts < ENOUGH or (not by_slices and run.restarts == 1 and run.repetitions < ENOUGH):
        name, n = ("restarts", run.restarts) if run.restarts > 1 else ("repetitions", run.repetitions)
        # As many more as there were take as long as these have.
        so_far = run.seconds_of_a_trial * (data.manifest.trials or len(data.trials))
        return [f"What would tell more: the same with --{name} {ENOUGH} (about {span(so_far * ENOUGH / n)})."]
    if max(r.seconds or 0.0 for r in unknown) > verdicts.MOST_S:
        return [_below_what_can_be_told(unknown)]
    factor = max(units_more(r.comparison) / min(r.comparison.n_a, r.comparison.n_b) + 1 for r in unknown)
    if run.restarts > 1:
        return [f"What would tell: the same with --restarts {math.ceil(run.restarts * factor)}."]
    if by_slices:
        return [f"What would tell: the same with --duration {math.ceil((run.duration_s or 0) * factor)}."]
    return [f"What would tell: the same with --repetitions {math.ceil(run.repetitions * factor)}."]


def _below_what_can_be_told(unknown: Sequence[Row]) -> str:
    """Return the sentence about differences that an hour of measuring would not show."""
    known = [c for r in unknown if verdicts.is_readable((c := r.comparison).low, c.high)]
    if not known:
        return (
            "The trials differ too much among themselves to tell: find out what disturbs them, or measure longer ones."
        )
    widest = max(max(c.high, 1 / c.low) - 1 for c in known)
    return (
        f"A difference, if there is one, is below what this machine can tell in an hour: less than {widest * 100:.2g}%."
    )


def _risk(rows: Sequence[Row]) -> list[str]:
    """Return a warning for each compared setting that trades safety in a crash for speed."""
    found = dict.fromkeys(
        f"{r.pair.axis} = {value}"
        for r in rows
        for g in (r.pair.a, r.pair.b)
        if (value := spelled(g.varied.get(r.pair.axis))) in _RISKY.get(r.pair.axis, {})
    )
    named = [text.split(" = ") for text in found]
    return [f"With {axis} = {value} {_RISKY[axis][value]}; that is not measured here." for axis, value in named]


# -------------------------------------------------------------------- levels


def short_levels(run: RunAnalysis, lang: str = "en") -> list[str]:
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
    out = []
    for (workload, hot), g in best.items():
        tps = g.over("tps").mean
        if g.mixed or not tps > 0:
            # The sentences of the answer say why.
            return []
        pooled, rows = run.data.pooled[g.key], g.trials[0].rows_per_transaction
        speed = f"{integer(tps * rows)} rows/s" if rows else f"{integer(tps)} {TPS.name}"
        own = sorted(t.summary.tps for t in g.trials if t.summary)
        spread = f"{integer(own[0])}-{integer(own[-1])}, n={len(own)}" if len(own) > 1 else "n=1"
        p99 = f"p99 {milliseconds(pooled.p99_ns)} ms, " if is_known(pooled.count, PERCENTILES[2]) else ""
        with_ = f"{g.clients} 个客户端" if lang == "zh" else f"{g.clients} client{'s' if g.clients != 1 else ''}"
        where = f" {hot * 100:g}%" if several else ""
        out.append(f"{workload}{where}: {speed} ({spread}), {p99}{with_}")
    return [*out[:_SOME], *([f"+ {len(out) - _SOME}"] if len(out) > _SOME else [])]


def _levels(run: RunAnalysis) -> list[str]:
    """Return the best throughput of each workload and hot set over the numbers of clients.

    Each sentence also names the smallest number of clients that comes near this throughput.
    """
    curves: dict[tuple[str, float], list[Group]] = {}
    for g in run.groups:
        curves.setdefault((g.workload, g.hot_set), []).append(g)
    several = len({hot for _, hot in curves}) > 1
    out = []
    for (workload, hot), of in curves.items():
        best = max(of, key=lambda g: g.over("tps").mean)
        most = best.over("tps").mean
        if best.mixed:
            # Said above, with its levels.
            continue
        if not most > 0:
            out.append(f"{workload}: no transaction was committed.")
            continue
        half = best.half_width()
        sure = f" ±{plus_minus(half)}" if half is not None and half <= _WIDE else ""
        if half is not None and half > _WIDE:
            own = sorted(t.summary.tps for t in best.trials if t.summary)
            sure = f" ({integer(own[0])} to {integer(own[-1])} in {len(own)} trials)" if len(own) > 1 else ""
        # Of all repetitions' transactions together, as in the tables.
        latency = run.data.pooled[best.key].p99_ns
        known = is_known(run.data.pooled[best.key].count, PERCENTILES[2])
        p99 = f", {PERCENTILES[2].name} {milliseconds(latency)} ms" if latency and known else ""
        rows = best.trials[0].rows_per_transaction
        speed = f"{integer(most * rows)} rows/s" if rows else f"{integer(most)} {TPS.name}"
        text = f"{workload}{f' over {hot * 100:g}% of the rows' if several else ''}: {speed}{sure}{p99}"
        text += f" with {best.clients} client{'s' if best.clients != 1 else ''}"
        if len(of) > 1:
            fewest = min((g for g in of if g.over("tps").mean >= _ENOUGH * most), key=lambda g: g.clients)
            if fewest.clients < best.clients:
                part = fewest.over("tps").mean / most
                text += f"; {fewest.clients} already give {part * 100:.0f}% of that"
        out.append(f"{text}.")
    if len(out) > _SOME:
        return [*out[:_SOME], f"{len(out) - _SOME} more in the tables."]
    return out


# -------------------------------------------------------------------- capacity


def _capacity(data: RunData, c: Capacity) -> list[str]:
    closed = f"a closed loop reaches {integer(c.closed_tps)} TPS"
    t = data.trials[0].plan if data.trials else None
    where = f"{t.workload}, {t.clients} client{'s' if t.clients != 1 else ''}" if t else ""
    if not c.rate:
        tried = f" up to {integer(c.held)}/s every trial held it" if c.held else ""
        if tried:
            return [f"Not yet known how much holds {c.objective} ({where}):{tried}, and none was tried that does not."]
        return [f"No rate held {c.objective} ({where}); {closed}."]
    if c.low is None or c.high is None:
        return [f"{integer(c.rate)} transactions per second hold {c.objective} ({closed})."]
    level = f"{c.level * 100:g}% interval"
    half = f"({level}: {integer(c.low)} to {integer(c.high)})"
    behind = f"({where}, {len(c.probes)} trials); {closed}."
    if c.most is not None:
        # What one would promise somebody comes first; the rate that half of the trials hold is what is measured best.
        most = f"{integer(c.most.rate)} transactions per second ({integer(c.most.low)} to {integer(c.most.high)})"
        out = [
            f"95% of the trials hold {c.objective} at {most}, half of them at {integer(c.rate)} "
            f"({integer(c.low)} to {integer(c.high)}; {level}s; {where}, {len(c.probes)} trials); {closed}."
        ]
    else:
        out = [f"Half of the trials hold {c.objective} at {integer(c.rate)} transactions per second {half} {behind}"]
    if not c.narrow:
        out.append("The search ended before its intervals were narrow: longer trials (--duration) tell more.")
    if c.contradiction is not None:
        failed, held = c.contradiction
        out.append(f"Not monotone: {failed:,g}/s failed, {held:,g}/s held; something else than the rate decides, too.")
    return out
