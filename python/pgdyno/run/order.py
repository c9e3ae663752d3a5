"""Which order an experiment's trials have, where it leaves that open."""

from __future__ import annotations

import math
from dataclasses import replace

from pgdyno.analysis.duet import FEWEST
from pgdyno.collect import host
from pgdyno.errors import SpecError
from pgdyno.run import dataset, plan
from pgdyno.run.duet import slice_of
from pgdyno.run.plan import Configuration
from pgdyno.run.prepared import Prepared
from pgdyno.run.provision import Options
from pgdyno.spec.experiment import Experiment

#: Axes along which it is settled without a word: what differs in size differs in what a cache holds as well.
_AXES = {"target", "version"}
#: The two datasets of a duet take this part of the memory at most: beyond it, what one reads drives out the other's.
_PART = 0.5
#: A trial that is shorter than a duet needs by more than that was meant to be short.
_MOST_MORE_S = 60


def decided(prepared: Prepared, options: Options) -> Prepared:
    """Return the prepared experiment with an order of its trials.

    An open order becomes a duet if two values of a setting, a version, a target or a variable are compared. The duet
    needs private servers that fit beside each other, and enough slices. Otherwise the order is random.
    """
    experiment = prepared.experiment
    run, order = experiment.run, experiment.run.order
    if order == "auto":
        order = "duet" if _is_duet(prepared, options) else "random"
    elif run.is_duet:
        # Raises where it cannot be one.
        plan.duet_axis(experiment, prepared.configurations)
    update: dict[str, object] = {"order": order}
    if order in ("duet", "simultaneous"):
        slice_s = run.slice_s or slice_of(run.duration_s)
        # A slice is an interval of the series.
        update |= {"slice_s": slice_s, "interval_s": slice_s}
    run = run.model_copy(update=update)
    return replace(prepared, experiment=experiment.model_copy(update={"run": run}))


def longer(prepared: Prepared, options: Options) -> float | None:
    """Return the seconds a trial that would make a comparison a duet, where only their number is missing."""
    experiment = prepared.experiment
    run = experiment.run
    if run.order != "auto" or _is_duet(prepared, options):
        return None
    for seconds in range(math.ceil(run.duration_s), math.ceil(run.duration_s) + _MOST_MORE_S):
        update = experiment.model_copy(update={"run": run.model_copy(update={"duration_s": float(seconds)})})
        if _is_duet(replace(prepared, experiment=update), options):
            return float(seconds)
    return None


def _is_duet(prepared: Prepared, options: Options) -> bool:
    experiment = prepared.experiment
    every = prepared.configurations
    try:
        axis = plan.duet_axis(experiment, every)
    except SpecError:
        return False
    if axis not in {*_AXES, *dict(every[0].settings), *dict(every[0].variables)}:
        return False
    run = experiment.run
    if run.duration_s / (run.slice_s or slice_of(run.duration_s)) < FEWEST:
        return False
    return _are_private(experiment, every, options) and _fit(experiment, every)


def _are_private(experiment: Experiment, every: list[Configuration], options: Options) -> bool:
    """Return True if all servers are private and have the whole machine to themselves.

    File systems of their own share the disk below. They flush what one server has written during the other server's
    turn.
    """
    if options.conninfo(experiment) is not None:
        return False
    targets = [experiment.all_targets[c.place.target] for c in every]
    return not any(
        t.conninfo or t.cluster or t.cpus or t.memory or t.file_system or t.folder or t.standbys for t in targets
    )


def _fit(experiment: Experiment, every: list[Configuration]) -> bool:
    places = dict.fromkeys(c.place for c in every)
    sizes = []
    for p in places:
        wanted = dataset.chosen(experiment.all_datasets[p.dataset], local_data=None)
        sizes.append(wanted.total_bytes)
    return 2 * max(sizes) <= _PART * host.memory_bytes()
