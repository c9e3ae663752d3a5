"""Plan of a run: its configurations, computed once, and the order in which its trials run."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pgdyno.model import TrialPlan
from pgdyno.run.planning import matrix, order, resume
from pgdyno.run.planning.matrix import Configuration
from pgdyno.run.planning.options import Options
from pgdyno.run.planning.prepared import Prepared
from pgdyno.spec import experiment as spec
from pgdyno.spec.experiment import Experiment
from pgdyno.store import manifest


@dataclass(frozen=True)
class Planned:
    """A trial to be run."""

    plan: TrialPlan
    configuration: Configuration
    #: Length of its measurement; None: that of the experiment.
    duration_s: float | None = None


#: Trials that are run together: one by itself, or the two of a duet.
Unit = tuple[Planned, ...]


@dataclass(frozen=True)
class Plan:
    """All that a run is to do, in order."""

    #: With the order of the trials, which the file may leave open.
    prepared: Prepared
    #: Of a run that is continued, those it began with.
    options: Options
    #: In the order of the file, each once.
    configurations: list[Configuration]
    units: list[Unit]
    #: Places run one after the other because they share a database.
    is_batched: bool
    #: Seconds a trial that would make a duet of a comparison whose trials are too short for one.
    longer_s: float | None = None

    @property
    def experiment(self) -> Experiment:
        """The experiment that is run."""
        return self.prepared.experiment

    @property
    def trials(self) -> list[Planned]:
        """All trials in order."""
        return [planned for unit in self.units for planned in unit]

    @cached_property
    def most_clients(self) -> int:
        """Greatest number of clients of any trial."""
        return max(c.clients for c in self.configurations)

    @cached_property
    def varied(self) -> dict[str, list[Any]]:
        """Values of the axes, besides workload, hot set and clients, that have more than one."""
        return matrix.values_of(self.configurations)

    def only(self, wanted: Callable[[Planned], bool]) -> Plan:
        """Return the plan of the units with a trial that is `wanted`; the trials keep their numbers."""
        units = [u for u in self.units if any(wanted(t) for t in u)]
        left = {t.configuration for u in units for t in u}
        return replace(self, units=units, configurations=[c for c in self.configurations if c in left])


def plan_run(prepared: Prepared, options: Options) -> Plan:
    """Return the plan of an experiment: decide the order of its trials if the file leaves it open.

    Raise SpecError if a duet lacks its two sides. Raise UsageError if a run cannot be continued with these options.
    """
    if prepared.resumed is not None:
        options = resume.servers(prepared.resumed, options)
    every = matrix.configurations(prepared.experiment, prepared.cores)
    longer_s = order.longer_duration(prepared.experiment, every, options)
    experiment = order.with_order(prepared.experiment, every, options)
    if experiment.run.is_duet:
        every = matrix.on_two_servers(experiment, every)
    one_database = options.conninfo(experiment) is not None
    if prepared.resumed is not None:
        # It keeps the order with which it began.
        one_database = manifest.read(prepared.resumed).batched
    batched = is_batched(experiment, every, one_database=one_database)
    trials = units(experiment, every, batched)
    return Plan(replace(prepared, experiment=experiment), options, every, trials, batched, longer_s)


def units(experiment: Experiment, every: Sequence[Configuration], batched: bool) -> list[Unit]:
    """Return all trials of the configurations in order, those of a duet together.

    Repetitions are the outermost loop, unless the order is "written". A slow drift of the machine then affects every
    configuration equally. With `batched`, places run one after the other, whatever the order within each.
    """
    varied = matrix.varied_axes(every)
    if experiment.run.is_duet:
        planned = _duets(experiment, every, varied)
        return list(zip(planned[::2], planned[1::2], strict=True))
    places = list(dict.fromkeys(c.place for c in every))
    batches = [[c for c in every if c.place == p] for p in places] if batched else [list(every)]
    rng = random.Random(experiment.run.seed)
    ordered = [pair for batch in batches for pair in _ordered(batch, experiment.run, rng)]
    return [(_planned(experiment, number, c, r, varied),) for number, (c, r) in enumerate(ordered, 1)]


def _planned(experiment: Experiment, number: int, c: Configuration, repetition: int, varied: list[str]) -> Planned:
    named = {name: value for name, value in c.axes().items() if name in varied}
    start = (repetition - 1) // experiment.run.repetitions + 1
    return Planned(TrialPlan(number, c.workload, c.hot_set, c.clients, repetition, named, start), c)


def _duets(experiment: Experiment, every: Sequence[Configuration], varied: list[str]) -> list[Planned]:
    pairs: dict[tuple[str, float, int], list[Configuration]] = {}
    for c in every:
        pairs.setdefault((c.workload, c.hot_set, c.clients), []).append(c)
    rng = random.Random(experiment.run.seed)
    out: list[Planned] = []
    for repetition in range(1, experiment.run.repetitions * experiment.run.restarts + 1):
        round_ = list(pairs.values())
        rng.shuffle(round_)
        for pair in round_:
            for c in pair:
                out.append(_planned(experiment, len(out) + 1, c, repetition, varied))
    return out


def is_batched(experiment: Experiment, every: Sequence[Configuration], *, one_database: bool = False) -> bool:
    """Return True if places share a database, so that they have to run one after the other.

    An existing server may have several datasets, or several targets may name it. `one_database` is True if the
    command line or the environment names one database for all places.
    """
    places = {c.place for c in every}
    if one_database:
        return len(places) > 1
    all_targets = [experiment.all_targets[p.target] for p in places]
    there = [t.conninfo or t.cluster for t in all_targets if t.conninfo is not None or t.cluster is not None]
    return len(there) > len(set(there))


def _ordered(every: list[Configuration], run: spec.Run, rng: random.Random) -> Iterator[tuple[Configuration, int]]:
    rounds = range(1, run.repetitions * run.restarts + 1)
    if run.order == "written":
        yield from ((c, r) for c in every for r in rounds)
        return
    for repetition in rounds:
        round_ = list(every)
        if run.order == "random":
            rng.shuffle(round_)
        yield from ((c, repetition) for c in round_)
