"""Run of an experiment: it reaches the servers one after the other and drives the trials.

Whatever ends the run, the measured data are kept and reported.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg

from pgdyno.cluster import administration, pooler
from pgdyno.cluster import target as targets
from pgdyno.cluster.embedded import EmbeddedCluster
from pgdyno.cluster.target import Target
from pgdyno.collect import activity, server
from pgdyno.collect.others import AtWork, others_at_work, words_for
from pgdyno.errors import (
    EXIT_OK,
    EXIT_SIGINT,
    EXIT_SIGTERM,
    ClusterError,
    LocalError,
    PgdynoError,
    RefusedError,
    SpecError,
    TargetError,
)
from pgdyno.format import one_line
from pgdyno.interrupt import Terminated, raise_if_signalled, signals_held, signals_raise
from pgdyno.load import find
from pgdyno.load.own.dataset import OwnDataset
from pgdyno.load.own.touched import requested_properties, touched
from pgdyno.load.units import pg_size
from pgdyno.model import Caveat, EventKind, TrialRecord
from pgdyno.replication.private import ReplicatedServer
from pgdyno.run import dataset, plan, resume, samples
from pgdyno.run.collecting import Collecting, samples_of
from pgdyno.run.duet import run_duet
from pgdyno.run.plan import Configuration, Planned
from pgdyno.run.prepared import Prepared, shares_database, variables_for
from pgdyno.run.provision import Options
from pgdyno.run.recorder import Outcome, Recorder
from pgdyno.run.servers import Servers, Site
from pgdyno.run.standbys import BesideStandbys, Reads
from pgdyno.run.steps import PATIENCE_S, TrialSteps, machine_counters
from pgdyno.run.trial import PreparedTrial, TrialContext, abandon, run_trial
from pgdyno.run.workloads import compiled, constants
from pgdyno.search_path import option_for
from pgdyno.spec.load import is_ready_made, standby_reads_of
from pgdyno.statements import writes
from pgdyno.stream.events import Happened, Noted, RunFinished, TrialFinished, TrialsPlanned, TrialStarted
from pgdyno.stream.stream import RunStream, TrialStream

_LOG = "The server's log is in the run directory: server.log."
#: File descriptors besides the clients': the engine's, and those of whoever looks on.
_DESCRIPTORS = 200
_DROP_CACHES = Path("/proc/sys/vm/drop_caches")


def run_experiment(prepared: Prepared, options: Options, stream: RunStream) -> Outcome:
    """Run an experiment. The outcome has what happened, beside the run directory."""
    return Session(prepared, options, stream).run()


class Session:
    """One run; a subclass may choose its trials as it goes."""

    def __init__(self, prepared: Prepared, options: Options, stream: RunStream) -> None:
        self.prepared = prepared
        self.experiment = prepared.experiment
        self.stream = stream
        self.options = options
        self.configurations = plan.configurations(self.experiment, prepared.cores)
        one_database = shares_database(prepared, options)
        self._said_copied = False
        self.units = plan.units(self.experiment, prepared.cores, one_database=one_database)
        self.trials = [planned for unit in self.units for planned in unit]
        self.recorder = Recorder(
            prepared,
            options,
            self.configurations,
            stream,
            trials=len(self.trials),
            varied=self.varied(),
        )

    def varied(self) -> dict[str, list[Any]]:
        """Return the values of the axes that vary."""
        return plan.values_of(self.configurations)

    def run(self) -> Outcome:
        """Carries it out, signals included."""
        with signals_raise(), AtWork():
            if others := others_at_work():
                self.stream.emit(Noted(words_for(others)))
            return self._run()

    def _refuse_too_many(self) -> None:
        """Raise LocalError where this machine has too few file descriptors for the clients: before anything is made."""
        sides = 2 if self.experiment.run.is_duet else 1
        need = sides * max(c.clients for c in self.configurations) + _DESCRIPTORS
        _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        if limit not in (-1, resource.RLIM_INFINITY) and need > limit:
            fits, clients = max(1, (limit - _DESCRIPTORS) // sides), need - _DESCRIPTORS
            raise LocalError(
                f"{clients:,} client{'s' * (clients != 1)} need {need:,} file descriptors, and the limit is {limit:,}",
                f"Raise it (ulimit -n {need}){f', or use fewer clients: --clients {fits}' if fits < clients else ''}.",
            )

    def _run(self) -> Outcome:
        outcome = Outcome(EXIT_OK)
        try:
            self._refuse_too_many()
            with Servers(self.experiment, self.configurations, self.options, self.stream) as servers:
                try:
                    # Before anything is loaded: what the run itself makes says nothing of sizes that were left open.
                    servers.survey()
                    self._leave_out_writers(servers)
                    self._run_trials(servers)
                finally:
                    if self.recorder.has_begun:
                        servers.logs(self.recorder.directory.path)
        except KeyboardInterrupt:
            outcome = Outcome(EXIT_SIGINT, error="interrupted by Ctrl-C")
        except Terminated:
            outcome = Outcome(EXIT_SIGTERM, error="stopped by SIGTERM")
        except PgdynoError as e:
            outcome = Outcome(e.exit_code, error=str(e))
        except (OSError, psycopg.Error) as e:
            # What nobody foresaw: still a message, and what was measured is kept.
            outcome = Outcome(LocalError.exit_code, error=f"{type(e).__name__}: {one_line(e)}")
        finally:
            with contextlib.suppress(LocalError):
                # A disk that is full has ended the run already.
                self.stream.emit(RunFinished(outcome.exit_code, outcome.error))
            self.stream.close()
        # A second Ctrl-C waits until the report is written: it takes a moment, and it is what the run was for.
        with signals_held():
            return self.recorder.finish(outcome)

    # ------------------------------------------------------------ places

    def _at(self, servers: Servers, configuration: Configuration, other: Configuration | None = None) -> Site:
        """Return the configuration's server, running and loaded, beside the server of another one.

        The description of the server is recorded in the manifest.
        """
        site = servers.reach(configuration, other)
        label = configuration.place.label
        if self.recorder.knows(label) and site.loaded:
            servers.load(site)
            return site
        with administration.connect(site.target, patience_s=targets.PATIENCE_S) as conn:
            facts, missing = server.describe(conn)
        self._look_for_pooler(site, facts)
        # Before anything is written: a refusal leaves the record of a run that is continued as it was.
        self.recorder.refuse_another_server(label, facts, site.reached)
        if not self.recorder.has_begun:
            self.recorder.begin(site, facts, missing)
            self.recorder.probe_storage(servers)
        servers.load(site)
        self._keep_to_the_tables(site)
        if isinstance(site.dataset, OwnDataset):
            texts = [text for scripts in self.prepared.scripts.values() for _, text, _ in scripts]
            with administration.connect(site.target) as conn:
                site.touched = touched(conn, texts)
            self._refuse_missing(site, texts)
        self._take_samples(site, configuration.place.dataset)
        self.recorder.record_place(site, facts)
        return site

    def _take_samples(self, site: Site, dataset: str) -> None:
        """Take samples of the data as they are before the first trial."""
        used = {c.workload for c in self.configurations if c.place.dataset == dataset}
        wanted = {name: self.experiment.workloads[name].samples for name in sorted(used)}
        for name, of in wanted.items():
            if of and name not in site.samples:
                with administration.connect(site.target) as conn:
                    site.samples[name] = samples.take(conn, of, self.experiment.run.seed)

    def _keep_to_the_tables(self, site: Site) -> None:
        """Restrict name lookup to the tables' schema if statements and tables are pgdyno's own.

        Sessions that use statements or tables of the user keep the user's search path.
        """
        used = {c.workload for c in self.configurations}
        workloads = [self.experiment.workloads[name] for name in used]
        built_in = is_ready_made(self.prepared.text) or all(
            w.tpcc is not None or all(s.builtin for s in w.scripts) for w in workloads
        )
        if site.claim is None or site.claim.is_pooled or not built_in or isinstance(site.dataset, OwnDataset):
            return
        option = option_for(find.schema_for(site.claim.conn, site.target))
        given = site.target.options.get("options", "")
        if option not in given:
            site.target = replace(site.target, options={**site.target.options, "options": f"{given} {option}".strip()})

    def _leave_out_writers(self, servers: Servers) -> None:
        """Leave out the trials of workloads that write if their target only reads.

        Raise RefusedError if no trial is left.
        """
        scripts = self.prepared.scripts
        writers = {name for name in scripts if any(writes(text) for _, text, _ in scripts[name])}
        why: dict[str, list[str]] = {}
        kept = []
        for unit in self.units:
            refused = [t.configuration for t in unit if t.configuration.workload in writers]
            refused = [c for c in refused if c.place.target in servers.reads_only]
            for c in refused:
                why.setdefault(servers.reads_only[c.place.target], []).append(c.workload)
            kept += [] if refused else [unit]
        for reason, names in why.items():
            left_out = ", ".join(dict.fromkeys(names))
            words = f"{reason}: it only reads, and {left_out} {'writes' if len(set(names)) == 1 else 'write'}"
            if not kept:
                raise RefusedError(words, "Name the primary (--target), or a workload that only reads.")
            self.stream.emit(Noted(f"{words}: left out"))
        self.units = kept
        self.trials = [planned for unit in kept for planned in unit]
        self.recorder.trials = len(self.trials)

    def _refuse_missing(self, site: Site, texts: list[str]) -> None:
        """Raise SpecError if scripts refer to properties that a table does not have."""
        known = variables_for(site.dataset, 1.0, site.touched)
        axes = {name for axes in self.experiment.matrices for name in axes.variables}
        for table, what in requested_properties(texts):
            name = f"{table}_{what}"
            if name not in known and name not in axes and not any(f"\\set {name} " in text for text in texts):
                why = "has no integer key, or no rows" if f"{table}_rows" in known else "is not in the database"
                raise SpecError(
                    f"a script asks for :{name}, and the table {table} {why}",
                    f"Of tables that are there scripts have: {', '.join(k for k in known if '_' in k) or 'nothing'}.",
                )

    def _look_for_pooler(self, site: Site, facts: dict[str, Any]) -> None:
        """Check for a connection pooler between client and server.

        Raise RefusedError or TargetError if the run cannot go through it.
        """
        between = pooler.find(site.target) if site.claim is not None and site.claim.is_pooled else None
        if between is None:
            self._check_connections(facts)
            return
        facts["pooler"] = between.description
        # The server sees the pooler, not us.
        facts["same_machine"] = bool(facts.get("same_machine")) and site.target.is_local
        self.stream.emit(Noted(f"between client and server is {between.description}"))
        prepared = any(c.protocol == "prepared" for c in self.configurations) or any(
            self.experiment.workloads[c.workload].tpcc for c in self.configurations
        )
        if prepared and not between.prepares:
            raise TargetError(
                f"{site.target.where} is {between.description}: the protocol prepared does not work there",
                "--protocol extended, pooling by session, or PgBouncer 1.21 or newer with max_prepared_statements.",
            )
        assert site.claim is not None
        if between.by_transaction and not dataset.is_there(site.claim.conn, site.dataset):
            raise RefusedError(
                f"{site.target.where} is {between.description}: loading needs sessions of its own",
                "Load without it: pgdyno load, with --target the server's own port. Then run through the pooler.",
            )

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

    # ------------------------------------------------------------ trials

    def _run_trials(self, servers: Servers) -> None:
        run = self.experiment.run
        finished = resume.finished(self.prepared.resumed)
        units = [u for u in self.units if any(t.plan not in finished for t in u)]
        left = [planned for unit in units for planned in unit]
        warmup = run.warmup_limit_s if run.warmup_s == "steady" else run.warmup_s
        if not left:
            raise resume.complete()
        self._at(servers, left[0].configuration)
        if self.prepared.resumed is not None:
            self.stream.emit(
                Noted(f"continuing: {len(self.trials) - len(left)} of {len(self.trials)} trials are there")
            )
        self.stream.emit(TrialsPlanned([t.plan for t in left], warmup + run.duration_s))
        start = left[0].plan.start
        for unit in units:
            raise_if_signalled()
            if unit[0].plan.start != start:
                start = unit[0].plan.start
                servers.start_anew()
            if len(unit) == 2:
                self._run_duet(servers, *unit)
            else:
                self._run_trial(servers, *unit)

    def _run_trial(self, servers: Servers, planned: Planned) -> TrialRecord:
        site = self._at(servers, planned.configuration)
        t = self._begin(site, planned)
        record, raised = run_trial(t)
        self.stream.emit(TrialFinished(record), trial=record.plan.number)
        self._raise(site, raised)
        return record

    def _run_duet(self, servers: Servers, first: Planned, second: Planned) -> None:
        one = self._at(servers, first.configuration, second.configuration)
        other = self._at(servers, second.configuration, first.configuration)
        a = self._begin(one, first)
        try:
            b = self._begin(other, second)
        except BaseException as e:
            record = abandon(a, e)
            self.stream.emit(TrialFinished(record), trial=record.plan.number)
            raise
        if one is other:
            a.steps.share_server_with(b.steps)
        records, raised = run_duet((a, b))
        for record in records:
            self.stream.emit(TrialFinished(record), trial=record.plan.number)
        self._raise(one if one.died() else other, raised)

    def _raise(self, site: Site, raised: BaseException | None) -> None:
        """Raise the error that ended a trial early, if there is one.

        If the server is gone, this is the reason for the other errors, and ClusterError is raised instead.
        """
        if raised is not None:
            gone = site.died() if isinstance(raised, PgdynoError) else None
            raise ClusterError(gone, _LOG) if gone else raised

    def _begin(self, site: Site, planned: Planned) -> PreparedTrial:
        """Prepare a trial whose server runs: restore the data, open its folder, start what is collected beside it."""
        run, trial, configuration = self.experiment.run, planned.plan, planned.configuration
        run = run.model_copy(update={"protocol": configuration.protocol, "rate": configuration.rate})
        if (gone := site.died()) is not None:
            raise ClusterError(gone, _LOG)
        variables = variables_for(site.dataset, trial.hot_set, site.touched)
        variables |= {name: str(value) for name, value in configuration.variables}
        scripts = self.prepared.scripts[trial.workload]
        tpcc = self.experiment.workloads[trial.workload].tpcc
        rows = site.samples.get(trial.workload, [])
        replayed = self.prepared.replay(trial.workload)
        schedule = None if replayed is None else replayed.schedule
        rows = rows if replayed is None else replayed.with_rows(rows)
        workload = compiled(scripts, variables, tpcc, rows, schedule)
        # Equal configurations draw equal numbers in each repetition only if the repetition is no part of the seed;
        # it is, so that repetitions are independent.
        seed = (run.seed + 1_000_003 * trial.repetition) % 2**63
        before, refused = self._between(site)
        known = [Caveat.UNPREPARED] if refused else []
        known += [Caveat.POOLED] if self.recorder.is_pooled(site) else []
        shared = self.recorder.shares_machine(site)
        parameters: dict[str, Any] = {**variables, "seed": seed, "protocol": run.protocol, "rate": run.rate}
        parameters |= {"place": site.place.label, "settings": dict(configuration.settings)}
        parameters |= {"round_trip_ms": configuration.round_trip_ms}
        parameters |= {"rows_per_transaction": self.experiment.workloads[trial.workload].rows}
        if tpcc is not None:
            parameters |= {"nurand": constants(variables)}
        writer = self.recorder.begin_trial(trial, parameters)
        stream = TrialStream(self.stream, trial.number)
        stream.emit(TrialStarted(trial, [c.sql for c in workload.commands if c.is_sql]))
        if refused:
            stream.emit(Happened(EventKind.PREPARING, refused))
        statements = samples_of(scripts, workload, seed) if {"plans", "server", "statements"} & set(run.collect) else []
        steps = TrialSteps(
            site,
            run,
            stream,
            writer.folder,
            known,
            before,
            Collecting(site, run, stream, statements, same_machine=shared),
            self._beside_standbys(site, planned, variables, seed, stream),
            checks=tpcc is not None and run.check,
        )
        context = TrialContext(
            self._sessions_of(site, trial.workload),
            run,
            self.prepared.cores,
            site.died,
            stream,
            shared,
            known,
            steps.on_interval,
            steps.extra_histograms,
            steps.stop,
            self.experiment.workloads[trial.workload].expect_rows,
            is_replay=schedule is not None,
        )
        prepared = PreparedTrial(context, trial, scripts, variables, seed, writer, steps, tpcc, rows, schedule)
        try:
            steps.before_load()
        except BaseException as e:
            record = abandon(prepared, e)
            self.stream.emit(TrialFinished(record), trial=record.plan.number)
            raise
        return prepared

    def _sessions_of(self, site: Site, workload: str) -> Target:
        """Return the target as the sessions of a workload reach it."""
        if not self.experiment.workloads[workload].read_only:
            return site.target
        given = site.target.options.get("options", "")
        option = f"{given} -c default_transaction_read_only=on".strip()
        return replace(site.target, options={**site.target.options, "options": option})

    def _beside_standbys(
        self, site: Site, planned: Planned, variables: dict[str, str], seed: int, stream: TrialStream
    ) -> BesideStandbys | None:
        """Return the standby observer, or None unless pgdyno created the standbys."""
        if not isinstance(site.cluster, ReplicatedServer):
            return None
        name, reads = planned.plan.workload, None
        if (wanted := self.experiment.workloads[name].standby_reads) is not None:
            scripts = self.prepared.scripts[standby_reads_of(name)]
            workload = compiled(scripts, variables, samples=site.samples.get(name, []))
            reads = Reads(workload, wanted.clients, wanted.rate, seed)
        duration_s = self.experiment.run.duration_s
        return BesideStandbys(site.target, site.cluster.standbys, reads, duration_s, stream)

    def _between(self, site: Site) -> tuple[dict[str, float], str]:
        """Prepare the server so that all trials begin alike.

        Return the server's counters, and the reasons why steps could not be done. A server that is unreachable at the
        moment, or that denies permission, does not end the run.
        """
        between, record = self.experiment.run.between, self.experiment.run.record
        refused: list[str] = []
        counters: dict[str, float] = {}
        if between.restore == "template" and isinstance(site.cluster, EmbeddedCluster):
            copied = site.cluster.restore_as_loaded()
            if copied and not self._said_copied:
                self._said_copied = True
                self.stream.emit(Noted(f"restored by copying {pg_size(copied)}: this file system shares no blocks"))
        if between.restart and site.cluster is not None:
            site.cluster.stop()
            self._drop_caches(site)
            site.cluster.start()
        try:
            if site.claim is not None:
                site.claim.renew()
            with administration.connect(site.target) as conn:
                try:
                    dataset.refresh(conn, site.target, site.dataset)
                    self._restore(conn, site)
                except psycopg.Error as e:
                    refused.append(one_line(e))
                try:
                    if between.checkpoint:
                        conn.execute("checkpoint")
                except psycopg.Error as e:
                    refused.append(one_line(e))
                if not between.restart:
                    self._drop_caches(site)
                time.sleep(between.pause_s)
            with administration.connect(site.target, patience_s=PATIENCE_S) as conn:
                # What is missing now is said when it is asked for again.
                counters, _ = activity.snapshot(conn, record)
                counters |= machine_counters(site)
        except RefusedError:
            raise
        except (TargetError, psycopg.Error) as e:
            refused.append(one_line(e))
        if refused:
            self.stream.emit(Noted(f"preparing the trial: {'; '.join(refused)}"))
        return counters, "; ".join(refused)

    def _restore(self, conn: psycopg.Connection[tuple[Any, ...]], site: Site) -> None:
        """Restore the data by SQL to the state after loading."""
        restore = self.experiment.run.between.restore
        if restore.endswith(".sql"):
            dataset.carry_out(conn, restore)
        elif restore == "truncate" and site.emptied:
            conn.execute(f"truncate {', '.join(site.emptied)}".encode())

    def _drop_caches(self, site: Site) -> None:
        # Of a server elsewhere the page cache is not ours; and whoever else is on this machine would only suffer.
        drop = self.experiment.run.between.drop_caches
        if not drop or site.cluster is None:
            return
        try:
            # Dirty pages stay; they must be written first.
            os.sync()
            _DROP_CACHES.write_text("3\n")
        except OSError as e:
            if drop == "if_possible":
                return
            raise LocalError(
                f"run.between.drop_caches: {e.strerror}", "Only root may; or leave it out, and use a larger scale."
            ) from e
