"""Trials of a run, one by one or as duets: prepared on their servers, run, and reported to the stream."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pgdyno.dbms import Database
from pgdyno.errors import ClusterError, msg
from pgdyno.message import listed
from pgdyno.model import Caveat, EventKind, TrialRecord
from pgdyno.mysql.session import read_only
from pgdyno.mysql.target import MySqlTarget
from pgdyno.replication.private import ReplicatedServer
from pgdyno.run.planning.plan import Planned
from pgdyno.run.planning.prepared import Prepared, variables_for
from pgdyno.run.planning.workloads import compiled, constants
from pgdyno.run.recorder import Recorder
from pgdyno.run.sites.site import Site
from pgdyno.run.trials.between import BetweenTrials
from pgdyno.run.trials.collecting import Collecting, samples_of
from pgdyno.run.trials.duet import run_duet
from pgdyno.run.trials.standbys import BesideStandbys, Reads
from pgdyno.run.trials.steps import TrialSteps
from pgdyno.run.trials.trial import PreparedTrial, TrialContext, abandon, run_trial
from pgdyno.spec.load import standby_reads_of
from pgdyno.stream.events import Happened, TrialFinished, TrialStarted
from pgdyno.stream.stream import RunStream, TrialStream

#: Advice where a server has died.
LOG = msg("remedy-server-log")


class TrialRunner:
    """Runner of a run's trials."""

    def __init__(self, prepared: Prepared, recorder: Recorder, stream: RunStream) -> None:
        self.prepared = prepared
        self.experiment = prepared.experiment
        self.recorder = recorder
        self.stream = stream
        self._between = BetweenTrials(prepared.experiment.run, stream)

    def run(self, site: Site, planned: Planned) -> tuple[TrialRecord, BaseException | None]:
        """Run a trial on a server that runs; return its record, and the error that ended it early."""
        record, raised = run_trial(self._prepare(site, planned))
        self._finish(record)
        return record, raised

    def run_duet(self, sites: tuple[Site, Site], planned: tuple[Planned, Planned]) -> BaseException | None:
        """Run the two trials of a duet in turns; return the error that ended them early."""
        a = self._prepare(sites[0], planned[0])
        try:
            b = self._prepare(sites[1], planned[1])
        except BaseException as e:
            self._finish(abandon(a, e))
            raise
        if sites[0] is sites[1]:
            a.steps.share_server_with(b.steps)
        records, raised = run_duet((a, b))
        for record in records:
            self._finish(record)
        return raised

    def _finish(self, record: TrialRecord) -> None:
        self.stream.emit(TrialFinished(record), trial=record.plan.number)

    def _prepare(self, site: Site, planned: Planned) -> PreparedTrial:
        """Prepare a trial whose server runs: restore the data, open its folder, start what is collected beside it."""
        run, trial, configuration = self.experiment.run, planned.plan, planned.configuration
        own: dict[str, Any] = {"protocol": configuration.protocol, "rate": configuration.rate}
        own |= {"driver": configuration.driver}
        if planned.duration_s is not None:
            own |= {"duration_s": planned.duration_s, "duration_limit_s": None}
        if self.prepared.replay(trial.workload) is not None:
            # It ends with its last transaction.
            own["duration_limit_s"] = None
        run = run.model_copy(update=own)
        if (gone := site.died()) is not None:
            raise ClusterError(gone, LOG)
        variables = variables_for(site.dataset, trial.hot_set, site.touched)
        variables |= {name: str(value) for name, value in configuration.variables}
        scripts = self.prepared.scripts[trial.workload]
        tpcc = self.experiment.workloads[trial.workload].tpcc
        rows = site.samples.get(trial.workload, [])
        replayed = self.prepared.replay(trial.workload)
        schedule = None if replayed is None else replayed.schedule
        rows = rows if replayed is None else replayed.with_rows(rows)
        workload = compiled(scripts, variables, tpcc, rows, schedule, dialect=site.target.dialect)
        # Equal configurations draw equal numbers in each repetition only if the repetition is no part of the seed;
        # it is, so that repetitions are independent.
        seed = (run.seed + 1_000_003 * trial.repetition) % 2**63
        before, refused = self._between.prepare(site)
        known = [Caveat.UNPREPARED] if refused else []
        known += [Caveat.POOLED] if self.recorder.is_pooled(site) else []
        shared = self.recorder.shares_machine(site)
        parameters: dict[str, Any] = {**variables, "seed": seed, "protocol": run.protocol, "rate": run.rate}
        parameters |= {"place": site.place.label, "settings": dict(configuration.settings)}
        parameters |= {"round_trip_ms": configuration.round_trip_ms, "driver": run.driver}
        parameters |= {"rows_per_transaction": self.experiment.workloads[trial.workload].rows}
        if tpcc is not None:
            parameters |= {"nurand": constants(variables)}
        writer = self.recorder.begin_trial(trial, parameters)
        stream = TrialStream(self.stream, trial.number)
        stream.emit(TrialStarted(trial, [c.sql for c in workload.commands if c.is_sql]))
        if refused:
            stream.emit(Happened(EventKind.PREPARING, listed(refused, "semicolon")))
        statements = samples_of(scripts, workload, seed) if {"plans", "server", "statements"} & set(run.collect) else []
        steps = TrialSteps(
            site,
            run,
            stream,
            writer.folder,
            known,
            before,
            Collecting(site, run, stream, statements, same_machine=shared),
            self._beside_standbys(site, trial.workload, variables, seed, stream, run.longest_s),
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
            has_cycle=steps.has_cycle,
        )
        prepared = PreparedTrial(context, trial, scripts, variables, seed, writer, steps, workload, tpcc, rows)
        try:
            steps.before_load()
        except BaseException as e:
            self._finish(abandon(prepared, e))
            raise
        return prepared

    def _sessions_of(self, site: Site, workload: str) -> Database:
        """Return the target as the sessions of a workload reach it."""
        if not self.experiment.workloads[workload].read_only:
            return site.target
        if isinstance(site.target, MySqlTarget):
            return read_only(site.target)
        given = site.target.options.get("options", "")
        option = f"{given} -c default_transaction_read_only=on".strip()
        return replace(site.postgresql, options={**site.target.options, "options": option})

    def _beside_standbys(
        self, site: Site, name: str, variables: dict[str, str], seed: int, stream: TrialStream, duration_s: float
    ) -> BesideStandbys | None:
        """Return the standby observer, or None unless pgdyno created the standbys."""
        if not isinstance(site.cluster, ReplicatedServer):
            return None
        reads = None
        if (wanted := self.experiment.workloads[name].standby_reads) is not None:
            scripts = self.prepared.scripts[standby_reads_of(name)]
            workload = compiled(scripts, variables, samples=site.samples.get(name, []))
            reads = Reads(workload, wanted.clients, wanted.rate, seed)
        return BesideStandbys(site.postgresql, site.cluster.standbys, reads, duration_s, stream)
