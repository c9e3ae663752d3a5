"""`pgdyno run`, `plan`, `experiments`, `capacity`: their options. What is heavy is imported inside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pgdyno.cli import options

if TYPE_CHECKING:
    from pgdyno.spec.experiment import Experiment


def run(
    experiment: Annotated[
        str,
        typer.Argument(
            help="Experiment: a built-in name (pgdyno experiments lists them), a .toml file, or an interrupted run "
            "directory, which is continued.",
            metavar="EXPERIMENT",
        ),
    ],
    target: options.Target = None,
    embedded: options.Embedded = False,
    shrink: options.Shrink = None,
    scale: options.Scale = None,
    clients: options.Clients = None,
    hot_set: options.HotSet = None,
    duration: options.Duration = None,
    warmup: options.WarmUp = None,
    repetitions: options.Repetitions = None,
    set_: options.Set = None,
    vary: options.Vary = None,
    restarts: options.Restarts = None,
    order: options.Order = None,
    interval: options.Interval = None,
    protocol: options.Protocol = None,
    rate: options.Rate = None,
    workers: options.Workers = None,
    driver: options.Driver = None,
    collect: options.Collect = None,
    seed: options.Seed = None,
    connect_timeout: options.ConnectTimeout = None,
    runs: options.Runs = Path("runs"),
    fail_if: options.FailIfBound = None,
    keep: options.Keep = False,
    force: options.Force = False,
    replace: options.Replace = False,
    pg_bin: options.PgBin = None,
    templates: options.Templates = "use",
    report_format: options.ReportFormat = "pgdyno",
    details: options.Details = False,
    lang: options.Lang = None,
    json_output: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Run an experiment: start or reach a server, load data, warm up, measure each configuration, and report."""
    from pgdyno.cli import run as verb
    from pgdyno.run.provision import Options

    code = verb.main(
        experiment,
        servers=Options(target, embedded, keep, force, replace, pg_bin, templates),
        adjust=_adjusting(locals()),
        runs=runs,
        json_output=json_output,
        quiet=quiet,
        fail_if=fail_if or [],
        report_format=report_format,
        details=details,
        lang=options.language(lang),
    )
    raise typer.Exit(code)


def _adjusting(given: dict[str, Any]) -> Callable[[Experiment], tuple[Experiment, list[str]]]:
    """Return what the options of `run` make of an experiment."""
    from pgdyno.cli import run as verb

    same = ("protocol", "repetitions", "restarts", "order", "rate", "workers", "driver", "seed")
    run_options = options.given(
        **{name: given[name] for name in same},
        duration_s=given["duration"],
        warmup_s=verb.warmup(given["warmup"]),
        interval_s=given["interval"],
        collect=verb.names(given["collect"]),
        connect_timeout_s=given["connect_timeout"],
    )
    if given["rate"] == 0:
        # Of an experiment that has one.
        run_options["rate"] = None
    axes = options.given(
        clients=verb.numbers("--clients", given["clients"], int),
        hot_set=verb.numbers("--hot-set", given["hot_set"], float),
    )
    fixed, varied = given["set_"] or [], given["vary"] or []
    return lambda e: verb.adjusted(e, given["scale"], run_options, axes, given["shrink"], fixed, varied)


def _with_options_of(verb: Callable[..., None]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of another: what is typed for one works for both."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        command.__annotations__ = verb.__annotations__
        command.__wrapped__ = verb  # type: ignore[attr-defined]
        return command

    return decorate


@_with_options_of(run)
def plan(**given: Any) -> None:
    """Show what `run` would do with the same options: servers, bytes, trials, time. Nothing is changed."""
    from pgdyno.cli import plan as planning
    from pgdyno.run.provision import Options

    names = ("target", "embedded", "keep", "force", "replace", "pg_bin", "templates")
    code = planning.main(
        given["experiment"],
        servers=Options(*(given[name] for name in names)),
        adjust=_adjusting(given),
        json_output=given["json_output"],
    )
    raise typer.Exit(code)


def experiments() -> None:
    """List the ready-made experiments."""
    from pgdyno.cli import plan as planning

    raise typer.Exit(planning.listing())


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
    target: options.Target = None,
    log: Annotated[
        list[Path] | None,
        typer.Option(
            help="Read a server log instead of pg_stat_statements: csvlog (.csv), jsonlog (.json) or stderr; also .gz. "
            "Repeatable.",
            metavar="FILE",
            rich_help_panel=options.WHAT,
        ),
    ] = None,
    seconds: Annotated[
        float,
        typer.Option(
            help="Capture only statements executed during the next N seconds. Default: all since the last reset.",
            metavar="N",
            show_default=False,
            rich_help_panel=options.WHAT,
        ),
    ] = 0.0,
    top: Annotated[
        int, typer.Option(help="Largest number of scripts.", metavar="N", min=1, rich_help_panel=options.WHAT)
    ] = 30,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Leave out statements that write.", rich_help_panel=options.SAFETY)
    ] = False,
    with_values: Annotated[
        list[str] | None,
        typer.Option(
            "--with-values",
            help="Column whose values may be written into scripts: state, orders.state, or all. Repeatable. Default: "
            "only bounds of numbers and times are written.",
            metavar="COLUMN",
            rich_help_panel=options.SAFETY,
        ),
    ] = None,
    times: Annotated[
        float,
        typer.Option(
            help="Multiple of the production rate to run at.",
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
    """Turn the statements of a server into a workload: weighted scripts, with parameters drawn from its statistics."""
    from pgdyno.cli import capture as verb

    raise typer.Exit(verb.main(target, log or [], output, seconds, top, read_only, with_values or [], times, replay))


def capacity(
    slo: Annotated[
        str,
        typer.Option(
            "--slo",
            help="Latency objective, e.g. 'p99<5ms' (p50, p95, p99, p99.9, mean, max).",
            metavar="BOUND",
            rich_help_panel=options.WHAT,
        ),
    ],
    experiment: Annotated[
        str, typer.Argument(help="Experiment: a built-in name or a .toml file.", metavar="EXPERIMENT")
    ] = "quick",
    target: options.Target = None,
    embedded: options.Embedded = False,
    workload: Annotated[
        str | None,
        typer.Option(
            help="Workload of the experiment. Default: its first.", metavar="NAME", rich_help_panel=options.WHAT
        ),
    ] = None,
    shrink: options.Shrink = None,
    scale: options.Scale = None,
    clients: Annotated[
        int | None,
        typer.Option(
            help="Client connections. Default: 16 per core.", metavar="N", min=1, rich_help_panel=options.WHAT
        ),
    ] = None,
    hot_set: Annotated[
        float | None,
        typer.Option(
            "--hot-set", help="Fraction of rows accessed. Default: 1.", metavar="F", rich_help_panel=options.WHAT
        ),
    ] = None,
    duration: options.Duration = None,
    warmup: options.WarmUp = None,
    interval: options.Interval = None,
    protocol: options.Protocol = None,
    workers: options.Workers = None,
    seed: options.Seed = None,
    connect_timeout: options.ConnectTimeout = None,
    runs: options.Runs = Path("runs"),
    force: options.Force = False,
    replace: options.Replace = False,
    pg_bin: options.PgBin = None,
    details: options.Details = False,
    lang: options.Lang = None,
    json_output: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Find the highest rate that a server sustains under a latency objective, and its latency at each rate."""
    from pgdyno.cli import capacity as searching
    from pgdyno.cli import run as verb
    from pgdyno.run.provision import Options

    run_options = options.given(
        protocol=protocol,
        duration_s=duration,
        warmup_s=verb.warmup(warmup),
        interval_s=interval,
        workers=workers,
        seed=seed,
        connect_timeout_s=connect_timeout,
        repetitions=1,
    )
    axes = verb.one_configuration(clients, hot_set, workload)
    code = searching.main(
        experiment,
        slo=slo,
        servers=Options(target, embedded, False, force, replace, pg_bin),
        adjust=lambda e: verb.adjusted(e, scale, run_options, axes(e), shrink),
        runs=runs,
        json_output=json_output,
        quiet=quiet,
        details=details,
        lang=options.language(lang),
        shortest_s=duration,
    )
    raise typer.Exit(code)
