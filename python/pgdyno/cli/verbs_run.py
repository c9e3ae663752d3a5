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
            help="A ready-made experiment (pgdyno experiments lists them), the path of a .toml file, or a run "
            "directory: a run that was cut off is continued."
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
    json_output: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Carry out an experiment: provision, probe, load, warm up, run the matrix of trials, report."""
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
    )
    raise typer.Exit(code)


def _adjusting(said: dict[str, Any]) -> Callable[[Experiment], tuple[Experiment, list[str]]]:
    """Return what the options of `run` make of an experiment."""
    from pgdyno.cli import run as verb

    same = ("protocol", "repetitions", "restarts", "order", "rate", "workers", "driver", "seed")
    run_options = options.given(
        **{name: said[name] for name in same},
        duration_s=said["duration"],
        warmup_s=verb.warmup(said["warmup"]),
        interval_s=said["interval"],
        collect=verb.names(said["collect"]),
        connect_timeout_s=said["connect_timeout"],
    )
    if said["rate"] == 0:
        # Of an experiment that has one.
        run_options["rate"] = None
    axes = options.given(
        clients=verb.numbers("--clients", said["clients"], int),
        hot_set=verb.numbers("--hot-set", said["hot_set"], float),
    )
    fixed, varied = said["set_"] or [], said["vary"] or []
    return lambda e: verb.adjusted(e, said["scale"], run_options, axes, said["shrink"], fixed, varied)


def _with_options_of(verb: Callable[..., None]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of another: what is typed for one works for both."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        command.__annotations__ = verb.__annotations__
        command.__wrapped__ = verb  # type: ignore[attr-defined]
        return command

    return decorate


@_with_options_of(run)
def plan(**said: Any) -> None:
    """Show what `run` with the same options will do, before it does: servers, bytes, trials, time. Touches nothing."""
    from pgdyno.cli import plan as planning
    from pgdyno.run.provision import Options

    names = ("target", "embedded", "keep", "force", "replace", "pg_bin", "templates")
    code = planning.main(
        said["experiment"],
        servers=Options(*(said[name] for name in names)),
        adjust=_adjusting(said),
        json_output=said["json_output"],
    )
    raise typer.Exit(code)


def experiments() -> None:
    """List the ready-made experiments."""
    from pgdyno.cli import plan as planning

    raise typer.Exit(planning.listing())


def new(
    file: Annotated[Path, typer.Argument(help="Where to write it, e.g. shop.toml.")],
    kind: Annotated[
        str,
        typer.Option(help="The dataset: tpcb, sql (your own schema), dump (of pg_dump), none (a database as it is)."),
    ] = "tpcb",
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="A schema to fill: a file of SQL, a dump, or a connection string of a database, of which the schema "
            "and the sizes of its tables are read.",
            metavar="SCHEMA",
        ),
    ] = None,
) -> None:
    """Write an experiment file to begin with, each key explained; of a schema, with all its tables filled."""
    from pgdyno.cli import new as verb

    raise typer.Exit(verb.main(file, kind, source))


def capture(
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to make.", metavar="FOLDER")],
    target: options.Target = None,
    log: Annotated[
        list[Path] | None,
        typer.Option(
            help="Instead of pg_stat_statements: a csvlog (.csv), a jsonlog (.json), or a log of stderr; also .gz. "
            "Can be given often.",
            metavar="FILE",
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option(help="Only what is carried out from now on, for so long. Default: all since the reset.")
    ] = 0.0,
    top: Annotated[int, typer.Option(help="Scripts at most.", min=1)] = 30,
    read_only: Annotated[bool, typer.Option("--read-only", help="Leave out what writes.")] = False,
    with_values: Annotated[
        list[str] | None,
        typer.Option(
            "--with-values",
            help="A column whose values may be written into scripts: state, orders.state, or all. Can be given often. "
            "Default: only bounds of numbers and times are.",
            metavar="COLUMN",
        ),
    ] = None,
    times: Annotated[
        float, typer.Option(help="Drive so many times what production does in a second.", min=0.001, max=10_000)
    ] = 1.0,
    replay: Annotated[
        bool,
        typer.Option(
            "--replay",
            help="Of a log: each session begins its transactions when it did; with --with-values all with the values "
            "that it had. Default: a mix, drawn at random.",
        ),
    ] = False,
) -> None:
    """Make a workload of what a server carries out: weighted scripts, parameters as its statistics have them."""
    from pgdyno.cli import capture as verb

    raise typer.Exit(verb.main(target, log or [], output, seconds, top, read_only, with_values or [], times, replay))


def capacity(
    slo: Annotated[
        str, typer.Option("--slo", help="The latency objective, e.g. 'p99<5ms' (p50, p95, p99, p99.9, mean, max).")
    ],
    experiment: Annotated[str, typer.Argument(help="A ready-made experiment, or the path of a .toml file.")] = "quick",
    target: options.Target = None,
    embedded: options.Embedded = False,
    workload: Annotated[str | None, typer.Option(help="Of the experiment. Default: its first.", metavar="NAME")] = None,
    shrink: options.Shrink = None,
    scale: options.Scale = None,
    clients: Annotated[int | None, typer.Option(help="Connections. Default: 16 a core.", min=1)] = None,
    hot_set: Annotated[float | None, typer.Option("--hot-set", help="Part of the rows. Default: all.")] = None,
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
    json_output: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Find the highest rate that a target sustains under a latency objective, and latency by throughput."""
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
        shortest_s=duration,
    )
    raise typer.Exit(code)
