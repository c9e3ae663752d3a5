"""`pgdyno run`, `plan`, `experiments`, `capacity`: their options. What is heavy is imported inside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pgdyno.cli import options
from pgdyno.cli.requests import CapacityRequest, RunRequest, ServerRequest
from pgdyno.cli.takes import takes

if TYPE_CHECKING:
    from pgdyno.run.provision import Options
    from pgdyno.spec.experiment import Experiment
    from pgdyno.store.manifest import Change


@takes(RunRequest)
def run(request: RunRequest) -> None:
    """Run an experiment: start or reach a server, load data, warm up, measure each configuration, and report."""
    from pgdyno.cli import run as verb

    raise typer.Exit(verb.main(request, _servers(request.server), _adjusting(request)))


def _servers(request: ServerRequest) -> Options:
    from pgdyno.run.provision import Options

    r = request
    return Options(r.target, r.embedded, r.keep, r.force, r.replace, r.pg_bin, r.templates)


def _adjusting(request: RunRequest) -> Callable[[Experiment], tuple[Experiment, list[Change]]]:
    """Return what the options of `run` make of an experiment."""
    from pgdyno.cli import adjust

    same = ("protocol", "repetitions", "restarts", "order", "rate", "workers", "driver", "seed")
    run_options = options.given(
        **{name: getattr(request, name) for name in same},
        duration_s=request.duration,
        warmup_s=adjust.warmup(request.warmup),
        interval_s=request.interval,
        collect=adjust.names(request.collect),
        connect_timeout_s=request.connect_timeout,
    )
    if request.rate == 0:
        # Of an experiment that has one.
        run_options["rate"] = None
    axes = options.given(
        clients=adjust.numbers("--clients", request.clients, int),
        hot_set=adjust.numbers("--hot-set", request.hot_set, float),
    )
    fixed, varied = request.set_ or [], request.vary or []
    return lambda e: adjust.adjusted(e, request.scale, run_options, axes, request.shrink, fixed, varied)


@takes(RunRequest)
def plan(request: RunRequest) -> None:
    """Show what `run` would do with the same options: servers, bytes, trials, time. Nothing is changed."""
    from pgdyno.cli import plan as planning

    code = planning.main(
        request.experiment,
        servers=_servers(request.server),
        adjust=_adjusting(request),
        json_output=request.output.json_output,
        lang=options.language(request.output.lang),
    )
    raise typer.Exit(code)


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
    """Write an experiment file with every key explained; with --from, one that fills all tables of a schema."""
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
            "only bounds of numbers and times are written.",
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
    from pgdyno.cli import adjust
    from pgdyno.cli import capacity as searching
    from pgdyno.run.provision import Options

    run_options = options.given(
        protocol=request.protocol,
        duration_s=request.duration,
        warmup_s=adjust.warmup(request.warmup),
        interval_s=request.interval,
        workers=request.workers,
        seed=request.seed,
        connect_timeout_s=request.connect_timeout,
        repetitions=1,
    )
    axes = adjust.one_configuration(request.clients, request.hot_set, request.workload)
    servers = Options(request.target, request.embedded, False, request.force, request.replace, request.pg_bin)
    code = searching.main(
        request, servers, lambda e: adjust.adjusted(e, request.scale, run_options, axes(e), request.shrink)
    )
    raise typer.Exit(code)
