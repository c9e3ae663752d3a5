"""Samples: the columns of each source that is sampled beside a trial, with their types.

A field is a column of `samples/NAME.parquet`. Its name ends in its unit: `_ns`, `_ms`, `_s` and `_seconds` for times,
`_bytes` for sizes, `_per_s` for rates; other numbers are counts or parts of 1. A field with a default is absent where
a server or kernel does not have it.

Sources emit rows as dictionaries, because a row is written as it is: the classes are never instantiated, so they are no
dataclasses, whose making would delay each start by 30 ms. Tests hold the sources, and every column that a cause or a
table asks for, against them.
"""

from __future__ import annotations

from typing import get_type_hints


class Waits:
    """Sessions by state and wait event; `processes` is their mean number over the `looks` of a row."""

    kind: str
    ours: float
    state: str
    wait_type: str
    wait: str
    processes: float
    looks: float


class Commands:
    """Command of other sessions, without constants; `sessions` is their mean number during the sample."""

    application: str
    command: str
    state: str
    wait: str
    sessions: float


class CommandIo:
    """Bytes that ended commands of other sessions read, wrote, and added to WAL; PostgreSQL 18 and later.

    PostgreSQL counts them at the end of a command: a row belongs to the sample in which the command ended. Pages that
    VACUUM FULL, CLUSTER and CREATE INDEX write past shared buffers, and temporary files, are not among them.
    """

    application: str
    command: str
    read_bytes: float
    write_bytes: float
    wal_bytes: float


#: Ends the text of a statement that is longer than what is read of it.
CUT = "⋯"
#: What the names of the system catalog's tables begin with.
CATALOG = "pg_catalog."
#: Kind of the client backends that carry no load of pgdyno.
OTHER_SESSION = "other session"


class WaitStatements:
    """Statement of our clients, without constants, in a wait; `processes` is their mean number.

    Of an observed server, an empty wait is a CPU, and Client:ClientRead follows a statement within a transaction.

    200 characters of a statement are read; a longer one ends in ⋯.

    Of more than 20 sessions that wait, or belong to others, about 20 are read at a look, in turn, and counted for all.
    """

    wait_type: str
    wait: str
    statement: str
    processes: float


class Blockers:
    """Session that holds a lock for which one of ours waits."""

    statement: str
    lock: str
    relation: str
    by: str
    by_ours: float
    by_state: str
    by_statement: str
    by_seconds: float


class Counters:
    """Cumulative statistics of the server."""

    connections: float
    commits_per_s: float | None = None
    rollbacks_per_s: float | None = None
    blocks_read_per_s: float | None = None
    blocks_hit_per_s: float | None = None
    rows_returned_per_s: float | None = None
    rows_fetched_per_s: float | None = None
    rows_inserted_per_s: float | None = None
    rows_updated_per_s: float | None = None
    rows_deleted_per_s: float | None = None
    temp_files_per_s: float | None = None
    temp_bytes_per_s: float | None = None
    deadlocks_per_s: float | None = None
    conflicts_per_s: float | None = None
    read_ms_per_s: float | None = None
    write_ms_per_s: float | None = None
    wal_records_per_s: float | None = None
    wal_full_pages_per_s: float | None = None
    wal_bytes_per_s: float | None = None
    wal_buffers_full_per_s: float | None = None
    wal_writes_per_s: float | None = None
    wal_syncs_per_s: float | None = None
    wal_write_ms_per_s: float | None = None
    wal_sync_ms_per_s: float | None = None
    checkpoints_timed_per_s: float | None = None
    checkpoints_requested_per_s: float | None = None
    checkpoint_buffers_per_s: float | None = None
    checkpoint_write_ms_per_s: float | None = None
    checkpoint_sync_ms_per_s: float | None = None
    cleaned_buffers_per_s: float | None = None
    cleaning_stopped_per_s: float | None = None
    allocated_buffers_per_s: float | None = None
    backend_buffers_per_s: float | None = None
    backend_syncs_per_s: float | None = None
    relation_reads_per_s: float | None = None
    relation_read_ms_per_s: float | None = None
    relation_writes_per_s: float | None = None
    relation_extends_per_s: float | None = None
    relation_syncs_per_s: float | None = None


class Snapshots:
    """Oldest snapshot of another session, and the oldest of a replication slot, in transactions."""

    oldest_seconds: float
    oldest_transactions: float
    slot_transactions: float


class Standbys:
    """Distance of a standby from the primary."""

    standby: str
    sync_state: str
    state: str
    replay_bytes: float
    write_s: float
    flush_s: float
    replay_s: float


class Slots:
    """WAL that a replication slot keeps."""

    slot: str
    kind: str
    active: float
    wal_status: str
    kept_bytes: float


class Locks:
    """Locks by kind, mode and relation: granted, granted by the fast path, and waited for."""

    kind: str
    mode: str
    relation: str
    granted: float
    fast_path: float
    waiting: float


class Sizes:
    """Size of the database and of pg_wal."""

    database_bytes: float
    wal_bytes: float | None = None
    wal_files: float | None = None


class Progress:
    """Progress of a long command: `done` of `total` in `unit`; a total of 0 is unknown."""

    command: str
    phase: str
    relation: str
    done: float
    total: float
    unit: str
    auto: float


class Machine:
    """Processors, memory, pressure and network of the machine. CPU figures are numbers of processors."""

    context_switches_per_s: float
    running: float
    blocked: float
    cores: float
    cpu_user: float
    cpu_nice: float
    cpu_system: float
    cpu_idle: float
    cpu_iowait: float
    cpu_irq: float
    cpu_softirq: float
    cpu_steal: float
    busiest_core: float
    memory_available_bytes: float | None = None
    page_cache_bytes: float | None = None
    dirty_bytes: float | None = None
    writeback_bytes: float | None = None
    pressure_cpu_some: float | None = None
    pressure_io_some: float | None = None
    pressure_io_full: float | None = None
    pressure_memory_some: float | None = None
    pressure_memory_full: float | None = None
    network_received_bytes_per_s: float | None = None
    network_sent_bytes_per_s: float | None = None


class Cores:
    """Time of one core by state, as parts of 1."""

    core: float
    user: float
    nice: float
    system: float
    idle: float
    iowait: float
    irq: float
    softirq: float
    steal: float


class SoftInterrupts:
    """Soft interrupts by kind, of all cores and of the busiest."""

    kind: str
    per_s: float
    busiest_core_per_s: float


class Devices:
    """Activity of a block device, as iostat -x has it; `holds` is what lies on it."""

    device: str
    holds: str
    reads_per_s: float
    writes_per_s: float
    read_bytes_per_s: float
    write_bytes_per_s: float
    reads_merged_per_s: float
    writes_merged_per_s: float
    read_request_bytes: float
    write_request_bytes: float
    read_await_ns: float
    write_await_ns: float
    queue: float
    utilisation: float
    in_flight: float
    flushes_per_s: float | None = None
    flush_await_ns: float | None = None


class Processes:
    """Processes by kind: how many, on a processor, waiting for one, bytes read and written, and how many are stopped.

    Stopped are those that a signal (SIGSTOP) or a debugger holds.
    """

    kind: str
    processes: float
    cpu: float
    waiting_for_cpu: float
    in_disk_sleep: float
    read_bytes_per_s: float | None = None
    write_bytes_per_s: float | None = None
    stopped: float | None = None


class Quota:
    """CPU limit of the server's control group: processors, and the part of the periods in which it was throttled."""

    cpus: float
    held_back: float
    throttled: float


class Network:
    """Round trip of an empty query, and that of TCP (0 on a Unix-domain socket)."""

    round_trip_ns: float
    tcp_round_trip_ns: float


class Tables:
    """Activity of a table during the trial; rows and bytes are those at its end."""

    table: str
    seq_scans: float
    seq_rows_read: float
    index_scans: float
    rows_inserted: float
    rows_updated: float
    rows_hot_updated: float
    rows_deleted: float
    autovacuums: float
    autoanalyzes: float
    blocks_read: float
    blocks_hit: float
    index_blocks_read: float
    index_blocks_hit: float
    rows: float
    dead_rows: float
    bytes: float
    estimated_rows: float


class Indexes:
    """Activity of an index during the trial; bytes are those at its end."""

    table: str
    index: str
    scans: float
    entries_read: float
    blocks_read: float
    blocks_hit: float
    bytes: float


class Io:
    """I/O by kind of process, object and context during the trial (pg_stat_io)."""

    kind: str
    object: str
    context: str
    reads: float
    read_bytes: float
    read_ms: float
    writes: float
    write_bytes: float
    write_ms: float
    extends: float
    hits: float
    evictions: float
    syncs: float
    sync_ms: float


class Statements:
    """Statement as pg_stat_statements counted it during the trial, and the script and line that it comes from."""

    id: str
    statement: str
    calls: float
    ms: float
    rows: float
    blocks_hit: float
    blocks_read: float
    blocks_dirtied: float
    temp_blocks_read: float
    temp_blocks_written: float
    wal_bytes: float
    wal_full_pages: float
    jit_ms: float
    script: str | None = None
    line: float | None = None


class NestedStatements:
    """Statement that functions, triggers or checks of foreign keys ran, by pg_stat_statements (track = all).

    Its time is within that of the statement that called them.
    """

    id: str
    statement: str
    calls: float
    ms: float
    rows: float
    blocks_hit: float
    blocks_read: float


class Functions:
    """Function as the server counted it (track_functions): its time with and without what it called."""

    function: str
    calls: float
    ms: float
    self_ms: float


class Canary:
    """Fixed pieces of work before and after the trial: medians in ns (-1: not measured), and the share of lost time."""

    at: str
    cpu_ns: float
    stalled: float
    sync_ns: float
    loopback_ns: float


class WaitProfile:
    """Waits during the trial as pg_wait_sampling counted them."""

    wait_type: str
    wait: str
    samples: float
    ms: float


class Buffers:
    """Buffers that a relation holds at the end of the trial (pg_buffercache)."""

    relation: str
    buffers: float
    main: float
    dirty: float
    usage: float
    pages: float


class Plans:
    """Plan of a statement before and after the trial; figures of an execution, -1 if it was not executed."""

    script: str
    line: float
    statement: str
    plan: str
    plan_after: str
    scanned_table: str
    scanned_rows: float
    scan_filters: float
    scan_filter: str
    ms: float
    blocks_hit: float
    blocks_read: float
    temp_blocks: float
    rows: float
    rows_thrown_away: float


class Definitions:
    """Definition of the database before the trial: a relation, a part of one, a function, an extension, a setting."""

    object: str
    name: str
    definition: str


#: By the name of the source.
SAMPLES: dict[str, type] = {
    "waits": Waits,
    "commands": Commands,
    "command_io": CommandIo,
    "wait_statements": WaitStatements,
    "blockers": Blockers,
    "counters": Counters,
    "snapshots": Snapshots,
    "standbys": Standbys,
    "slots": Slots,
    "locks": Locks,
    "sizes": Sizes,
    "progress": Progress,
    "machine": Machine,
    "cores": Cores,
    "softirqs": SoftInterrupts,
    "devices": Devices,
    "processes": Processes,
    "quota": Quota,
    "network": Network,
    "tables": Tables,
    "indexes": Indexes,
    "io": Io,
    "statements": Statements,
    "nested_statements": NestedStatements,
    "functions": Functions,
    "canary": Canary,
    "wait_profile": WaitProfile,
    "buffers": Buffers,
    "plans": Plans,
    "definitions": Definitions,
}
#: Sources whose rows cover the whole trial and have no times.
WHOLE = {
    "tables", "indexes", "io", "statements", "nested_statements", "functions", "canary", "wait_profile", "buffers",
    "plans", "definitions",
}  # fmt: skip
#: Columns that every other row has: its time in nanoseconds since the load began.
TIMES = ("start_ns", "end_ns")


def columns(source: str) -> dict[str, type]:
    """Return the columns of a source with their types, `float` or `str`. Raise KeyError for an unknown source."""
    hints = get_type_hints(SAMPLES[source])
    times = {} if source in WHOLE else dict.fromkeys(TIMES, int)
    return times | {name: str if hint in (str, str | None) else float for name, hint in hints.items()}


def missing(source: str, row: dict[str, object]) -> set[str]:
    """Return the columns that a row of a source must have and does not."""
    return {name for name in get_type_hints(SAMPLES[source]) if not hasattr(SAMPLES[source], name)} - row.keys()
