"""A whole run: validate, provision, load, trials, report. Whatever ends it, what was measured is kept and reported."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import psycopg

from pgdyno import __version__, _core
from pgdyno.cluster import datadir, templates
from pgdyno.cluster import target as targets
from pgdyno.cluster.binaries import Binaries
from pgdyno.cluster.embedded import EmbeddedCluster
from pgdyno.cluster.settings import Setting, sized
from pgdyno.cluster.target import Target
from pgdyno.collect import host, server
from pgdyno.errors import EXIT_OK, EXIT_SIGINT, EXIT_SIGTERM, EXIT_WITH_CAVEATS, ClusterError, PgdynoError, TargetError
from pgdyno.interrupt import Terminated, signals_held, signals_raise
from pgdyno.load import find
from pgdyno.load.dataset import Dataset
from pgdyno.model import Caveat, RunData, TrialPlan
from pgdyno.report import write as reports
from pgdyno.run import dataset
from pgdyno.run.listener import Listener
from pgdyno.run.trial import TrialContext, compile_scripts, run_trial
from pgdyno.spec import load as specs
from pgdyno.spec.experiment import Experiment
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


@dataclass(frozen=True)
class Options:
    """What the command line adds to an experiment file."""

    #: libpq connection string; None: the embedded cluster, unless the environment names a server.
    target: str | None = None
    embedded: bool = False
    keep: bool = False
    force: bool = False
    runs: Path = Path("runs")
    pg_bin: Path | None = None
    #: What is done about templates: "use" one that holds the dataset, also "keep" what was loaded as one, "off".
    templates: str = "use"


@dataclass
class Outcome:
    """How a run ended."""

    exit_code: int
    path: Path | None = None
    data: RunData | None = None
    error: str = ""
    reports: list[Path] = field(default_factory=list)


def plan_trials(experiment: Experiment, clients: list[int]) -> list[TrialPlan]:
    """All trials: repetitions outermost, so that a slow drift of the machine meets every configuration alike; the order
    within a repetition is drawn from the seed.
    """
    rng = random.Random(experiment.run.seed)
    plans: list[TrialPlan] = []
    for repetition in range(1, experiment.run.repetitions + 1):
        round_ = [
            (workload, hot_set, c)
            for workload in experiment.workload_names
            for hot_set in experiment.axes.hot_set
            for c in clients
        ]
        rng.shuffle(round_)
        plans += [
            TrialPlan(len(plans) + n, workload, hot_set, c, repetition)
            for n, (workload, hot_set, c) in enumerate(round_, 1)
        ]
    return plans


def client_counts(experiment: Experiment, cores: int) -> list[int]:
    """The axis of clients: as written, or 1, 4 and 16 a core."""
    return [cores, 4 * cores, 16 * cores] if experiment.axes.clients == "auto" else list(experiment.axes.clients)


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


def run_experiment(
    name_or_path: str, options: Options, listener: Listener, adjust: Callable[[Experiment], Experiment]
) -> Outcome:
    """Carries out an experiment. Mistakes in it are raised before anything is touched; what happens later is in the
    outcome, beside the run directory.
    """
    experiment, text, folder = specs.read(name_or_path)
    experiment = adjust(experiment)
    scripts = specs.script_texts(experiment, folder)
    # All scripts compile before a server is started.
    for texts in scripts.values():
        compile_scripts(texts, variables_for(Dataset("tpcb", 1), 1.0))
    session = _Session(experiment, text, scripts, options, listener)
    with signals_raise():
        return session.run()


class _Session:
    def __init__(
        self,
        experiment: Experiment,
        text: str,
        scripts: dict[str, list[tuple[str, str, int]]],
        options: Options,
        listener: Listener,
    ) -> None:
        self.experiment = experiment
        self.text = text
        self.scripts = scripts
        self.options = options
        self.listener = listener
        self.cores = host.cores()
        self.clients = client_counts(experiment, self.cores)
        self.trials = plan_trials(experiment, self.clients)
        self.directory: RunDirectory | None = None

    def run(self) -> Outcome:
        outcome = Outcome(EXIT_OK)
        try:
            with self._server() as (target, cluster):
                self._on(target, cluster)
        except KeyboardInterrupt:
            outcome = Outcome(EXIT_SIGINT, error="interrupted by Ctrl-C")
        except Terminated:
            outcome = Outcome(EXIT_SIGTERM, error="stopped by SIGTERM")
        except PgdynoError as e:
            outcome = Outcome(e.exit_code, error=str(e))
        finally:
            self.listener.close()
        # A second Ctrl-C waits until the report is written: it takes a moment, and it is what the run was for.
        with signals_held():
            return self._report(outcome)

    # ------------------------------------------------------------ server

    @contextmanager
    def _server(self) -> Iterator[tuple[Target, EmbeddedCluster | None]]:
        """The database under test: the user's, or one of our own for the length of the run."""
        wanted = self.options.target
        if wanted is None and not self.options.embedded and targets.named_by_environment():
            wanted = ""
        if wanted is not None:
            yield targets.resolve(wanted, self.experiment.run.connect_timeout_s), None
            return
        settings = sized(host.memory_bytes(), self.cores, max(self.clients))
        self.listener.note("starting a private PostgreSQL ...")
        with EmbeddedCluster(
            settings, keep=self.options.keep, pg_bin=self.options.pg_bin, template=self._template
        ) as cluster:
            assert cluster.binaries is not None
            where = f"in {cluster.base}"
            self.listener.note(f"PostgreSQL {cluster.binaries.version} ({cluster.binaries.origin}) {where}")
            shown = (
                "shared_buffers",
                "effective_cache_size",
                "maintenance_work_mem",
                "max_connections",
                "max_wal_size",
            )
            self.listener.note(
                "settings for this machine: " + ", ".join(f"{s.name}={s.value}" for s in settings if s.name in shown)
            )
            try:
                yield cluster.target, cluster
            finally:
                if self.directory is not None:
                    with suppress(OSError):
                        shutil.copyfile(cluster.log, self.directory.path / "server.log")
                if self.options.keep:
                    self.listener.note(f"kept (stopped): {cluster.data}")

    @cache  # noqa: B019 - once a run: what fits depends on the disk, which fills meanwhile
    def _embedded_dataset(self) -> Dataset:
        return dataset.chosen(self.experiment.dataset, local_data=Path(tempfile.gettempdir()))

    def _template(self, programs: Binaries) -> Path | None:
        """The data directory of a template that holds the dataset."""
        if self.options.templates == "off":
            return None
        store = templates.Store(templates.store_folder())
        found = store.find(
            templates.name_of([self._embedded_dataset().name], programs.version, templates.bytes_by_default(programs))
        )
        if found is None:
            return None
        self.listener.note(f"from the template {found.name}: {found.bytes / 1e6:,.0f} MB")
        return store.data_of(found.name)

    def _keep_as_template(self, cluster: EmbeddedCluster, wanted: Dataset) -> None:
        assert cluster.binaries is not None
        store = templates.Store(templates.store_folder())
        cluster.stop()
        directory = datadir.DataDirectory(cluster.data, cluster.binaries.major, cluster.account)
        settings = templates.bytes_by_default(cluster.binaries)
        try:
            template, _ = store.add(directory, [wanted.name], cluster.binaries.version, settings)
            self.listener.note(f"kept as the template {template.name} in {store.folder}")
        except PgdynoError as e:
            self.listener.note(f"not kept as a template: {e.message}")
        finally:
            cluster.start()

    def _on(self, target: Target, cluster: EmbeddedCluster | None) -> None:
        data = cluster.data if cluster else None
        wanted = self._embedded_dataset() if cluster else dataset.chosen(self.experiment.dataset, local_data=None)
        with ExitStack() as stack:
            conn = stack.enter_context(targets.administrative(target))
            if cluster is None:
                self.listener.note(f"target: {target.where}")
                find.claim(conn, target)
                find.refuse_if_busy(conn, target, self.options.force)
            facts, missing = server.describe(conn)
            self._check_connections(facts)
            self.directory = RunDirectory.create(self.options.runs, self.experiment.name, self.text)
            self._write_manifest(target, cluster.settings if cluster else [], facts, missing, wanted, data)
            if cluster is None:
                loaded = dataset.ensure(
                    conn,
                    target,
                    wanted,
                    force=self.options.force,
                    connect_timeout_s=self.experiment.run.connect_timeout_s,
                    listener=self.listener,
                )
            else:
                # The server is stopped meanwhile.
                conn.close()
                loaded = dataset.ensure_in(cluster, wanted, listener=self.listener)
                if loaded["loaded"] and self.options.templates == "keep":
                    self._keep_as_template(cluster, wanted)
                conn = stack.enter_context(targets.administrative(target))
            sizes = server.relation_sizes(conn, wanted.relations)
            self.directory.update_manifest(dataset={"kind": wanted.kind, **loaded, "bytes": sizes})
            # The connection stays open: it holds the claim on the database.
            self._run_trials(target, cluster, wanted)

    def _check_connections(self, facts: dict[str, Any]) -> None:
        shown = facts.get("settings") or {}
        try:
            limit = int(shown["max_connections"]["value"])
        except (KeyError, ValueError):
            return
        if max(self.clients) > limit - 3:
            raise TargetError(
                f"{max(self.clients)} clients do not fit into max_connections = {limit} (3 are reserved)",
                f"Raise it in the server, or use fewer clients: --clients {max(1, limit - 10)}.",
            )

    def _write_manifest(
        self,
        target: Target,
        settings: list[Setting],
        facts: dict[str, Any],
        missing: list[str],
        wanted: Dataset,
        data: Path | None,
    ) -> None:
        assert self.directory is not None
        local = target.host.startswith(("/", "@")) or bool(facts.get("same_machine"))
        version = target.server_version or facts.get("protocol_version", 0)
        if 0 < version < 140000:
            missing = [*missing, "PostgreSQL before 14: driven over the protocol, not tested for recording"]
        self.directory.update_manifest(
            pgdyno=__version__,
            name=self.experiment.name,
            title=self.experiment.title,
            note=self.experiment.note,
            started_at=rundir.now_text(),
            host=host.describe(data),
            target={"host": target.host, "port": target.port, "user": target.user, "dbname": target.dbname},
            same_machine=local,
            managed=bool(settings),
            chosen_settings=[asdict(s) for s in settings],
            server=facts,
            not_recorded=missing,
            scale=wanted.size if wanted.kind == "tpcb" else None,
            rows=wanted.rows_of_key,
            workloads={n: w.title or n for n, w in self.experiment.workloads.items()},
            run=self.experiment.run.model_dump(),
            trials=len(self.trials),
        )

    # ------------------------------------------------------------ trials

    def _run_trials(self, target: Target, cluster: EmbeddedCluster | None, data: Dataset) -> None:
        assert self.directory is not None
        run = self.experiment.run

        def died() -> str | None:
            if cluster is None or cluster.is_alive():
                return None
            return f"the server has died: {cluster.last_words(2)}"

        context = TrialContext(target, run, self.cores, died, self.listener)
        self.listener.planned(self.trials, run.warmup_s + run.duration_s)
        for plan in self.trials:
            gone = died()
            if gone is not None:
                raise ClusterError(gone, "The server's log is in the run directory: server.log.")
            variables = variables_for(data, plan.hot_set)
            scripts = compile_scripts(self.scripts[plan.workload], variables)
            # Equal configurations draw equal numbers in each repetition only if the repetition is no part of the seed;
            # it is, so that repetitions are independent.
            seed = (run.seed + 1_000_003 * plan.repetition) % 2**63
            self._refresh(target, data)
            writer = self.directory.begin_trial(plan, {**variables, "seed": seed, "protocol": run.protocol})
            self.listener.trial_started(plan)
            record, raised = run_trial(context, plan, scripts, seed, writer)
            self.listener.trial_ended(record)
            if raised is not None:
                gone = died() if isinstance(raised, PgdynoError) else None
                raise ClusterError(gone, "The server's log is in the run directory: server.log.") if gone else raised

    def _refresh(self, target: Target, data: Dataset) -> None:
        """Repetitions begin alike. A server that is away just now, or will not let us, is no reason to end the run."""
        try:
            with targets.administrative(target) as conn:
                dataset.refresh(conn, data)
        except (TargetError, psycopg.Error) as e:
            self.listener.note(f"the tables could not be vacuumed before the trial: {' '.join(str(e).split())}")

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
                outcome.reports = reports.write(outcome.data, self.directory.write_text)
        except (PgdynoError, OSError, psycopg.Error) as e:
            outcome.error = "\n".join(x for x in (outcome.error, f"the report could not be written: {e}") if x)
            outcome.exit_code = outcome.exit_code or 5
        return outcome


#: Versions for `pgdyno --version`.
CORE_VERSION = _core.__version__
