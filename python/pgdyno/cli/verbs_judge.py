"""`pgdyno compare`, `history`, `scaling`, `report`, `sql`: their options. What is heavy is imported inside them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pgdyno.cli import options


def compare(
    run_a: Annotated[Path, typer.Argument(help="A run directory.")],
    run_b: Annotated[Path, typer.Argument(help="Another one.")],
    figures: Annotated[
        str | None, typer.Option(help="Default: TPS,p50,p95,p99. Also mean, p99.9.", metavar="NAME,...")
    ] = None,
    json_output: options.Json = False,
) -> None:
    """Is B faster than A? Ratio, interval, verdict, and what else differs."""
    from pgdyno.cli import judge as verb

    raise typer.Exit(verb.compare(run_a, run_b, figures, json_output))


def history(
    runs: Annotated[Path, typer.Argument(help="A folder of run directories.")] = Path("runs"),
    experiment: Annotated[str | None, typer.Option(help="Which, if there are several.", metavar="NAME")] = None,
    figures: Annotated[str | None, typer.Option(help="Default: TPS,p99.", metavar="NAME,...")] = None,
    json_output: options.Json = False,
) -> None:
    """Follow an experiment over many runs: where its figures changed their level."""
    from pgdyno.cli import judge as verb

    raise typer.Exit(verb.follow(runs, experiment, figures, json_output))


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
    json_output: Annotated[bool, typer.Option("--json", help="The result as JSON on standard output.")] = False,
) -> None:
    """Show a run again, and write its report.html, report.md and tables as CSV anew."""
    from pgdyno.cli import report as verb

    raise typer.Exit(verb.main(run_directory, json_output, lang))


def sql(
    query: Annotated[str, typer.Argument(help="SQL over the views trials and intervals.")],
    runs: Annotated[Path, typer.Option(help="A run directory, or a folder of them.")] = Path("runs"),
    json_output: Annotated[bool, typer.Option("--json", help="Rows as JSON on standard output.")] = False,
) -> None:
    """Query run directories with DuckDB: "select workload, clients, avg(tps) from trials group by all"."""
    from pgdyno.cli import sql as verb

    raise typer.Exit(verb.main(query, runs, json_output))
