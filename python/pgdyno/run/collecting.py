"""What is collected beside one trial, by where its server is and what it lets us see."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg

from pgdyno.cluster import target as targets
from pgdyno.cluster.embedded import EmbeddedCluster
from pgdyno.collect import buffers, plans, serverlog, statements, totals
from pgdyno.collect.collection import Collection
from pgdyno.collect.plans import Plan, Sample
from pgdyno.collect.sources.base import Source
from pgdyno.collect.sources.counters import Counters
from pgdyno.collect.sources.devices import Devices, places_of
from pgdyno.collect.sources.locks import Locks
from pgdyno.collect.sources.machine import Cores, Machine, SoftInterrupts
from pgdyno.collect.sources.network import Network
from pgdyno.collect.sources.processes import Processes
from pgdyno.collect.sources.progress import Progress
from pgdyno.collect.sources.sessions import Blockers, Slots, Snapshots, Standbys
from pgdyno.collect.sources.sizes import Sizes
from pgdyno.collect.sources.waits import Waits
from pgdyno.collect.totals import Totals
from pgdyno.errors import PgdynoError
from pgdyno.run import counting
from pgdyno.run.counting import Counting
from pgdyno.run.servers import Site
from pgdyno.spec.experiment import Run
from pgdyno.store.rundir import TrialWriter
from pgdyno.store.samples import Row

#: How long a question may take while the load runs.
_PATIENCE_S = 5.0
#: Samples that a trial should have, and how long they are at least and at most; of long trials no more than so many.
_SAMPLES, _SHORTEST_S, _LONGEST_S, _MOST = 20, 0.2, 1.0, 3600

#: The kind of event.
_RELOADED = "configuration reloaded"
Connection = psycopg.Connection[tuple[Any, ...]]


class Collecting:
    """Begin it before the load, `end` it after; both may be called whatever has happened to the server."""

    def __init__(
        self, site: Site, run: Run, writer: TrialWriter, statements: Sequence[Sample], *, same_machine: bool
    ) -> None:
        """`statements`: those of the workload's scripts."""
        self._site = site
        self._wanted = set(run.collect)
        self._writer = writer
        self._statements = statements
        self._same_machine = same_machine
        self._conn: Connection | None = None
        self._before = Totals()
        self._plans: list[Plan] = []
        self._log: Path | None = None
        self._log_begin = 0
        self._collection: Collection | None = None
        self._notes: list[str] = []
        longest = max(_LONGEST_S, run.duration_s / _MOST)
        self._period_s = min(longest, max(_SHORTEST_S, run.duration_s / _SAMPLES))
        self._waits_per_s = run.waits_per_s
        # How long "steady" takes nobody knows.
        self._warmup_s = run.warmup_s if run.warmup_s != "steady" else 0.0
        self._counting: Counting | None = None

    def begin(self) -> None:
        """What is read before; and sampling begins with the load."""
        if not self._wanted:
            return
        sources: list[Source] = []
        waits: Waits | None = None
        try:
            self._conn = targets.administrative(self._site.target, patience_s=_PATIENCE_S)
            self._read_before(self._conn)
            waits = self._of_server(self._conn, sources)
            self._count_statements()
        except (PgdynoError, psycopg.Error) as e:
            self._note(" ".join(str(e).split()))
        if self._same_machine:
            try:
                self._of_machine(sources)
            except OSError as e:
                self._note(f"the server's machine: {e.strerror or e}")
        elif "machine" in self._wanted:
            self._note("the server's CPU, devices and processes: it is on another machine")
        self._collection = Collection(
            sources,
            self._write,
            self._note,
            period_s=self._period_s,
            waits=waits,
            wait_period_s=1 / self._waits_per_s,
            start_ns=lambda: self._writer.start_ns,
        )
        self._collection.start()

    def _count_statements(self) -> None:
        """On a private server, while it warms up. Of others what they count is read as it is."""
        if "statements" not in self._wanted or not isinstance(self._site.cluster, EmbeddedCluster):
            return
        if not self._before.counted_by("statements"):
            return
        if self._warmup_s * counting.PART < counting.LEAST_S:
            self._note("statements: they are counted in the warm-up, which is too short (--warmup 1)")
            return
        self._counting = Counting(self._site.target, self._warmup_s, lambda: self._writer.start_ns)
        self._counting.begin()

    def stop(self) -> None:
        """Ends sampling; nothing is read any more."""
        if self._counting is not None:
            self._counting.end()
        collection, self._collection = self._collection, None
        if collection is not None:
            collection.stop()
        conn, self._conn = self._conn, None
        if conn is not None:
            with contextlib.suppress(psycopg.Error):
                conn.close()

    def end(self) -> None:
        """Ends sampling, and reads what is read after."""
        if not self._wanted:
            return
        self.stop()
        try:
            with targets.administrative(self._site.target, patience_s=_PATIENCE_S) as conn:
                self._read_after(conn)
        except (PgdynoError, psycopg.Error) as e:
            self._note(" ".join(str(e).split()))
        if self._log is not None and self._writer.start_ns:
            events = list(serverlog.events(self._log, self._log_begin))
            reloads = [e.at_ns for e in events if e.kind == _RELOADED]
            own = self._counting.own_reloads(reloads) if self._counting is not None else set()
            for event in events:
                if event.kind != _RELOADED or event.at_ns not in own:
                    self._event(event.at_ns - self._writer.start_ns, event.kind, event.text)
        for words in self._notes:
            self._event(0, "not_recorded", words)

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
            self._log = self._find_log(conn)
            if self._log is not None:
                self._log_begin = serverlog.size(self._log)

    def _read_after(self, conn: Connection) -> None:
        if {"server", "statements"} & self._wanted:
            after = self._totals(conn)
            for name, rows in totals.between(self._before, after, conn.info.server_version).items():
                known = statements.attributed(rows, self._statements) if name == "statements" else rows
                self._writer.totals(name, known)
            for kind, words in totals.happened(self._before, after):
                # By its time alone; the log tells more of a server that we have told so ourselves.
                if kind != _RELOADED or self._counting is None:
                    self._event(0, kind, words)
        if "buffers" in self._wanted:
            self._read_buffers(conn)
        if "plans" in self._wanted and self._plans:
            last, _ = plans.read(conn, [p.statement for p in self._plans], carry_out=self._is_ours)
            self._writer.totals("plans", plans.rows(self._plans, last))
            for words in plans.changed(self._plans, last):
                self._event(0, "plan changed", words)

    def _totals(self, conn: Connection) -> Totals:
        if self._is_ours:
            # Our own questions are nobody's statements.
            conn.execute("set pg_stat_statements.track = 'none'")
        return totals.read(conn, statements_alone="server" not in self._wanted, is_ours=self._is_ours)

    def _read_buffers(self, conn: Connection) -> None:
        try:
            rows = buffers.read(conn, is_ours=self._is_ours)
        except psycopg.Error as e:
            self._note(f"what shared buffers hold: {' '.join(str(e).split())}")
            return
        self._writer.totals("buffers", rows)
        if not rows:
            self._note("what shared buffers hold: the extension pg_buffercache is not in this database")

    @property
    def _is_ours(self) -> bool:
        return self._site.cluster is not None

    def _find_log(self, conn: Connection) -> Path | None:
        if self._site.cluster is not None:
            return self._site.cluster.log
        if not self._same_machine:
            return None
        try:
            row = conn.execute(
                """select current_setting('data_directory'), pg_current_logfile('stderr'),
                          current_setting('log_line_prefix'), current_setting('log_timezone')"""
            ).fetchone()
        except psycopg.Error:
            row = None
        if row is None or row[1] is None:
            self._note("the server's log: the role may not read where it is, or it is not a file")
            return None
        if not str(row[2]).startswith("%m [%p] ") or row[3] not in ("UTC", "GMT", "Etc/UTC"):
            self._note("the server's log: only log_line_prefix = '%m [%p] ...' and log_timezone = UTC are understood")
            return None
        path = Path(str(row[0])) / str(row[1])
        try:
            path.open("rb").close()
        except OSError as e:
            self._note(f"the server's log: {e.strerror}")
            return None
        return path

    # ------------------------------------------------------------ sources

    @property
    def _application(self) -> str:
        return self._site.target.options.get("application_name", "pgdyno")

    def _of_server(self, conn: Connection, sources: list[Source]) -> Waits | None:
        waits = None
        if "server" in self._wanted:
            counters = Counters(conn)
            for missing in counters.missing:
                self._note(missing)
            sources += [counters, Snapshots(conn, self._application), Standbys(conn), Slots(conn), Progress(conn)]
            sources += [Locks(conn), Sizes(conn)]
        if "machine" in self._wanted:
            sources.append(Network(conn))
        if "waits" in self._wanted:
            waits = Waits(conn, self._application)
            sources += [waits, Blockers(conn, self._application, lambda: waits.is_locked)]
        return waits

    def _of_machine(self, sources: list[Source]) -> None:
        if "machine" not in self._wanted:
            return
        if not Machine.is_there():
            self._note("CPU, devices and processes: only Linux tells of them")
            return
        sources += [Machine(), Cores()]
        if SoftInterrupts.is_there():
            sources.append(SoftInterrupts())
        postmaster, data = self._process_and_data()
        if postmaster is not None:
            sources.append(Processes(postmaster))
        else:
            self._note("the server's processes: they cannot be seen from here (a container, another user)")
        devices = Devices(places_of(data)) if data is not None else None
        if devices is not None and devices.holds:
            sources.append(devices)
        else:
            self._note("the devices under the server's files: they cannot be found from here")

    def _process_and_data(self) -> tuple[int | None, Path | None]:
        """The postmaster's process id, and the data directory, as far as they can be seen."""
        cluster = self._site.cluster
        if cluster is not None:
            return cluster.process_id, cluster.data
        if self._conn is None:
            return None, None
        data = postmaster = None
        with contextlib.suppress(psycopg.Error, OSError):
            row = self._conn.execute("select current_setting('data_directory')").fetchone()
            data = Path(row[0]) if row and row[0] and Path(row[0]).exists() else None
        with contextlib.suppress(OSError, ValueError, IndexError):
            backend = Path("/proc") / str(self._conn.info.backend_pid)
            if (backend / "cmdline").read_bytes().startswith(b"postgres"):
                postmaster = int((backend / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
        return postmaster, data

    # ------------------------------------------------------------ writing

    def _write(self, name: str, start_ns: int, end_ns: int, rows: list[Row]) -> None:
        with contextlib.suppress(PgdynoError):
            # A full disk ends the trial where its intervals are written.
            self._writer.samples(name, start_ns, end_ns, rows)

    def _event(self, at_ns: int, kind: str, words: str) -> None:
        self._writer.event(at_ns, kind, words)

    def _note(self, words: str) -> None:
        if words not in self._notes:
            self._notes.append(words)


def samples_of(scripts: Sequence[tuple[str, str, int]], workload: Any, seed: int) -> list[Sample]:
    """The statements of a workload, each with values of its own."""
    found: list[Sample] = []
    by_place = {(c.script, c.number): c for c in workload.commands}
    for n, (name, _, _) in enumerate(scripts):
        for number, prepared, text in workload.sample(n, seed):
            command = by_place[n, number]
            sample = Sample(Path(name).name, command.line, " ".join(command.sql.split()), prepared, text)
            if all((s.script, s.line) != (sample.script, sample.line) for s in found):
                found.append(sample)
    return found
