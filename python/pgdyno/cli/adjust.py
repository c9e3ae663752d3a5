"""The experiment with the values of the command line in place of the file's."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import ValidationError

from pgdyno.cli import streams, vary
from pgdyno.collect import host
from pgdyno.errors import SpecError, UsageError, msg
from pgdyno.message import Name, Text, listed, message
from pgdyno.run.order import longer
from pgdyno.run.prepared import Prepared
from pgdyno.run.provision import Options
from pgdyno.run.shrink import shrunk
from pgdyno.spec.experiment import Experiment
from pgdyno.spec.load import mistakes, wording
from pgdyno.store.manifest import Change
from pgdyno.units import Quantity


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


def one_configuration(
    clients: int | None, hot_set: float | None, workload: str | None
) -> Callable[[Experiment], dict[str, Any]]:
    """Axes with one value each: what is named, else all rows, 16 connections a core, the first workload."""

    def of(experiment: Experiment) -> dict[str, Any]:
        if workload is not None and workload not in experiment.workloads:
            raise UsageError(
                msg("error-workload-no-workload", name=experiment.name, workload=workload),
                msg("remedy-it-has", names=", ".join(experiment.workloads)),
            )
        return {
            "workload": [workload or next(iter(experiment.workloads))],
            "clients": [clients or 16 * host.cores()],
            "hot_set": [1.0 if hot_set is None else hot_set],
        }

    return of


def adjusted(
    experiment: Experiment,
    scale: int | None,
    run: dict[str, Any],
    axes: dict[str, Any],
    shrink: float | None,
    fixed: Sequence[str] = (),
    varied: Sequence[str] = (),
) -> tuple[Experiment, list[Change]]:
    """Return the experiment with the values of the command line, and the changes that --shrink made.

    The values of the command line replace those of the experiment, and the result is validated again. `fixed` holds
    the values of --set, `varied` those of --vary.
    """
    changes: list[Change] = []
    run, axes = dict(run), {**axes, **vary.axes_of(experiment, fixed, varied)}
    if varied and shrink is None:
        chosen = vary.for_a_comparison(experiment, axes, run)
        if chosen:
            sys.stderr.write(streams.written(message("run-vary-chose", options=Name(" ".join(chosen)))) + "\n")
    if shrink is not None:
        experiment, changes = shrunk(experiment, shrink, host.cores(), host.memory_bytes())
        if not changes:
            note = message("run-shrink-nothing", factor=Quantity(shrink, "plain"))
            sys.stderr.write(streams.written(note) + "\n")
    data = experiment.model_dump()
    if varied:
        # The experiment's own title is about what it was made to look at.
        data["title"] = f"{experiment.name}: {' and '.join(varied)}".replace("=", " = ")
        data["title_zh"] = ""
    data["run"] |= run
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
    if scale is not None:
        if data["datasets"]:
            raise SpecError(
                msg("error-scale-but-several-datasets", name=experiment.name), msg("remedy-use-shrink-or-change-file")
            )
        data["dataset"] = {**(data["dataset"] or {}), "scale": scale, "rows": None}
    try:
        return Experiment.model_validate(data), changes
    except ValidationError as e:
        first = mistakes(e)[0]
        named = [str(x) for x in first["loc"][1:] if isinstance(x, str) and not x.startswith("alternative-")]
        option = f"--{named[0].removesuffix('_s').replace('_', '-')}: " if named else ""
        value = first.get("input")
        shown: Text = msg("spec-shown", value=repr(value)) if isinstance(value, str | int | float | list) else Name("")
        if "hot_set" in named and isinstance(value, float) and 1 < value <= 100:
            percent = msg("spec-percent", percent=f"{value:g}", part=f"{value / 100:g}")
            shown = listed([shown, percent], "none")
        raise SpecError(msg("spec-option", option=option, mistake=wording(first), shown=shown)) from e


def say_what_is_too_short(prepared: Prepared, servers: Options) -> None:
    """Say on standard error where a longer trial would let two servers take turns, which tells far more."""
    seconds = longer(prepared, servers)
    if seconds is not None:
        length = Quantity(prepared.experiment.run.duration_s, "plain")
        note = message("run-too-short", seconds=length, duration=Quantity(seconds, "plain"))
        sys.stderr.write(streams.written(note) + "\n")
