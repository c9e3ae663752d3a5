"""The native module, as Python sees it. `tests/unit/test_core.py` holds this file against the module."""

from collections.abc import Callable
from typing import Protocol

__version__: str

class CoreError(Exception):
    """Something went wrong; the message says what."""

class ScriptError(CoreError):
    """A mistake in a script; the message has file:line:column and a caret."""

class ConnectError(CoreError):
    """No connection or no session."""

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
    def buckets(self) -> list[tuple[int, int]]: ...
    def __len__(self) -> int: ...

class Statement:
    """A statement of a workload: its text, the number of its script, its line there."""

    text: str
    script: int
    line: int

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
    def statement_latency(self) -> list[Histogram]: ...
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
    def statements(self) -> list[Statement]: ...
    @property
    def scripts(self) -> list[str]: ...

class Script:
    """A compiled script in pgbench's language. Raises ScriptError with the place of a mistake."""

    def __init__(self, name: str, text: str, variables: dict[str, str] | None = None, weight: int = 1) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def weight(self) -> int: ...
    @property
    def statements(self) -> list[str]: ...

class _Observer(Protocol):
    def started(self, start_ns: int, connect_ns: int, /) -> None: ...
    def interval(self, i: Interval, /) -> None: ...
    def event(self, e: Event, /) -> None: ...

def run(
    config: ConnConfig,
    scripts: list[Script],
    observer: _Observer,
    *,
    clients: int,
    workers: int = 1,
    protocol: str = "prepared",
    duration_s: float | None = None,
    transactions: int | None = None,
    warmup_s: float = 0.0,
    interval_s: float = 1.0,
    rate: float | None = None,
    seed: int = 0,
    connect_timeout_s: float = 10.0,
    drain_timeout_s: float = 5.0,
    reconnect: bool = True,
    continue_on_error: bool = False,
    start_at_ns: int | None = None,
    driver: str = "auto",
) -> RunResult:
    """Runs scripts. Raises CoreError before the first interval; later errors are in the result."""

def load_tpcb(
    config: ConnConfig,
    scale: int,
    watch: Callable[[str, str, int, int], object],
    *,
    replace: bool = False,
    connect_timeout_s: float = 10.0,
) -> tuple[int, int, list[tuple[str, int]]]:
    """Loads pgbench's tables in one transaction. Returns rows, bytes sent, nanoseconds by phase."""

def sqlstate_name(code: str) -> str | None:
    """PostgreSQL's name of an SQLSTATE, where pgdyno knows it."""
