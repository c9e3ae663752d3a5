"""`pgdyno compare`, `history`, `scaling`, `report`, `sql`: their options. What is heavy is imported inside them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pgdyno.cli import options
from pgdyno.errors import msg


def compare(
    run: Annotated[
        list[str],
        typer.Argument(
            help="Run directories of A (before) and B (after); with --live: two connection strings.", metavar="RUN"
        ),
    ],
    other: Annotated[
        list[Path] | None,
        typer.Option(
            "--side-b",
            "--with",
            help="Run of side B; all other runs form side A. Repeatable.",
            metavar="RUN",
            rich_help_panel=options.WHAT,
        ),
    ] = None,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Compare two running servers now: the load alternates between them in slices.",
            rich_help_panel=options.WHAT,
        ),
    ] = False,
    experiment: Annotated[
        str,
        typer.Option(
            help="Experiment to run (--live); its dataset is loaded into both servers.",
            metavar="NAME",
            rich_help_panel=options.WHAT,
        ),
    ] = "quick",
    duration: Annotated[
        float,
        typer.Option(
            help="Measured time per server and workload, at least 5 (--live).",
            metavar="SECONDS",
            min=5,
            rich_help_panel=options.MEASURING,
        ),
    ] = 30.0,
    clients: Annotated[
        int | None,
        typer.Option(
            help="Client connections (--live). Default: 4 per core.", metavar="N", min=1, rich_help_panel=options.WHAT
        ),
    ] = None,
    scale: options.Scale = None,
    simultaneous: Annotated[
        bool,
        typer.Option(
            "--simultaneous",
            help="Load both servers at the same time instead of alternating (--live).",
            rich_help_panel=options.MEASURING,
        ),
    ] = False,
    force: options.Force = False,
    runs: options.Runs = Path("runs"),
    figures: Annotated[
        str | None,
        typer.Option(
            help="Figures to compare. Default: TPS,p50,p95,p99,WAL/tx,reads/tx,CPU/tx,memory. Also: mean, p99.9.",
            metavar="NAME,...",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    margin: Annotated[
        float,
        typer.Option(
            help="Smallest relevant difference, in percent.",
            metavar="PERCENT",
            min=0.1,
            max=100,
            rich_help_panel=options.MEASURING,
        ),
    ] = 5.0,
    fail_if: options.FailIf = None,
    details: options.Details = False,
    lang: options.Lang = None,
    json_output: options.Json = False,
    page: Annotated[
        Path | None,
        typer.Option(
            help="Write the comparison of two runs as an HTML page as well.",
            metavar="FILE",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
) -> None:
    """Compare two runs, or two running servers: verdict with confidence interval, and what else differs."""
    from pgdyno.cli import compare as verb
    from pgdyno.errors import UsageError

    if live:
        from pgdyno.cli import live as living

        if other or len(run) != 2:
            raise UsageError(msg("error-compare-live-takes-two-targets"), msg("remedy-pgdyno-compare-live-host-db1"))
        if figures:
            raise UsageError(msg("error-figures-goes-runs-duet-compares"), msg("remedy-leave-out"))
        if page is not None:
            raise UsageError(msg("error-page-of-live"), msg("remedy-leave-out"))
        order = "simultaneous" if simultaneous else "duet"
        raise typer.Exit(
            living.main(
                run,
                experiment,
                duration,
                clients,
                scale,
                order,
                force,
                runs,
                margin,
                fail_if,
                json_output,
                details=details,
                lang=options.language(lang),
            )
        )
    if clients is not None or scale is not None or simultaneous or force:
        raise UsageError(msg("error-clients-scale-simultaneous-force-go"), msg("remedy-leave-them-out"))
    paths = [Path(r) for r in run]
    a, b = (paths, other) if other else (paths[:1], paths[1:])
    if len(b) < 1 or (not other and len(b) > 1):
        raise UsageError(msg("error-compare-needs-two-runs"), msg("remedy-for-several-pgdyno-compare-a1"))
    raise typer.Exit(verb.main(a, b, figures, margin, fail_if, json_output, options.language(lang), page))


def explain(
    run: Annotated[Path, typer.Argument(help="Run directory.", metavar="RUN")],
    workload: Annotated[
        str | None, typer.Option(help="Show only this workload.", metavar="NAME", rich_help_panel=options.OUTPUT)
    ] = None,
    clients: Annotated[
        int | None,
        typer.Option(
            help="Show only configurations with N clients.", metavar="N", min=1, rich_help_panel=options.OUTPUT
        ),
    ] = None,
    every: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Show all configurations. Default: the fastest of each workload.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = False,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Measure the proposed actions: each on a private server, in turns with one that lacks the action. "
            "Nothing is changed on the server that the run measured.",
            rich_help_panel=options.MEASURING,
        ),
    ] = False,
    top: Annotated[
        int | None,
        typer.Option(
            help="Number of actions to measure (--verify). Default: 3.",
            metavar="N",
            min=1,
            rich_help_panel=options.MEASURING,
        ),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            parser=options.seconds("--budget"),
            help="Time for all measurements (--verify), e.g. 90s, 20m, 1h. Default: 10m.",
            metavar="DURATION",
            rich_help_panel=options.MEASURING,
        ),
    ] = None,
    copy: Annotated[
        str | None,
        typer.Option(
            help="Copy this database with pg_dump into the private servers (--verify). Needed if the run used tables "
            "that pgdyno did not make. It reads the whole database.",
            metavar="CONNINFO",
            rich_help_panel=options.WHAT,
        ),
    ] = None,
    runs: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the run directories of the measurements (--verify). Default: runs.",
            metavar="FOLDER",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    lang: options.Lang = None,
    json_output: options.Json = False,
) -> None:
    """Explain what limits a run: causes by lost throughput, with evidence and remedies; dips and their causes."""
    from pgdyno.cli import explain as verb

    if verify:
        from pgdyno.cli.verify import VerifyRequest
        from pgdyno.cli.verify import main as verified

        language = options.language(lang)
        runs, top, budget = runs or Path("runs"), top or 3, budget or 600.0
        raise typer.Exit(
            verified(VerifyRequest(run, workload, clients, top, budget, copy, runs, language, json_output))
        )
    named = {"--top": top, "--budget": budget, "--copy": copy, "--runs": runs}
    if alone := [option for option, value in named.items() if value is not None]:
        from pgdyno.errors import UsageError

        raise UsageError(msg("error-verify-options", options=", ".join(alone)), msg("remedy-add-verify"))
    raise typer.Exit(verb.main(run, workload, clients, every, options.language(lang), json_output))


def history(
    runs: Annotated[Path, typer.Argument(help="Folder of run directories.", metavar="FOLDER")] = Path("runs"),
    experiment: Annotated[
        str | None,
        typer.Option(
            help="Experiment to follow, if the folder holds runs of several.",
            metavar="NAME",
            rich_help_panel=options.WHAT,
        ),
    ] = None,
    figures: Annotated[
        str | None,
        typer.Option(
            help="Figures to follow: TPS, mean, p50, p95, p99, p99.9, WAL/tx, reads/tx, CPU/tx, memory. Default: "
            "TPS,p99.",
            metavar="NAME,...",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    fail_if: Annotated[
        str | None,
        typer.Option(
            help="Exit with code 6 if the level changed within the newest 5 runs: change, worse.",
            metavar="WHAT",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    lang: options.Lang = None,
    json_output: options.Json = False,
    page: Annotated[
        Path | None,
        typer.Option(help="Write the history as an HTML page as well.", metavar="FILE", rich_help_panel=options.OUTPUT),
    ] = None,
) -> None:
    """Follow an experiment over many runs and find where its figures changed level."""
    from pgdyno.cli import judge as verb

    raise typer.Exit(verb.follow(runs, experiment, figures, fail_if, json_output, options.language(lang), page))


def judge(
    files: Annotated[
        list[Path],
        typer.Argument(help="Logs or results of pgbench, sysbench, HammerDB and others.", metavar="FILE"),
    ],
    side_b: Annotated[
        list[Path] | None,
        typer.Option(
            "--side-b",
            help="File of side B; all other files form side A. Repeatable.",
            metavar="FILE",
            rich_help_panel=options.WHAT,
        ),
    ] = None,
    precision: Annotated[
        float,
        typer.Option(
            help="Half of the 95% interval that a run is long enough for, in percent.",
            metavar="PERCENT",
            min=0.01,
            max=50,
            rich_help_panel=options.MEASURING,
        ),
    ] = 1.0,
    lang: options.Lang = None,
    json_output: options.Json = False,
) -> None:
    """Judge results of other tools: whether they are steady and long enough, how uncertain, and whether B is faster.

    It reads throughput over time: pgbench -P and --log, sysbench --report-interval, HammerDB's transaction counter,
    go-tpc, k6 --out json, CSV with a column tps or throughput, and plain numbers.
    """
    from pgdyno.cli import measured as verb

    chosen = side_b or []
    raise typer.Exit(verb.main(files, chosen, precision / 100, options.language(lang), json_output))


def observe(
    target: options.RunningTarget = None,
    for_: Annotated[
        float,
        typer.Option(
            "--for",
            parser=options.seconds("--for"),
            help="Length of an observation: seconds, or 90s, 10m, 1h. Default: 60.",
            metavar="SECONDS",
            show_default=False,
            rich_help_panel=options.MEASURING,
        ),
    ] = 60.0,
    every: Annotated[
        float | None,
        typer.Option(
            parser=options.seconds("--every"),
            help="Observe again each SECONDS (90s, 10m, 1h) until stopped; pgdyno history finds the changes.",
            metavar="SECONDS",
            rich_help_panel=options.MEASURING,
        ),
    ] = None,
    times: Annotated[
        int | None,
        typer.Option(
            help="Stop after N observations (--every).", metavar="N", min=1, rich_help_panel=options.MEASURING
        ),
    ] = None,
    runs: options.Runs = Path("runs"),
    lang: options.Lang = None,
    json_output: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Observe a running server under its own load: what it is busy with, what limits it, and what does not.

    One session that only reads and creates nothing. It needs the role pg_monitor; without it, what cannot be seen is
    named.
    """
    from pgdyno.cli import observe as verb

    request = verb.ObserveRequest(
        target or "", for_, every, times, runs, options.language(lang), json_output, quiet
    )  # fmt: skip
    raise typer.Exit(verb.main(request))


def scaling(
    source: Annotated[
        Path | None,
        typer.Argument(
            help="Run directory or CSV file. Default: an example with published figures.", metavar="RUN|FILE"
        ),
    ] = None,
    axis: Annotated[
        str,
        typer.Option(
            help="Axis to fit: clients, cpus, or an axis of the experiment.",
            metavar="NAME",
            rich_help_panel=options.WHAT,
        ),
    ] = "clients",
    figure: Annotated[
        str, typer.Option(help="Figure of a run to fit: tps or qps.", metavar="NAME", rich_help_panel=options.WHAT)
    ] = "tps",
    x: Annotated[
        str | None,
        typer.Option(
            "--x", help="CSV column of the levels. Default: the first.", metavar="NAME", rich_help_panel=options.WHAT
        ),
    ] = None,
    y: Annotated[
        str | None,
        typer.Option(
            "--y",
            help="CSV column of the throughputs. Default: the last.",
            metavar="NAME",
            rich_help_panel=options.WHAT,
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(help="CSV column that distinguishes curves.", metavar="NAME", rich_help_panel=options.WHAT),
    ] = None,
    until: Annotated[
        float | None,
        typer.Option(
            "--predict-to",
            "--until",
            help="Extend the prediction to N. Default: twice the largest measured.",
            metavar="N",
            min=1,
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    chart: Annotated[
        Path | None,
        typer.Option(help="Write a chart to a .svg or .html file.", metavar="FILE", rich_help_panel=options.OUTPUT),
    ] = None,
    lang: options.Lang = None,
    json_output: options.Json = False,
) -> None:
    """Find the number of clients with most throughput by the Universal Scalability Law, with intervals."""
    from pgdyno.cli import judge as verb

    raise typer.Exit(verb.scale(source, axis, figure, x, y, group, until, chart, json_output, options.language(lang)))


def report(
    run_directory: Annotated[
        list[Path],
        typer.Argument(help="Run directory, finished or not; with --whitepaper also several.", metavar="RUN..."),
    ],
    lang: options.Lang = None,
    report_format: options.ReportFormat = "pgdyno",
    details: options.Details = False,
    json_output: options.Json = False,
    figure: Annotated[
        Path | None,
        typer.Option(
            help="Write one chart as an SVG file and nothing else: FOLDER/NAME.svg, e.g. tps.svg. The name chooses the "
            "chart; another name lists them.",
            metavar="FILE",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    whitepaper: Annotated[
        Path | None,
        typer.Option(
            help="Write the runs and drills as one document to print, an HTML file with numbered figures and tables.",
            metavar="FILE",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    title: Annotated[
        str | None,
        typer.Option(
            help="Title of the whitepaper. Default: title of the first run.",
            metavar="TEXT",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
) -> None:
    """Show the report of a run, and write report.html, report.md and its tables as CSV."""
    from pgdyno.cli import report as verb

    lang = options.language(lang)
    if whitepaper is not None:
        verb.refuse_other_outputs(report_format, json_output=json_output, figure=figure)
        raise typer.Exit(verb.whitepaper(run_directory, whitepaper, title, lang))
    verb.refuse_several(run_directory, title)
    (path,) = run_directory
    raise typer.Exit(verb.main(path, json_output, lang, report_format, details=details, figure=figure))


def sql(
    query: Annotated[
        str,
        typer.Argument(
            help="SQL over the tables trials, intervals, findings, ...; SHOW TABLES lists them.", metavar="SQL"
        ),
    ],
    runs: Annotated[
        Path, typer.Option(help="Run directory, or a folder of them.", metavar="FOLDER", rich_help_panel=options.WHAT)
    ] = Path("runs"),
    json_output: Annotated[
        bool, typer.Option("--json", help="Print rows as JSON.", rich_help_panel=options.OUTPUT)
    ] = False,
    csv_output: Annotated[
        bool, typer.Option("--csv", help="Print rows as CSV.", rich_help_panel=options.OUTPUT)
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Write rows to a .csv, .parquet or .json file.", metavar="FILE", rich_help_panel=options.OUTPUT
        ),
    ] = None,
) -> None:
    """Query run directories with SQL (DuckDB)."""
    from pgdyno.cli import sql as verb

    raise typer.Exit(verb.main(query, runs, "json" if json_output else "csv" if csv_output else "", output))


def export(
    run: Annotated[Path | None, typer.Argument(help="Run directory, finished or not.", metavar="RUN")] = None,
    prometheus: Annotated[
        bool, typer.Option("--prometheus", help="Write the Prometheus text format.", rich_help_panel=options.OUTPUT)
    ] = False,
    openmetrics: Annotated[
        bool,
        typer.Option(
            "--openmetrics",
            help="Write OpenMetrics, for promtool tsdb create-blocks-from openmetrics.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = False,
    influx: Annotated[
        bool, typer.Option("--influx", help="Write the InfluxDB line protocol.", rich_help_panel=options.OUTPUT)
    ] = False,
    grafana: Annotated[
        bool,
        typer.Option(
            "--grafana", help="Write a Grafana dashboard for Prometheus; needs no run.", rich_help_panel=options.OUTPUT
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(help="File to write. Default: standard output.", metavar="FILE", rich_help_panel=options.OUTPUT),
    ] = None,
) -> None:
    """Export the time series of a run for other tools, with absolute times, in base units."""
    from pgdyno.cli import export as verb
    from pgdyno.errors import UsageError

    chosen = [n for n, given in (("prometheus", prometheus), ("openmetrics", openmetrics), ("influx", influx)) if given]
    if len(chosen) > 1:
        raise UsageError(
            msg("error-contradict-each-other", chosen=chosen[0], chosen2=chosen[1]), msg("remedy-give-one-them")
        )
    raise typer.Exit(verb.main(run, chosen[0] if chosen else None, grafana, output))
