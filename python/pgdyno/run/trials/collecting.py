"""Data collection beside one trial, depending on the server's location and on the access that it grants."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from pgdyno.cluster import administration
from pgdyno.cluster.embedded import EmbeddedCluster
from pgdyno.cluster.target import Target
from pgdyno.collect import buffers, logformat, plans, statements, totals
from pgdyno.collect.collection import Collection
from pgdyno.collect.plans import Plan, Sample
from pgdyno.collect.serverlog import Log
from pgdyno.collect.sources.base import Source
from pgdyno.collect.sources.devices import Devices, places_of
from pgdyno.collect.sources.machine import Cores, Machine, SoftInterrupts
from pgdyno.collect.totals import Totals
from pgdyno.errors import LocalError, PgdynoError, msg, reason
from pgdyno.message import Name, Text, listed, message
from pgdyno.model import EventKind
from pgdyno.run.sites.site import Site
from pgdyno.run.trials import counting
from pgdyno.run.trials.asked import PATIENCE_S, AskedSources, Connection
from pgdyno.run.trials.counting import Counting
from pgdyno.spec.experiment import Run
from pgdyno.stream.events import Happened, TotalsRead
from pgdyno.stream.stream import TrialStream

#: Samples that a trial should have, and how long they are at least and at most; of long trials no more than so many.
_SAMPLES, _SHORTEST_S, _LONGEST_S, _MOST = 20, 0.2, 1.0, 3600

#: Seconds after which a session has told the server what it did, with its next statement.
_FLUSHED_S = 1.1
#: What times in the log are rounded to.
_CLOCK_NS = 1_000_000_000
#: The kind of event.
_RELOADED = EventKind.CONFIGURATION_RELOADED


class Collecting:
    """Begin it before the load, `end` it after; both may be called whatever has happened to the server."""

    def __init__(
        self, site: Site, run: Run, stream: TrialStream, statements: Sequence[Sample], *, same_machine: bool,
        everybody: bool = False,
    ) -> None:  # fmt: skip
        """`statements`: those of the workload's scripts. `everybody`: see `AskedSources`."""
        self._site = site
        self._wanted = set(run.collect)
        self._stream = stream
        self._statements = statements
        self._same_machine = same_machine
        self._everybody = everybody
        self._asked: AskedSources | None = None
        self._executed = 0
        self._before = Totals()
        self._plans: list[Plan] = []
        self._log: Log | None = None
        self._began_ns = time.time_ns()
        self._collection: Collection | None = None
        self._gaps: list[Text] = []
        longest = max(_LONGEST_S, run.longest_s / _MOST)
        # Of an observed server the counters give the intervals: they are read once a second.
        shortest = _LONGEST_S if everybody else _SHORTEST_S
        self._period_s = min(longest, max(shortest, run.duration_s / _SAMPLES))
        self._waits_per_s = run.waits_per_s
        # How long "steady" takes nobody knows.
        self._warmup_s = run.warmup_s if run.warmup_s != "steady" else 0.0
        self._counting: Counting | None = None

    def begin(self) -> None:
        """Read the server's state before the trial, and prepare sampling, which begins with the load."""
        if not self._wanted:
            return
        sources: list[Source] = []
        try:
            sees_processes = self._same_machine and Machine.is_there()
            if isinstance(self._site.target, Target):
                self._asked = AskedSources(
                    self._site, self._wanted, self._note, sees_processes=sees_processes, everybody=self._everybody
                )
                self._read_before(self._asked.conn)
                self._count_statements()
        except (PgdynoError, psycopg.Error) as e:
            self._note(reason(e))
        if self._same_machine:
            try:
                sources = self._machine_sources()
            except OSError as e:
                self._note(message("gap-machine", reason=Name(e.strerror or str(e))))
        elif "machine" in self._wanted:
            self._note(message("gap-another-machine"))
        self._collection = Collection(
            sources,
            self._asked,
            self._stream,
            period_s=self._period_s,
            wait_period_s=1 / self._waits_per_s,
            start_ns=lambda: self._stream.start_ns,
        )
        self._collection.start()

    def _count_statements(self) -> None:
        """On a private server, while it warms up. Of others what they count is read as it is."""
        if "statements" not in self._wanted or not isinstance(self._site.cluster, EmbeddedCluster):
            return
        if not self._before.counted_by("statements"):
            return
        if self._warmup_s * counting.PART < counting.LEAST_S:
            self._note(message("gap-short-warmup"))
            return
        self._counting = Counting(self._site.postgresql, self._warmup_s, lambda: self._stream.start_ns)
        self._counting.begin()

    @property
    def executed(self) -> int:
        """Statements of pgdyno's own session so far."""
        return self._asked.executed if self._asked is not None else self._executed

    def settle(self) -> None:
        """Wait until the server has counted the statements of pgdyno's own session: it does so once a second."""
        if self._asked is not None:
            time.sleep(_FLUSHED_S)
            with contextlib.suppress(psycopg.Error):
                self._asked.conn.execute("select 1")

    def stop(self) -> None:
        """End sampling, and read nothing more."""
        if self._counting is not None:
            self._counting.end()
        collection, self._collection = self._collection, None
        if collection is not None:
            collection.stop()
        asked, self._asked = self._asked, None
        if asked is not None:
            self._executed = asked.executed
            asked.close()

    def end(self, *, attributable: bool = True) -> None:
        """End sampling, and read the server's state after the trial.

        Counters that are not `attributable` to this trial alone are not read. This is so if two trials share the
        server.
        """
        if not self._wanted:
            return
        self.stop()
        if not isinstance(self._site.target, Target):
            return
        try:
            connected = administration.connect(
                self._site.postgresql, patience_s=PATIENCE_S, read_only=self._everybody
            )  # fmt: skip
            with connected as conn:
                self._read_after(conn, attributable=attributable)
        except (PgdynoError, psycopg.Error) as e:
            self._note(reason(e))
        if self._log is not None and self._stream.start_ns:
            self._read_log(self._log)

    def _read_log(self, log: Log) -> None:
        events, missing = log.events()
        # A file that was copied may begin long ago.
        events = [e for e in events if e.at_ns >= self._began_ns - _CLOCK_NS]
        for words in missing:
            self._note(words)
        reloads = [e.at_ns for e in events if e.kind == _RELOADED]
        own = self._counting.own_reloads(reloads) if self._counting is not None else set()
        for event in events:
            if event.kind != _RELOADED or event.at_ns not in own:
                self._event(self._since_start(event.at_ns), event.kind, Name(event.text))

    def _since_start(self, at_ns: int) -> int:
        """Return a time, in nanoseconds since 1970, relative to the start of the load.

        A value of 0 means that the time is not known.
        """
        return at_ns - self._stream.start_ns if at_ns and self._stream.start_ns else 0

    # ------------------------------------------------------------ before and after

    def _read_before(self, conn: Connection) -> None:
        if {"server", "statements"} & self._wanted:
            self._before = self._totals(conn)
            for missing in self._before.missing:
                self._note(missing)
        if "plans" in self._wanted:
            # Carried out after the trial alone: the cache is as it was left for it.
            self._plans, missing_plans = plans.read(conn, self._statements, carry_out=False)
            for words in missing_plans:
                self._note(words)
        if "log" in self._wanted:
            try:
                self._log = self._find_log(conn)
            except (PgdynoError, OSError, psycopg.Error) as e:
                why = Name(e.strerror) if isinstance(e, OSError) and e.strerror else reason(e)
                self._note(message("gap-log", reason=why))

    def _read_after(self, conn: Connection, *, attributable: bool) -> None:
        if attributable and {"server", "statements"} & self._wanted:
            after = self._totals(conn)
            if after.were_reset_since(self._before):
                self._note(message("gap-reset"))
            if self._before.catalog is not None and (definitions := self._before.catalog.rows()):
                self._stream.emit(TotalsRead("definitions", definitions))
            for name, rows in totals.between(self._before, after, conn.info.server_version).items():
                known = statements.attributed(rows, self._statements) if name == "statements" else rows
                self._stream.emit(TotalsRead(name, known))
            for at_ns, kind, words in totals.happened(self._before, after):
                # The log has each time that it did, and knows those that we have told it to.
                if kind != _RELOADED or (self._counting is None and self._log is None):
                    self._event(self._since_start(at_ns), kind, words)
        if "buffers" in self._wanted:
            self._read_buffers(conn)
        if "plans" in self._wanted and self._plans:
            last, _ = plans.read(conn, [p.statement for p in self._plans], carry_out=self._is_ours)
            self._stream.emit(TotalsRead("plans", plans.rows(self._plans, last)))
            for words in plans.changed(self._plans, last):
                self._event(0, EventKind.PLAN_CHANGED, words)

    def _totals(self, conn: Connection) -> Totals:
        if self._is_ours:
            # Our own questions are nobody's statements.
            conn.execute("set pg_stat_statements.track = 'none'")
        return totals.read(conn, statements_alone="server" not in self._wanted, is_ours=self._is_ours)

    def _read_buffers(self, conn: Connection) -> None:
        try:
            rows = buffers.read(conn, is_ours=self._is_ours)
        except psycopg.Error as e:
            self._note(message("gap-buffers", reason=reason(e)))
            return
        self._stream.emit(TotalsRead("buffers", rows))
        if not rows:
            self._note(message("gap-no-buffercache"))

    @property
    def _is_ours(self) -> bool:
        return self._site.cluster is not None

    def _find_log(self, conn: Connection) -> Log | None:
        """Return the server's log.

        Raise OSError, psycopg.Error or LocalError with the reason if it cannot be read.
        """
        if not self._same_machine:
            raise LocalError(msg("gap-log-another-machine"))
        names = ("data_directory", "log_line_prefix", "log_timezone", "lc_messages", "log_filename")
        row = conn.execute(
            "select "
            + ", ".join(f"current_setting('{n}')" for n in names)
            + ", pg_current_logfile('stderr'), pg_current_logfile('csvlog')"
            + (", pg_current_logfile('jsonlog')" if conn.info.server_version >= 150000 else ", null")
        ).fetchone()
        assert row is not None
        data, prefix, zone, language, name, *files = map(str, (x or "" for x in row))
        # Our clusters without a collector write where we let them.
        own = str(self._site.cluster.log) if self._site.cluster is not None else ""
        form, file = next(((n, f) for n, f in enumerate(files) if f), (0, own))
        if not file:
            raise LocalError(msg("gap-log-no-file"))
        if not language.startswith(("C", "POSIX", "en")) and language:
            raise LocalError(msg("gap-log-language", language=language))
        reader = (partial(logformat.read_lines, prefix), logformat.read_csv, logformat.read_json)[form](zone)
        return Log(Path(data) / file, reader, None if file == own else name)

    # ------------------------------------------------------------ sources

    def _machine_sources(self) -> list[Source]:
        """But for the server's processes, which are others once it was started again."""
        if "machine" not in self._wanted:
            return []
        if not Machine.is_there():
            self._note(message("gap-not-linux"))
            return []
        sources: list[Source] = [Machine(), Cores()]
        if SoftInterrupts.is_there():
            sources.append(SoftInterrupts())
        data = self._data_directory()
        devices = Devices(places_of(data)) if data is not None else None
        if devices is not None and devices.hidden:
            self._note(message("gap-hidden-devices", places=listed(map(Name, devices.hidden), "list")))
        if devices is not None and devices.holds:
            sources.append(devices)
        else:
            self._note(message("gap-no-devices"))
        return sources

    def _data_directory(self) -> Path | None:
        """Return the server's data directory, or None if it cannot be seen from this machine."""
        if self._site.cluster is not None:
            return self._site.cluster.data
        with contextlib.suppress(psycopg.Error, OSError):
            row = self._asked and self._asked.conn.execute("select current_setting('data_directory')").fetchone()
            return Path(row[0]) if row and row[0] and Path(row[0]).exists() else None
        return None

    # ------------------------------------------------------------ writing

    def _event(self, at_ns: int, kind: EventKind, text: Text) -> None:
        self._stream.emit(Happened(kind, text, at_ns))

    def _note(self, text: Text) -> None:
        if text not in self._gaps:
            self._gaps.append(text)
            self._event(0, EventKind.NOT_RECORDED, text)


def samples_of(scripts: Sequence[tuple[str, str, int]], workload: Any, seed: int) -> list[Sample]:
    """Return the statements of a workload, each with parameter values of its own."""
    found: list[Sample] = []
    by_place = {(c.script, c.number): c for c in workload.commands}
    for n, (name, _, _) in enumerate(scripts):
        for number, prepared, text in workload.sample(n, seed):
            command = by_place[n, number]
            sample = Sample(Path(name).name, command.line, " ".join(command.sql.split()), prepared, text)
            if all((s.script, s.line) != (sample.script, sample.line) for s in found):
                found.append(sample)
    return found
