"""A run that was cut off, continued: the same trials, from the first that is not finished."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pgdyno.errors import LocalError, RefusedError, UsageError
from pgdyno.model import TrialPlan
from pgdyno.run.provision import Options
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
    if "capacity" in manifest:
        raise UsageError(f"{path} is a search for a capacity, which cannot be continued", "Start it anew.")
    return Prepared(experiment, text, scripts, cores, path.parent, shrunk, path)


def finished(path: Path | None) -> list[TrialPlan]:
    """The trials that need not be repeated."""
    if path is None:
        return []
    return [t.plan for t in rundir.read_records(path) if t.state == "finished"]


def complete() -> LocalError:
    """What is raised where nothing is left to be done."""
    return LocalError("this run is complete: there is nothing to continue", "pgdyno report shows it.")


def servers(path: Path, wanted: Options) -> Options:
    """How the run reached its server. Raises UsageError where the command line says something else: trials of different
    servers must not come under one heading.
    """
    manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    reached = manifest.get("reached") or {}
    private = bool(manifest.get("managed"))
    if manifest.get("experiment", {}).get("targets"):
        return wanted
    if private:
        if wanted.target is not None:
            raise UsageError(f"{path} was made with a private server", "Leave --target out to continue it.")
        named = Path(reached["pg_bin"]) if reached.get("pg_bin") else None
        if wanted.pg_bin is not None and wanted.pg_bin != named:
            raise UsageError(f"{path} was made with the programs in {named or 'the wheel'}", "Leave --pg-bin out.")
        return replace(wanted, embedded=True, pg_bin=named)
    if wanted.embedded:
        raise UsageError(f"{path} was made with a running server", "Leave --embedded out to continue it.")
    parts = {**(reached.get("options") or {}), **(manifest.get("target") or {})}
    return replace(wanted, target=wanted.target or " ".join(f"{k}={_escaped(str(v))}" for k, v in parts.items()))


def refuse_another_server(manifest: dict[str, Any], label: str, facts: dict[str, Any], where: dict[str, Any]) -> None:
    """Raises RefusedError unless a place is what it was when the run began."""
    before = (manifest.get("places") or {}).get(label)
    if before is None:
        return
    old, new = before["server"].get("version"), facts.get("version")
    if old != new:
        raise RefusedError(
            f"the run was made on {old}, and this is {new}: trials of different servers do not belong into one run",
            "Start a new run.",
        )
    reached = before.get("reached")
    if reached and where and reached != where:
        raise RefusedError(
            f"the run was made on {_said(reached)}, and this is {_said(where)}",
            "Start a new run, or name the same one.",
        )


def _said(where: dict[str, Any]) -> str:
    if "cluster" in where:
        return f"the cluster {where['cluster']} (system identifier {where.get('system_identifier')})"
    return f'database "{where.get("dbname")}" at {where.get("host")} port {where.get("port")}'


def _escaped(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
