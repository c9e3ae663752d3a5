"""A whole run: validate, provision, load, trials, report. Whatever ends it, what was measured is kept and reported."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from pgdyno import __version__
from pgdyno.cluster import target as targets
from pgdyno.collect import activity, host, relations, server
from pgdyno.errors import (
    EXIT_OK,
    EXIT_SIGINT,
    EXIT_SIGTERM,
    EXIT_WITH_CAVEATS,
    ClusterError,
    LocalError,
    PgdynoError,
    SpecError,
    TargetError,
    UsageError,
)
from pgdyno.interrupt import Terminated, signals_held, signals_raise
from pgdyno.load.dataset import Dataset
from pgdyno.model import Caveat, RunData, TrialRecord
from pgdyno.report import view
from pgdyno.report import write as reports
from pgdyno.run import dataset, plan, resume
from pgdyno.run.listener import Listener
from pgdyno.run.plan import Configuration, Planned
from pgdyno.run.provision import Options
from pgdyno.run.resume import Prepared
from pgdyno.run.servers import Servers, Site
from pgdyno.run.trial import TrialContext, compile_scripts, run_trial
from pgdyno.spec import load as specs
from pgdyno.spec.experiment import Experiment, size_bytes
from pgdyno.storage import probe
from pgdyno.store import rundir
from pgdyno.store.rundir import RunDirectory

#: Caveats that make a run end with exit code 1: something went wrong, not merely something to know.
WRONG = {
    Caveat.SKIPPED,
    Caveat.UNFINISHED,
    Caveat.FAILURES,
    Caveat.OUTAGE,
    Caveat.UNKNOWN,
    Caveat.TRIAL_FAILED,
    Caveat.INTERRUPTED,
}
_LOG = "The server's log is in the run directory: server.log."
_DROP_CACHES = Path("/proc/sys/vm/drop_caches")


@dataclass
class Outcome:
    """How a run ended."""

    exit_code: int
    path: Path | None = None
    data: RunData | None = None
    error: str = ""
    reports: list[Path] = field(default_factory=list)


def variables_for(data: Dataset, hot_set: float) -> dict[str, str]:
    """The variables that scripts may use: `scale` (of tpcb; else 1), `range` (rows of the hot set), `hot_set`, and
    `tables` (how many there are alike).
    """
    rows = data.rows_of_key
    return {
        "scale": str(data.size if data.kind == "tpcb" else 1),
        "range": str(max(1, round(rows * hot_set))),
        "hot_set": f"{hot_set:g}",
        "tables": str(data.tables_wanted),
    }


def prepare(name_or_path: str, adjust: Callable[[Experiment], tuple[Experiment, list[str]]], runs: Path) -> Prepared:
    """An experiment, ready to be run: valid, and its scripts compiled, before anything is touched. The path of a run
    directory continues that run.
    """
    if (Path(name_or_path) / "manifest.json").exists():
        prepared = resume.read(Path(name_or_path))
        if adjust(prepared.experiment) != (prepared.experiment, []):
            raise UsageError(
                "a run that is continued keeps its scale, durations, clients and the like",
                "Leave those options out, or start a new run.",
            )
    else:
        experiment, text, folder = specs.read(name_or_path)
        experiment, shrunk = adjust(experiment)
        scripts = specs.script_texts(experiment, folder)
        prepared = Prepared(experiment, text, scripts, host.cores(), runs, shrunk)
    matrices = prepared.experiment.matrices
    for number, axes in enumerate(matrices):
        variables = variables_for(Dataset("tpcb", 1), 1.0) | dict.fromkeys(axes.variables, "1")
        for workload in axes.workload or prepared.scripts:
            try:
                compile_scripts(prepared.scripts[workload], variables)
            except SpecError as e:
                where = f"In axes.{number}, which sets {', '.join(axes.variables) or 'no variables'}."
                raise SpecError(e.message, where if len(matrices) > 1 else e.remedy) from e
    return prepared


def run_experiment(prepared: Prepared, options: Options, listener: Listener) -> Outcome:
    """Carries out an experiment. What happens is in the outcome, beside the run directory."""
    return Session(prepared, options, listener).run()


class Session:
    """One run; a subclass may choose its trials as it goes."""

    def __init__(self, prepared: Prepared, options: Options, listener: Listener) -> None:
        self.prepared = prepared
        self.experiment = prepared.experiment
        self.listener = listener
        self.options = options
        self.configurations = plan.configurations(self.experiment, prepared.cores)
        self.one_database = options.conninfo(self.experiment) is not None
        self.trials = plan.trials(self.experiment, prepared.cores, one_database=self.one_database)
        self.varied = plan.values_of(self.configurations)
        self.directory: RunDirectory | None = None
        self._places: dict[str, Any] = {}
        #: The manifest of the run that is continued.
        self._places_before: dict[str, Any] = {}

    def run(self) -> Outcome:
        """Carries it out, signals included."""
        with signals_raise():
            return self._run()

    def _run(self) -> Outcome:
        outcome = Outcome(EXIT_OK)
        try:
            with Servers(self.experiment, self.configurations, self.options, self.listener) as servers:
                try:
                    self._run_trials(servers)
                finally:
                    if self.directory is not None:
                        servers.logs(self.directory.path)
        except KeyboardInterrupt:
            outcome = Outcome(EXIT_SIGINT, error="interrupted by Ctrl-C")
        except Terminated:
            outcome = Outcome(EXIT_SIGTERM, error="stopped by SIGTERM")
        except PgdynoError as e:
            outcome = Outcome(e.exit_code, error=str(e))
        except (OSError, psycopg.Error) as e:
            # What nobody foresaw: still a message, and what was measured is kept.
            outcome = Outcome(LocalError.exit_code, error=f"{type(e).__name__}: {' '.join(str(e).split())}")
        finally:
            self.listener.close()
        # A second Ctrl-C waits until the report is written: it takes a moment, and it is what the run was for.
        with signals_held():
            return self._report(outcome)

    # ------------------------------------------------------------ places

    def _at(self, servers: Servers, configuration: Configuration) -> Site:
        """The configuration's server, running and loaded; what it is stands in the manifest."""
        site = servers.reach(configuration)
        known = configuration.place.label in self._places and bool(site.loaded)
        if known:
            servers.load(site)
            return site
        with targets.administrative(site.target) as conn:
            facts, missing = server.describe(conn)
        self._check_connections(facts)
        if self.directory is None:
            self._begin(site, facts, missing)
            self._probe_storage(servers)
        resume.refuse_another_server(self._places_before, configuration.place.label, facts, site.reached)
        servers.load(site)
        self._record_place(site, facts)
        return site

    def _begin(self, site: Site, facts: dict[str, Any], missing: list[str]) -> None:
        """The run directory: a new one, or the one that is continued."""
        if self.prepared.resumed is not None:
            self.directory = RunDirectory.resume(self.prepared.resumed)
            self._places_before = dict(self.directory.manifest)
            self._places = dict(self.directory.manifest.get("places") or {})
            self.directory.update_manifest(ended_at=None, error="", resumed_at=rundir.now_text())
        else:
            self.directory = RunDirectory.create(self.prepared.runs, self.experiment.name, self.prepared.text)
            self._write_manifest(site, facts, missing)

    def _check_connections(self, facts: dict[str, Any]) -> None:
        shown = facts.get("settings") or {}
        most = max(c.clients for c in self.configurations)
        try:
            limit = int(shown["max_connections"]["value"])
        except (KeyError, ValueError):
            return
        if most > limit - 3:
            raise TargetError(
                f"{most} clients do not fit into max_connections = {limit} (3 are reserved)",
                f"Raise it in the server, or use fewer clients: --clients {max(1, limit - 10)}.",
            )

    def _write_manifest(self, site: Site, facts: dict[str, Any], missing: list[str]) -> None:
        assert self.directory is not None
        target, wanted, settings = site.target, site.dataset, site.cluster.settings if site.cluster else []
        local = target.host.startswith(("/", "@")) or bool(facts.get("same_machine"))
        version = target.server_version or facts.get("protocol_version", 0)
        if 0 < version < 140000:
            missing = [*missing, "PostgreSQL before 14: driven over the protocol, not tested for recording"]
        experiment = self.experiment
        self.directory.update_manifest(
            pgdyno=__version__,
            name=experiment.name,
            title=experiment.title,
            title_zh=experiment.title_zh,
            note=experiment.note,
            note_zh=experiment.note_zh,
            source=experiment.source,
            started_at=rundir.now_text(),
            host=host.describe(site.cluster.data if site.cluster else None),
            target={"host": target.host, "port": target.port, "user": target.user, "dbname": target.dbname},
            same_machine=local,
            managed=site.cluster is not None,
            reached={
                "pg_bin": str(self.options.pg_bin) if self.options.pg_bin else None,
                # Neither passwords nor what leads to them is written down.
                "options": {k: v for k, v in target.options.items() if "pass" not in k},
            },
            batched=plan.is_batched(self.experiment, one_database=self.one_database),
            chosen_settings=[asdict(s) for s in settings],
            server=facts,
            not_recorded=missing,
            scale=wanted.size if wanted.kind == "tpcb" else None,
            rows=wanted.rows_of_key,
            workloads={n: w.title or n for n, w in experiment.workloads.items()},
            workloads_zh={n: w.title_zh for n, w in experiment.workloads.items() if w.title_zh},
            run=experiment.run.model_dump(),
            trials=len(self.trials),
            varied=self.varied,
            shrunk=self.prepared.shrunk,
            # What a run that was cut off is continued by.
            experiment=experiment.model_dump(mode="json"),
            scripts=self.prepared.scripts,
            cores=self.prepared.cores,
        )

    def _record_place(self, site: Site, facts: dict[str, Any]) -> None:
        assert self.directory is not None
        wanted, place = site.dataset, site.place
        with targets.administrative(site.target) as conn:
            sizes = server.relation_sizes(conn, wanted.relations)
            described = relations.describe(conn, wanted.relations)
        named = {"kind": wanted.kind, **site.loaded, "bytes": sizes, "relations": described}
        wish = self.experiment.all_targets[place.target]
        self._places[place.label] = {
            "target": place.target,
            "title": wish.title,
            "cpus": wish.cpus,
            "memory_bytes": size_bytes(wish.memory) if wish.memory else None,
            "rows": wanted.rows_of_key,
            "server": facts,
            "reached": site.reached,
            "storage": host.file_system(site.cluster.data) if site.cluster else None,
            "dataset": named,
        }
        first = {} if "dataset" in self.directory.manifest else {"dataset": named}
        # Sizes that were left to us stay as they are when the run is continued.
        written = self.directory.manifest["experiment"]
        key = written["datasets"].get(place.dataset) or written["dataset"]
        if key is not None and key["scale"] == "auto" and key["rows"] is None and wanted.kind != "feed":
            key |= {"scale": wanted.size} if wanted.kind == "tpcb" else {"rows": wanted.size}
        elif key is None:
            written["dataset"] = {"kind": "tpcb", "scale": wanted.size}
        self.directory.update_manifest(places=self._places, experiment=written, **first)

    def _probe_storage(self, servers: Servers) -> None:
        wish = self.experiment.storage
        assert self.directory is not None
        if wish is None or "storage_probes" in self.directory.manifest:
            return
        probes = {}
        for name in dict.fromkeys(c.place.target for c in self.configurations):
            if not servers.is_private(name):
                continue
            folder = servers.folder_of(name) or Path(tempfile.gettempdir())
            self.listener.note(f"probing the storage of {name}: {folder} ...")
            size = size_bytes(wish.size) if wish.size else None
            try:
                probes[name] = asdict(probe.probe(folder, seconds=wish.seconds, size=size, threads=wish.threads))
            except LocalError as e:
                self.listener.note(f"the storage was not probed: {' '.join(str(e).split())}")
        self.directory.update_manifest(storage_probes=probes)

    # ------------------------------------------------------------ trials

    def _run_trials(self, servers: Servers) -> None:
        run = self.experiment.run
        finished = resume.finished(self.prepared.resumed)
        left = [t for t in self.trials if t.plan not in finished]
        warmup = run.warmup_limit_s if run.warmup_s == "steady" else run.warmup_s
        if not left:
            raise resume.complete()
        self._at(servers, left[0].configuration)
        if self.prepared.resumed is not None:
            self.listener.note(f"continuing: {len(self.trials) - len(left)} of {len(self.trials)} trials are there")
        self.listener.planned([t.plan for t in left], warmup + run.duration_s)
        for planned in left:
            self._run_trial(servers, planned)

    def _run_trial(self, servers: Servers, planned: Planned) -> TrialRecord:
        run, trial, configuration = self.experiment.run, planned.plan, planned.configuration
        site = self._at(servers, configuration)
        assert self.directory is not None
        run = run.model_copy(update={"protocol": configuration.protocol, "rate": configuration.rate})
        if (gone := site.died()) is not None:
            raise ClusterError(gone, _LOG)
        variables = variables_for(site.dataset, trial.hot_set)
        variables |= {name: str(value) for name, value in configuration.variables}
        scripts = compile_scripts(self.prepared.scripts[trial.workload], variables)
        # Equal configurations draw equal numbers in each repetition only if the repetition is no part of the seed;
        # it is, so that repetitions are independent.
        seed = (run.seed + 1_000_003 * trial.repetition) % 2**63
        before, refused = self._between(site)
        known = [Caveat.UNPREPARED] if refused else []
        context = TrialContext(site.target, run, self.prepared.cores, site.died, self.listener, known)
        parameters: dict[str, Any] = {**variables, "seed": seed, "protocol": run.protocol, "rate": run.rate}
        parameters |= {"place": site.place.label, "settings": dict(configuration.settings)}
        parameters |= {"rows_per_transaction": self.experiment.workloads[trial.workload].rows}
        writer = self.directory.begin_trial(trial, parameters)
        if refused:
            writer.event(0, "preparing", refused)
        self.listener.trial_started(trial)
        record, raised = run_trial(context, trial, scripts, seed, writer, lambda: self._activity(site, before))
        self.listener.trial_ended(record)
        if raised is not None:
            gone = site.died() if isinstance(raised, PgdynoError) else None
            raise ClusterError(gone, _LOG) if gone else raised
        return record

    def _between(self, site: Site) -> tuple[dict[str, float], str]:
        """Trials begin alike; returns the server's counters, and why something could not be done. A server that is away
        just now, or will not let us, is no reason to end the run.
        """
        between, record = self.experiment.run.between, self.experiment.run.record
        refused: list[str] = []
        counters: dict[str, float] = {}
        if between.restart and site.cluster is not None:
            site.cluster.stop()
            self._drop_caches(site)
            site.cluster.start()
        try:
            with targets.administrative(site.target) as conn:
                try:
                    dataset.refresh(conn, site.dataset)
                except psycopg.Error as e:
                    refused.append(" ".join(str(e).split()))
                try:
                    if between.checkpoint:
                        conn.execute("checkpoint")
                except psycopg.Error as e:
                    refused.append(" ".join(str(e).split()))
                if not between.restart:
                    self._drop_caches(site)
                time.sleep(between.pause_s)
                counters = activity.snapshot(conn, record)
        except (TargetError, psycopg.Error) as e:
            refused.append(" ".join(str(e).split()))
        if refused:
            self.listener.note(f"preparing the trial: {'; '.join(refused)}")
        return counters, "; ".join(refused)

    def _drop_caches(self, site: Site) -> None:
        # Of a server elsewhere the page cache is not ours; and whoever else is on this machine would only suffer.
        if not self.experiment.run.between.drop_caches or site.cluster is None:
            return
        try:
            # Dirty pages stay; they must be written first.
            os.sync()
            _DROP_CACHES.write_text("3\n")
        except OSError as e:
            raise LocalError(
                f"run.between.drop_caches: {e.strerror}", "Only root may; or leave it out, and use a larger scale."
            ) from e

    def _activity(self, site: Site, before: dict[str, float]) -> dict[str, float]:
        with suppress(PgdynoError, psycopg.Error), targets.administrative(site.target) as conn:
            activity.wait_until_settled(conn)
            return activity.between(before, activity.snapshot(conn, self.experiment.run.record))
        return {}

    # ------------------------------------------------------------ report

    def _report(self, outcome: Outcome) -> Outcome:
        if self.directory is None:
            return outcome
        outcome.path = self.directory.path
        try:
            self.directory.update_manifest(ended_at=rundir.now_text(), error=outcome.error, exit_code=outcome.exit_code)
            outcome.data = rundir.read(self.directory.path)
            if outcome.exit_code == EXIT_OK and any(WRONG & set(t.caveats) for t in outcome.data.trials):
                outcome.exit_code = EXIT_WITH_CAVEATS
            if any(t.summary for t in outcome.data.trials):
                outcome.reports = reports.write(view.build(outcome.data), self.directory.write_text)
        except (PgdynoError, OSError, psycopg.Error) as e:
            outcome.error = "\n".join(x for x in (outcome.error, f"the report could not be written: {e}") if x)
            outcome.exit_code = outcome.exit_code or 5
        return outcome
