"""`pgdyno run`, `plan`, `experiments`, `capacity`: their options. What is heavy is imported inside them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pgdyno.cli import options
from pgdyno.cli.requests import CapacityRequest, RunRequest
from pgdyno.cli.takes import takes


@takes(RunRequest)
def run(request: RunRequest) -> None:
    """Run an experiment: start or reach a server, load data, warm up, measure each configuration, and report."""
    from pgdyno.cli import run as verb

    raise typer.Exit(verb.main(request))


@takes(RunRequest)
def plan(request: RunRequest) -> None:
    """Show what `run` would do with the same options: servers, bytes, trials, time. Nothing is changed."""
    from pgdyno.cli import plan as planning

    raise typer.Exit(planning.main(request))


def experiments(lang: options.Lang = None) -> None:
    """List the ready-made experiments."""
    from pgdyno.cli import experiments as verb

    raise typer.Exit(verb.listing(options.language(lang)))


def new(
    file: Annotated[Path, typer.Argument(help="File to write, e.g. shop.toml.", metavar="FILE")],
    kind: Annotated[
        str,
        typer.Option(
            help="Dataset: tpcb, sql (your own schema), dump (of pg_dump), none (an existing database).", metavar="NAME"
        ),
    ] = "tpcb",
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Schema to fill: a file of SQL, a dump, or the connection string of a database, whose schema, table "
            "sizes and statistics are read.",
            metavar="SCHEMA",
        ),
    ] = None,
) -> None:
    """Write an experiment file with the usual keys explained; with --from, one that fills all tables of a schema."""
    from pgdyno.cli import new as verb

    raise typer.Exit(verb.main(file, kind, source))


def capture(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder to create.", metavar="FOLDER", rich_help_panel=options.OUTPUT)
    ],
    target: options.RunningTarget = None,
    log: Annotated[
        list[Path] | None,
        typer.Option(
            help="Read a server log instead of pg_stat_statements: csvlog (.csv), jsonlog (.json) or stderr; also .gz. "
            "--target still names a server with the same schema. Repeatable.",
            metavar="FILE",
            rich_help_panel=options.WHAT,
        ),
    ] = None,
    seconds: Annotated[
        float,
        typer.Option(
            help="Capture only statements executed during the next N seconds. Default: all since pg_stat_statements "
            "was reset.",
            metavar="N",
            show_default=False,
            rich_help_panel=options.WHAT,
        ),
    ] = 0.0,
    top: Annotated[
        int,
        typer.Option(
            help="Write at most N scripts: those of the statements that took most time.",
            metavar="N",
            min=1,
            rich_help_panel=options.WHAT,
        ),
    ] = 30,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Leave out statements that write.", rich_help_panel=options.SAFETY)
    ] = False,
    with_values: Annotated[
        list[str] | None,
        typer.Option(
            "--with-values",
            help="Column whose values may be written into scripts: COLUMN, TABLE.COLUMN or all. Repeatable. Default: "
            "none but the smallest and the largest value of columns with numbers or times.",
            metavar="COLUMN",
            rich_help_panel=options.SAFETY,
        ),
    ] = None,
    times: Annotated[
        float,
        typer.Option(
            help="Drive the workload FACTOR times as fast as production did: 2 doubles the rate.",
            metavar="FACTOR",
            min=0.001,
            max=10_000,
            rich_help_panel=options.WHAT,
        ),
    ] = 1.0,
    replay: Annotated[
        bool,
        typer.Option(
            "--replay",
            help="Replay a log: each session begins its transactions at the logged times; with --with-values all, with "
            "the logged values. Default: a random mix.",
            rich_help_panel=options.WHAT,
        ),
    ] = False,
) -> None:
    """Turn the statements of a server into a workload: weighted scripts, with parameters drawn from pg_stats."""
    from pgdyno.cli import capture as verb

    raise typer.Exit(verb.main(target, log or [], output, seconds, top, read_only, with_values or [], times, replay))


@takes(CapacityRequest)
def capacity(request: CapacityRequest) -> None:
    """Find the highest rate that a server sustains under a latency objective, and its latency at each rate."""
    from pgdyno.cli import capacity as searching

    raise typer.Exit(searching.main(request))
