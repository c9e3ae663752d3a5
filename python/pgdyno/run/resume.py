"""A run that was cut off, continued: the same trials, from the first that is not finished."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from pgdyno.errors import UsageError
from pgdyno.model import TrialPlan
from pgdyno.spec.experiment import Experiment
from pgdyno.store import rundir


@dataclass(frozen=True)
class Prepared:
    """An experiment that may be run."""

    experiment: Experiment
    #: Its file's text.
    text: str
    #: For each workload its scripts: name, text, weight.
    scripts: dict[str, list[tuple[str, str, int]]]
    #: By which clients were chosen.
    cores: int
    #: Where run directories are made.
    runs: Path
    #: What --shrink changed.
    shrunk: list[str]
    #: The run directory that is continued.
    resumed: Path | None = None


def read(path: Path) -> Prepared:
    """What the run in `path` was, and is to become."""
    try:
        manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
        experiment = Experiment.model_validate(manifest["experiment"])
        scripts = {name: [(n, t, w) for n, t, w in texts] for name, texts in manifest["scripts"].items()}
        cores, shrunk = int(manifest["cores"]), list(manifest.get("shrunk") or [])
        text = (path / "experiment.toml").read_text(encoding="utf-8")
    except (OSError, ValueError, KeyError, TypeError, ValidationError) as e:
        reason = " ".join(str(e).split())[:200]
        raise UsageError(
            f"{path} cannot be continued: its manifest.json does not say how it was made ({reason})",
            "It is of another version of pgdyno, or damaged; pgdyno report may still show it.",
        ) from e
    return Prepared(experiment, text, scripts, cores, path.parent, shrunk, path)


def finished(path: Path | None) -> list[TrialPlan]:
    """The trials that need not be repeated."""
    if path is None:
        return []
    return [t.plan for t in rundir.read_records(path) if t.state == "finished"]


def conninfo(path: Path) -> str | None:
    """How the run reached its server, without the password; None where it was a private one."""
    manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    target = manifest.get("target") or {}
    if manifest.get("managed") or not target:
        return None
    return " ".join(f"{k}={_escaped(str(target[k]))}" for k in ("host", "port", "user", "dbname"))


def _escaped(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
