"""Matrix of an experiment: its configurations, the axes that vary, and the axis that a duet compares."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pgdyno.driver.named import is_python
from pgdyno.errors import SpecError, msg
from pgdyno.spec.experiment import Axes, Experiment

#: Pairs of name and value; hashable.
Pairs = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Place:
    """Place where a trial runs.

    Each place has its own server, or at least its own data directory.
    """

    target: str
    dataset: str
    version: str | None = None
    scale: int | None = None
    #: Of a duet along a setting: which of two servers that are otherwise alike.
    copy: int = 1

    @property
    def label(self) -> str:
        """Name of the place, in words."""
        parts = [self.target, self.dataset]
        parts += [f"PostgreSQL {self.version}"] if self.version else []
        parts += [f"scale {self.scale}"] if self.scale else []
        parts += [f"server {self.copy}"] if self.copy > 1 else []
        return ", ".join(parts)


@dataclass(frozen=True)
class Configuration:
    """All that a trial is made of, but for its repetition."""

    place: Place
    workload: str
    hot_set: float
    clients: int
    protocol: str
    driver: str
    rate: float | None
    #: Added to a round trip between primary and standbys; None: the experiment says nothing of it.
    round_trip_ms: float | None = None
    #: Over the target's own.
    settings: Pairs = ()
    variables: Pairs = ()

    def axes(self) -> dict[str, Any]:
        """Return the axes, besides workload, hot set and clients, that may vary, with their values."""
        p = self.place
        named: dict[str, Any] = {"target": p.target, "dataset": p.dataset, "version": p.version, "scale": p.scale}
        named |= {"protocol": self.protocol, "driver": self.driver, "rate": self.rate}
        trip = {} if self.round_trip_ms is None else {"round_trip_ms": self.round_trip_ms}
        return {**named, **trip, **dict(self.settings), **dict(self.variables)}


def client_counts(axes: Axes, cores: int) -> list[int]:
    """Return the values of the clients axis: as written, or 1, 4 and 16 clients per core."""
    return [cores, 4 * cores, 16 * cores] if axes.clients == "auto" else list(axes.clients)


def configurations(experiment: Experiment, cores: int) -> list[Configuration]:
    """Return all configurations in the order of the file, each once."""
    found = itertools.chain.from_iterable(_matrix(experiment, axes, cores) for axes in experiment.matrices)
    return list(dict.fromkeys(found))


def _matrix(experiment: Experiment, axes: Axes, cores: int) -> Iterator[Configuration]:
    # What is dear to change varies slowest.
    for target in axes.target or experiment.all_targets:
        wanted = experiment.all_targets[target]
        versions: Sequence[str | None] = axes.version or [wanted.version]
        counts = client_counts(axes, int(wanted.cpus or cores) or 1)
        scales: Sequence[int | None] = axes.scale or [None]
        rates: Sequence[float | None] = axes.rate or [experiment.run.rate]
        round_trips: Sequence[float | None] = (axes.round_trip_ms if wanted.standbys else []) or [None]
        places = itertools.product(versions, axes.dataset or experiment.all_datasets, scales)
        for version, dataset, scale in places:
            place = Place(target, dataset, version, scale)
            rest = itertools.product(
                round_trips,
                _products(axes.settings),
                axes.workload or experiment.workloads,
                axes.hot_set,
                counts,
                axes.protocol or [experiment.run.protocol],
                axes.driver or [experiment.run.driver],
                rates,
                _products(axes.variables),
            )
            for trip, settings, workload, hot_set, clients, protocol, driver, rate, variables in rest:
                yield Configuration(
                    place, workload, hot_set, clients, protocol, driver, rate, trip, settings, variables
                )


def _products(axes: dict[str, list[Any]]) -> list[Pairs]:
    values = itertools.product(*axes.values())
    return [tuple(zip(axes, combination, strict=True)) for combination in values]


def duet_axis(experiment: Experiment, every: Sequence[Configuration]) -> str:
    """Return the axis whose two values a duet compares.

    Raise SpecError if there is no such axis.
    """
    values, order = values_of(every), experiment.run.order
    if len(values) != 1 or len(next(iter(values.values()))) != 2:
        listed = ", ".join(f"{name} has {len(v)}" for name, v in values.items()) or "nothing varies"
        raise SpecError(
            msg("error-run-order-compares-two-values", order=order, listed=listed),
            msg("remedy-vary-one-setting-version-target"),
        )
    name = next(iter(values))
    if name in ("protocol", "driver", "rate", "round_trip_ms"):
        raise SpecError(msg("error-run-order-does-not-go", order=order, name=name), msg("remedy-use-order-random"))
    if any(c.rate is not None for c in every):
        raise SpecError(msg("error-run-order-goes-closed-loop", order=order), msg("remedy-use-order-random"))
    if any(is_python(c.driver) for c in every):
        raise SpecError(msg("error-duet-through-driver", order=order), msg("remedy-use-order-random"))
    between = experiment.run.between
    if between.restart or between.drop_caches:
        raise SpecError(msg("error-run-order-does-not-go-2", order=order), msg("remedy-leave-them-out"))
    return name


def on_two_servers(experiment: Experiment, every: Sequence[Configuration]) -> list[Configuration]:
    """Assign the second value of a duet along a setting to a second server.

    A setting belongs to a server, so each value needs a server of its own.
    """
    axis = duet_axis(experiment, every)
    first = values_of(every)[axis][0]

    def place_of(c: Configuration) -> Place:
        own = axis in dict(c.settings) and c.axes()[axis] != first
        return replace(c.place, copy=2) if own else c.place

    return [replace(c, place=place_of(c)) for c in every]


def varied_axes(every: Sequence[Configuration]) -> list[str]:
    """Return the axes, besides workload, hot set and clients, that have more than one value."""
    return list(values_of(every))


def values_of(every: Sequence[Configuration]) -> dict[str, list[Any]]:
    """Return the values of the axes that vary, in the order in which they are written."""
    seen: dict[str, dict[Any, None]] = {}
    for c in every:
        for name, value in c.axes().items():
            seen.setdefault(name, {})[value] = None
    missing = {name for name in seen if any(name not in c.axes() for c in every)}
    return {name: list(values) for name, values in seen.items() if len(values) > 1 or name in missing}
