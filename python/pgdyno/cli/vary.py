"""`--set NAME=VALUE` and `--vary NAME=A,B`: server settings, script variables and axes without a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pgdyno.collect import host
from pgdyno.errors import UsageError, msg
from pgdyno.spec.experiment import Experiment, Tpcc

#: Axes that have a name of their own.
_AXES = {"clients": int, "hot_set": float, "protocol": str, "driver": str, "version": str, "scale": int, "rate": float,
         "round_trip_ms": float}  # fmt: skip
#: What is left of an experiment that was made to look at many configurations, where two values are compared: a number
#: of clients a core, and seconds and starts of the servers (or repetitions) that tell 5% apart on a quiet machine.
_CLIENTS_A_CORE, _SECONDS, _STARTS = 4, 5.0, 5


def axes_of(experiment: Experiment, fixed: Sequence[str], varied: Sequence[str]) -> dict[str, Any]:
    """Return the axes that the --set and --vary options define.

    The name of an axis sets that axis. A name that the experiment's scripts use sets a variable. Any other name sets a
    server setting. Raise UsageError if an option is not valid.
    """
    tpcc_workload = set(Tpcc.model_fields) if any(w.tpcc for w in experiment.workloads.values()) else set()
    scripts = " ".join(s.text or "" for w in experiment.workloads.values() for s in w.scripts)
    out: dict[str, Any] = {}
    twice = {t.partition("=")[0].strip() for t in fixed} & {t.partition("=")[0].strip() for t in varied}
    if twice:
        name = min(twice)
        raise UsageError(msg("error-set-vary-contradict-each-other", name=name), msg("remedy-leave-one-them-out"))
    for option, texts in (("--set", fixed), ("--vary", varied)):
        for text in texts:
            name, equals, rest = text.partition("=")
            name = name.strip()
            if not equals or not name or not rest:
                wanted = "NAME=VALUE" if option == "--set" else "NAME=A,B"
                example = "off" if option == "--set" else "on,off"
                raise UsageError(
                    msg("error-not-form", option=option, text=text, wanted=wanted),
                    msg("remedy-write-values-e-g-synchronous", option=option, example=example),
                )
            values = [rest.strip()] if option == "--set" else [v.strip() for v in rest.split(",")]
            if option == "--vary" and len(values) < 2:
                raise UsageError(
                    msg("error-vary-one-value-no-comparison", text=text),
                    msg("remedy-write-second-one-vary-b", text=text),
                )
            if name in _AXES:
                out[name] = [_as(_AXES[name], v, f"{option} {text}") for v in values]
            elif name in tpcc_workload or re.search(rf"(?<!:):{re.escape(name)}\b", scripts):
                out.setdefault("variables", {})[name] = [_number(v) for v in values]
            else:
                out.setdefault("settings", {})[name] = values
    return out


def for_a_comparison(experiment: Experiment, axes: dict[str, Any], run: dict[str, Any]) -> list[str]:
    """Reduce an experiment with many configurations to one, for a comparison; return the options chosen.

    The trials become long enough to tell differences of 5% apart. Values that the command line names stay. This
    function changes `axes` and `run`.
    """
    chosen = []
    matrices = experiment.matrices
    if "clients" not in axes and (len(matrices) > 1 or matrices[0].clients == "auto" or len(matrices[0].clients) > 1):
        axes["clients"] = [_CLIENTS_A_CORE * host.cores()]
        chosen.append(f"--clients {axes['clients'][0]}")
    if "hot_set" not in axes and any(len(m.hot_set) > 1 for m in matrices):
        axes["hot_set"] = [1.0]
        chosen.append("--hot-set 1")
    if "duration_s" not in run and experiment.run.duration_s < _SECONDS:
        run["duration_s"] = _SECONDS
        warmup = experiment.run.warmup_s
        run.setdefault("warmup_s", warmup if warmup == "steady" else max(1.0, warmup))
        chosen.append(f"--duration {_SECONDS:g}")
    if "restarts" not in run and experiment.run.restarts == 1 and {"settings", "version"} & set(axes):
        # Private servers, of which one start is not like the next.
        run["restarts"] = _STARTS
        chosen.append(f"--restarts {_STARTS}")
    if "repetitions" not in run:
        # A verdict needs several units: starts of the servers where these are made, else repetitions.
        starts = run.get("restarts", experiment.run.restarts)
        wanted = 1 if starts > 1 else max(_STARTS, experiment.run.repetitions)
        if wanted != experiment.run.repetitions and (starts > 1 or {"protocol", "driver", "variables"} & set(axes)):
            run["repetitions"] = wanted
            chosen.append(f"--repetitions {wanted}")
    return chosen


def _as(kind: Any, text: str, option: str) -> Any:
    try:
        return kind(text)
    except ValueError as e:
        raise UsageError(msg("error-not-number", option=option, text=text)) from e


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
