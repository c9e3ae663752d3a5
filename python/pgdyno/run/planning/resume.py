"""A run that was cut off, continued: the same trials, from the first that is not finished."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pgdyno.errors import LocalError, RefusedError, UsageError, msg
from pgdyno.model import TrialPlan
from pgdyno.run.planning.options import Options
from pgdyno.store import manifest, trials
from pgdyno.store.manifest import Place


def finished(path: Path | None) -> list[TrialPlan]:
    """Return the finished trials, which need not be repeated."""
    if path is None:
        return []
    return [t.plan for t in trials.read_records(path) if t.state == "finished"]


def complete() -> LocalError:
    """Return the error to raise if no trial is left to run."""
    return LocalError(msg("error-this-run-complete-there-nothing"), msg("remedy-pgdyno-report-shows"))


def servers(path: Path, wanted: Options) -> Options:
    """Return the options with which the run reached its server.

    Raise UsageError if the command line names something else. Trials of different servers must not appear under one
    heading.
    """
    m = manifest.read(path)
    private = m.managed
    if (m.experiment or {}).get("targets"):
        return wanted
    if private:
        if wanted.target is not None:
            raise UsageError(msg("error-was-made-private-server", path=path), msg("remedy-leave-target-out-continue"))
        named = Path(m.reached.pg_bin) if m.reached.pg_bin else None
        if wanted.pg_bin is not None and wanted.pg_bin != named:
            raise UsageError(
                msg("error-was-made-programs", path=path, value=named or "the wheel"), msg("remedy-leave-pg-bin-out")
            )
        return replace(wanted, embedded=True, pg_bin=named)
    if wanted.embedded:
        raise UsageError(msg("error-was-made-running-server", path=path), msg("remedy-leave-embedded-out-continue"))
    parts = {**m.reached.options, **m.target.model_dump(exclude_none=True)}
    return replace(wanted, target=wanted.target or " ".join(f"{k}={_escaped(str(v))}" for k, v in parts.items()))


def refuse_another_server(before: Place | None, version: str, where: dict[str, Any]) -> None:
    """Raise RefusedError unless a place is unchanged since the run began.

    `before` is the place at that time. None means that the place is new, which is accepted.
    """
    if before is None:
        return
    if before.server.version != version:
        raise RefusedError(
            msg("error-run-was-made-on-this-2", version=before.server.version, version2=version),
            msg("remedy-start-new-run"),
        )
    if before.reached and where and before.reached != where:
        raise RefusedError(
            msg("error-run-was-made-on-this-3", refusal=_refusal(before.reached), refusal2=_refusal(where)),
            msg("remedy-start-new-run-or-name"),
        )


def _refusal(where: dict[str, Any]) -> str:
    if "cluster" in where:
        return f"the cluster {where['cluster']} (system identifier {where.get('system_identifier')})"
    return f'database "{where.get("dbname")}" at {where.get("host")} port {where.get("port")}'


def _escaped(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
