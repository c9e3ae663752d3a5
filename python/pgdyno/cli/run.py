"""`pgdyno run`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from rich.console import Console

from pgdyno.cli.progress import listener_for
from pgdyno.errors import SpecError, UsageError
from pgdyno.model import RunData
from pgdyno.report import terminal, view
from pgdyno.run.session import Options, run_experiment
from pgdyno.spec.experiment import Experiment
from pgdyno.spec.load import mistakes


def numbers(option: str, text: str | None, kind: Callable[[str], Any]) -> list[Any] | None:
    """A list of numbers from `1,8,64`."""
    if text is None:
        return None
    try:
        return [kind(part.strip()) for part in text.split(",")]
    except ValueError as e:
        raise UsageError(f'{option}: "{text}" is no list of numbers', f"Write it as {option} 1,8,64.") from e


def adjusted(experiment: Experiment, scale: int | None, run: dict[str, Any], axes: dict[str, Any]) -> Experiment:
    """The experiment with the command line's values in place of its own, validated again."""
    data = experiment.model_dump()
    data["run"] |= run
    data["axes"] |= axes
    if scale is not None:
        data["dataset"]["scale"] = scale
    try:
        return Experiment.model_validate(data)
    except ValidationError as e:
        first = mistakes(e)[0]
        option = "--" + str(first["loc"][1]).removesuffix("_s").replace("_", "-")
        raise SpecError(f"{option}: {first['msg'].removeprefix('Value error, ')} (it is {first.get('input')!r})") from e


def main(
    experiment: str,
    *,
    target: str | None,
    embedded: bool,
    scale: int | None,
    run: dict[str, Any],
    axes: dict[str, Any],
    runs: Path,
    keep: bool,
    force: bool,
    pg_bin: Path | None,
    templates: str,
    json_output: bool,
    quiet: bool,
) -> int:
    """Runs, shows, and returns the exit code."""
    if embedded and target is not None:
        raise UsageError("--embedded and --target contradict each other", "Give one of them.")
    if templates not in ("use", "keep", "off"):
        raise UsageError(f'--templates: there is no "{templates}"', "There are use, keep, off.")
    errors = Console(stderr=True, highlight=False)
    listener = listener_for(errors, quiet=quiet)
    options = Options(
        target=target, embedded=embedded, keep=keep, force=force, runs=runs, pg_bin=pg_bin, templates=templates
    )
    outcome = run_experiment(experiment, options, listener, lambda e: adjusted(e, scale, run, axes))
    if json_output:
        sys.stdout.write(json.dumps(as_json(outcome.data, outcome.exit_code, outcome.error), indent=2) + "\n")
    elif outcome.data is not None and any(t.summary for t in outcome.data.trials):
        out = Console(highlight=False)
        out.print()
        terminal.render(view.build(outcome.data, with_charts=False), out)
    if outcome.error:
        errors.print(
            f"pgdyno: {outcome.error}", markup=False, style="red" if errors.is_terminal else "", soft_wrap=True
        )
    if outcome.path is not None and not quiet:
        for path in outcome.reports or [outcome.path]:
            errors.print(f"{'report' if outcome.reports else 'run directory'}: {path}", markup=False, soft_wrap=True)
    return outcome.exit_code


def as_json(data: RunData | None, exit_code: int, error: str) -> dict[str, Any]:
    """A run for machines: times in nanoseconds, sizes in bytes."""
    if data is None:
        return {"exit_code": exit_code, "error": error}
    return {
        "exit_code": exit_code,
        "error": error,
        "path": data.path,
        "manifest": data.manifest,
        "trials": [
            {
                **asdict(t.plan),
                "state": t.state,
                "error": t.error,
                "caveats": [c.name for c in t.caveats],
                "summary": asdict(t.summary) if t.summary else None,
            }
            for t in data.trials
        ],
        "pooled": [
            {"workload": w, "hot_set": h, "clients": c, **asdict(latency)} for (w, h, c), latency in data.pooled.items()
        ],
    }
