"""The native module, as Python sees it. `tests/unit/test_core.py` holds this file against the module."""

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Protocol

from pgdyno.engine import Plan, Sample, Tpcc

__version__: str

class CoreError(Exception):
    """Something went wrong; the message says what."""

    #: Of a server's error; None: it is not one.
    sqlstate: str | None
    #: Of a refusal of this machine's operating system.
    errno: int | None

class ScriptError(CoreError):
    """A mistake in a script: the message with file:line:column and a caret, and the same as pgbench puts it."""

class ConnectError(CoreError):
    """No connection or no session: why, and the same in libpq's words."""

class StoppedError(CoreError):
    """The caller asked to stop."""

class ConnConfig:
    """Resolved connection parameters: libpq's words, every default filled in. Raises CoreError, ConnectError."""

    def __init__(
        self,
        *,
        host: str,
        port: int,
        user: str,
        dbname: str,
        password: str | None = None,
        hostaddr: str | None = None,
        sslmode: str = "prefer",
        sslrootcert: str | None = None,
        sslcert: str | None = None,
        sslkey: str | None = None,
        channel_binding: str = "prefer",
        options: str | None = None,
        application_name: str = "pgdyno",
        settings: dict[str, str] | None = None,
        read_write: bool = False,
        members: list[tuple[str, int]] | None = None,
    ) -> None: ...
    @property
    def endpoint(self) -> str: ...

class Histogram:
    """Latencies in nanoseconds, 3 significant digits from 1 µs to 1 h; mergeable."""

    def __init__(self) -> None: ...
    @staticmethod
    def decode(data: bytes) -> Histogram: ...
    def encode(self) -> bytes: ...
    def record(self, nanos: int) -> None: ...
    def merge(self, other: Histogram) -> None: ...
    @property
    def count(self) -> int: ...
    @property
    def clipped(self) -> int: ...
    def percentile(self, percent: float) -> int: ...
    @property
    def min(self) -> int: ...
    @property
    def max(self) -> int: ...
    @property
    def mean(self) -> float: ...
    @property
    def stddev(self) -> float: ...
    @property
    def sums(self) -> tuple[float, float]: ...
    def count_up_to(self, values: list[int]) -> list[int]: ...
    def buckets(self) -> list[tuple[int, int]]: ...
    def __len__(self) -> int: ...

class Command:
    """A command of a workload: its first line as pgbench shows it, its whole SQL, its name (`SQL`, or the
    meta-command's), the number of its script, its number there (from 0), its line there.
    """

    text: str
    sql: str
    name: str
    script: int
    number: int
    line: int
    is_sql: bool
    parameters: int

class Interval:
    """What happened in a stretch of time; times in nanoseconds since the run's start."""

    def of_scripts(self, scripts: tuple[int, int], commands: tuple[int, int]) -> Interval:
        """Of some scripts alone, from the first to behind the last, and of their commands. What is not counted by
        script stays as it is.
        """
    @property
    def index(self) -> int: ...
    @property
    def turn(self) -> int:
        """Of a duet: the turn that it lies in, from 0."""
    @property
    def phase(self) -> str: ...
    @property
    def start_ns(self) -> int: ...
    @property
    def end_ns(self) -> int: ...
    @property
    def scheduled(self) -> int: ...
    @property
    def committed(self) -> int: ...
    @property
    def failed(self) -> dict[str, int]: ...
    @property
    def skipped(self) -> int: ...
    @property
    def unknown(self) -> int: ...
    @property
    def unfinished(self) -> int: ...
    @property
    def retried(self) -> int: ...
    @property
    def retries(self) -> int: ...
    @property
    def late(self) -> int: ...
    @property
    def aborted(self) -> int: ...
    @property
    def by_script(self) -> list[tuple[int, dict[str, int], int, int, int]]: ...
    @property
    def command_errors(self) -> list[tuple[int, int, int]]: ...
    @property
    def connect(self) -> Histogram: ...
    def merged(self, other: Interval) -> Interval: ...
    @property
    def statements(self) -> int: ...
    @property
    def lost(self) -> int: ...
    @property
    def reconnects(self) -> int: ...
    @property
    def disconnected(self) -> int: ...
    @property
    def cpu_ns(self) -> int: ...
    @property
    def busiest_cpu_ns(self) -> int: ...
    @property
    def run_delay_ns(self) -> int: ...
    @property
    def most_delayed_ns(self) -> int: ...
    @property
    def least_rest_ns(self) -> int: ...
    @property
    def wakeup_delay(self) -> Histogram: ...
    @property
    def violations(self) -> int: ...
    @property
    def latency(self) -> Histogram: ...
    @property
    def lag(self) -> Histogram: ...
    @property
    def scripts(self) -> list[Histogram]: ...
    @property
    def command_latency(self) -> list[Histogram]: ...
    @property
    def command_empty(self) -> list[int]: ...
    @property
    def balance(self) -> int: ...

class Event:
    """Something that happened at a time (nanoseconds since the run's start)."""

    at_ns: int
    kind: str
    client: int
    text: str

class RunResult:
    """What a run came to."""

    @property
    def start_ns(self) -> int: ...
    @property
    def connect_ns(self) -> int: ...
    @property
    def elapsed_ns(self) -> int: ...
    @property
    def interrupted(self) -> bool: ...
    @property
    def driver(self) -> str: ...
    @property
    def raised(self) -> BaseException | None: ...
    @property
    def error(self) -> str | None: ...
    @property
    def error_sqlstate(self) -> str | None: ...
    @property
    def error_in_script(self) -> bool: ...
    def phase(self, name: str) -> Interval | None: ...
    @property
    def aborted_in(self) -> int | None: ...
    @property
    def commands(self) -> list[Command]: ...
    @property
    def scripts(self) -> list[str]: ...

class Workload:
    """Weighted scripts in pgbench's language over one set of variables. Without `strict`, what pgbench finds out while
    it runs is found out while it runs; with `marks`, meta-commands are timed too.
    """

    def __init__(
        self, variables: dict[str, str] | None = None, *, strict: bool = True, marks: bool = False
    ) -> None: ...
    def add(self, name: str, text: str, weight: int = 1) -> None:
        """Raises ScriptError with the place of a mistake."""

    def add_sample(self, sample: Sample) -> None:
        r"""Let the scripts that are added from now on `\pick` from a sample. Raises CoreError."""

    def other_side(self, variables: dict[str, str], samples: Sequence[Sample] = ()) -> None:
        """Scripts that are added from now on are those of another side of a duet; its clients have these variables over
        those that all have, which must have them too, and pick from these samples, likewise.
        """
    def preset(self, name: str, value: int) -> None: ...
    def schedule(self, clients: Sequence[Sequence[tuple[int, int, int]]]) -> None:
        """In place of weights: by client its transactions, each with its script, when it begins (nanoseconds from the
        run's begin), and the row of scheduled samples. What a client does not begin in time it begins when it is free.
        """
    def sample(self, script: int, seed: int) -> list[tuple[int, str, str]]:
        """One transaction of a script with values drawn from `seed`: of each statement the number of its command in the
        script, its text with `$1`, `$2` ... for the variables, and with their values. Ends early where only a server's
        answer, or a program, says how it goes on.
        """

    @staticmethod
    def tpcc(sides: Sequence[Tpcc]) -> Workload:
        """TPC-C's transactions, of one side or of two of a duet. Raises CoreError."""

    @staticmethod
    def ledger(run: int, records: Path | None = None) -> Workload:
        """The ledger: numbered rows of `run`; what became of each is appended to a file for each client in `records`.
        Raises CoreError.
        """

    @property
    def drawn(self) -> list[dict[str, int]]:
        """Of TPC-C, by side: what its clients have drawn in all runs so far, and deliveries that passed a district
        over.
        """

    @property
    def scripts(self) -> list[tuple[str, int]]: ...
    @property
    def commands(self) -> list[Command]: ...

def tpcc_transactions(options: Tpcc) -> list[tuple[str, str]]:
    """TPC-C's transactions for people to read: of each its name and its statements under their names."""

def tpcc_functions(set: int, sets: int) -> list[str]:
    """CREATE FUNCTION of TPC-C's transactions, for set `set` (from 0) of `sets`."""

def tpcc_constants(data_seed: int) -> tuple[int, int, int, int]:
    """The constants of NURand that go with a seed of the data: for last names in the load and in runs, for customers,
    for items.
    """

class _Observer(Protocol):
    def started(self, start_ns: int, connect_ns: int, /) -> None: ...
    def interval(self, i: Interval, /) -> None: ...
    def event(self, e: Event, /) -> None: ...

def run(
    configs: list[ConnConfig],
    workload: Workload,
    observer: _Observer,
    plan: Plan,
) -> RunResult:
    """Runs a workload against one or more targets. Raises CoreError before the first interval; later errors are in the
    result.
    """

class Table:
    """A table of a dataset, and how large it will be."""

    name: str
    #: (name, type, constraint) of each column.
    columns: list[tuple[str, str, str]]
    #: The numbers of its rows: first..end, from 0 unless it is a partition.
    first: int
    end: int
    #: The columns of the primary key; of each other index its name, its columns, and whether texts are among them; the
    #: column of a BRIN index.
    key: list[str]
    indexes: list[tuple[str, list[str], bool]]
    brin: str | None
    #: Of a partition: the table, the column, from which value to which (None: open).
    partition: tuple[str, str, int | None, int | None] | None
    #: All its rows are of one width: sizes are exact.
    even: bool
    fillfactor: int
    #: A SELECT of the rows {first} to {last}, both included.
    query: str
    #: What pg_relation_size will say of the heap and of the key, and the level of the key's root.
    heap_bytes: int
    key_bytes: int
    #: Of the other indexes, as they would be written directly.
    index_bytes: int
    key_level: int

class ColumnStatistics:
    """Of a column, as pg_stats has it. Values are integers (of a timestamp the microseconds since 2000, of a numeric
    units of its last digit), floats or texts, less the blanks that a char(n) is padded with.
    """

    column: str
    #: As CREATE TABLE spells it.
    kind: str
    null_fraction: float
    #: Bytes.
    average_width: int
    #: Below 0: by the number of rows, negated.
    distinct: float
    #: Values, and their fractions of all rows.
    common: list[tuple[int | float | str, float]]
    bounds: list[int | float | str]
    correlation: float | None

class Dataset:
    """Tables and their rows: "tpcb" of a scale, "pk" of so many rows, "feed" of so many rows in each of its tables,
    "tpcc" of so many warehouses in each of its sets, drawn from a seed.
    """

    tables: list[Table]
    def __init__(
        self, kind: str, size: int, *, tables: int = 1, partitions: int = 0, fillfactor: int = 100, seed: int = 1
    ) -> None: ...
    def statistics(self, table: int, target: int) -> list[ColumnStatistics]:
        """What ANALYZE would find of a table's columns with that default_statistics_target, by a random sample of its
        rows (300 for each entry), texts compared as bytes.
        """

    def rows(self, table: int, first: int, end: int) -> bytes:
        """Rows first..end of a table in COPY's binary format, less its header and trailer."""

    def pages(
        self,
        table: int,
        part: str,
        first: int,
        count: int,
        *,
        xmin: int = 2,
        cmin: int = 0,
        checksums: bool = False,
    ) -> bytes:
        """Pages of 8 kB, as they would be written: part is "heap", "visibility" or "key"; fewer at the end."""

    def place(self, threads: int) -> None:
        """Finds out where the rows of all tables stand, as `write` does unless it is known. Nothing stops it."""

    def carry_out(
        self,
        config: ConnConfig,
        jobs: Sequence[Sequence[str | tuple[str, int, int, int]]],
        watch: Callable[[int, int], object],
        *,
        connections: int = 1,
        connect_timeout_s: float = 10.0,
    ) -> tuple[int, int]:
        """Carries out jobs over several sessions; each is a list of SQL and of COPY commands with table and rows
        first..end. `watch` gets rows and bytes sent; these are also the result. Raises CoreError.
        """

    def write(
        self,
        parts: Sequence[tuple[int, str, str | PathLike[str]]],
        watch: Callable[[int, int], object],
        *,
        threads: int = 1,
        checksums: bool = False,
        direct_io: bool = True,
        mode: int = 0o600,
    ) -> tuple[int, list[Path]]:
        """Writes files anew, all segments of each (table, part, path), and syncs them.
        `watch` gets bytes and rows. Returns bytes and paths, segments in order. Raises CoreError; what is written by
        then stays.
        """

class Relay:
    """Carries packets of IPv4 between TUN devices, in a thread of its own, until it is closed. Linux only."""

    def __init__(self, hosts: Sequence[tuple[str, int]]) -> None:
        """`hosts`: the address of each, and the descriptor of its device, which stays the caller's. Raises OSError."""

    def set(self, from_host: int, to_host: int, delay_ns: int, bytes_per_s: int | None = None) -> None:
        """From now on packets from one host to another, by number, travel for so long, and leave so fast (None: at
        once). Raises ValueError.
        """

    def counts(self) -> tuple[int, int, int]:
        """Packets and bytes that were carried, and packets that were dropped."""

    def close(self) -> None:
        """Ends it; what is under way is lost."""

class Deadline:
    """Ends the process with a message on standard error and an exit code, without exit handlers, unless it is closed
    within `seconds`: an end for C code that computes while it holds the interpreter's lock.
    """

    def __init__(self, seconds: float, message: str, exit_code: int) -> None: ...
    def close(self) -> None:
        """Let the process go on."""

def thread_rights(uid: int, gid: int, groups: list[int]) -> tuple[int, int, list[int]]:
    """Gives the calling thread the effective user, group and groups; returns those that it had. Raises OSError."""

def heap_page(
    kinds: Sequence[str],
    rows: Sequence[Sequence[int | float | str | None]],
    *,
    block: int = 0,
    xmin: int = 2,
    cmin: int = 0,
) -> tuple[bytes, int]:
    """One heap page as COPY FREEZE fills it, and how many of the rows fit. Kinds are int4, int8, float8, text, or the n
    of a char(n). For tests.
    """

def btree_pages(rows: int, width: int, on_page: int, first: int, count: int, each: int | None = None) -> bytes:
    """Pages of a B-tree over keys 1, 2, … of 4 or 8 bytes, with on_page rows on a page of the heap; with `each`, so
    many rows have each key. For tests.
    """

def page_checksum(page: bytes, block: int) -> int:
    """The checksum of a page as block `block` of its fork. For tests."""

def check_script(name: str, text: str) -> None:
    """Raises ScriptError when pgbench would refuse the script before it runs."""

def ledger_content(run: int, client: int, sequence: int) -> int:
    """Return the content of a row of the ledger: a hash of its key, 64 bits."""

def sqlstate_name(code: str) -> str | None:
    """PostgreSQL's name of an SQLSTATE, where pgdyno knows it."""
