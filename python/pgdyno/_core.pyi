"""The native module, as Python sees it. `tests/unit/test_core.py` holds this file against the module."""

from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Literal, Protocol

from pgdyno.engine import Plan, Sample, Tpcc

__version__: str

class CoreError(Exception):
    """Something went wrong; the message says what."""

    #: "plan", "connect", "session", "script", "aborted", "lost", "system", "limit"; of loads also "server", "file",
    #: "stopped"; "other".
    kind: str
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
        tells_kinds: bool = False,
    ) -> None: ...
    @property
    def endpoint(self) -> str: ...

class MySqlConfig:
    """Resolved connection parameters of a MySQL or MariaDB server. Raise CoreError, ConnectError.

    A `host` that begins with a slash is the path of a socket. `sslmode` has libpq's words. `settings` are system
    variables of the session, with their values as SQL.
    """

    def __init__(
        self,
        *,
        host: str,
        port: int,
        user: str,
        database: str = "",
        password: str | None = None,
        sslmode: str = "prefer",
        sslrootcert: str | None = None,
        sslcert: str | None = None,
        sslkey: str | None = None,
        program: str = "pgdyno",
        settings: dict[str, str] | None = None,
        ask_public_key: bool = False,
        clear_password: bool = False,
    ) -> None: ...
    @property
    def endpoint(self) -> str: ...

class ServedSession:
    """The server's side of a connection of the engine's, for workers that carry statements out in their own way."""

    def feed(self, bytes: bytes) -> None: ...
    def take(self) -> bytes: ...
    def next(self) -> Literal["begin", "end"] | list[tuple[int | None, str, tuple[object, ...]]] | None: ...
    def text(self, statement: int | None = None) -> str | None: ...
    def began(self, version: str, process: int) -> None: ...
    def result(
        self, columns: list[str] | None, rows: Iterable[Iterable[object]], tag: str, is_last: bool = True
    ) -> None: ...
    def failed(self, code: str, text: str, is_fatal: bool = False) -> None: ...
    def end_group(self, status: str | None = None) -> None: ...

class MySqlSession:
    """Session of administration on MySQL or MariaDB. Raise CoreError, ConnectError."""

    def __init__(self, config: MySqlConfig, timeout_s: float = 10.0) -> None: ...
    def query(self, sql: str, patience_s: float = 3600.0) -> tuple[list[str], list[list[str | None]]]:
        """Return the names of the columns and the rows; values as text.

        What takes longer than `patience_s`, or until a signal, is cancelled, and the session is over.
        """

    def close(self) -> None:
        """End the session; a second call does nothing."""

class Histogram:
    """Latencies in nanoseconds, 3 significant digits from 1 µs to 1 h; mergeable."""

    def __init__(self) -> None: ...
    @staticmethod
    def decode(data: bytes) -> Histogram: ...
    def encode(self) -> bytes: ...
    def record(self, nanos: int) -> None: ...
    def merge(self, other: Histogram) -> None: ...
    def without(self, other: Histogram) -> Histogram:
        """Return the histogram without the values of another one, all of which this one has."""

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

def read_merged(paths: Sequence[str], tag: str) -> list[Histogram | None]:
    """Return the histograms of a tag from files of merged histograms, in their order.

    None stands for a file that cannot be read, lacks the tag or is damaged.
    """

class Command:
    """Command of a workload: an SQL statement or a meta-command of a script.

    `text` is the first line as pgbench shows it, and `sql` is the whole SQL. `name` is `SQL` or the name of the
    meta-command. `script` is the number of the script. `number` is the command's number in that script (from 0), and
    `line` its line there.
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
        """Restrict an interval to some scripts and their commands.

        Both ranges exclude their second number. Figures that are not counted by script stay unchanged, except
        `statements`: it is divided in proportion to committed transactions.
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
    def silent_from_ns(self) -> int: ...
    @property
    def silent_ns(self) -> int: ...
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
    """Weighted scripts in pgbench's language over one set of variables.

    Without `strict`, mistakes that pgbench detects only at run time are also detected only at run time. With `marks`,
    meta-commands are timed as well. `dialect` is whose SQL the statements are in.
    """

    def __init__(
        self,
        variables: dict[str, str] | None = None,
        *,
        strict: bool = True,
        marks: bool = False,
        dialect: Literal["postgresql", "mysql"] = "postgresql",
    ) -> None: ...
    def add(self, name: str, text: str, weight: int = 1) -> None:
        """Add a script with its weight.

        Raise ScriptError with the place of the mistake if the script has one.
        """

    def add_sample(self, sample: Sample) -> None:
        r"""Let the scripts that are added from now on `\pick` from a sample. Raises CoreError."""

    def other_side(
        self, variables: dict[str, str], samples: Sequence[Sample] = (), *, dialect: str = "postgresql"
    ) -> None:
        """Assign the scripts that are added from now on to another side of a duet.

        For the clients of that side, `variables` override the variables that all clients have. Each of them must exist
        among those of all clients. In the same way, these clients pick from `samples`, and each sample must exist for
        all clients. `dialect` is the SQL of that side.
        """
    def preset(self, name: str, value: int) -> None: ...
    def schedule(self, clients: Sequence[Sequence[tuple[int, int, int]]]) -> None:
        """Set a schedule for the clients' transactions, in place of weights.

        For each client it lists the transactions. An entry has the script, the begin (nanoseconds since the run began)
        and the row of scheduled samples. A client that cannot begin a transaction in time begins it as soon as it is
        free.
        """
    def sample(self, script: int, seed: int) -> list[tuple[int, str, str]]:
        """Return one transaction of a script, with values drawn from `seed`.

        Each statement has the number of its command in the script and two forms of its text. The first form has `$1`,
        `$2` ... for the variables, and the second has their values. The list ends early if the next step depends on a
        result of the server or of a program.
        """

    @staticmethod
    def tpcc(sides: Sequence[Tpcc]) -> Workload:
        """TPC-C's transactions, of one side or of two of a duet. Raises CoreError."""

    @staticmethod
    def ledger(run: int, records: Path | None = None) -> Workload:
        """Create the ledger workload: numbered rows of `run`.

        The outcome of each row is appended to files in the folder `records`, one file per client. Raise CoreError if
        that fails.
        """

    @property
    def drawn(self) -> list[dict[str, int]]:
        """Return the TPC-C draws of the clients in all runs so far, by side.

        They include the number of deliveries that skipped a district.
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
    """Return the constants of NURand that belong to a seed of the data.

    Their order: for last names in the load, for last names in runs, for customers, for items.
    """

class _Observer(Protocol):
    def started(self, start_ns: int, connect_ns: int, /) -> None: ...
    def interval(self, i: Interval, /) -> None: ...
    def event(self, e: Event, /) -> None: ...

def event_kinds() -> list[str]:
    """Names of all kinds of events."""

def run(
    configs: Sequence[ConnConfig | MySqlConfig],
    workload: Workload,
    observer: _Observer,
    plan: Plan,
) -> RunResult:
    """Run a workload against one or more targets.

    Raise CoreError if an error occurs before the first interval. Later errors are in the result.
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
    """Statistics of a column, as in pg_stats.

    Values are integers, floats or texts. A timestamp is the number of microseconds since 2000. A numeric is a number
    of units of its last digit. Texts lack the blanks that pad a char(n).
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
    """Tables and their rows, drawn from a seed.

    The size of "tpcb" is its scale, and the size of "pk" its number of rows. The size of "feed" is the number of rows
    in each of its tables. The size of "tpcc" is the number of warehouses in each of its sets.
    """

    tables: list[Table]
    def __init__(
        self, kind: str, size: int, *, tables: int = 1, partitions: int = 0, fillfactor: int = 100, seed: int = 1
    ) -> None: ...
    def statistics(self, table: int, target: int) -> list[ColumnStatistics]:
        """Return the statistics that ANALYZE would find for a table's columns.

        `target` is the default_statistics_target. A random sample of the table's rows is used, with 300 rows for each
        unit of `target`. Texts are compared as bytes.
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
        """Compute the positions of the rows of all tables.

        `write` does the same unless the positions are known. Nothing can interrupt this call.
        """

    def carry_out(
        self,
        config: ConnConfig | MySqlConfig,
        jobs: Sequence[Sequence[str | tuple[str, int, int, int]]],
        watch: Callable[[int, int], object],
        *,
        connections: int = 1,
        connect_timeout_s: float = 10.0,
    ) -> tuple[int, int]:
        """Execute jobs over several sessions; return the rows and bytes sent.

        A job is a list of SQL commands and of COPY commands with table and rows first..end. `watch` receives the rows
        and bytes sent so far. Raise CoreError if a job fails.
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
        """Write new files and sync them; return the bytes written and the paths of the files, segments in order.

        Each part (table, part, path) is written with all its segments. `watch` receives the bytes and rows so far.
        Raise CoreError if writing fails; files written until then remain.
        """

class Relay:
    """Carries packets of IPv4 between TUN devices, in a thread of its own, until it is closed. Linux only."""

    def __init__(self, hosts: Sequence[tuple[str, int]]) -> None:
        """`hosts`: the address of each, and the descriptor of its device, which stays the caller's. Raises OSError."""

    def set(self, from_host: int, to_host: int, delay_ns: int, bytes_per_s: int | None = None) -> None:
        """Set the delay and the rate of packets from one host to another, by number, from now on.

        Each packet travels for `delay_ns` nanoseconds. Packets leave at `bytes_per_s` bytes per second; None means at
        once. Raise ValueError if there is no such host or the rate is 0.
        """

    def counts(self) -> tuple[int, int, int]:
        """Packets and bytes that were carried, and packets that were dropped."""

    def close(self) -> None:
        """Stop the relay; packets in transit are lost."""

class Deadline:
    """Time limit that ends the process unless it is closed within `seconds`.

    The process ends with a message on standard error and an exit code, without exit handlers. The limit is meant for C
    code that computes while it holds the interpreter's lock.
    """

    def __init__(self, seconds: float, message: str, exit_code: int) -> None: ...
    def close(self) -> None:
        """Let the process go on."""

def thread_rights(uid: int, gid: int, groups: list[int]) -> tuple[int, int, list[int]]:
    """Give the calling thread the effective user, group and groups; return the ones that it had before.

    Raise OSError if the system refuses.
    """

def heap_page(
    kinds: Sequence[str],
    rows: Sequence[Sequence[int | float | str | None]],
    *,
    block: int = 0,
    xmin: int = 2,
    cmin: int = 0,
) -> tuple[bytes, int]:
    """Return one heap page as COPY FREEZE fills it, and the number of rows that fit.

    Kinds are int4, int8, float8, text, or the n of a char(n). For tests.
    """

def btree_pages(rows: int, width: int, on_page: int, first: int, count: int, each: int | None = None) -> bytes:
    """Return pages of a B-tree over the keys 1, 2, … of 4 or 8 bytes.

    A page of the heap has `on_page` rows. If `each` is given, every key occurs in `each` rows. For tests.
    """

def page_checksum(page: bytes, block: int) -> int:
    """Return the checksum of a page as block `block` of its fork. For tests."""

def check_script(name: str, text: str) -> None:
    """Raise ScriptError if pgbench would refuse the script before it runs."""

def ledger_content(run: int, client: int, sequence: int) -> int:
    """Return the content of a row of the ledger: a hash of its key, 64 bits."""

def sqlstate_name(code: str) -> str | None:
    """PostgreSQL's name of an SQLSTATE, where pgdyno knows it."""
