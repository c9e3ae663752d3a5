"""A benchmark: sets up, runs the engine, and hands what it measured to the summary.

What only some options need is imported where it is used: the start of a run is measured (`benches/startup.py`).
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pgdyno import __version__, _core
from pgdyno.cluster.target import Target, connect_timeout_of, target_of
from pgdyno.engine import Plan, Rate, TransactionLog, Voice
from pgdyno.errors import EXIT_SIGINT, EXIT_SIGTERM, TargetError
from pgdyno.interrupt import Terminated, signals_raise
from pgdyno.pgbench import summary
from pgdyno.pgbench.connection import Connection, RefusedError, open_connection
from pgdyno.pgbench.figures import Figures
from pgdyno.pgbench.messages import PROGRAM, Exit, fail, log, out, plain
from pgdyno.pgbench.options import MAX_PARAMETERS, Options
from pgdyno.pgbench.usage import VERSION
from pgdyno.run.trials.workers import workers_for_clients

#: The version of `usage.VERSION` as libpq numbers it.
VERSION_NUMBER = 180006
#: Without --progress: the length of an interval of the time series, in seconds.
INTERVAL_S = 1.0
#: Practically without end: pgbench waits for what is under way, however long it takes.
FOREVER_S = 10.0 * 365 * 86_400

_PARTITIONS = """\
select o.n, p.partstrat, pg_catalog.count(i.inhparent)
from pg_catalog.pg_class as c
join pg_catalog.pg_namespace as n on (n.oid = c.relnamespace)
cross join lateral (select pg_catalog.array_position(pg_catalog.current_schemas(true), n.nspname)) as o(n)
left join pg_catalog.pg_partitioned_table as p on (p.partrelid = c.oid)
left join pg_catalog.pg_inherits as i on (c.oid = i.inhparent)
where c.relname = 'pgbench_accounts' and o.n is not null
group by 1, 2 order by 1 limit 1"""


@dataclass
class Setup:
    """Facts that were determined before the run."""

    scale: int
    threads: int
    partition_method: str = ""
    partitions: int = 0
    targets: list[Target] = field(default_factory=list)
    #: Seconds that a connection may take; None: libpq waits without end.
    connect_timeout_s: float | None = None


def run(o: Options) -> int:
    """Run a benchmark and return the exit code."""
    workload = compile_workload(o)
    files = _Files(o)
    try:
        return _run(o, workload, files)
    finally:
        files.tidy()


def _run(o: Options, workload: _core.Workload, files: _Files) -> int:
    connection = open_connection(o, o.targets[0] if o.targets else None)
    try:
        setup = prepare(o, connection)
    finally:
        connection.close()
    for conninfo in o.targets[1:]:
        other = open_connection(o, conninfo)
        try:
            setup.targets.append(_target(other))
        finally:
            other.close()
    if "scale" not in o.variables:
        workload.preset("scale", setup.scale)
    return _measure(o, setup, workload, files)


def compile_workload(o: Options) -> _core.Workload:
    """Compile the scripts over one set of variables.

    Raise Exit if a script is invalid.
    """
    workload = _core.Workload(o.variables, strict=False, marks=o.per_command or o.debug)
    try:
        for script in o.scripts:
            workload.add(script.description, script.text, script.weight)
    except _core.ScriptError as e:
        fail(str(e.args[1]))
    if o.protocol != "simple":
        for command in workload.commands:
            if command.parameters > MAX_PARAMETERS:
                fail(f"statement has too many arguments (maximum is {MAX_PARAMETERS}): {command.sql}")
    return workload


def _target(connection: Connection) -> Target:
    try:
        return target_of(connection.pgconn)
    except TargetError as e:
        fail(e.message, hint=e.remedy)


def prepare(o: Options, connection: Connection) -> Setup:
    """Print the banner, determine the scale, and run VACUUM.

    Raise Exit if the preparation fails.
    """
    conn = connection.pgconn
    server = conn.parameter_status("server_version") or ""
    same = conn.server_version == VERSION_NUMBER
    out(f"{PROGRAM} ({VERSION})\n" if same else f"{PROGRAM} ({VERSION}, server {server})\n")
    if o.debug:
        what = f"duration: {o.duration}" if o.duration else f"nxacts: {o.transactions}"
        log("", f"pghost: {conn.host} pgport: {conn.port} nclients: {o.clients} {what} dbName: {connection.dbname}")
    timeout = connect_timeout_of(conn)
    setup = Setup(o.scale, threads(o), targets=[_target(connection)], connect_timeout_s=timeout)
    if any(s.builtin for s in o.scripts):
        _look_at_tables(o, connection, setup)
    if not o.no_vacuum:
        plain("starting vacuum...")
        for sql in ("vacuum pgbench_branches", "vacuum pgbench_tellers", "truncate pgbench_history"):
            _try(connection, sql)
        plain("end.\n")
        if o.vacuum_all:
            plain("starting vacuum pgbench_accounts...")
            _try(connection, "vacuum analyze pgbench_accounts")
            plain("end.\n")
    return setup


def threads(o: Options) -> int:
    """Return the number of worker threads: the value of -j, else as many as the machine needs.

    A log has one file for each thread, and its readers expect one file. With a log, the default is therefore one
    thread.
    """
    if o.jobs is None:
        return 1 if o.log else workers_for_clients(o.clients, os.cpu_count() or 1)
    return min(o.jobs, o.clients)


def _try(connection: Connection, sql: str) -> None:
    try:
        connection.execute(sql)
    except RefusedError as e:
        log("error", str(e))
        log("detail", "(ignoring this error and continuing anyway)")


def _look_at_tables(o: Options, connection: Connection, setup: Setup) -> None:
    hint = f'Perhaps you need to do initialization ("pgbench -i") in database "{connection.dbname}".'
    try:
        result = connection.execute("select count(*) from pgbench_branches")
    except RefusedError as e:
        fail(f"could not count number of branches: {e}", hint=hint if e.sqlstate == "42P01" else "")
    setup.scale = int(result.get_value(0, 0) or b"0")
    if o.scale_given:
        log("warning", f"scale option ignored, using count from pgbench_branches table ({setup.scale})")
    try:
        found = connection.execute(_PARTITIONS)
    except RefusedError:
        return
    if not found.ntuples:
        fail('no pgbench_accounts table found in "search_path"', hint=hint)
    setup.partition_method = {b"r": "range", b"h": "hash"}.get(found.get_value(0, 1) or b"", "")
    setup.partitions = int(found.get_value(0, 2) or b"0")


class _Files:
    """Additional output files.

    They are opened before anything runs, so that no measurement is lost because a file cannot be opened.
    """

    def __init__(self, o: Options) -> None:
        self.histograms = self._open(o.histogram_log, o.histogram_log)
        self.path = o.json or Path()
        # What is there stays until there is something to replace it.
        self.json = self._open(None if o.json is None else _partial_path(o.json), o.json)
        #: Something could not be written.
        self.failed = False

    @staticmethod
    def _open(path: Path | None, named: Path | None) -> Any:
        if path is None:
            return None
        try:
            return path.open("w", encoding="utf-8")
        except OSError as e:
            fail(f'could not open file "{named}": {e.strerror}')

    def write_histograms(self, text: str) -> None:
        """Write histograms to their file.

        A full disk ends this file, not the run.
        """
        if self.histograms is None:
            return
        try:
            self.histograms.write(text)
            self.histograms.flush()
        except OSError as e:
            log("error", f'could not write file "{self.histograms.name}": {e.strerror}; no more histograms are written')
            self.histograms, self.failed = None, True

    def write_json(self, everything: dict[str, Any]) -> None:
        """Write the JSON document and move it to its final path."""
        import json

        try:
            with self.json as f:
                json.dump(everything, f, indent=2)
                f.write("\n")
            if self.path != Path(f.name):
                Path(f.name).replace(self.path)
        except OSError as e:
            log("error", f'could not write file "{self.path}": {e.strerror}')
            self.failed = True

    def tidy(self) -> None:
        """Remove the JSON file that was begun and not finished."""
        if self.json is not None and self.path != Path(self.json.name):
            self.json.close()
            Path(self.json.name).unlink(missing_ok=True)


def _partial_path(path: Path) -> Path:
    """Return the path at which a file is written until it is complete.

    Devices and pipes are written directly.
    """
    if path.exists() and not path.is_file():
        return path
    return path.with_name(f".{path.name}.{os.getpid()}")


@dataclass
class _Observer:
    """Shows progress, writes histograms, keeps the time series."""

    o: Options
    files: _Files
    start_ns: int = 0
    series: list[dict[str, Any]] = field(default_factory=list)

    def started(self, start_ns: int, connect_ns: int) -> None:
        self.start_ns = start_ns
        if self.files.histograms:
            from pgdyno.store import hlog

            self.files.write_histograms(hlog.header(start_ns))

    def interval(self, i: _core.Interval) -> None:
        seconds = (i.end_ns - i.start_ns) / 1e9
        if seconds <= 0:
            return
        if self.files.histograms:
            from pgdyno.store import hlog

            tags = {hlog.TRANSACTION: i.latency}
            if len(i.scripts) > 1:
                tags |= {hlog.script(n): h for n, h in enumerate(i.scripts)}
            if self.o.per_command:
                tags |= {f"command-{n}": h for n, h in enumerate(i.command_latency) if h.count}
            if self.o.rate:
                tags[hlog.LAG] = i.lag
            self.files.write_histograms("".join(hlog.line(tag, i.start_ns, i.end_ns, h) for tag, h in tags.items()))
        if self.files.json:
            from pgdyno.pgbench import document

            self.series.append(document.series_row(i))
        # A last piece that is shorter belongs to the summary alone.
        if self.o.progress and seconds > self.o.progress - 1e-6:
            plain(summary.progress_line(self.o, i, self.start_ns))

    def event(self, e: _core.Event) -> None:
        if e.kind == "output":
            plain(f"{e.text}\n")
        elif e.kind in ("info", "debug"):
            log("", e.text)
        elif e.kind == "error":
            log("error", e.text)
        elif e.kind in ("connection_lost", "protocol_violation", "connect_failed"):
            log("warning", f"client {e.client}: {e.text}; connecting again")
        elif e.kind == "reconnected":
            log("", f"client {e.client} is connected again")


def _plan(o: Options, setup: Setup) -> Plan:
    """Return the plan that makes the engine behave as pgbench does."""
    transactions = None
    if o.log:
        prefix = o.log_prefix if o.log_prefix is not None else "pgbench_log"
        transactions = TransactionLog(
            path=f"{prefix}.{os.getpid()}",
            sampling_rate=o.sampling_rate,
            aggregate_s=o.aggregate_interval,
            detailed=o.failures_detailed,
            other_failures=o.continue_on_error,
            percentiles=list(o.percentiles) if o.aggregate_interval else [],
        )
    return Plan(
        clients=o.clients,
        workers=setup.threads,
        protocol=o.protocol,
        duration_s=float(o.duration) if o.duration else None,
        transactions=o.transactions or None,
        interval_s=float(o.progress) if o.progress else INTERVAL_S,
        rate=Rate(*o.rate, constant=o.constant_arrivals) if o.rate else None,
        seed=o.seed,
        connect_timeout_s=setup.connect_timeout_s or 86_400.0,
        command_latency=o.per_command or o.json is not None or o.histogram_log is not None,
        drain_timeout_s=FOREVER_S,
        reconnect=o.reconnect,
        on_error="end_client_unless_sql" if o.continue_on_error else "end_client",
        latency_limit_s=o.latency_limit_ms / 1e3 if o.latency_limit_ms else None,
        max_tries=o.max_tries,
        connect_each=o.connect,
        begin_what_was_due=False,
        measure_until_done=True,
        exit_on_abort=o.exit_on_abort,
        log=transactions,
        voice=Voice(verbose=o.verbose_errors, debug=o.debug),
    )


def _measure(o: Options, setup: Setup, workload: _core.Workload, files: _Files) -> int:
    observer = _Observer(o, files)
    with signals_raise():
        try:
            configs = [
                _core.ConnConfig(**{"application_name": PROGRAM, **target.core_arguments()}) for target in setup.targets
            ]
            result = _core.run(configs, workload, observer, _plan(o, setup))
        except _core.ConnectError as e:
            # The clients have said it themselves, but for those that found no address.
            if len(e.args) < 2:
                log("error", str(e.args[0]))
            raise Exit(1) from e
        except _core.CoreError as e:
            fail(str(e.args[0]))
        except KeyboardInterrupt:
            raise Exit(EXIT_SIGINT) from None
    return _finish(o, setup, files, observer, result)


def _finish(o: Options, setup: Setup, files: _Files, observer: _Observer, result: _core.RunResult) -> int:
    if result.aborted_in is not None:
        log("error", f"Run was aborted due to an error in thread {result.aborted_in}")
        return 2
    if result.phase("measure") is None and isinstance(result.raised, (KeyboardInterrupt, Terminated)):
        log("error", "interrupted before the run began")
        return EXIT_SIGINT if isinstance(result.raised, KeyboardInterrupt) else EXIT_SIGTERM
    local = any(target.is_local for target in setup.targets)
    figures = Figures.of(o, setup.scale, setup.threads, setup.partition_method, setup.partitions, result, shared=local)
    out(summary.text(o, figures))
    complete = result.error is None and result.raised is None and not figures.aborted
    if files.json:
        from pgdyno import i18n
        from pgdyno.pgbench import document

        targets = [i18n.text(t.where) for t in setup.targets]
        everything = document.document(o, figures, observer.series, targets, complete)
        everything |= {"pgdyno": __version__, "start": time.strftime("%FT%TZ", time.gmtime(observer.start_ns / 1e9))}
        files.write_json(everything)
    if result.error is not None:
        log("error", result.error)
        return 1
    if isinstance(result.raised, (KeyboardInterrupt, Terminated)):
        log("error", "interrupted; the above results are those of the time until then")
        return EXIT_SIGINT if isinstance(result.raised, KeyboardInterrupt) else EXIT_SIGTERM
    if result.raised is not None:
        raise result.raised
    if figures.aborted:
        log("error", "Run was aborted; the above results are incomplete.")
        return 2
    return 1 if files.failed else 0
