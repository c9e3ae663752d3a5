"""Order of an experiment's trials, where it leaves that open."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pgdyno.analysis.duet import FEWEST
from pgdyno.collect import host
from pgdyno.errors import SpecError
from pgdyno.load.planned import plan_dataset
from pgdyno.run.planning import matrix
from pgdyno.run.planning.matrix import Configuration
from pgdyno.run.planning.options import Options
from pgdyno.run.planning.turns import slice_of
from pgdyno.spec.experiment import Experiment, Run

#: Axes along which it is settled without a word: what differs in size differs in what a cache holds as well.
_AXES = {"target", "version"}
#: The two datasets of a duet take this part of the memory at most: beyond it, what one reads drives out the other's.
_PART = 0.5
#: A trial that is shorter than a duet needs by more than that was meant to be short.
_MOST_MORE_S = 60


def with_order(experiment: Experiment, every: Sequence[Configuration], options: Options) -> Experiment:
    """Return the experiment with an order of its trials; `every` holds its configurations.

    An open order becomes a duet if two values of a setting, a version, a target or a variable are compared. The duet
    needs private servers that fit beside each other, and enough slices. Otherwise the order is random. Raise SpecError
    if the experiment requests a duet and cannot be one.
    """
    run, order = experiment.run, experiment.run.order
    if order == "auto":
        is_open = run.duration_limit_s is not None
        is_duet = not is_open and _has_slices(run, run.duration_s) and _may_be_duet(experiment, every, options)
        order = "duet" if is_duet else "random"
    elif run.is_duet:
        matrix.duet_axis(experiment, every)
    update: dict[str, object] = {"order": order}
    if order in ("duet", "simultaneous"):
        slice_s = run.slice_s or slice_of(run.duration_s)
        # A slice is an interval of the series.
        update |= {"slice_s": slice_s, "interval_s": slice_s}
    return experiment.model_copy(update={"run": run.model_copy(update=update)})


def longer_duration(experiment: Experiment, every: Sequence[Configuration], options: Options) -> float | None:
    """Return the seconds a trial that would make a comparison a duet, where only their number is missing."""
    run = experiment.run
    if run.order != "auto" or run.duration_limit_s is not None or _has_slices(run, run.duration_s):
        return None
    if not _may_be_duet(experiment, every, options):
        return None
    first = math.ceil(run.duration_s)
    return next((float(s) for s in range(first, first + _MOST_MORE_S) if _has_slices(run, s)), None)


def _has_slices(run: Run, duration_s: float) -> bool:
    """Return True if a trial of this duration has enough slices for a duet."""
    return duration_s / (run.slice_s or slice_of(duration_s)) >= FEWEST


def _may_be_duet(experiment: Experiment, every: Sequence[Configuration], options: Options) -> bool:
    """Return True if the trials may be a duet, however long they are."""
    try:
        axis = matrix.duet_axis(experiment, every)
    except SpecError:
        return False
    if axis not in {*_AXES, *dict(every[0].settings), *dict(every[0].variables)}:
        return False
    return _are_private(experiment, every, options) and _fit(experiment, every)


def _are_private(experiment: Experiment, every: Sequence[Configuration], options: Options) -> bool:
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


def _fit(experiment: Experiment, every: Sequence[Configuration]) -> bool:
    # Private servers without folders of their own.
    folder = Path(tempfile.gettempdir())
    places = dict.fromkeys(c.place for c in every)
    sizes = [plan_dataset(experiment.dataset_at(p.dataset, p.scale), folder=folder).total_bytes for p in places]
    return 2 * max(sizes) <= _PART * host.memory_bytes()
