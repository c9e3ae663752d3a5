"""The native module, as Python sees it. `tests/unit/test_core.py` holds this file against the module."""

from collections.abc import Callable
from typing import Protocol

__version__: str

class CoreError(Exception):
    """Something went wrong; the message says what."""

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

    @property
    def index(self) -> int: ...
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
    def latency(self) -> Histogram: ...
    @property
    def lag(self) -> Histogram: ...
    @property
    def scripts(self) -> list[Histogram]: ...
    @property
    def command_latency(self) -> list[Histogram]: ...
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
    def raised(self) -> BaseException | None: ...
    @property
    def error(self) -> str | None: ...
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

    def preset(self, name: str, value: int) -> None: ...
    @property
    def scripts(self) -> list[tuple[str, int]]: ...
    @property
    def commands(self) -> list[Command]: ...

class _Observer(Protocol):
    def started(self, start_ns: int, connect_ns: int, /) -> None: ...
    def interval(self, i: Interval, /) -> None: ...
    def event(self, e: Event, /) -> None: ...

def run(
    configs: list[ConnConfig],
    workload: Workload,
    observer: _Observer,
    *,
    clients: int,
    workers: int = 1,
    protocol: str = "prepared",
    duration_s: float | None = None,
    transactions: int | None = None,
    warmup_s: float = 0.0,
    interval_s: float = 1.0,
    rate: tuple[float, float, float, bool] | None = None,
    seed: int = 0,
    connect_timeout_s: float = 10.0,
    drain_timeout_s: float = 5.0,
    reconnect: bool = True,
    on_error: str = "end_run",
    start_at_ns: int | None = None,
    driver: str = "auto",
    latency_limit_s: float | None = None,
    max_tries: int = 1,
    connect_each: bool = False,
    begin_what_was_due: bool = True,
    measure_until_done: bool = False,
    command_latency: bool = True,
    exit_on_abort: bool = False,
    log: tuple[str, float, int, bool, bool, list[float]] | None = None,
    voice: str = "events",
) -> RunResult:
    """Runs a workload against one or more targets. Raises CoreError before the first interval; later errors are in the
    result. `rate` is (from, to, ramp in seconds, constant), in transactions per second over all clients; `log` is
    (path, sampling rate, seconds in a line, failures told apart, a third column of failures, percentiles).
    """

def load_tpcb(
    config: ConnConfig,
    scale: int,
    watch: Callable[[str, str, int, int], object],
    *,
    replace: bool = False,
    connect_timeout_s: float = 10.0,
) -> tuple[int, int, list[tuple[str, int]]]:
    """Loads pgbench's tables in one transaction. Returns rows, bytes sent, nanoseconds by phase."""

def tpcb_rows(table: int, scale: int, first: int, end: int) -> bytes:
    """Rows of `tpcb` (table 0: branches, 1: tellers, 2: accounts) in COPY's binary format."""

def tpcb_sizes(scale: int) -> list[tuple[str, int, int, int, int]]:
    """The tables of `tpcb`, as they will be: name, rows, bytes of heap and of primary key, level of the key's root."""

def check_script(name: str, text: str) -> None:
    """Raises ScriptError when pgbench would refuse the script before it runs."""

def sqlstate_name(code: str) -> str | None:
    """PostgreSQL's name of an SQLSTATE, where pgdyno knows it."""
