"""The command line, whole: read in pgbench's order, with its checks and its words."""

from __future__ import annotations

import os
import re
import resource
import stat
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from pgdyno import _core
from pgdyno.engine import Protocol
from pgdyno.files import LONGEST
from pgdyno.pgbench import builtins
from pgdyno.pgbench.getopt import Option, scan
from pgdyno.pgbench.messages import HELP_HINT, Exit, fail, log, plain

INT_MAX = 2**31 - 1
MAX_SCRIPTS = 128
#: Parameters of a statement: pgbench's limit.
MAX_PARAMETERS = 255
INIT_STEPS = "dtgGvpf"
MODES = ("simple", "extended", "prepared")
DEFAULT_PERCENTILES = (50.0, 95.0, 99.0, 99.9)


@dataclass
class ScriptFile:
    """A script as it was named."""

    description: str
    text: str
    weight: int
    builtin: bool


@dataclass
class Options:
    """Options that the user requested.

    Times are in the units of the command line.
    """

    dbname: str = ""
    host: str | None = None
    port: str | None = None
    user: str | None = None
    debug: bool = False
    # Initialization
    initialize: bool = False
    steps: str | None = None
    fillfactor: int = 100
    quiet: bool = False
    foreign_keys: bool = False
    tablespace: str | None = None
    index_tablespace: str | None = None
    partitions: int = 0
    partition_method: str | None = None
    unlogged: bool = False
    # Both
    scale: int = 1
    scale_given: bool = False
    no_vacuum: bool = False
    # Benchmarking
    scripts: list[ScriptFile] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    clients: int = 1
    jobs: int | None = None
    connect: bool = False
    log: bool = False
    log_prefix: str | None = None
    sampling_rate: float = 0.0
    aggregate_interval: int = 0
    latency_limit_ms: float = 0.0
    protocol: Protocol = "simple"
    progress: int = 0
    progress_timestamp: bool = False
    per_command: bool = False
    rate: tuple[float, float, float] | None = None
    transactions: int = 0
    duration: int = 0
    vacuum_all: bool = False
    continue_on_error: bool = False
    exit_on_abort: bool = False
    failures_detailed: bool = False
    max_tries: int = 1
    verbose_errors: bool = False
    seed: int = 0
    # Beyond pgbench
    percentiles: tuple[float, ...] = ()
    histogram_log: Path | None = None
    json: Path | None = None
    reconnect: bool = False
    targets: list[str] = field(default_factory=list)
    constant_arrivals: bool = False

    @property
    def detailed(self) -> bool:
        """Return True if pgbench measures each transaction, so that it shows averages of them."""
        return bool(self.rate or self.progress or self.latency_limit_ms)


OPTIONS = (
    Option("builtin", "b", "required"),
    Option("client", "c", "required"),
    Option("connect", "C"),
    Option("dbname", "d", "required"),
    Option("define", "D", "required"),
    Option("file", "f", "required"),
    Option("fillfactor", "F", "required"),
    Option("host", "h", "required"),
    Option("initialize", "i"),
    Option("init-steps", "I", "required"),
    Option("jobs", "j", "required"),
    Option("log", "l"),
    Option("latency-limit", "L", "required"),
    Option("no-vacuum", "n"),
    Option("port", "p", "required"),
    Option("progress", "P", "required"),
    Option("protocol", "M", "required"),
    Option("quiet", "q"),
    Option("report-per-command", "r"),
    Option("rate", "R", "required"),
    Option("scale", "s", "required"),
    Option("select-only", "S"),
    Option("skip-some-updates", "N"),
    Option("time", "T", "required"),
    Option("transactions", "t", "required"),
    Option("username", "U", "required"),
    Option("vacuum-all", "v"),
    Option("unlogged-tables"),
    Option("tablespace", argument="required"),
    Option("index-tablespace", argument="required"),
    Option("sampling-rate", argument="required"),
    Option("aggregate-interval", argument="required"),
    Option("progress-timestamp"),
    Option("log-prefix", argument="required"),
    Option("foreign-keys"),
    Option("random-seed", argument="required"),
    Option("show-script", argument="required"),
    Option("partitions", argument="required"),
    Option("partition-method", argument="required"),
    Option("failures-detailed"),
    Option("max-tries", argument="required"),
    Option("verbose-errors"),
    Option("exit-on-abort"),
    Option("debug"),
    Option("continue-on-error", ours=True),
    Option("percentiles", argument="optional", ours=True),
    Option("histogram-log", argument="required", ours=True),
    Option("json", argument="required", ours=True),
    Option("reconnect", ours=True),
    Option("target", argument="required", ours=True),
    Option("arrivals", argument="required", ours=True),
)

_INIT_ONLY = {
    "fillfactor", "init-steps", "quiet", "unlogged-tables", "tablespace", "index-tablespace", "foreign-keys",
    "partitions", "partition-method",
}  # fmt: skip
_BOTH = {"dbname", "host", "port", "username", "initialize", "no-vacuum", "scale", "debug", "show-script"}


def integer(value: str, name: str, low: int, high: int) -> int:
    """Parse an integer as libpq's programs do.

    Raise Exit if the text is no integer, or if it is out of range.
    """
    match = re.fullmatch(r"\s*([+-]?\d+)\s*", value)
    if match is None:
        fail(f'invalid value "{value}" for option {name}')
    # No limit has more digits than this.
    n = int(match[1][:30])
    if not low <= n <= high:
        fail(f"{name} must be in range {low}..{high}")
    return n


def leading_number(value: str) -> float:
    """Return the number that a text begins with, else 0, as C's atof does."""
    match = re.match(r"\s*[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?)", value)
    return float(match[0]) if match else 0.0


def seed_of(value: str | None, source: str) -> int:
    """Return the seed of the random streams.

    Raise Exit if the value is no valid seed.
    """
    if value is None or value == "time":
        seed = time.time_ns() // 1000
    elif value == "rand":
        seed = int.from_bytes(os.urandom(8), "big")
    else:
        if not re.fullmatch(r"\s*[+-]?\d+", value):
            log("error", f'unrecognized random seed option "{value}"')
            log("detail", 'Expecting an unsigned integer, "time" or "rand".')
            fail(f"error while setting random seed from {source}")
        # As C reads it: too much is the most, less than nothing counts from the top.
        seed = min(int(value[:40]), 2**64 - 1) % 2**64
    if value is not None:
        log("", f"setting random seed to {seed}")
    return seed


def weighted(value: str) -> tuple[str, int]:
    """`NAME@WEIGHT`: the weight is 1 where none is given. Raises Exit."""
    name, at, weight = value.rpartition("@")
    if not at:
        return value, 1
    match = re.fullmatch(r"\s*([+-]?\d+)", weight)
    if match is None or not -(2**63) <= int(match[1][:30]) < 2**63:
        fail(f"invalid weight specification: @{weight}")
    if not 0 <= int(match[1]) <= INT_MAX:
        fail(f"weight specification out of range (0 .. {INT_MAX}): {int(match[1])}")
    return name, int(match[1])


def rate_of(value: str) -> tuple[float, float, float]:
    """`RATE`, or `FROM..TO/SECONDS` for a ramp. Raises Exit."""
    ramp = re.fullmatch(r"\s*([\d.eE+]+?)\.\.([\d.eE+]+)/([\d.]+)(s|min)?\s*", value)
    if ramp is None:
        rate = leading_number(value)
        if not 0 < rate <= 1e7 or ".." in value:
            fail(f'invalid rate limit: "{value}"')
        return rate, rate, 0.0
    try:
        low, high, span = float(ramp[1]), float(ramp[2]), float(ramp[3])
    except ValueError:
        fail(f'invalid rate limit: "{value}"', hint="A ramp is written FROM..TO/SECONDS, for example 1000..20000/60s.")
    if low <= 0 or high <= 0 or span <= 0:
        fail(f'invalid rate limit: "{value}"', hint="A ramp is written FROM..TO/SECONDS, for example 1000..20000/60s.")
    return low, high, span * (60 if ramp[4] == "min" else 1)


def percentiles_of(value: str) -> tuple[float, ...]:
    """`50,95,99.9`. Raises Exit."""
    if not value:
        return DEFAULT_PERCENTILES
    try:
        found = tuple(float(part) for part in value.split(","))
    except ValueError:
        found = ()
    if not found or not all(0 < p <= 100 for p in found):
        fail(
            f'invalid percentiles: "{value}"',
            hint="Give numbers above 0 up to 100, for example --percentiles=50,95,99.9.",
        )
    return found


class _Reader:
    """Takes one option after the other."""

    def __init__(self) -> None:
        self.o = Options()
        self.benchmarking = False
        self.initialization = False

    def add_script(self, description: str, text: str, weight: int, builtin: bool) -> None:
        try:
            _core.check_script(description, text)
        except _core.ScriptError as e:
            fail(str(e.args[1]))
        if len(self.o.scripts) >= MAX_SCRIPTS:
            fail(f"at most {MAX_SCRIPTS} SQL scripts are allowed")
        self.o.scripts.append(ScriptFile(description, text, weight, builtin))

    def add_builtin(self, name: str, weight: int = 1) -> None:
        b = builtins.find(name)
        self.add_script(b.description, b.text, weight, True)

    def add_file(self, value: str) -> None:
        name, weight = weighted(value)
        if not name:
            fail('could not open file "": No such file or directory')
        try:
            raw = _read(name)
        except OSError as e:
            verb = "read" if name == "-" or isinstance(e, IsADirectoryError) else "open"
            fail(f'could not {verb} file "{name}": {e.strerror}')
        try:
            # A NUL ends the text, as in C.
            text = raw.split(b"\0")[0].decode()
        except UnicodeDecodeError as e:
            line = raw[: e.start].count(b"\n") + 1
            fail(f"{name}:{line}: the script is not UTF-8", hint="Convert it, for example with iconv.")
        self.add_script(name, text, weight, False)

    def define(self, value: str) -> None:
        name, _, text = value.partition("=")
        if not name or not text:
            fail(f'invalid variable definition: "{value}"')
        if not re.fullmatch(r"[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]*", name):
            fail(f'option: invalid variable name: "{name}"')
        self.o.variables[name] = text

    def take_steps(self, value: str) -> None:
        if not value:
            fail("no initialization steps specified")
        for step in value:
            if step not in f"{INIT_STEPS} ":
                fail(
                    f'unrecognized initialization step "{step}"', detail=f'Allowed step characters are: "{INIT_STEPS}".'
                )
        self.o.steps = value

    def take_protocol(self, value: str) -> None:
        if value not in MODES:
            fail(f'invalid query mode (-M): "{value}"')
        self.o.protocol = cast(Protocol, value)

    def take_clients(self, value: str) -> None:
        self.o.clients = integer(value, "-c/--client", 1, INT_MAX)
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard != resource.RLIM_INFINITY and hard < self.o.clients + 3:
            fail(
                f"need at least {self.o.clients + 3} open files, but system limit is {hard}",
                hint="Reduce number of clients, or use limit/ulimit to increase the system limit.",
            )

    def take_limit(self, value: str) -> None:
        self.o.latency_limit_ms = leading_number(value)
        if not 0 < self.o.latency_limit_ms <= 1e12:
            fail(f'invalid latency limit: "{value}"')
        # Counted in whole microseconds; less than one is no limit.
        self.o.latency_limit_ms = int(self.o.latency_limit_ms * 1000) / 1000

    def take_sampling(self, value: str) -> None:
        self.o.sampling_rate = leading_number(value)
        if not 0 < self.o.sampling_rate <= 1:
            fail(f'invalid sampling rate: "{value}"')

    def take_tries(self, value: str) -> None:
        match = re.match(r"\s*[+-]?\d{1,9}", value)
        self.o.max_tries = int(match[0]) if match else 0
        if self.o.max_tries < 0:
            fail(f'invalid number of maximum tries: "{value}"')

    def take_method(self, value: str) -> None:
        if value.lower() not in ("range", "hash"):
            fail(f'invalid partition method, expecting "range" or "hash", got: "{value}"')
        self.o.partition_method = value.lower()

    def take_arrivals(self, value: str) -> None:
        if value not in ("poisson", "constant"):
            fail(
                f'invalid arrivals: "{value}"', hint="They are poisson (independent of each other) or constant (even)."
            )
        self.o.constant_arrivals = value == "constant"

    def show_script(self, value: str) -> None:
        b = builtins.find(value)
        plain(f"-- {b.name}: {b.description}\n{b.text}\n")
        raise Exit(0)

    def take_builtin(self, value: str) -> None:
        if value == "list":
            builtins.listing()
            raise Exit(0)
        name, weight = weighted(value)
        self.add_builtin(name, weight)

    def take_target(self, value: str) -> None:
        self.o.targets.append(value)

    def set(self, name: str, value: object) -> None:
        setattr(self.o, name, value)

    def handlers(self) -> Mapping[str, Callable[[str], object]]:
        def flag(name: str) -> Callable[[str], object]:
            return lambda _: self.set(name, True)

        def number(name: str, option: str, low: int = 1, high: int = INT_MAX) -> Callable[[str], object]:
            return lambda value: self.set(name, integer(value, option, low, high))

        def text(name: str) -> Callable[[str], object]:
            return lambda value: self.set(name, value)

        def scale(value: str) -> None:
            self.o.scale_given = True
            self.o.scale = integer(value, "-s/--scale", 1, INT_MAX)

        return {
            "builtin": self.take_builtin,
            "client": self.take_clients,
            "connect": flag("connect"),
            "dbname": text("dbname"),
            "define": self.define,
            "file": self.add_file,
            "fillfactor": number("fillfactor", "-F/--fillfactor", 10, 100),
            "host": text("host"),
            "initialize": flag("initialize"),
            "init-steps": self.take_steps,
            "jobs": number("jobs", "-j/--jobs"),
            "log": flag("log"),
            "latency-limit": self.take_limit,
            "no-vacuum": flag("no_vacuum"),
            "port": text("port"),
            "progress": number("progress", "-P/--progress"),
            "protocol": self.take_protocol,
            "quiet": flag("quiet"),
            "report-per-command": flag("per_command"),
            "rate": lambda value: self.set("rate", rate_of(value)),
            "scale": scale,
            "select-only": lambda _: self.add_builtin("select-only"),
            "skip-some-updates": lambda _: self.add_builtin("simple-update"),
            "time": number("duration", "-T/--time"),
            "transactions": number("transactions", "-t/--transactions"),
            "username": text("user"),
            "vacuum-all": flag("vacuum_all"),
            "unlogged-tables": flag("unlogged"),
            "tablespace": text("tablespace"),
            "index-tablespace": text("index_tablespace"),
            "sampling-rate": self.take_sampling,
            "aggregate-interval": number("aggregate_interval", "--aggregate-interval"),
            "progress-timestamp": flag("progress_timestamp"),
            "log-prefix": text("log_prefix"),
            "foreign-keys": flag("foreign_keys"),
            "random-seed": lambda value: self.set("seed", seed_of(value, "--random-seed option")),
            "show-script": self.show_script,
            "partitions": number("partitions", "--partitions", 0),
            "partition-method": self.take_method,
            "failures-detailed": flag("failures_detailed"),
            "max-tries": self.take_tries,
            "verbose-errors": flag("verbose_errors"),
            "exit-on-abort": flag("exit_on_abort"),
            "debug": flag("debug"),
            "continue-on-error": flag("continue_on_error"),
            "percentiles": lambda value: self.set("percentiles", percentiles_of(value)),
            "histogram-log": lambda value: self.set("histogram_log", Path(value)),
            "json": lambda value: self.set("json", Path(value)),
            "reconnect": flag("reconnect"),
            "target": self.take_target,
            "arrivals": self.take_arrivals,
        }


def parse(arguments: list[str], environment: Mapping[str, str]) -> Options:
    """Parse the options and check them as pgbench does.

    Raise Exit if they are invalid.
    """
    reader = _Reader()
    o = reader.o
    seed = environment.get("PGBENCH_RANDOM_SEED")
    o.seed = seed_of(seed, "PGBENCH_RANDOM_SEED environment variable")
    handlers = reader.handlers()
    operands: list[str] = []
    for option, value in scan(arguments, OPTIONS):
        if option is None:
            operands.append(value)
            continue
        handlers[option.name](value)
        if option.name in _INIT_ONLY:
            reader.initialization = True
        elif option.name not in _BOTH:
            reader.benchmarking = True
    if not o.scripts and not o.initialize:
        reader.add_builtin("tpcb-like")
        reader.benchmarking = True
    if o.scripts and not sum(s.weight for s in o.scripts):
        fail("total script weight must not be zero")
    if not o.dbname and operands:
        o.dbname = operands.pop(0)
    if operands:
        fail(f'too many command-line arguments (first is "{operands[0]}")', hint=HELP_HINT)
    if o.initialize:
        _check_initialization(o, reader.benchmarking)
    else:
        _check_benchmark(o, reader.initialization)
    return o


def _check_initialization(o: Options, benchmarking: bool) -> None:
    if benchmarking:
        fail("some of the specified options cannot be used in initialization (-i) mode")
    if o.partition_method and not o.partitions:
        fail("--partition-method requires greater than zero --partitions")
    if o.partitions and not o.partition_method:
        o.partition_method = "range"
    steps = o.steps if o.steps is not None else "dtgvp"
    if o.no_vacuum:
        steps = steps.replace("v", " ")
    if o.foreign_keys and "f" not in steps:
        steps += "f"
    o.steps = steps


def _check_benchmark(o: Options, initialization: bool) -> None:
    if initialization:
        fail("some of the specified options cannot be used in benchmarking mode")
    if o.transactions and o.duration:
        fail("specify either a number of transactions (-t) or a duration (-T), not both")
    if not o.transactions and not o.duration:
        o.transactions = 10
    if o.sampling_rate and not o.log:
        fail("log sampling (--sampling-rate) is allowed only when logging transactions (-l)")
    if o.sampling_rate and o.aggregate_interval:
        fail("log sampling (--sampling-rate) and aggregation (--aggregate-interval) cannot be used at the same time")
    if o.aggregate_interval and not o.log:
        fail("log aggregation is allowed only when actually logging transactions")
    if o.log_prefix is not None and not o.log:
        fail("log file prefix (--log-prefix) is allowed only when logging transactions (-l)")
    if o.duration and o.aggregate_interval > o.duration:
        fail(
            f"number of seconds for aggregation ({o.aggregate_interval}) must not be higher than test duration "
            f"({o.duration})"
        )
    if o.duration and o.aggregate_interval and o.duration % o.aggregate_interval:
        fail(f"duration ({o.duration}) must be a multiple of aggregation interval ({o.aggregate_interval})")
    if o.progress_timestamp and not o.progress:
        fail("--progress-timestamp is allowed only under --progress")
    if not o.max_tries and not o.latency_limit_ms and not o.duration:
        fail("an unlimited number of transaction tries can only be used with --latency-limit or a duration (-T)")
    if o.constant_arrivals and not o.rate:
        fail("--arrivals is allowed only with --rate", hint="Give the rate: --rate=1000.")


def _read(name: str) -> bytes:
    """Read a script from a file, from standard input, or from a pipe.

    The shell creates such a pipe for `-f <(...)`.
    """
    if name == "-":
        return sys.stdin.buffer.read(LONGEST)
    if stat.S_ISCHR(Path(name).stat().st_mode):
        raise OSError(0, "it is a device")
    with Path(name).open("rb") as f:
        raw = f.read(LONGEST + 1)
    if len(raw) > LONGEST:
        raise OSError(0, f"it is longer than {LONGEST >> 20} MB")
    return raw
