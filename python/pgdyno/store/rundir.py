"""A run directory: manifest, one folder a trial, reports.

Files that grow (intervals, histograms, events) are lines of text while a trial runs: a torn last line is the worst that
a kill can leave. When a trial ends, its intervals become Parquet as well. Files that do not grow are replaced whole.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import threading
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import ValidationError

from pgdyno import home
from pgdyno._core import Histogram
from pgdyno.errors import LocalError, RefusedError, msg
from pgdyno.message import Text
from pgdyno.model import Caveat, IntervalRow, TrialPlan, TrialSummary
from pgdyno.store import hlog, manifest, texts
from pgdyno.store.layout import EVENTS, INTERVALS, LINES, LOG, MERGED, TRIAL
from pgdyno.store.manifest import FILE, SCHEMA, Manifest, explained
from pgdyno.store.samples import SampleWriter
from pgdyno.store.trials import TrialFile
from pgdyno.store.writing import now_text, replace_file, writing

#: Locked by whoever writes in a run directory.
_LOCK = ".lock"


def is_under_way(path: Path) -> bool:
    """Return True if a pgdyno process is writing to this run directory now."""
    try:
        with (path / _LOCK).open("r", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


class RunDirectory:
    """Writes one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._manifest = Manifest.model_validate({})
        #: The lock file, open while this process claims the directory.
        self._claimed: BinaryIO | None = None

    @classmethod
    def create(cls, parent: Path, name: str, experiment_text: str) -> RunDirectory:
        """Create `parent/<UTC time>-<name>`.

        Two runs in one second get different names.
        """
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        with writing(parent):
            for n in range(100):
                path = parent / (f"{stamp}-{name}" if n == 0 else f"{stamp}-{name}-{n}")
                try:
                    # Ours alone: statements and a server's log may hold what is not for everybody.
                    parent.mkdir(parents=True, exist_ok=True)
                    path.mkdir(mode=0o700)
                except FileExistsError:
                    continue
                (path / "trials").mkdir()
                run = cls(path)
                run._claim()
                replace_file(path / "experiment.toml", experiment_text)
                return run
        raise LocalError(msg("error-cannot-make-new-folder", parent=parent))

    @classmethod
    def resume(cls, path: Path) -> RunDirectory:
        """Open the directory of a run that is continued."""
        run = cls(path)
        run._claim()
        run._manifest = manifest.read(path)
        return run

    def release(self) -> None:
        """End the claim on the directory: the run has ended."""
        if self._claimed is not None:
            self._claimed.close()

    def _claim(self) -> None:
        """For as long as we live nobody else writes here."""
        with writing(self.path):
            for name in ("trials", "broken"):
                if (self.path / name).is_symlink():
                    raise RefusedError(
                        msg("error-link-nothing-written-through", value=self.path / name),
                        msg("remedy-replace-folder-itself"),
                    )
            # The folder may be somebody else's: a link would lead out of it.
            fd = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
            self._claimed = os.fdopen(fd, "wb")
            try:
                fcntl.flock(self._claimed, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as e:
                raise RefusedError(
                    msg("error-being-written-another-pgdyno", path=self.path), msg("remedy-wait-until-ended")
                ) from e

    @property
    def manifest(self) -> Manifest:
        """The facts so far."""
        return self._manifest

    def update_manifest(self, **facts: Any) -> None:
        """Add facts to manifest.json."""
        try:
            self._manifest = self._manifest.changed(**facts)
        except ValidationError as e:
            raise LocalError(
                msg("error-fact-cannot-be-written-down", explained=explained(e)), msg("remedy-this-defect-pgdyno")
            ) from e
        replace_file(self.path / FILE, json.dumps(self._manifest.as_json(), indent=2) + "\n")

    def begin_trial(self, plan: TrialPlan, parameters: dict[str, Any]) -> TrialWriter:
        """Open a trial's folder and return its writer."""
        folder = self.path / "trials" / plan.folder
        with writing(folder):
            if folder.exists():
                # Of a run that was cut off: what it measured is kept, and counted nowhere.
                broken = self.path / "broken"
                broken.mkdir(exist_ok=True)
                names = (broken / f"{plan.folder}.{n}" for n in itertools.count(1))
                folder.rename(next(n for n in names if not n.exists()))
            folder.mkdir(parents=True, exist_ok=True)
        return TrialWriter(folder, plan, parameters)

    def write_text(self, name: str, text: str) -> Path:
        """Write a report and return its path."""
        replace_file(self.path / name, text)
        return self.path / name


class TrialWriter:
    """Writes one trial as it happens."""

    def __init__(self, folder: Path, plan: TrialPlan, parameters: dict[str, Any]) -> None:
        self.folder = folder
        self.plan = plan
        self._parameters = parameters
        self._started_at = now_text()
        self._start_ns = 0
        self._rows: list[IntervalRow] = []
        #: Held by whoever writes: events and samples come from several threads, some of which may outlast the trial.
        self._lock = threading.Lock()
        self._is_closed = False
        with writing(folder):
            # Kept open for the length of the trial: lines are flushed one by one.
            self._intervals = (folder / LINES).open("w", encoding="utf-8", buffering=1)
            self._latency = (folder / LOG).open("w", encoding="utf-8", buffering=1)
            self._events = (folder / EVENTS).open("w", encoding="utf-8", buffering=1)
        self._samples = SampleWriter(folder)
        self._write_state("running")

    @property
    def start_ns(self) -> int:
        """Nanoseconds since 1970 at which the load began; 0: it has not."""
        return self._start_ns

    @property
    def rows(self) -> list[IntervalRow]:
        """The intervals so far."""
        return self._rows

    def start(self, start_ns: int) -> None:
        """All clients are connected; the run begins."""
        self._start_ns = start_ns
        with writing(self.folder):
            self._latency.write(hlog.header(start_ns))
        self._write_state("running")

    def interval(self, row: IntervalRow, histograms: dict[str, Histogram]) -> None:
        """Append one interval and its histograms by tag."""
        with writing(self.folder):
            self._intervals.write(json.dumps(asdict(row)) + "\n")
            for tag, h in histograms.items():
                if h.count:
                    self._latency.write(hlog.line(tag, row.start_ns, row.end_ns, h))
        self._rows.append(row)

    def event(self, at_ns: int, kind: str, text: Text, client: int | None = None) -> None:
        """Append one event. After `finish` it is dropped: it is no longer the trial's."""
        facts = {"at_ns": at_ns, "kind": kind, **texts.fields_of("text", text, "message")}
        facts |= {} if client is None else {"client": client}
        with self._lock, writing(self.folder):
            if self._is_closed:
                return
            self._events.write(json.dumps(facts) + "\n")

    def samples(self, name: str, start_ns: int, end_ns: int, rows: Sequence[dict[str, Any]]) -> None:
        """Append the samples of a source for the time between two moments.

        The moments are nanoseconds since 1970. Samples are dropped if the load has not begun or the trial is finished.
        """
        with self._lock, writing(self.folder):
            if self._start_ns and not self._is_closed:
                self._samples.append(name, start_ns - self._start_ns, end_ns - self._start_ns, rows)

    def totals(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        """Write the samples of a source that cover the whole trial."""
        with writing(self.folder):
            self._samples.whole(name, rows)

    def finish(
        self,
        state: str,
        summary: TrialSummary | None,
        caveats: list[Caveat],
        error: Text | None = None,
        activity: dict[str, float] | None = None,
        *,
        dropped_until_ns: int = 0,
        merged: dict[str, Histogram] | None = None,
    ) -> None:
        """Close the trial as finished, failed or interrupted.

        Intervals that began before `dropped_until_ns` turned out to be warm-up. `merged` holds the histograms of what
        counts by tag; None leaves them to whoever reads the log.
        """
        self._rows = [
            replace(r, phase="dropped") if r.phase == "measure" and r.start_ns < dropped_until_ns else r
            for r in self._rows
        ]
        with self._lock, writing(self.folder):
            self._is_closed = True
            # On the disk before trial.json says that the trial is finished, whatever becomes of the machine.
            for f in (self._intervals, self._latency, self._events):
                f.flush()
                os.fsync(f.fileno())
                f.close()
            if self._rows:
                # Who loads data or opens a folder only needs no Parquet.
                import pyarrow as pa
                import pyarrow.parquet as pq

                columns = {f.name: [getattr(r, f.name) for r in self._rows] for f in fields(IntervalRow)}
                # Whoever reads the file by itself knows which trial it is of, and when.
                columns["trial"] = [self.plan.number] * len(self._rows)
                columns["time"] = pa.array([self._start_ns + r.end_ns for r in self._rows], pa.timestamp("ns", "UTC"))
                with home.replacement(self.folder / INTERVALS) as parquet:
                    pq.write_table(pa.table(columns), parquet)
                home.sync(self.folder)
                (self.folder / LINES).unlink(missing_ok=True)
            self._samples.finish()
        if merged is not None:
            replace_file(self.folder / MERGED, hlog.merged_lines(merged))
        self._write_state(state, summary, caveats, error, activity)

    def _write_state(
        self,
        state: str,
        summary: TrialSummary | None = None,
        caveats: list[Caveat] | None = None,
        error: Text | None = None,
        activity: dict[str, float] | None = None,
    ) -> None:
        record = TrialFile(
            plan=self.plan,
            state=state,
            started_at=self._started_at,
            parameters=self._parameters,
            ended_at=None if state == "running" else now_text(),
            start_ns=self._start_ns,
            **texts.fields_of("error", error),
            caveats=[c.name for c in caveats or []],
            summary=summary,
            activity=activity or {},
            schema=SCHEMA,
        )
        replace_file(self.folder / TRIAL, json.dumps({"schema": SCHEMA, **asdict(record)}, indent=2) + "\n")
