"""Runs side by side: their common configurations compared, and what else differs between them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pgdyno.analysis.compare import MARGIN, Comparison, Figures, Verdict, compare
from pgdyno.analysis.steady import DRIFT
from pgdyno.errors import UsageError, msg
from pgdyno.figures import Figure
from pgdyno.judge.compared import Pair, Row, compared, named, starts
from pgdyno.judge.groups import Group, groups_of
from pgdyno.judge.loud import loud
from pgdyno.message import Name, Text, message
from pgdyno.model import Caveat, Key, TrialRecord
from pgdyno.store.layout import FINDINGS
from pgdyno.store.manifest import Capacity, FileSystem, Manifest
from pgdyno.store.reading import RunData
from pgdyno.units import Quantity

DEFAULT = ("TPS", "p50", "p95", "p99", "WAL/tx", "reads/tx", "CPU/tx", "memory")
#: Of a search.
CAPACITY = Figure("capacity", "capacity", "capacity", "1/s", True)
#: Of a dataset; one value a run.
LOAD = Figure("load s", "load_s", "load_s", "s", False)
#: Of the normal distribution, of 95% and 99% intervals.
_Z95, _Z99 = 1.959964, 2.575829
#: What a run (its hour, its loading) adds to the variance of its figures, as a part of what starts of the server within
#: a run differ by, where no other runs say so: docs/math.md, Comparing.
_OF_A_RUN = 0.25
#: Runs of one environment that say how far runs lie apart: others beside two that are compared, or those of a side.
_FEWEST = 3
_ONE_AFTER_THE_OTHER = message("warn-one-after-the-other")
#: The cause that stands for others' work on the machine.
_NEIGHBOUR = "noisy-neighbour"
#: A percentile needs so many transactions beyond it in each trial.
_BEYOND = 10
#: Differing definitions that are shown.
_DEFINITIONS = 20
#: Parts of the environment that make figures differ.
_ENVIRONMENT: tuple[tuple[str, Callable[[Manifest], object]], ...] = (
    ("pgdyno", lambda m: m.pgdyno),
    ("processor", lambda m: m.host.cpu),
    ("cores", lambda m: m.host.cores),
    ("memory", lambda m: m.host.memory_bytes),
    ("kernel", lambda m: m.host.kernel),
    ("storage", lambda m: m.host.storage),
    ("server version", lambda m: m.server.version),
    ("dataset", lambda m: m.dataset.name if m.dataset else None),
    ("same machine", lambda m: m.same_machine),
)
_RUN = (
    "protocol",
    "duration_s",
    "duration_limit_s",
    "warmup_s",
    "rate",
    "order",
    "workers",
    "driver",
    "between",
    "repetitions",
    "restarts",
)


@dataclass(frozen=True)
class RunComparison:
    """B beside A."""

    rows: list[Row]
    #: What was compared on each side, of the configuration that has fewest: runs, or starts of the server within them.
    starts_a: int
    starts_b: int
    #: Other runs by which it is known how far two of them lie apart.
    others: int
    #: What differs besides: name, in A, in B.
    differences: list[tuple[str, str, str]]
    warnings: list[Text] = field(default_factory=list)
    #: Configurations that only one of the two has.
    only_a: list[str] = field(default_factory=list)
    only_b: list[str] = field(default_factory=list)

    #: Too few runs say how far two lie apart: starts within runs are compared.
    are_single_runs: bool = False
    #: Searches for a capacity.
    is_of_searches: bool = False

    @property
    def unit(self) -> str:
        """Unit of the comparison: runs, starts of the server within runs, or repetitions."""
        return "repetition" if self.is_of_single_starts else "start" if self.are_single_runs else "run"

    @property
    def is_of_single_starts(self) -> bool:
        """Nothing says how far two starts of a server lie apart: the intervals are of these starts alone."""
        few, more = sorted((self.starts_a, self.starts_b))
        know = more >= _FEWEST and not (self.are_single_runs or self.is_of_searches)
        return not self.others and few < 2 and not know


def compare_runs(
    a: Sequence[RunData],
    b: Sequence[RunData],
    figures: Sequence[str] = DEFAULT,
    *,
    margin: float = MARGIN,
    others: Sequence[Sequence[RunData]] = (),
) -> RunComparison:
    """Compare the runs of two sides.

    Repetitions share a start of the server, or an hour. Their noise does not include what they share.

    The units are runs if each side has several runs, or if one side has three. The units are also runs if three
    `others` show how much two runs differ. `others` are further runs of the same experiment, those of one environment
    together. Otherwise the units are starts of the server within runs, with an allowance for what a run adds.

    A configuration with too few runs for this is omitted, with a warning. Raise UsageError if the sides have no
    configuration in common.
    """
    if any(data.manifest.capacity for data in (*a, *b)):
        return _capacities(a, b, margin)
    wanted = named(figures)
    found_a, found_b = ({g.key for data in side for g in groups_of(data)} for side in (a, b))
    # Of other configurations they say nothing of these.
    others = [[data for data in alike if found_a & found_b <= {g.key for g in groups_of(data)}] for alike in others]
    # A run that was disturbed, and is known to have been, says nothing of how far undisturbed ones lie apart.
    apart = [x for alike in others for x in loud(alike)]
    disturbed = {x.run.path for x in apart if x.reason}
    others = [[data for data in alike if data.path not in disturbed] for alike in others]
    apart += [replace(x, is_compared=True) for side in (a, b) for x in loud(side)]
    known = [alike for alike in others if len(alike) >= _FEWEST]
    per_run = bool(known) or min(len(a), len(b)) > 1 or max(len(a), len(b)) >= _FEWEST
    left, right = ({g.key: g for g in _together(x, per_run)} for x in (a, b))
    common = [k for k in left if k in right]
    if not common:
        raise UsageError(
            msg("error-runs-no-configuration-common"), msg("remedy-one-other", some=_some(left), some2=_some(right))
        )
    common, lacking = _with_units(common, left, right)
    pairs = [Pair(left[k], right[k], label_of(left[k])) for k in common]
    starts_a, starts_b = (min(starts(side[k].trials) for k in common) for side in (left, right))
    # Else each says by its own starts how far starts lie apart.
    further = known if per_run else [[data] for alike in others for data in alike]
    also = [g for alike in further for g in _together(alike, per_run) if g.key in left and starts(g.trials) > 1]
    per_start = per_run or min(starts_a, starts_b) > 1 or bool(also)
    seconds = a[0].manifest.run.seconds_of_a_trial
    shared = 0.0 if per_run or not per_start else _OF_A_RUN * (1 / len(a) + 1 / len(b))
    rows = compared(
        pairs, wanted, blocked=False, seconds=seconds, margin=margin, per_start=per_start, also=also, shared=shared
    )
    rows += _loads(a, b, pairs[0], margin)
    found = RunComparison(
        rows,
        starts_a,
        starts_b,
        sum(map(len, further)) if also else 0,
        [*differences(a[0].manifest, b[0].manifest), *differing_definitions(a[0], b[0])],
        [
            *_warnings([*a, *b], pairs, wanted),
            *(x.message for x in apart),
            *(message("warn-left-out", name=Name(name)) for name in lacking),
        ],
        [label_of(left[k]) for k in left if k not in right],
        [label_of(right[k]) for k in right if k not in left],
        not per_run,
    )
    if not found.is_of_single_starts:
        return found
    # Whatever two starts differ by would be called a difference.
    unknown = [replace(r, comparison=replace(r.comparison, verdict=Verdict.UNKNOWN, more=None), seconds=None)
               for r in rows]  # fmt: skip
    return replace(found, rows=unknown)


def _with_units(common: list[Key], left: dict[Key, Group], right: dict[Key, Group]) -> tuple[list[Key], list[str]]:
    """Return the configurations with several units on both sides, and the names of the others.

    If no configuration has several units, return all configurations and no names.
    """
    units = {k: min(starts(left[k].trials), starts(right[k].trials)) for k in common}
    if max(units.values()) < 2:
        return common, []
    return [k for k in common if units[k] > 1], [label_of(left[k]) for k in common if units[k] < 2]


def _loads(a: Sequence[RunData], b: Sequence[RunData], some: Pair, margin: float) -> list[Row]:
    """Seconds that loading took, of places that both sides have and have loaded themselves, with the same method."""
    sides: list[dict[tuple[str, str, str], Figures]] = []
    for runs in (a, b):
        found: dict[tuple[str, str, str], dict[int, float]] = {}
        for n, data in enumerate(runs):
            for label, place in data.manifest.places.items():
                d = place.dataset
                if d.loaded and (seconds := d.loading_s) > 0:
                    found.setdefault((label, d.name, d.method), {})[n] = seconds
        sides.append(dict(found))
    rows = []
    for key in sides[0]:
        if key not in sides[1]:
            continue
        # Of no workload: the label says what it is of.
        pair = Pair(some.a, some.b, f"loading {key[1]} ({key[2]})")
        known: dict[Hashable, Figures] = {0: sides[0][key], 1: sides[1][key]}
        rows.append(Row(pair, LOAD, compare(known, [(0, 1)], blocked=False, higher_is_better=False, margin=margin)[0]))
    return rows


def _capacities(a: Sequence[RunData], b: Sequence[RunData], margin: float) -> RunComparison:
    """Compare searches for the highest rate under an objective: the rates found, one per run."""
    objectives = {data.manifest.capacity.objective if data.manifest.capacity else "none" for data in (*a, *b)}
    if len(objectives) != 1:
        raise UsageError(
            msg("error-runs-searches-under-different-objectives", objectives=", ".join(sorted(objectives))),
            msg("remedy-compare-those-one-objective"),
        )
    failed = [data.path for data in (*a, *b) if not (data.manifest.capacity and data.manifest.capacity.rate)]
    if failed:
        raise UsageError(msg("error-found-no-rate-holds-objective", failed=failed[0]), msg("remedy-leave-out-say-so"))
    groups = [groups_of(data)[0] for data in (*a, *b)]
    same = {(g.workload, g.hot_set, g.clients) for g in groups}
    if len(same) != 1:
        listed = "; ".join(f"{w} · {h * 100:g}% · {c}" for w, h, c in sorted(same))
        raise UsageError(
            msg("error-runs-searches-on-different-configurations", listed=listed), msg("remedy-compare-those-one")
        )
    sides = [[data.manifest.capacity for data in side if data.manifest.capacity] for side in (a, b)]
    (objective,) = objectives
    where = f"{groups[0].workload} c={groups[0].clients} ({objective})"
    pair = Pair(groups[0], groups[len(a)], where)
    single = min(map(len, sides)) < 2
    comparison = _compare_single_searches(sides, margin) if single else _compare_searches(sides, margin)
    row = Row(pair, CAPACITY, comparison)
    counts = len(sides[0]), len(sides[1])
    found = RunComparison([row], *counts, 0, differences(a[0].manifest, b[0].manifest), is_of_searches=True)
    wide = [data.path for data in (*a, *b) if data.manifest.capacity and not data.manifest.capacity.narrow]
    odd = [data.path for data in (*a, *b) if data.manifest.capacity and data.manifest.capacity.contradiction]
    warnings: list[Text] = [_ONE_AFTER_THE_OTHER]
    warnings += [message("warn-search-wide", run=Name(path)) for path in wide]
    warnings += [message("warn-search-odd", run=Name(path)) for path in odd]
    return replace(found, warnings=warnings, are_single_runs=counts == (1, 1))


def _compare_searches(sides: Sequence[Sequence[Capacity]], margin: float) -> Comparison:
    figures: dict[Hashable, Figures] = {n: {i: c.rate for i, c in enumerate(side)} for n, side in enumerate(sides)}
    return compare(figures, [(0, 1)], blocked=False, margin=margin)[0]


def _compare_single_searches(sides: Sequence[Sequence[Capacity]], margin: float) -> Comparison:
    """Compare single searches of each side.

    The interval covers only these searches. They do not show how much two searches on one server differ.
    """
    means = [math.exp(math.fsum(math.log(c.rate) for c in side) / len(side)) for side in sides]
    variance = sum(
        (math.log(c.high / c.low) / (2 * _Z95) / len(side)) ** 2 for side in sides for c in side if c.low and c.high
    )
    reach = math.exp(_Z99 * math.sqrt(variance)) if variance else math.nan
    ratio = means[1] / means[0]
    n = [len(side) for side in sides]
    return Comparison(n[0], n[1], means[0], means[1], ratio, ratio / reach, ratio * reach, margin=margin)


def _together(runs: Sequence[RunData], per_run: bool) -> list[Group]:
    """Return the configurations of several runs.

    With `per_run` the units are runs, because starts of one run share an hour. Otherwise the units are starts.
    """
    found: dict[Key, list[TrialRecord]] = {}
    units: dict[tuple[int, int], int] = {}
    for number, data in enumerate(runs):
        for g in groups_of(data):
            for t in g.trials:
                unit = units.setdefault((number, 0 if per_run else t.plan.start), len(units) + 1)
                found.setdefault(g.key, []).append(replace(t, plan=replace(t.plan, start=unit)))
    return [Group(trials) for trials in found.values()]


def label_of(g: Group) -> str:
    """Return a configuration in words."""
    hot = f"{g.hot_set * 100:g}%" if g.hot_set != 1 else ""
    return " ".join(filter(None, [g.workload, g.trials[0].plan.label, hot, f"c={g.clients}"]))


def differences(a: Manifest, b: Manifest) -> list[tuple[str, str, str]]:
    """Return the differences between the environments of two manifests: name, in A, in B."""
    found = []
    for name, of in _ENVIRONMENT:
        if of(a) != of(b):
            found.append((name, _shown(of(a)), _shown(of(b))))
    for name in _RUN:
        x, y = getattr(a.run, name), getattr(b.run, name)
        if x != y:
            found.append((name, _shown(x), _shown(y)))
    for name in sorted(set(a.scripts) & set(b.scripts)):
        one, other = (" ".join(" ".join(text.split()) for _, text, _ in m.scripts[name]) for m in (a, b))
        if one != other:
            found.append((f"script of {name}", f"{one[:60]} …", f"{other[:60]} …"))
    for name in ("targets", "storage"):
        x, y = ((m.experiment or {}).get(name) for m in (a, b))
        if x != y:
            found.append((name, "as its experiment says", "otherwise"))
    for name in sorted(set(a.server.settings) | set(b.server.settings)):
        x, y = a.server.setting(name), b.server.setting(name)
        if x != y:
            found.append((name, _shown(x), _shown(y)))
    return found


def differing_definitions(a: RunData, b: RunData) -> list[tuple[str, str, str]]:
    """Return the definitions of the databases that differ: object and name, in A, in B; empty if either is unknown."""
    one, other = _definitions(a), _definitions(b)
    if not one or not other:
        return []
    found = [
        (f"{kind} {name}", _defined(one.get((kind, name))), _defined(other.get((kind, name))))
        for kind, name in sorted(one.keys() | other.keys())
        if one.get((kind, name)) != other.get((kind, name))
    ]
    more = len(found) - _DEFINITIONS
    return [*found[:_DEFINITIONS], (f"{more} more definitions", "…", "…")] if more > 0 else found


def _definitions(data: RunData) -> dict[tuple[str, str], str]:
    """Return the definitions by object and name, of the first trial that has them."""
    for t in data.trials:
        if rows := data.samples[t.plan.number, "definitions"]:
            # A foreign key without an index is told by the index that the other side has.
            named = [row for row in rows if row["object"] != "unindexed-key"]
            return {(str(row["object"]), str(row["name"])): str(row["definition"]) for row in named}
    return {}


def _defined(definition: str | None) -> str:
    return "–" if definition is None else definition or "(default)"


def _shown(x: object) -> str:
    if isinstance(x, FileSystem):
        return " ".join(filter(None, (x.mount, x.type, x.device, x.options)))
    if isinstance(x, dict):
        return " ".join(str(v) for v in x.values() if v)
    return "–" if x is None else str(x)


def _some(groups: dict[Key, Group]) -> str:
    names = [label_of(g) for g in list(groups.values())[:3]]
    return ", ".join(names) + (" …" if len(groups) > 3 else "") if names else "–"


def _warnings(runs: Sequence[RunData], pairs: Sequence[Pair], figures: Sequence[Figure]) -> list[Text]:
    out: list[Text] = [
        message("warn-unreadable", run=Name(data.path), file=Name(name), why=why)
        for data in runs
        for name, why in data.unreadable
    ]
    if len({data.path for data in runs}) > 1:
        out.append(_ONE_AFTER_THE_OTHER)
    fewest = min(min(len(p.a.trials), len(p.b.trials)) for p in pairs)
    if fewest < 3:
        out.append(message("warn-few", n=fewest))
    every = [t for p in pairs for t in [*p.a.trials, *p.b.trials]]
    caveats = {c for t in every for c in t.caveats}
    if Caveat.CLIENT_BOUND in caveats:
        out.append(message("warn-client-bound"))
    if mixed := sum(Caveat.NO_ONE_LEVEL in t.caveats for t in every):
        out.append(message("warn-no-one-level", n=mixed, of=len(every)))
    if caveats & {Caveat.NOT_STEADY, Caveat.BACKLOG}:
        out.append(message("warn-not-steady"))
    if caveats & {Caveat.SKIPPED, Caveat.UNFINISHED}:
        out.append(message("warn-skipped"))
    for data in runs:
        if n := _with_neighbours(data):
            out.append(message("warn-neighbour", run=Name(data.path), n=n))
    for data in runs:
        drift = _drift_over_repetitions(data)
        if abs(drift) > DRIFT:
            out.append(message("warn-drift", run=Name(data.path), drift=Quantity(1 + drift, "change", 0)))
    for figure in figures:
        share = figure.beyond
        if share and any(t.summary and t.summary.latency.count * share < _BEYOND for t in every):
            out.append(message("warn-few-beyond", figure=Name(figure.name), n=_BEYOND))
    return out


def _with_neighbours(data: RunData) -> int:
    """Return the number of configurations in which a run's findings name other load on its machine."""
    try:
        found = json.loads((Path(data.path) / FINDINGS).read_text(encoding="utf-8"))
        return sum(f["cause"] == _NEIGHBOUR for f in found)
    except (OSError, ValueError, TypeError, KeyError):
        # A run of before there were findings, or one whose file is damaged, says nothing.
        return 0


def _drift_over_repetitions(data: RunData) -> float:
    """Return the change of TPS from the first third of the repetitions to the last, as a ratio.

    The ratio is relative to the first third. It is the mean over the configurations.
    """
    ratios = []
    for g in groups_of(data):
        trials = sorted((t for t in g.trials if t.summary), key=lambda t: t.started_at)
        third = len(trials) // 3
        if third:
            early, late = (
                sum(t.summary.tps for t in part if t.summary) / third for part in (trials[:third], trials[-third:])
            )
            ratios.append(late / early - 1 if early else 0.0)
    return sum(ratios) / len(ratios) if ratios else 0.0
