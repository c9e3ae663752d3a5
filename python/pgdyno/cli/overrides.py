"""Overrides: values of the command line in place of an experiment's."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from pgdyno.cli import against, streams, vary
from pgdyno.cli.options import given
from pgdyno.cli.requests import CapacityRequest, RunRequest
from pgdyno.cli.shrink import shrink
from pgdyno.collect import host
from pgdyno.errors import SpecError, UsageError, msg
from pgdyno.message import Name, Text, listed, message
from pgdyno.run.planning.plan import Plan
from pgdyno.spec.experiment import Experiment
from pgdyno.spec.load import mistakes, wording
from pgdyno.store.manifest import Change
from pgdyno.units import Quantity

#: Seconds that a trial with --until-steady lasts at most.
_LONGEST_S = 1800.0


def names(text: str | None) -> list[str] | None:
    """Return the names in --collect; "none" gives an empty list."""
    if text is None:
        return None
    return [] if text.strip() == "none" else [x.strip() for x in text.split(",") if x.strip()]


def numbers(option: str, text: str | None, kind: Callable[[str], Any]) -> list[Any] | None:
    """Return the list of numbers in a text such as `1,8,64`."""
    if text is None:
        return None
    try:
        return [kind(part.strip()) for part in text.split(",")]
    except ValueError as e:
        raise UsageError(
            msg("error-not-list-numbers", option=option, text=text), msg("remedy-write-1-8-64", option=option)
        ) from e


def warmup(text: str | None) -> float | str | None:
    """Seconds, or "steady"."""
    if text is None or text == "steady":
        return text
    try:
        return float(text)
    except ValueError as e:
        raise UsageError(
            msg("error-warmup-not-number-seconds", text=text), msg("remedy-write-warmup-30-or-warmup")
        ) from e


@dataclass(frozen=True, kw_only=True)
class Overrides:
    """Values of the command line that replace those of an experiment."""

    #: Keys of the table [run].
    run: Mapping[str, Any] = field(default_factory=dict)
    #: Axes, of all matrices.
    axes: Mapping[str, Any] = field(default_factory=dict)
    scale: int | None = None
    shrink: float | None = None
    #: Those to run alone; empty: all.
    workloads: tuple[str, ...] = ()
    #: Trials go on until they are steady, for as long as is usual.
    is_open: bool = False
    #: --set and --vary, as NAME=VALUES.
    fixed: tuple[str, ...] = ()
    varied: tuple[str, ...] = ()
    #: Server to compare with: "mariadb", or a connection string.
    against: str | None = None

    def apply(self, experiment: Experiment) -> tuple[Experiment, list[Change]]:
        """Return the experiment with these values, validated once, and the changes that --shrink made.

        Raise SpecError, which names the option, if a value is not valid. Raise UsageError if options contradict each
        other.
        """
        if self == Overrides():
            return experiment, []
        if self.workloads:
            experiment = _with_workloads(experiment, self.workloads)
        run, axes = dict(self.run), {**self.axes, **vary.axes_of(experiment, self.fixed, self.varied)}
        data, changes = experiment.model_dump(), list[Change]()
        if self.shrink is not None:
            changes = shrink(data, self.shrink, host.cores(), host.memory_bytes())
            if not changes:
                note = message("run-shrink-nothing", factor=Quantity(self.shrink, "plain"))
                sys.stderr.write(streams.written(note) + "\n")
        elif self.varied:
            chosen = vary.for_a_comparison(experiment, axes, run)
            if chosen:
                note = message("run-vary-chose", options=Name(" ".join(chosen)))
                sys.stderr.write(streams.written(note) + "\n")
        if self.varied:
            # The experiment's own title is about what it was made to look at.
            data["title"] = f"{experiment.name}: {' and '.join(self.varied)}".replace("=", " = ")
            data["title_zh"] = ""
        data["run"] |= run
        if self.against is not None:
            against.add(data, experiment, self.against)
        if self.is_open:
            data["run"]["duration_limit_s"] = max(_LONGEST_S, data["run"]["duration_s"])
        _set_axes(data, axes, experiment)
        if self.scale is not None:
            if data["datasets"]:
                raise SpecError(
                    msg("error-scale-but-several-datasets", name=experiment.name),
                    msg("remedy-use-shrink-or-change-file"),
                )
            data["dataset"] = {**(data["dataset"] or {}), "scale": self.scale, "rows": None}
        try:
            return Experiment.model_validate(data), changes
        except ValidationError as e:
            raise _wrong_option(e) from e


def _with_workloads(experiment: Experiment, names: Sequence[str]) -> Experiment:
    """Return the experiment with the trials of these workloads alone. Raise UsageError if it has none of one."""
    run = [axes.workload or list(experiment.workloads) for axes in experiment.matrices]
    for name in names:
        known_workload(experiment, name, dict.fromkeys(w for of in run for w in of))
    kept = [
        axes.model_copy(update={"workload": wanted})
        for axes, of in zip(experiment.matrices, run, strict=True)
        if (wanted := [w for w in of if w in names])
    ]
    return experiment.model_copy(update={"axes": kept if isinstance(experiment.axes, list) else kept[0]})


def known_workload(experiment: Experiment, name: str, known: Iterable[str]) -> None:
    """Raise UsageError unless `name` is among the workloads that an experiment runs."""
    if name not in known:
        raise UsageError(
            msg("error-workload-no-workload", name=experiment.name, workload=name),
            msg("remedy-it-has", names=", ".join(known)),
        )


def _set_axes(data: dict[str, Any], axes: Mapping[str, Any], experiment: Experiment) -> None:
    """Set axes of all matrices in `data`."""
    matrices = data["axes"] if isinstance(data["axes"], list) else [data["axes"]]
    replicated = {name for name, target in experiment.all_targets.items() if target.standbys}
    with_standbys = [m for m in matrices if replicated.intersection(m["target"] or experiment.all_targets)]
    for matrix in matrices:
        for name, value in axes.items():
            # It means nothing to the matrices without; where there is none with them, that is refused.
            if name == "round_trip_ms" and with_standbys and matrix not in with_standbys:
                continue
            # Of several settings, or variables, these.
            matrix[name] = matrix[name] | value if isinstance(value, dict) else value


def _wrong_option(e: ValidationError) -> SpecError:
    """Return the error for the first mistake, which names the option that it comes from."""
    first = mistakes(e)[0]
    named = [str(x) for x in first["loc"][1:] if isinstance(x, str) and not x.startswith("alternative-")]
    option = f"--{named[0].removesuffix('_s').replace('_', '-')}: " if named else ""
    value = first.get("input")
    shown: Text = msg("spec-shown", value=repr(value)) if isinstance(value, str | int | float | list) else Name("")
    if "hot_set" in named and isinstance(value, float) and 1 < value <= 100:
        percent = msg("spec-percent", percent=f"{value:g}", part=f"{value / 100:g}")
        shown = listed([shown, percent], "none")
    return SpecError(msg("spec-option", option=option, mistake=wording(first), shown=shown))


def run_overrides(request: RunRequest) -> Overrides:
    """Return what the options of `run` change of an experiment. Raise UsageError if one is not valid."""
    same = ("protocol", "repetitions", "restarts", "order", "rate", "workers", "driver", "seed")
    run = given(
        **{name: getattr(request, name) for name in same},
        duration_s=request.duration,
        warmup_s=warmup(request.warmup),
        interval_s=request.interval,
        collect=names(request.collect),
        connect_timeout_s=request.connect_timeout,
    )
    if request.until_steady and request.at_most is not None:
        run["duration_limit_s"] = request.at_most
    elif request.at_most is not None:
        raise UsageError(msg("error-at-most-alone"), msg("remedy-until-steady"))
    if request.rate == 0:
        # Of an experiment that has one.
        run["rate"] = None
    named = tuple(x.strip() for x in (request.workload or "").split(",") if x.strip())
    axes = given(
        clients=numbers("--clients", request.clients, int), hot_set=numbers("--hot-set", request.hot_set, float)
    )
    return Overrides(
        run=run, axes=axes, scale=request.scale, shrink=request.shrink, workloads=named,
        is_open=request.until_steady and request.at_most is None,
        fixed=tuple(request.set_ or ()), varied=tuple(request.vary or ()), against=request.against,
    )  # fmt: skip


def search_overrides(request: CapacityRequest, experiment: Experiment) -> Overrides:
    """Return what the options of `capacity` change of an experiment: they leave one configuration.

    It has the workload, the clients and the hot set that the options name, otherwise the first workload, 16 clients a
    core and all rows. Raise UsageError if the experiment lacks the workload.
    """
    run = given(
        protocol=request.protocol,
        duration_s=request.duration,
        warmup_s=warmup(request.warmup),
        interval_s=request.interval,
        workers=request.workers,
        seed=request.seed,
        connect_timeout_s=request.connect_timeout,
        repetitions=1,
    )
    # The search decides how long its trials are.
    run["duration_limit_s"] = None
    if request.workload is not None:
        known_workload(experiment, request.workload, experiment.workloads)
    axes = {
        "workload": [request.workload or next(iter(experiment.workloads))],
        "clients": [request.clients or 16 * host.cores()],
        "hot_set": [1.0 if request.hot_set is None else request.hot_set],
    }
    return Overrides(run=run, axes=axes, scale=request.scale, shrink=request.shrink)


def say_what_is_too_short(plan: Plan) -> None:
    """Say on standard error where a longer trial would let two servers take turns, which tells far more."""
    if plan.longer_s is not None:
        length = Quantity(plan.experiment.run.duration_s, "plain")
        note = message("run-too-short", seconds=length, duration=Quantity(plan.longer_s, "plain"))
        sys.stderr.write(streams.written(note) + "\n")
