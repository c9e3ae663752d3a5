"""One experiment over many runs: where its figures changed their level."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from pgdyno.analysis.changepoints import ALPHA, FEWEST, ChangePoint, change_points
from pgdyno.errors import UsageError, msg
from pgdyno.figures import COMPARED, Figure
from pgdyno.judge.compared import named
from pgdyno.judge.groups import groups_of
from pgdyno.judge.runs import CAPACITY, differences, label_of
from pgdyno.message import Text
from pgdyno.model import Key
from pgdyno.store import manifest, reading
from pgdyno.store.manifest import Manifest


@dataclass(frozen=True)
class Series:
    """A figure of a configuration, one value a run: the mean of its repetitions."""

    label: str
    metric: str
    runs: list[str]
    values: list[float]
    changes: list[ChangePoint]

    @property
    def figure(self) -> Figure:
        """Figure whose values the series holds."""
        return CAPACITY if self.metric == CAPACITY.name else COMPARED[self.metric]


#: A change needs as many runs behind it to be seen: one that began among so many of the newest is news.
NEWEST = FEWEST + 2


@dataclass(frozen=True)
class History:
    """All series of an experiment, and what changed in the environment at each run."""

    name: str
    runs: list[str]
    series: list[Series]
    #: By run: what differs from the run before.
    differences: dict[str, list[tuple[str, str, str]]]
    #: Runs, and files of runs, that cannot be read.
    unreadable: list[Text]

    def news(self) -> list[tuple[Series, ChangePoint]]:
        """Return the changes that began among the NEWEST runs."""
        return [(s, c) for s in self.series for c in s.changes if c.index >= len(s.values) - NEWEST]


def of(folder: Path, name: str | None, metrics: tuple[str, ...] = ("TPS", "p99")) -> History:
    """Read the runs below `folder` in order of time.

    Raise UsageError if there are none, or if they belong to several experiments and `name` is None.
    """
    figures = named(metrics)
    manifests: dict[Path, Manifest] = {}
    unreadable: list[Text] = []
    for path in sorted(folder.glob("*/manifest.json")):
        try:
            m = manifest.read(path.parent)
        except UsageError as e:
            unreadable.append(e.whole)
            continue
        if m.started_at:
            manifests[path.parent] = m
    names = sorted({m.name for m in manifests.values()})
    if name is None and len(names) > 1:
        raise UsageError(
            msg("error-runs-several-experiments", folder=folder, names=", ".join(names)),
            msg("remedy-name-one-experiment-name"),
        )
    wanted = name or (names[0] if names else "")
    chosen = sorted((m.started_at, p) for p, m in manifests.items() if m.name == wanted)
    if not chosen:
        raise UsageError(
            msg("error-there-no-run-of", name=name, folder=folder)
            if name
            else msg("error-there-no-run" if folder.is_dir() else "error-no-folder", folder=folder),
            msg("remedy-runs-of", names=", ".join(names)) if names else msg("remedy-runs-runs-default"),
        )
    found: dict[tuple[Key, str], tuple[str, list[str], list[float]]] = {}
    for _, path in chosen:
        data = reading.read(path)
        unreadable += [
            msg("error-file-reason", path=f"{path.name}/{file}", reason=why) for file, why in data.unreadable
        ]
        if (capacity := data.manifest.capacity) is not None:
            # Its rates are no configurations: what it has found is one figure.
            for g in groups_of(data)[:1]:
                same = (*g.key[:3], ("objective", capacity.objective))
                name = f"{g.workload} c={g.clients} {capacity.objective}"
                _, runs, values = found.setdefault((same, CAPACITY.name), (name, [], []))
                if capacity.rate:
                    runs.append(path.name)
                    values.append(capacity.rate)
            continue
        for g in groups_of(data):
            for figure in figures:
                # A repetition without a commit has no latency: it would count as a very good one.
                known = [v for t in g.trials if (v := figure.trial_value(t)) is not None]
                _, runs, values = found.setdefault((g.key, figure.name), (label_of(g), [], []))
                if known:
                    runs.append(path.name)
                    values.append(statistics.fmean(known))
    # All of them together are wrong that often, where nothing has changed.
    alpha = ALPHA / max(1, len(found))
    series = [
        Series(label, metric, runs, values, change_points(values, alpha=alpha))
        for (_, metric), (label, runs, values) in found.items()
    ]
    paths = [p for _, p in chosen]
    differ = {after.name: differences(manifests[before], manifests[after]) for before, after in pairwise(paths)}
    return History(wanted, [p.name for p in paths], series, differ, unreadable)
