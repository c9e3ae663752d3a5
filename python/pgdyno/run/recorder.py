"""Record of a run: its directory, its manifest, and its reports at the end."""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from pgdyno import __version__
from pgdyno.cluster import administration
from pgdyno.cluster import target as targets
from pgdyno.cluster.target import Target
from pgdyno.collect import host, relations
from pgdyno.dbms import Database
from pgdyno.errors import EXIT_OK, EXIT_SIGINT, EXIT_WITH_CAVEATS, LocalError, PgdynoError, RefusedError, msg, reason
from pgdyno.interrupt import Terminated
from pgdyno.message import Name, Text, listed, message
from pgdyno.model import TrialPlan
from pgdyno.report import heading, view
from pgdyno.report import write as reports
from pgdyno.report.view import View
from pgdyno.results.analysis import RunAnalysis
from pgdyno.run.planning import resume
from pgdyno.run.planning.plan import Plan
from pgdyno.run.products import product_of
from pgdyno.run.sites.servers import Servers
from pgdyno.run.sites.site import Site
from pgdyno.spec.values import size_bytes
from pgdyno.storage import probe
from pgdyno.store import manifest, reading, texts
from pgdyno.store.journal import RunRecorder
from pgdyno.store.layout import FINDINGS
from pgdyno.store.manifest import Place
from pgdyno.store.reading import RunData
from pgdyno.store.rundir import RunDirectory, TrialWriter
from pgdyno.store.writing import now_text
from pgdyno.stream.events import Noted
from pgdyno.stream.stream import RunStream


@dataclass
class Outcome:
    """Outcome of a run."""

    exit_code: int
    path: Path | None = None
    error: Text | None = None
    #: None: there is no record that could be read.
    analysis: RunAnalysis | None = None
    #: The report in English; None: there is none.
    view: View | None = None
    reports: list[Path] = field(default_factory=list)

    def add_error(self, error: Text) -> None:
        """Add an error to those that ended the run."""
        self.error = listed((self.error, error), "line")

    @property
    def data(self) -> RunData | None:
        """The record of the run."""
        return self.analysis.data if self.analysis is not None else None


def _ending(outcome: Outcome) -> dict[str, Any]:
    """Return what the manifest says of the end."""
    error = {"error": texts.english(outcome.error), "error_message": texts.data_of(outcome.error)}
    return {"exit_code": outcome.exit_code, **error}


def _same_machine(target: Database, same_address: object) -> bool:
    """Return True if the server runs on this machine.

    A Unix-domain socket always belongs to this machine. Otherwise `same_address` decides: the server reports whether
    both ends of the connection have the same address.
    """
    return target.host.startswith(("/", "@")) or bool(same_address)


class Recorder:
    """Writes one run down. The directory is made when the first server has been reached."""

    def __init__(
        self,
        plan: Plan,
        stream: RunStream,
        *,
        varied: dict[str, list[Any]],
    ) -> None:
        self._plan = plan
        self._prepared = prepared = plan.prepared
        self._experiment = plan.experiment
        self._options = plan.options
        self._stream = stream
        self.trials = len(plan.trials)
        self._varied = varied
        self._directory: RunDirectory | None = None
        self._record = RunRecorder()
        stream.record(self._record)
        self._places: dict[str, Place] = {}
        #: Of the run that is continued.
        self._before = manifest.read(prepared.resumed).places if prepared.resumed is not None else {}

    @property
    def has_begun(self) -> bool:
        """There is a directory."""
        return self._directory is not None

    @property
    def directory(self) -> RunDirectory:
        """Directory in which the run is recorded."""
        assert self._directory is not None, "nothing has been reached yet"
        return self._directory

    def knows(self, label: str) -> bool:
        """Return True if the place with this label is recorded."""
        return label in self._places

    def shares_machine(self, site: Site) -> bool:
        """Return True if the server of a place runs on this machine, as far as pgdyno can determine this."""
        return _same_machine(site.target, self._places[site.place.label].server.same_machine)

    def is_pooled(self, site: Site) -> bool:
        """Return True if a connection pooler is between client and server."""
        return bool(self._places[site.place.label].server.pooler)

    def begin_trial(self, trial: TrialPlan, parameters: dict[str, Any]) -> TrialWriter:
        """Open a trial's folder and return its writer, which receives the trial's events from the stream."""
        writer = self.directory.begin_trial(trial, parameters)
        self._record.add(writer)
        return writer

    def update(self, **facts: Any) -> None:
        """Add facts to the manifest."""
        self.directory.update_manifest(**facts)

    def begin(self, site: Site, facts: dict[str, Any], missing: list[Text]) -> None:
        """Create the run directory, or open that of the continued run."""
        if self._prepared.resumed is not None:
            self._directory = RunDirectory.resume(self._prepared.resumed)
            self._places = dict(self.directory.manifest.places)
            before = self.directory.manifest
            self.directory.update_manifest(
                ended_at=None,
                error="",
                error_message=None,
                exit_code=None,
                verdict="",
                verdict_message=None,
                resumed_at=now_text(),
                tags=list(dict.fromkeys([*before.tags, *self._prepared.tags])),
                remark=self._prepared.remark or before.remark,
            )
        else:
            self._directory = RunDirectory.create(self._prepared.runs, self._experiment.name, self._prepared.text)
            self._write_manifest(site, facts, missing)
        self._record.open(self.directory.path)

    def _write_manifest(self, site: Site, facts: dict[str, Any], missing: list[Text]) -> None:
        target, wanted, settings = site.target, site.dataset, site.cluster.settings if site.cluster else []
        version = target.server_version or facts.get("protocol_version", 0)
        if 0 < version < 140000:
            missing = [*missing, message("gap-old-server")]
        experiment = self._experiment
        self.directory.update_manifest(
            pgdyno=__version__,
            name=experiment.name,
            title=experiment.title,
            title_zh=experiment.title_zh,
            note=experiment.note,
            note_zh=experiment.note_zh,
            source=experiment.source,
            started_at=now_text(),
            host=host.describe(site.cluster.data if site.cluster else None),
            target={"host": target.host, "port": target.port, "user": target.user, "dbname": target.dbname},
            same_machine=_same_machine(target, facts.get("same_machine")),
            managed=site.cluster is not None,
            reached={
                "pg_bin": str(self._options.pg_bin) if self._options.pg_bin else None,
                # Neither passwords nor what leads to them is written down.
                "options": {k: v for k, v in target.options.items() if "pass" not in k},
            },
            batched=self._plan.is_batched,
            chosen_settings=[
                {"name": s.name, "value": s.value, "reason": s.why, "reason_id": s.reason} for s in settings
            ],
            server=facts,
            not_recorded=[texts.english(x) for x in missing],
            not_recorded_messages=[texts.data_of(x) for x in missing],
            scale=wanted.size if wanted.kind == "tpcb" else getattr(wanted, "adopted", None) or None,
            rows=wanted.rows_of_key,
            workloads={n: w.title or n for n, w in experiment.workloads.items()},
            workloads_zh={n: w.title_zh for n, w in experiment.workloads.items() if w.title_zh},
            run=experiment.run.model_dump(),
            trials=self.trials,
            varied=self._varied,
            shrunk=self._prepared.shrunk,
            # What a run that was cut off is continued by.
            experiment=experiment.model_dump(mode="json"),
            scripts=self._prepared.scripts,
            schedules=self._prepared.schedules,
            cores=self._prepared.cores,
            command=self._prepared.command,
            tags=list(self._prepared.tags),
            remark=self._prepared.remark,
        )

    def refuse_another_server(self, label: str, facts: dict[str, Any], where: dict[str, Any]) -> None:
        """Raise RefusedError if a continued run would go on with another server."""
        resume.refuse_another_server(self._before.get(label), str(facts.get("version") or ""), where)

    def record_place(self, site: Site, facts: dict[str, Any]) -> None:
        wanted, place = site.dataset, site.place
        sizes = product_of(site.target).sizes(site.target, site.relations)
        described = []
        if isinstance(site.target, Target):
            with administration.connect(site.target, patience_s=targets.PATIENCE_S) as conn:
                described = relations.describe(conn, site.relations, is_ours=site.cluster is not None)
        before = self._before.get(place.label)
        if before is not None and before.dataset.name and before.dataset.name != site.loaded.get("name"):
            raise RefusedError(
                msg("error-run-was-made-on-this", name=before.dataset.name, get=site.loaded.get("name")),
                msg("remedy-were-files-changed-meanwhile-start"),
            )
        named = {"kind": wanted.kind, **site.loaded, "bytes": sizes, "relations": described}
        wanted_target = self._experiment.all_targets[place.target]
        self._places[place.label] = Place.model_validate(
            {
                "target": place.target,
                "title": wanted_target.title,
                "cpus": wanted_target.cpus,
                "memory_bytes": size_bytes(wanted_target.memory) if wanted_target.memory else None,
                "rows": site.rows,
                "server": facts,
                "reached": site.reached,
                "storage": host.file_system(site.cluster.data) if site.cluster else None,
                "dataset": named,
            }
        )
        first = {} if self.directory.manifest.dataset else {"dataset": named}
        # Sizes that were left to us stay as they are when the run is continued.
        written = dict(self.directory.manifest.experiment or {})
        key = written["datasets"].get(place.dataset) or written["dataset"]
        left_open = self._experiment.all_datasets[place.dataset].left_open
        if key is not None and left_open and key["scale"] == "auto" and key["rows"] is None:
            key |= {"scale": wanted.size} if wanted.kind == "tpcb" else {"rows": wanted.size}
        elif key is None:
            written["dataset"] = {"kind": "tpcb", "scale": wanted.size}
        self.directory.update_manifest(places=self._places, experiment=written, **first)

    def probe_storage(self, servers: Servers) -> None:
        wanted = self._experiment.storage
        if wanted is None or self.directory.manifest.storage_probes is not None:
            return
        probes = {}
        for name in dict.fromkeys(c.place.target for c in self._plan.configurations):
            if not servers.addresses.is_private(name):
                continue
            folder = servers.folder_of(name) or Path(tempfile.gettempdir())
            self._stream.emit(Noted(message("progress-probing", name=Name(name), folder=Name(str(folder)))))
            size = size_bytes(wanted.size) if wanted.size else None
            try:
                probes[name] = asdict(probe.probe(folder, seconds=wanted.seconds, size=size, threads=wanted.threads))
            except LocalError as e:
                self._stream.emit(Noted(message("progress-not-probed", reason=reason(e))))
        self.directory.update_manifest(storage_probes=probes)

    # ------------------------------------------------------------ report

    def finish(self, outcome: Outcome) -> Outcome:
        """Record in the manifest how the run ended, and write the reports.

        The returned outcome contains the errors that occur while the reports are written.
        """
        self._record.close()
        if self._directory is None:
            return outcome
        outcome.path = self.directory.path
        recorded = None
        try:
            recorded = (outcome.error, outcome.exit_code)
            self.update(ended_at=now_text(), **_ending(outcome))
            outcome.analysis = RunAnalysis(reading.read(self.directory.path))
            if outcome.exit_code == EXIT_OK and any(c.is_wrong for c in heading.caveats(outcome.analysis)):
                outcome.exit_code = EXIT_WITH_CAVEATS
            if any(t.summary for t in outcome.analysis.data.trials):
                self._write_findings(outcome.analysis)
                outcome.view = view.build(outcome.analysis)
                outcome.reports = reports.write(outcome.view, self.directory.write_text)
                # Last: whoever watches waits for it.
                verdict = next(iter(outcome.view.answer), None)
                recorded = (outcome.error, outcome.exit_code)
                self.update(verdict_message=texts.data_of(verdict), verdict=texts.english(verdict), **_ending(outcome))
        except (PgdynoError, OSError, psycopg.Error) as e:
            outcome.add_error(message("error-no-report", reason=reason(e)))
            outcome.exit_code = outcome.exit_code or LocalError.exit_code
        except (KeyboardInterrupt, Terminated):
            # What was measured is on disk; only the pages are missing, or half of them.
            outcome.add_error(message("error-report-interrupted", path=Name(str(self.directory.path))))
            outcome.exit_code = outcome.exit_code or EXIT_SIGINT
        if recorded != (outcome.error, outcome.exit_code):
            # What the process ends with is what the record says, also where the report could not be written.
            with suppress(PgdynoError, OSError):
                self.update(**_ending(outcome))
        # A process may have other runs to make, and this one has ended.
        self.directory.release()
        return outcome

    def _write_findings(self, run: RunAnalysis) -> None:
        """For those who read the record: reports find them anew."""
        self.directory.write_text(FINDINGS, json.dumps(run.diagnosis.as_json(), indent=2) + "\n")
