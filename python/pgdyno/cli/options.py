"""Options that several commands have: each is declared once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer

from pgdyno.cli import streams
from pgdyno.errors import UsageError, msg
from pgdyno.units import Quantity

#: Groups of options in --help, in this order.
WHAT, SERVER, MEASURING, SAFETY, OUTPUT = (
    "What to run",
    "Which server",
    "Measuring",
    "Safety",
    "Output",
)
PANELS = (WHAT, SERVER, MEASURING, SAFETY, OUTPUT)


def _conninfo(text: str) -> str:
    """Return a connection string. Raise UsageError for an empty one: a variable of a shell that was not set."""
    if not text.strip():
        raise UsageError(msg("error-conninfo-empty", named="--target"), msg("remedy-write-libpq-reads-host-db1"))
    return text


Target = Annotated[
    str | None,
    typer.Option(
        parser=_conninfo,
        help='Connection string of a running server, e.g. "host=db1 dbname=bench", or mysql://USER@HOST/DATABASE. '
        "Default: the server that PGHOST, PGHOSTADDR or PGSERVICE names; else a private PostgreSQL, started for this "
        "run.",
        metavar="CONNINFO",
        rich_help_panel=SERVER,
    ),
]
RunningTarget = Annotated[
    str | None,
    typer.Option(
        parser=_conninfo,
        help='Connection string of a running server, e.g. "host=db1 dbname=bench". Default: from PG* variables.',
        metavar="CONNINFO",
        rich_help_panel=SERVER,
    ),
]
Embedded = Annotated[
    bool,
    typer.Option(
        "--embedded",
        help="Start a private PostgreSQL even if PG* variables name a server.",
        rich_help_panel=SERVER,
    ),
]
Workloads = Annotated[
    str | None,
    typer.Option(
        "--workload",
        help="Workloads of the experiment to run, e.g. read-only. Default: all of them.",
        metavar="NAME,...",
        rich_help_panel=WHAT,
    ),
]
Shrink = Annotated[
    float | None,
    typer.Option(
        help="Make a large experiment smaller: divide its rows, tables, durations and clients by FACTOR; down to 2 s a "
        "trial, 4 clients a core and 4 tables.",
        metavar="FACTOR",
        min=1.0,
        rich_help_panel=WHAT,
    ),
]
Scale = Annotated[
    int | None,
    typer.Option(
        help="Scale of the dataset: 100,000 accounts each (tpcb), or warehouses (tpcc).",
        metavar="N",
        min=1,
        rich_help_panel=WHAT,
    ),
]
Clients = Annotated[
    str | None,
    typer.Option(
        help="Numbers of client connections, e.g. 1,8,64. Default: from the experiment.",
        metavar="N,N,...",
        rich_help_panel=WHAT,
    ),
]
HotSet = Annotated[
    str | None,
    typer.Option(
        "--hot-set",
        help="Fractions of the rows that are accessed, e.g. 0.1,1. Default: from the experiment.",
        metavar="F,F,...",
        rich_help_panel=WHAT,
    ),
]
#: Seconds in a unit of time.
_UNITS = {"": 1.0, "ms": 1e-3, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}


def seconds(option: str) -> Callable[[str | float], float]:
    """Return the reader of an option that takes a time: 60, 90s, 10m. It raises UsageError."""

    def read(text: str | float) -> float:
        # A default is a number already.
        if not isinstance(text, str):
            return text
        match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+) ?([a-z]*)", text.strip())
        if match is None or match[2] not in _UNITS:
            raise UsageError(msg("usage-no-time", option=option, text=text), msg("remedy-time"))
        found = float(match[1]) * _UNITS[match[2]]
        if found < _SHORTEST_S:
            least = Quantity(_SHORTEST_S, "duration")
            raise UsageError(msg("usage-time-short", option=option, text=text, least=least))
        return found

    return read


#: No trial is shorter.
_SHORTEST_S = 0.1
Duration = Annotated[
    float | None,
    typer.Option(
        help="Measured time of each trial: seconds, or 90s, 10m, 1h. Default: from the experiment.",
        parser=seconds("--duration"),
        metavar="SECONDS",
        rich_help_panel=MEASURING,
    ),
]
WarmUp = Annotated[
    str | None,
    typer.Option(
        help='Warm-up in seconds (not measured), or "steady": until throughput settles. Default: from the experiment.',
        metavar="SECONDS|steady",
        rich_help_panel=MEASURING,
    ),
]
Repetitions = Annotated[
    int | None,
    typer.Option(
        help="Trials of each configuration. Default: from the experiment.",
        metavar="N",
        min=1,
        rich_help_panel=MEASURING,
    ),
]
UntilSteady = Annotated[
    bool,
    typer.Option(
        "--until-steady",
        help="Continue each trial beyond its duration until throughput is steady, its 95% confidence interval is "
        "within 1%, and a load that writes has been through two checkpoints.",
        rich_help_panel=MEASURING,
    ),
]
LongestTrial = Annotated[
    float | None,
    typer.Option(
        "--at-most",
        help="Longest trial with --until-steady: seconds, or 90s, 10m, 1h. Default: 30m.",
        parser=seconds("--at-most"),
        metavar="SECONDS",
        rich_help_panel=MEASURING,
    ),
]
Restarts = Annotated[
    int | None,
    typer.Option(
        help="Start the private server N times and run all repetitions after each start: throughput differs from one "
        "start to the next, and a verdict should hold for every start. Default: from the experiment; 5 if --vary "
        "changes a server setting.",
        metavar="N",
        min=1,
        rich_help_panel=MEASURING,
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Give one value to a setting of the private server (work_mem), a variable of the scripts (:range) or a "
        "key of [axes] in the file (protocol). Repeatable.",
        metavar="NAME=VALUE",
        rich_help_panel=WHAT,
    ),
]
Vary = Annotated[
    list[str] | None,
    typer.Option(
        help="Compare values of a setting of the private server, of a variable or of a key of [axes], e.g. "
        "work_mem=4MB,64MB. Repeatable.",
        metavar="NAME=A,B",
        rich_help_panel=WHAT,
    ),
]
Against = Annotated[
    str | None,
    typer.Option(
        "--against",
        help="Compare the private PostgreSQL with a second server: mariadb (a private one, with settings of equal "
        "durability), or a connection string.",
        metavar="SERVER",
        rich_help_panel=WHAT,
    ),
]
Order = Annotated[
    str | None,
    typer.Option(
        help="Order of trials. random; interleaved: one trial of each configuration, then the next repetition; "
        "written: as in the file; duet: two servers are up, and each gets the load for a second or so in turn; "
        "simultaneous: both get it at the same time. Default: auto, which is duet where two settings, versions or "
        "servers are compared and random otherwise.",
        metavar="NAME",
        rich_help_panel=MEASURING,
    ),
]
FailIfBound = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-if",
        help="Exit with code 6 if this is true for any configuration, e.g. 'p99 > 10ms', 'TPS < 1000'. Figures: TPS, "
        "QPS; mean, p50, p95, p99, p99.9, max with a unit (ms); failed (transactions). Repeatable.",
        metavar="BOUND",
        rich_help_panel=OUTPUT,
    ),
]
FailIf = Annotated[
    str | None,
    typer.Option(
        help="Exit with code 6 if B, compared with A, has this verdict in any figure: slower (or uses more), faster "
        "(or uses less), different, unknown (not decided yet).",
        metavar="VERDICT",
        rich_help_panel=OUTPUT,
    ),
]
Interval = Annotated[
    float | None,
    typer.Option(
        help="Time covered by one row of the time series. Default: 1.",
        metavar="SECONDS",
        min=0.01,
        rich_help_panel=MEASURING,
    ),
]
Protocol = Annotated[
    str | None,
    typer.Option(
        help="Query protocol: simple, extended or prepared. Default: from the experiment.",
        metavar="NAME",
        rich_help_panel=MEASURING,
    ),
]
Rate = Annotated[
    float | None,
    typer.Option(
        help="Transactions per second over all clients, however slow the server is (open loop, Poisson arrivals). 0: "
        "each client begins its next transaction when the last one has ended (closed loop).",
        metavar="TPS",
        min=0.0,
        rich_help_panel=MEASURING,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(help="Client threads. Default: one per 64 clients.", metavar="N", min=1, rich_help_panel=MEASURING),
]
Collect = Annotated[
    str | None,
    typer.Option(
        help="Sources sampled during each trial, for explain: machine, server, waits, log, plans, statements, "
        "buffers; or none. Default: all but buffers.",
        metavar="NAME,...",
        rich_help_panel=MEASURING,
    ),
]
Driver = Annotated[
    str | None,
    typer.Option(
        help="Network I/O of the client: auto (default), epoll, uring or polling; or python:MODULE[:FACTORY], a driver "
        "of Python in worker processes; FACTORY is its function that connects.",
        metavar="NAME",
        rich_help_panel=MEASURING,
    ),
]
Seed = Annotated[int | None, typer.Option(help="Random seed.", metavar="N", min=0, rich_help_panel=MEASURING)]
ConnectTimeout = Annotated[
    float | None,
    typer.Option(
        help="Longest wait for a connection. Default: 10.",
        metavar="SECONDS",
        min=0.1,
        max=86_400,
        rich_help_panel=SERVER,
    ),
]
ConnectTimeoutOf10 = Annotated[
    float,
    typer.Option(help="Longest wait for a connection.", metavar="SECONDS", min=0.1, max=86_400, rich_help_panel=SERVER),
]
Runs = Annotated[
    Path, typer.Option(help="Folder in which run directories are created.", metavar="FOLDER", rich_help_panel=OUTPUT)
]
Keep = Annotated[
    bool,
    typer.Option("--keep", help="Keep the data directory of the private server.", rich_help_panel=SERVER),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Drop tables that have the names of the dataset's tables, even if pgdyno did not create them. Continue "
        "although other sessions are connected.",
        rich_help_panel=SAFETY,
    ),
]
Replace = Annotated[
    bool,
    typer.Option(
        "--replace", help="Drop a dataset of another size that pgdyno loaded earlier.", rich_help_panel=SAFETY
    ),
]
PgBin = Annotated[
    Path | None,
    typer.Option(
        "--pg-bin",
        help="Folder of the PostgreSQL programs to start, instead of those installed with pgdyno.",
        metavar="FOLDER",
        rich_help_panel=SERVER,
    ),
]
Templates = Annotated[
    str,
    typer.Option(
        help="Templates are saved copies of private servers with loaded data (pgdyno cluster list). use: start from "
        "one that has the same dataset and version, instead of loading; keep: also save a new one; off: always load.",
        metavar="use|keep|off",
        rich_help_panel=SERVER,
    ),
]
Lang = Annotated[
    str | None,
    typer.Option(
        help="Language of the output: en or zh. Default: from the locale.", metavar="LANG", rich_help_panel=OUTPUT
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.", rich_help_panel=OUTPUT)]
Tag = Annotated[
    list[str] | None,
    typer.Option(
        help="Name to find the run by (pgdyno runs --tag NAME). Repeatable.", metavar="NAME", rich_help_panel=OUTPUT
    ),
]
Note = Annotated[
    str | None,
    typer.Option(help="Remark that the report and the list of runs show.", metavar="TEXT", rich_help_panel=OUTPUT),
]
ReportFormat = Annotated[
    str,
    typer.Option(
        "--report-format",
        help="Form of the output: pgdyno, or sysbench (its progress lines and summary).",
        metavar="NAME",
        rich_help_panel=OUTPUT,
    ),
]
Details = Annotated[
    bool,
    typer.Option("--details", help="Show all tables, remedies and caveats on the terminal.", rich_help_panel=OUTPUT),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.", rich_help_panel=OUTPUT)]


def asked_for(arguments: Sequence[str]) -> str | None:
    """Return the language that a command line asks for, before it is read: help and mistakes are written in it."""
    from pgdyno.i18n import LANGUAGES

    pairs = [*pairwise(arguments), *(x.partition("=")[::2] for x in arguments)]
    return next((value for name, value in pairs if name == "--lang" and value in LANGUAGES), None)


def language(lang: str | None) -> str:
    """Return the language of the output: the one given here, before the verb, or by the locale. Raise UsageError."""
    from pgdyno import i18n

    try:
        found = streams.language = i18n.chosen(lang or streams.language)
        return found
    except ValueError as e:
        raise UsageError(
            msg("error-lang-there-no", lang=lang), msg("remedy-choices", choices=", ".join(i18n.LANGUAGES))
        ) from e


def given(**values: Any) -> dict[str, Any]:
    """Return the options that have a value."""
    return {name: value for name, value in values.items() if value is not None}
