"""Two runs side by side: their common configurations compared, and what else differs between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pgdyno.analysis.compare import Comparison, compare, corrected
from pgdyno.analysis.steady import DRIFT
from pgdyno.errors import UsageError
from pgdyno.figures import COMPARED, higher_is_better
from pgdyno.model import Caveat, Key, TrialRecord
from pgdyno.report.comparisons import value
from pgdyno.report.groups import Group, groups_of
from pgdyno.store.manifest import FileSystem, Manifest
from pgdyno.store.reading import RunData

DEFAULT = ("TPS", "p50", "p95", "p99")
#: A percentile needs so many transactions beyond it in each trial.
_BEYOND = 10
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
_RUN = ("protocol", "duration_s", "warmup_s", "rate", "order", "workers", "driver", "between")


@dataclass(frozen=True)
class Row:
    """A figure of a configuration that both runs have."""

    key: Key
    label: str
    metric: str
    comparison: Comparison
    a: list[TrialRecord]
    b: list[TrialRecord]


@dataclass(frozen=True)
class RunComparison:
    """B beside A."""

    rows: list[Row]
    #: What differs besides: name, in A, in B.
    differences: list[tuple[str, str, str]]
    warnings: list[str] = field(default_factory=list)
    #: Configurations that only one of the two has.
    only_a: list[str] = field(default_factory=list)
    only_b: list[str] = field(default_factory=list)


def compared(a: RunData, b: RunData, metrics: Sequence[str] = DEFAULT) -> RunComparison:
    """Compares two runs. Raises UsageError where they have no configuration in common."""
    for metric in metrics:
        if metric not in COMPARED:
            raise UsageError(f'there is no figure "{metric}"', f"There are {', '.join(COMPARED)}.")
    left, right = ({g.key: g for g in groups_of(x)} for x in (a, b))
    common = [k for k in left if k in right]
    if not common:
        raise UsageError(
            "the two runs have no configuration in common",
            f"One has {_some(left)}; the other {_some(right)}.",
        )
    found = []
    for key in common:
        for metric in metrics:
            x, y = left[key].trials, right[key].trials
            c = compare(_figures(x, metric), _figures(y, metric), higher_is_better=higher_is_better(metric))
            found.append(Row(key, label_of(left[key]), metric, c, x, y))
    final = corrected([r.comparison for r in found], higher_is_better=[higher_is_better(r.metric) for r in found])
    rows = [Row(r.key, r.label, r.metric, c, r.a, r.b) for r, c in zip(found, final, strict=True)]
    return RunComparison(
        rows,
        differences(a.manifest, b.manifest),
        _warnings(a, b, [(left[k], right[k]) for k in common], metrics),
        [label_of(left[k]) for k in left if k not in right],
        [label_of(right[k]) for k in right if k not in left],
    )


def label_of(g: Group) -> str:
    """A configuration in words."""
    hot = f"{g.hot_set * 100:g}%" if g.hot_set != 1 else ""
    return " ".join(filter(None, [g.workload, g.trials[0].plan.label, hot, f"c={g.clients}"]))


def differences(a: Manifest, b: Manifest) -> list[tuple[str, str, str]]:
    """What differs between the environments of two manifests: name, in A, in B."""
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


def _shown(x: object) -> str:
    if isinstance(x, FileSystem):
        return " ".join(filter(None, (x.mount, x.type, x.device, x.options)))
    if isinstance(x, dict):
        return " ".join(str(v) for v in x.values() if v)
    return "–" if x is None else str(x)


def _figures(trials: list[TrialRecord], metric: str) -> list[float]:
    return [v for t in trials if t.summary and (v := value(t, metric)) > 0]


def _some(groups: dict[Key, Group]) -> str:
    names = [label_of(g) for g in list(groups.values())[:3]]
    return ", ".join(names) + (" …" if len(groups) > 3 else "") if names else "no finished trial"


def _warnings(a: RunData, b: RunData, pairs: list[tuple[Group, Group]], metrics: Sequence[str]) -> list[str]:
    out = [f"{data.path}: {name} cannot be read ({why})" for data in (a, b) for name, why in data.unreadable]
    if a.path != b.path:
        out.append(
            "the runs were made one after the other: what the machine did differently between them counts as a "
            "difference; "
            "an experiment with both as values of an axis runs them in turn"
        )
    fewest = min(min(len(x.trials), len(y.trials)) for x, y in pairs)
    if fewest < 3:
        out.append(f"too few repetitions ({fewest}): at least 3 of each are needed, --repetitions 5 is better")
    every = [t for x, y in pairs for t in [*x.trials, *y.trials]]
    caveats = {c for t in every for c in t.caveats}
    if Caveat.CLIENT_BOUND in caveats:
        out.append("client-bound: in some trials the client was the limit, so the server's difference may be larger")
    if caveats & {Caveat.NOT_STEADY, Caveat.BACKLOG}:
        out.append("some trials never became steady: their figures depend on how long they were")
    if caveats & {Caveat.SKIPPED, Caveat.UNFINISHED}:
        out.append("in some trials transactions that were due were skipped or not finished: latencies leave them out")
    for data in (a, b):
        drift = _drift_over_repetitions(data)
        if abs(drift) > DRIFT:
            out.append(f"{data.path}: a drift of {drift * 100:+.0f}% from its first repetition to its last")
    for metric in metrics:
        share = COMPARED[metric].beyond
        if share and any(t.summary and t.summary.latency.count * share < _BEYOND for t in every):
            out.append(f"{metric} stands on fewer than {_BEYOND} transactions in some trials: measure longer")
    return out


def _drift_over_repetitions(data: RunData) -> float:
    """From the first third of the repetitions to the last, as a part; of TPS, mean over the configurations."""
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
