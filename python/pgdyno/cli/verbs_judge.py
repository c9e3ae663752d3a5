"""`pgdyno compare`, `history`, `scaling`, `report`, `sql`: their options. What is heavy is imported inside them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pgdyno.cli import options


def compare(
    run: Annotated[
        list[str], typer.Argument(help="A (before) and B (after); the verdict is for B. With --live: two targets.")
    ],
    other: Annotated[
        list[Path] | None,
        typer.Option(
            "--with",
            help="Where a side has several: a run of B's; all others are A's. Can be given often.",
            metavar="RUN",
        ),
    ] = None,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="A and B are servers that run (libpq connection strings): a duet now, the load on one at a time.",
        ),
    ] = False,
    experiment: Annotated[
        str, typer.Option(help="With --live: what to run; its dataset is loaded into both.", metavar="NAME")
    ] = "quick",
    duration: Annotated[
        float, typer.Option(help="With --live: seconds measured of each, and workload.", metavar="SECONDS", min=5)
    ] = 30.0,
    clients: Annotated[int | None, typer.Option(help="With --live. Default: 4 a core.", min=1)] = None,
    scale: options.Scale = None,
    simultaneous: Annotated[
        bool, typer.Option("--simultaneous", help="With --live: both under load at once, not in turns.")
    ] = False,
    force: options.Force = False,
    runs: options.Runs = Path("runs"),
    figures: Annotated[
        str | None,
        typer.Option(
            help="Default: TPS, p50, p95, p99, and what was used: WAL/tx,reads/tx,CPU/tx,memory. Also mean, p99.9.",
            metavar="NAME,...",
        ),
    ] = None,
    margin: Annotated[float, typer.Option(help="The difference that matters, percent.", min=0.1, max=100)] = 5.0,
    fail_if: options.FailIf = None,
    json_output: options.Json = False,
) -> None:
    """Is B faster than A? Verdict, interval, and what else differs. Exit code 6 where --fail-if comes to pass."""
    from pgdyno.cli import compare as verb
    from pgdyno.errors import UsageError

    if live:
        from pgdyno.cli import live as living

        if other or len(run) != 2:
            raise UsageError("compare --live takes two targets", 'pgdyno compare --live "host=db1" "host=db2"')
        if figures:
            raise UsageError("--figures goes with runs: a duet compares throughput and p99", "Leave it out.")
        order = "simultaneous" if simultaneous else "duet"
        raise typer.Exit(
            living.main(run, experiment, duration, clients, scale, order, force, runs, margin, fail_if, json_output)
        )
    if clients is not None or scale is not None or simultaneous or force:
        raise UsageError("--clients, --scale, --simultaneous and --force go with --live", "Leave them out.")
    paths = [Path(r) for r in run]
    a, b = (paths, other) if other else (paths[:1], paths[1:])
    if len(b) < 1 or (not other and len(b) > 1):
        raise UsageError("compare takes two runs", "Of several: pgdyno compare A1 A2 A3 --with B1 --with B2 --with B3.")
    raise typer.Exit(verb.main(a, b, figures, margin, fail_if, json_output))


def explain(
    run: Annotated[Path, typer.Argument(help="A run directory.")],
    workload: Annotated[str | None, typer.Option(help="Only this one.", metavar="NAME")] = None,
    clients: Annotated[int | None, typer.Option(help="Only with so many.", min=1)] = None,
    every: Annotated[
        bool, typer.Option("--all", help="All configurations; default: the fastest of each workload.")
    ] = False,
    json_output: options.Json = False,
) -> None:
    """Why is it as fast as it is? Causes by what they cost, evidence, and what to try; dips, and what explains them."""
    from pgdyno.cli import explain as verb

    raise typer.Exit(verb.main(run, workload, clients, every, json_output))


def history(
    runs: Annotated[Path, typer.Argument(help="A folder of run directories.")] = Path("runs"),
    experiment: Annotated[str | None, typer.Option(help="Which, if there are several.", metavar="NAME")] = None,
    figures: Annotated[str | None, typer.Option(help="Default: TPS,p99.", metavar="NAME,...")] = None,
    fail_if: Annotated[
        str | None,
        typer.Option(
            help="Exit code 6 where the level changed among the newest 5 runs: change, worse.", metavar="WHAT"
        ),
    ] = None,
    json_output: options.Json = False,
) -> None:
    """Follow an experiment over many runs: where its figures changed their level."""
    from pgdyno.cli import judge as verb

    raise typer.Exit(verb.follow(runs, experiment, figures, fail_if, json_output))


def scaling(
    source: Annotated[
        Path | None,
        typer.Argument(help="A run directory, or a CSV file. Default: a worked example on published figures."),
    ] = None,
    axis: Annotated[str, typer.Option(help="Of a run: clients, cpus, or an axis of its experiment.")] = "clients",
    figure: Annotated[str, typer.Option(help="Of a run: tps or qps.")] = "tps",
    x: Annotated[str | None, typer.Option("--x", help="Of a file: the column of levels. Default: the first.")] = None,
    y: Annotated[str | None, typer.Option("--y", help="Of a file: the throughputs. Default: the last.")] = None,
    group: Annotated[str | None, typer.Option(help="Of a file: a column that tells curves apart.")] = None,
    until: Annotated[float | None, typer.Option(help="Predict up to so many. Default: twice the most.", min=1)] = None,
    chart: Annotated[Path | None, typer.Option(help="Draw it: a .svg or .html file.")] = None,
    json_output: options.Json = False,
) -> None:
    """Fit the Universal Scalability Law: contention, coherency, knee, prediction, with intervals."""
    from pgdyno.cli import judge as verb

    raise typer.Exit(verb.scale(source, axis, figure, x, y, group, until, chart, json_output))


def report(
    run_directory: Annotated[Path, typer.Argument(help="A run directory, finished or not.")],
    lang: options.Lang = "en",
    report_format: options.ReportFormat = "pgdyno",
    json_output: Annotated[bool, typer.Option("--json", help="The result as JSON on standard output.")] = False,
) -> None:
    """Show a run again, and write its report.html, report.md and tables as CSV anew."""
    from pgdyno.cli import report as verb

    raise typer.Exit(verb.main(run_directory, json_output, lang, report_format))


def sql(
    query: Annotated[str, typer.Argument(help="SQL over the views trials and intervals.")],
    runs: Annotated[Path, typer.Option(help="A run directory, or a folder of them.")] = Path("runs"),
    json_output: Annotated[bool, typer.Option("--json", help="Rows as JSON on standard output.")] = False,
    csv_output: Annotated[bool, typer.Option("--csv", help="Rows as CSV on standard output.")] = False,
    output: Annotated[Path | None, typer.Option(help="Into a file: .csv, .parquet or .json.", metavar="FILE")] = None,
) -> None:
    """Query run directories with DuckDB: "select workload, clients, avg(tps) from trials group by all"."""
    from pgdyno.cli import sql as verb

    raise typer.Exit(verb.main(query, runs, "json" if json_output else "csv" if csv_output else "", output))


def export(
    run: Annotated[Path | None, typer.Argument(help="A run directory, finished or not.")] = None,
    prometheus: Annotated[bool, typer.Option("--prometheus", help="Prometheus' text format.")] = False,
    openmetrics: Annotated[
        bool, typer.Option("--openmetrics", help="For promtool tsdb create-blocks-from openmetrics.")
    ] = False,
    influx: Annotated[bool, typer.Option("--influx", help="InfluxDB's line protocol.")] = False,
    grafana: Annotated[bool, typer.Option("--grafana", help="A dashboard for the first two; takes no run.")] = False,
    output: Annotated[Path | None, typer.Option(help="Default: standard output.", metavar="FILE")] = None,
) -> None:
    """Give a run's time series to other tools, with absolute times, in base units."""
    from pgdyno.cli import export as verb
    from pgdyno.errors import UsageError

    chosen = [n for n, given in (("prometheus", prometheus), ("openmetrics", openmetrics), ("influx", influx)) if given]
    if len(chosen) > 1:
        raise UsageError(f"--{chosen[0]} and --{chosen[1]} contradict each other", "Give one of them.")
    raise typer.Exit(verb.main(run, chosen[0] if chosen else None, grafana, output))
