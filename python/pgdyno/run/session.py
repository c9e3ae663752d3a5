"""Run of an experiment: it reaches the servers one after the other and drives the trials.

Whatever ends the run, the measured data are kept and reported.
"""

from __future__ import annotations

import contextlib
from typing import Any

import psycopg

from pgdyno.cluster import administration
from pgdyno.cluster.target import Target
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
    msg,
)
from pgdyno.format import one_line
from pgdyno.interrupt import Terminated, raise_if_signalled, signals_held, signals_raise
from pgdyno.load.own.dataset import OwnDataset
from pgdyno.load.own.touched import touched
from pgdyno.message import Name, Text, message
from pgdyno.model import TrialRecord
from pgdyno.run.planning import resume
from pgdyno.run.planning.matrix import Configuration
from pgdyno.run.planning.plan import Plan, Planned
from pgdyno.run.products import product_of
from pgdyno.run.recorder import Outcome, Recorder
from pgdyno.run.sites import admission, samples
from pgdyno.run.sites.servers import Servers
from pgdyno.run.sites.site import Site
from pgdyno.run.trials.runner import LOG, TrialRunner
from pgdyno.statements import writes
from pgdyno.stream.events import Noted, RunFinished, TrialsPlanned
from pgdyno.stream.stream import RunStream


def run_experiment(plan: Plan, stream: RunStream) -> Outcome:
    """Run an experiment. The outcome has what happened, beside the run directory."""
    return Session(plan, stream).run()


class Session:
    """One run; a subclass may choose its trials as it goes."""

    def __init__(self, plan: Plan, stream: RunStream) -> None:
        self.plan = plan
        self.experiment = plan.experiment
        self.stream = stream
        self.units = plan.units
        self.recorder = Recorder(plan, stream, varied=self.varied())
        self.runner = TrialRunner(plan.prepared, self.recorder, stream)

    def varied(self) -> dict[str, list[Any]]:
        """Return the values of the axes that vary."""
        return self.plan.varied

    def run(self) -> Outcome:
        """Carries it out, signals included."""
        with signals_raise(), AtWork():
            if others := others_at_work():
                self.stream.emit(Noted(words_for(others)))
            return self._run()

    def _run(self) -> Outcome:
        outcome = Outcome(EXIT_OK)
        try:
            admission.refuse_too_many_clients(self.plan)
            with Servers(self.plan, self.stream) as servers:
                try:
                    # Before anything is loaded: what the run itself makes says nothing of sizes that were left open.
                    servers.survey()
                    self._leave_out_writers(servers)
                    self._run_trials(servers)
                finally:
                    if self.recorder.has_begun:
                        servers.logs(self.recorder.directory.path)
        except KeyboardInterrupt:
            outcome = Outcome(EXIT_SIGINT, error=message("error-interrupted"))
        except Terminated:
            outcome = Outcome(EXIT_SIGTERM, error=message("error-stopped-sigterm"))
        except PgdynoError as e:
            outcome = Outcome(e.exit_code, error=e.whole)
        except (OSError, psycopg.Error) as e:
            # What nobody foresaw: still a message, and what was measured is kept.
            outcome = Outcome(LocalError.exit_code, error=Name(f"{type(e).__name__}: {one_line(e)}"))
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
            servers.loader.load(site, servers.sites)
            return site
        facts, missing = product_of(site.target).describe(site.target)
        between = admission.check_connections(self.plan, site, facts)
        if between is not None:
            self.stream.emit(Noted(message("progress-pooler", pooler=Name(between))))
        # Before anything is written: a refusal leaves the record of a run that is continued as it was.
        self.recorder.refuse_another_server(label, facts, site.reached)
        if not self.recorder.has_begun:
            self.recorder.begin(site, facts, missing)
            self.recorder.probe_storage(servers)
        servers.loader.load(site, servers.sites)
        admission.restrict_search_path(self.plan, site)
        if isinstance(site.dataset, OwnDataset) and isinstance(site.target, Target):
            texts = [text for scripts in self.plan.prepared.scripts.values() for _, text, _ in scripts]
            with administration.connect(site.postgresql) as conn:
                site.touched = touched(conn, texts)
            admission.refuse_missing_properties(self.experiment, site, texts)
        self._take_samples(site, configuration.place.dataset)
        self.recorder.record_place(site, facts)
        return site

    def _take_samples(self, site: Site, dataset: str) -> None:
        """Take samples of the data as they are before the first trial."""
        used = {c.workload for c in self.plan.configurations if c.place.dataset == dataset}
        wanted = {name: self.experiment.workloads[name].samples for name in sorted(used)}
        for name, of in wanted.items():
            if of and not isinstance(site.target, Target):
                raise SpecError(msg("error-samples-need-postgresql", name=name), msg("remedy-leave-samples-out"))
            if of and name not in site.samples:
                with administration.connect(site.postgresql) as conn:
                    site.samples[name] = samples.take(conn, of, self.experiment.run.seed)

    def _leave_out_writers(self, servers: Servers) -> None:
        """Leave out the trials of workloads that write if their target only reads.

        Raise RefusedError if no trial is left.
        """
        scripts = self.plan.prepared.scripts
        writers = {name for name in scripts if any(writes(text) for _, text, _ in scripts[name])}
        why: list[tuple[Text, str]] = []
        kept = []
        for unit in self.units:
            refused = [t.configuration for t in unit if t.configuration.workload in writers]
            refused = [c for c in refused if c.place.target in servers.sizes.reads_only]
            why += [(servers.sizes.reads_only[c.place.target], c.workload) for c in refused]
            kept += [] if refused else [unit]
        for number, (reason, _) in enumerate(why):
            if any(reason == other for other, _ in why[:number]):
                continue
            names = Name(", ".join(dict.fromkeys(name for other, name in why if other == reason)))
            if not kept:
                raise RefusedError(
                    message("error-writes-to-read-only", reason=reason, workloads=names),
                    msg("remedy-name-primary-target-or-workload"),
                )
            self.stream.emit(Noted(message("progress-left-out", reason=reason, workloads=names)))
        self.units = kept
        left = {id(t) for unit in kept for t in unit}
        self.plan = self.plan.only(lambda t: id(t) in left)
        self.recorder.trials = sum(len(unit) for unit in kept)

    # ------------------------------------------------------------ trials

    def _run_trials(self, servers: Servers) -> None:
        run = self.experiment.run
        finished = resume.finished(self.plan.prepared.resumed)
        units = [u for u in self.units if any(t.plan not in finished for t in u)]
        left = [planned for unit in units for planned in unit]
        warmup = run.warmup_limit_s if run.warmup_s == "steady" else run.warmup_s
        if not left:
            raise resume.complete()
        self._at(servers, left[0].configuration)
        if self.plan.prepared.resumed is not None:
            planned = sum(len(unit) for unit in self.units)
            self.stream.emit(Noted(message("progress-continuing", n=planned - len(left), of=planned)))
        self.stream.emit(TrialsPlanned([t.plan for t in left], warmup + run.longest_s))
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
        record, raised = self.runner.run(site, planned)
        self._raise(site, raised)
        return record

    def _run_duet(self, servers: Servers, first: Planned, second: Planned) -> None:
        one = self._at(servers, first.configuration, second.configuration)
        other = self._at(servers, second.configuration, first.configuration)
        raised = self.runner.run_duet((one, other), (first, second))
        self._raise(one if one.died() else other, raised)

    def _raise(self, site: Site, raised: BaseException | None) -> None:
        """Raise the error that ended a trial early, if there is one.

        If the server is gone, this is the reason for the other errors, and ClusterError is raised instead.
        """
        if raised is not None:
            gone = site.died() if isinstance(raised, PgdynoError) else None
            raise ClusterError(gone, LOG) if gone else raised
