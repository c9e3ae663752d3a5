"""Options that several verbs have: each is declared once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

Target = Annotated[
    str | None,
    typer.Option(
        help='Your server, as libpq takes it: "host=db1 dbname=bench user=me". Default: what PGHOST, PGHOSTADDR or '
        "PGSERVICE name, else a private PostgreSQL that is started for the run.",
        metavar="CONNINFO",
    ),
]
Embedded = Annotated[bool, typer.Option("--embedded", help="The private PostgreSQL, whatever PG* says.")]
Shrink = Annotated[
    float | None,
    typer.Option(
        help="Make a large experiment small: rows, tables, durations and clients divided by K; not below what still "
        "says something. The report tells.",
        metavar="K",
        min=1.0,
    ),
]
Scale = Annotated[int | None, typer.Option(help="pgbench's scale: 100,000 rows each.", min=1)]
Clients = Annotated[str | None, typer.Option(help="Numbers of connections, e.g. 1,8,64.", metavar="N,N,...")]
HotSet = Annotated[
    str | None, typer.Option("--hot-set", help="Parts of the rows to touch, e.g. 0.1,1.", metavar="F,F,...")
]
#: Seconds in a unit of time.
_UNITS = {"": 1.0, "ms": 1e-3, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}


def seconds(text: str) -> float:
    """Return a time in seconds: 60, 90s, 10m. Raise BadParameter."""
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+) ?([a-z]*)", text.strip())
    if match is None or match[2] not in _UNITS:
        raise typer.BadParameter(f'"{text}" is no time. Write seconds, or a number with ms, s, m or h: 60, 90s, 10m.')
    found = float(match[1]) * _UNITS[match[2]]
    if found < _SHORTEST_S:
        raise typer.BadParameter(f'"{text}" is too short: at least {_SHORTEST_S:g} s.')
    return found


#: No trial is shorter.
_SHORTEST_S = 0.1
Duration = Annotated[
    float | None,
    typer.Option(help="Time measured in each trial: seconds, or 90s, 10m, 1h.", parser=seconds, metavar="SECONDS"),
]
WarmUp = Annotated[
    str | None, typer.Option(help="Seconds before that, not counted; or steady.", metavar="SECONDS|steady")
]
Repetitions = Annotated[int | None, typer.Option(help="Trials of each configuration.", min=1)]
Restarts = Annotated[
    int | None,
    typer.Option(
        help="Start the private servers so often, with all repetitions each time: a verdict then holds for the next "
        "start too. Default: the experiment's; 5 with --vary.",
        min=1,
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="A server setting, a script's variable or an axis. Can be given often.", metavar="NAME=VALUE"
    ),
]
Vary = Annotated[
    list[str] | None,
    typer.Option(help="The same with several values, which are compared. Can be given often.", metavar="NAME=A,B"),
]
Order = Annotated[
    str | None,
    typer.Option(help="Of trials: auto, duet (two in slices, by turns), random, interleaved, written.", metavar="NAME"),
]
FailIfBound = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-if",
        help="Exit code 6 where a configuration's figure is beyond: 'p99 > 10ms', 'TPS < 1000'. Can be given often.",
        metavar="BOUND",
    ),
]
FailIf = Annotated[
    str | None,
    typer.Option(
        help="Exit code 6 for a verdict on throughput or a latency: slower, faster, different, unknown.",
        metavar="VERDICT",
    ),
]
Interval = Annotated[float | None, typer.Option(help="Seconds in one row of the time series.", min=0.01)]
Protocol = Annotated[str | None, typer.Option(help="simple, extended or prepared.", metavar="NAME")]
Rate = Annotated[
    float | None,
    typer.Option(
        help="Open loop: transactions per second over all clients, Poisson arrivals. 0: closed loop.", metavar="TPS"
    ),
]
Workers = Annotated[int | None, typer.Option(help="Worker threads. Default: 1 for 64 clients.", min=1)]
Collect = Annotated[
    str | None,
    typer.Option(
        help="What is sampled beside each trial, for explain: machine,server,waits,log,plans (all), or none.",
        metavar="NAME,...",
    ),
]
Driver = Annotated[str | None, typer.Option(help="auto, epoll, uring or polling.", metavar="NAME")]
Seed = Annotated[int | None, typer.Option(help="Where all random numbers come from.", min=0)]
ConnectTimeout = Annotated[float | None, typer.Option(help="Seconds to wait for a session.", min=0.1, max=86_400)]
Runs = Annotated[Path, typer.Option(help="Where run directories are made.")]
Keep = Annotated[bool, typer.Option("--keep", help="Keep the private cluster's data directory.")]
Force = Annotated[
    bool,
    typer.Option("--force", help="Drop tables of the dataset's names that pgdyno did not make; ignore other sessions."),
]
Replace = Annotated[
    bool, typer.Option("--replace", help="Drop a dataset of pgdyno's of another size that the target has.")
]
PgBin = Annotated[
    Path | None, typer.Option("--pg-bin", help="Start this server (folder of postgres), not the embedded one.")
]
Templates = Annotated[
    str,
    typer.Option(
        help="With the private cluster: use a template that holds the dataset (pgdyno cluster list); keep: also "
        "keep what was loaded as one; off.",
        metavar="NAME",
    ),
]
Lang = Annotated[str, typer.Option(help="The report's language: en or zh.", metavar="LANG")]
Json = Annotated[bool, typer.Option("--json", help="The result as JSON on standard output.")]
ReportFormat = Annotated[
    str,
    typer.Option("--report-format", help="pgdyno's; or sysbench: lines and summary in its form.", metavar="NAME"),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]


def given(**values: Any) -> dict[str, Any]:
    """Those that the user gave."""
    return {name: value for name, value in values.items() if value is not None}
