"""The steps around a trial's load: what is started before it, read after it, and checked at its end."""

from __future__ import annotations

import time
from pathlib import Path

import psycopg

from pgdyno import _core
from pgdyno.cluster import administration
from pgdyno.cluster.target import Target
from pgdyno.collect import activity, canary, processes
from pgdyno.collect.others import others_at_work, words_for
from pgdyno.errors import PgdynoError
from pgdyno.load.dataset import Dataset
from pgdyno.message import Text, listed, message
from pgdyno.model import Caveat, EventKind
from pgdyno.run.products import PATIENCE_S, product_of
from pgdyno.run.sites.site import Site
from pgdyno.run.trials import checking
from pgdyno.run.trials.collecting import Collecting
from pgdyno.run.trials.standbys import BesideStandbys
from pgdyno.spec.experiment import Run
from pgdyno.stream.events import Happened, Noted, TotalsRead
from pgdyno.stream.stream import TrialStream

#: Seconds of a trial from which on the machine is measured before and after it.
_CANARY_S = 5.0
#: WAL in bytes per second from which on checkpoints matter to the throughput; checkpoints that span a whole period.
_WAL_RATE, _CYCLE = 1 << 20, 2
#: A gap of both trials of a duet on one server.


class TrialSteps:
    """`before_load`, `on_interval` with each interval, `after_load` if the load ended; `stop` in any case."""

    def __init__(
        self,
        site: Site,
        run: Run,
        trial: TrialStream,
        folder: Path,
        caveats: list[Caveat],
        before: dict[str, float],
        collecting: Collecting,
        standbys: BesideStandbys | None,
        *,
        checks: bool,
    ) -> None:
        """Set up the steps of one trial.

        `folder` is the trial's. `before` holds the server's counters before the load. The steps add to the trial's
        `caveats`. `checks` is True if the dataset has conditions that must hold after the load.
        """
        self._site = site
        self._run = run
        self._trial = trial
        self._folder = folder
        self._caveats = caveats
        self._before = before
        self._collecting = collecting
        self._standbys = standbys
        self._checks = checks
        self._memory = _Memory(site)
        self._is_shared = False
        self._began = time.monotonic()
        #: Figures of the machine before the load; None: no canaries.
        self._canary: canary.Row | None = None
        #: The other side of a duet on the same server: one check of the data is both sides' check.
        self._checked_with: TrialSteps | None = None

    def share_server_with(self, other: TrialSteps) -> None:
        """Mark both as the sides of a duet on one server, of which this one ends first."""
        self._is_shared = other._is_shared = True
        self._checked_with = other

    def before_load(self) -> None:
        """Start what is collected beside the load."""
        self._began = time.monotonic()
        self.on_interval()
        if self._sings:
            self._canary = canary.measure("before", self._data_folder)
        self._collecting.begin()
        if self._standbys is not None:
            self._standbys.begin()

    def on_interval(self) -> None:
        """Look for other load on this machine, which may come and go during the trial; and at the server's memory."""
        if Caveat.BESIDE_ANOTHER not in self._caveats and (others := others_at_work()):
            self._caveats.append(Caveat.BESIDE_ANOTHER)
            self._trial.emit(Happened(EventKind.BESIDE_ANOTHER, words_for(others)))
        self._memory.look()

    def has_cycle(self) -> bool:
        """Return True if two checkpoints have begun since the trial did, or the load writes too little WAL to matter.

        A measurement between two checkpoints holds a whole period of full-page images and of the checkpoint's writes.
        True as well if the counters cannot be read.
        """
        if not isinstance(self._site.target, Target):
            return True
        try:
            with administration.connect(self._site.postgresql, patience_s=PATIENCE_S) as conn:
                now, _ = activity.snapshot(conn, ["wal", "checkpoints"])
        except (PgdynoError, psycopg.Error):
            return True
        done = activity.between(self._before, now)
        if done.get("wal_bytes", 0.0) < _WAL_RATE * (time.monotonic() - self._began):
            return True
        begun = [done[name] for name in ("checkpoints_timed", "checkpoints_requested") if name in done]
        return not begun or sum(begun) >= _CYCLE

    def extra_histograms(self) -> dict[str, _core.Histogram]:
        """Return what was measured beside the trial since the last interval, by the log's tag."""
        return {} if self._standbys is None else self._standbys.take()

    def stop(self) -> None:
        """Stop what is collected; may be called again."""
        self._collecting.stop()
        if self._standbys is not None:
            self._standbys.end()

    def after_load(self) -> dict[str, float]:
        """Read the server activity during the load, record every gap, and check the data.

        The data are checked if the workload has conditions. Return the server's counters, or an empty dict if they
        cover both sides of a duet.
        """
        if self._standbys is not None:
            self._standbys.end()
        self.on_interval()
        found = {} if self._is_shared else self._activity()
        if self._is_shared:
            self._gap(message("gap-shared-server"))
        self._collecting.end(attributable=not self._is_shared)
        if self._canary is not None:
            after = canary.measure("after", self._data_folder)
            self._trial.emit(TotalsRead("canary", [self._canary, after]))
        if self._checks and isinstance(self._site.dataset, Dataset):
            self._check(self._site.dataset)
        return found

    @property
    def _sings(self) -> bool:
        """Return True if canaries are worth their time: beside a short trial they would be much of it."""
        return "machine" in self._run.collect and self._run.duration_s >= _CANARY_S

    @property
    def _data_folder(self) -> Path | None:
        """Folder on the storage of the data; None: it is not pgdyno's."""
        return self._site.cluster.base if self._site.cluster is not None else None

    def _check(self, dataset: Dataset) -> None:
        if self._is_shared and self._checked_with is None:
            # The other side has checked the same data and recorded it here, too.
            return
        sides = [self] if self._checked_with is None else [self, self._checked_with]
        trials = [(s._trial, s._folder) for s in sides]
        caveats = checking.after_trial(self._site.postgresql, dataset, trials, self._trial.stream)
        for side in sides:
            side._caveats.extend(caveats)

    def _activity(self) -> dict[str, float]:
        """Return the difference of the server's counters.

        Record a gap for every counter that could not be read (a server that is gone or frozen, a locked table). The
        trial stays valid.
        """
        after, missing = product_of(self._site.target).counters(self._site.target, self._run.record)
        if after:
            after |= machine_counters(self._site)
        if missing:
            self._gap(listed(missing, "semicolon"))
        return activity.between(self._before, after) | self._memory.facts()

    def _gap(self, what: Text) -> None:
        self._trial.emit(Happened(EventKind.NOT_RECORDED, what))
        self._trial.stream.emit(Noted(message("progress-not-recorded", what=what)))


class _Memory:
    """The most memory that a server of ours had to itself at any interval's end."""

    def __init__(self, site: Site) -> None:
        self._process = site.cluster.process_id if site.cluster is not None else None
        self._most = 0

    def look(self) -> None:
        found = processes.private_bytes(self._process) if self._process is not None else None
        self._most = max(self._most, found or 0)

    def facts(self) -> dict[str, float]:
        return {"server_private_bytes": float(self._most)} if self._most else {}


def machine_counters(site: Site) -> dict[str, float]:
    """Return what a server of ours has used of this machine so far."""
    process = site.cluster.process_id if site.cluster is not None else None
    used = processes.cpu_ns(process) if process is not None else None
    return {} if used is None else {"server_cpu_ns": float(used)}
