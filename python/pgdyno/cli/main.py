"""`pgdyno`: the verbs. Everything heavy is imported inside them, so that --help answers at once."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from pgdyno.cli import options
from pgdyno.cli.cluster_app import cluster

EXIT_CODES = """
Exit codes: 0 done; 1 done, but something went wrong and the report says what; 2 the command line, an experiment or a
script has a mistake; 3 the server cannot be reached or refuses; 4 the server that pgdyno started has died; 5 this
machine refuses (disk full, permissions); 130 Ctrl-C; 143 SIGTERM.
"""

app = typer.Typer(
    name="pgdyno",
    help="A dynamometer for PostgreSQL: how fast it is, what limits it, and whether that answer can be trusted.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from pgdyno import __version__

        print(f"pgdyno {__version__}")  # noqa: T201
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option("--version", "-V", help="Print the version and exit.", is_eager=True, callback=_version),
    ] = False,
) -> None:
    """A dynamometer for PostgreSQL: how fast it is, what limits it, and whether that answer can be trusted."""


@app.command()
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
    interval: options.Interval = None,
    protocol: options.Protocol = None,
    rate: options.Rate = None,
    workers: options.Workers = None,
    driver: options.Driver = None,
    seed: options.Seed = None,
    connect_timeout: options.ConnectTimeout = None,
    runs: options.Runs = Path("runs"),
    keep: options.Keep = False,
    force: options.Force = False,
    pg_bin: options.PgBin = None,
    templates: options.Templates = "use",
    json_output: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Carry out an experiment: provision, probe, load, warm up, run the matrix of trials, report."""
    from pgdyno.cli import run as verb
    from pgdyno.run.servers import Options

    run_options = options.given(
        protocol=protocol,
        duration_s=duration,
        warmup_s=verb.warmup(warmup),
        interval_s=interval,
        repetitions=repetitions,
        rate=rate,
        workers=workers,
        driver=driver,
        seed=seed,
        connect_timeout_s=connect_timeout,
    )
    axes = options.given(
        clients=verb.numbers("--clients", clients, int), hot_set=verb.numbers("--hot-set", hot_set, float)
    )
    code = verb.main(
        experiment,
        servers=Options(target, embedded, keep, force, pg_bin, templates),
        adjust=lambda e: verb.adjusted(e, scale, run_options, axes, shrink),
        runs=runs,
        json_output=json_output,
        quiet=quiet,
    )
    raise typer.Exit(code)


@app.command()
def plan(
    experiment: Annotated[str, typer.Argument(help="As of run.")],
    target: options.Target = None,
    embedded: options.Embedded = False,
    shrink: options.Shrink = None,
    scale: options.Scale = None,
    clients: options.Clients = None,
    hot_set: options.HotSet = None,
    duration: options.Duration = None,
    repetitions: options.Repetitions = None,
    json_output: options.Json = False,
) -> None:
    """Show what an experiment will do, before it does: servers, bytes, trials, time. Touches nothing."""
    from pgdyno.cli import plan as planning
    from pgdyno.cli import run as verb
    from pgdyno.run.servers import Options

    run_options = options.given(duration_s=duration, repetitions=repetitions)
    axes = options.given(
        clients=verb.numbers("--clients", clients, int), hot_set=verb.numbers("--hot-set", hot_set, float)
    )
    code = planning.main(
        experiment,
        servers=Options(target, embedded),
        adjust=lambda e: verb.adjusted(e, scale, run_options, axes, shrink),
        json_output=json_output,
    )
    raise typer.Exit(code)


@app.command()
def experiments() -> None:
    """List the ready-made experiments."""
    from pgdyno.cli import plan as planning

    raise typer.Exit(planning.listing())


@app.command()
def load(
    dataset: Annotated[str, typer.Argument(help="tpcb, pk or feed.")],
    scale: Annotated[
        int | None,
        typer.Option(help="tpcb: pgbench's scale, 100,000 rows each. pk, feed: millions of rows in all tables.", min=1),
    ] = None,
    rows: Annotated[
        int | None, typer.Option(help="pk, feed: rows of each table. Default: 50,000,000; 0.", min=0)
    ] = None,
    tables: Annotated[int, typer.Option(help="feed: how many tables.", min=1, max=10_000)] = 1,
    method: Annotated[
        str,
        typer.Option(
            help="copy: binary COPY over --connections. direct: the files of a stopped server (--data). server: "
            "INSERT … SELECT. auto: direct with --data, else copy.",
            metavar="NAME",
        ),
    ] = "auto",
    target: Annotated[
        str | None,
        typer.Option(
            help='A running server, as libpq takes it: "host=db1 dbname=bench". Default: PG*.', metavar="CONNINFO"
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="A stopped server: its data directory, or a folder of pgdyno cluster.")
    ] = None,
    user: Annotated[str, typer.Option(help="With --data: the server's superuser.")] = "postgres",
    dbname: Annotated[str, typer.Option(help="With --data: the database.")] = "postgres",
    fillfactor: Annotated[int, typer.Option(help="Percent of each page that is filled.", min=10, max=100)] = 100,
    partitions: Annotated[int, typer.Option(help="tpcb: partitions of pgbench_accounts, by range.", min=0)] = 0,
    unlogged: Annotated[bool, typer.Option("--unlogged", help="Tables without WAL.")] = False,
    tablespace: Annotated[str, typer.Option(help="Where the tables go.", metavar="NAME")] = "",
    index_tablespace: Annotated[str, typer.Option(help="Where the indexes go.", metavar="NAME")] = "",
    index: Annotated[str, typer.Option(help="feed: on the time: brin, btree or none.", metavar="NAME")] = "brin",
    connections: Annotated[
        int | None,
        typer.Option(
            help="copy, server: sessions at a time. Default: by the machine, one where that is better.", min=1
        ),
    ] = None,
    threads: Annotated[int | None, typer.Option(help="direct: threads that write. Default: 2 a core.", min=1)] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Only say how large it will be, and how long it takes.")] = False,
    disk_mbps: Annotated[
        float | None, typer.Option("--disk-mbps", help="With --plan: the disk's speed, not measured.", min=0.001)
    ] = None,
    pg_bin: Annotated[
        Path | None, typer.Option("--pg-bin", help="With --data: the folder of its server's programs.")
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Drop tables of these names that pgdyno did not make; ignore other sessions."),
    ] = False,
    ignore_archive: Annotated[
        bool,
        typer.Option(
            "--ignore-archive", help="With --data: load although WAL is archived; take a new base backup then."
        ),
    ] = False,
    connect_timeout: Annotated[float, typer.Option(help="Seconds to wait for a session.", min=0.1)] = 10.0,
    json_output: Annotated[bool, typer.Option("--json", help="The result as JSON on standard output.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Load a dataset, at the speed of the disk.

    Over connections into any server, or as files into a stopped one.
    """
    from pgdyno.cli import load as verb
    from pgdyno.load.loader import dataset_of

    wanted = dataset_of(
        dataset,
        scale=scale,
        rows=rows,
        tables=tables,
        partitions=partitions,
        fillfactor=fillfactor,
        unlogged=unlogged,
        tablespace=tablespace,
        index_tablespace=index_tablespace,
        index=index,
    )
    code = verb.main(
        wanted,
        method=method,
        target=target,
        data=data,
        user=user,
        dbname=dbname,
        connections=connections,
        threads=threads,
        plan_only=plan,
        disk_mbps=disk_mbps,
        pg_bin=pg_bin,
        force=force,
        ignore_archive=ignore_archive,
        connect_timeout_s=connect_timeout,
        json_output=json_output,
        quiet=quiet,
    )
    raise typer.Exit(code)


app.add_typer(cluster, name="cluster")


@app.command()
def storage(
    path: Annotated[Path, typer.Argument(help="A folder on the storage to be measured.")],
    seconds: Annotated[float, typer.Option(help="Seconds of each job.", min=1.0)] = 10.0,
    size: Annotated[
        str | None,
        typer.Option(help="The file that fio works on, e.g. 10g. Default: 10g, at most a quarter of what is free."),
    ] = None,
    threads: Annotated[int | None, typer.Option(help="Default: 16 a core, at most 64.", min=1)] = None,
    json_output: Annotated[bool, typer.Option("--json", help="The result as JSON on standard output.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Measure storage: pg_test_fsync and fio.

    Random and sequential, direct and buffered, in pages of 8 kB, 65% reads. Writes a file, which is gone afterwards.
    """
    from pgdyno.cli import storage as verb

    raise typer.Exit(verb.main(path, seconds=seconds, size=size, threads=threads, json_output=json_output, quiet=quiet))


@app.command()
def report(
    run_directory: Annotated[Path, typer.Argument(help="A run directory, finished or not.")],
    lang: options.Lang = "en",
    json_output: Annotated[bool, typer.Option("--json", help="The result as JSON on standard output.")] = False,
) -> None:
    """Show a run again, and write its report.html, report.md and tables as CSV anew."""
    from pgdyno.cli import report as verb

    raise typer.Exit(verb.main(run_directory, json_output, lang))


@app.command()
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


@app.command()
def history(
    runs: Annotated[Path, typer.Argument(help="A folder of run directories.")] = Path("runs"),
    experiment: Annotated[str | None, typer.Option(help="Which, if there are several.", metavar="NAME")] = None,
    figures: Annotated[str | None, typer.Option(help="Default: TPS,p99.", metavar="NAME,...")] = None,
    json_output: options.Json = False,
) -> None:
    """Follow an experiment over many runs: where its figures changed their level."""
    from pgdyno.cli import judge as verb

    raise typer.Exit(verb.follow(runs, experiment, figures, json_output))


@app.command()
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


@app.command()
def capacity(
    slo: Annotated[
        str, typer.Option("--slo", help="The latency objective, e.g. 'p99<5ms' (p50, p95, p99, p99.9, mean, max).")
    ],
    experiment: Annotated[str, typer.Argument(help="As of run.")] = "quick",
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
    pg_bin: options.PgBin = None,
    json_output: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Find the highest rate that a target sustains under a latency objective, and latency by throughput."""
    from pgdyno.cli import capacity as searching
    from pgdyno.cli import run as verb
    from pgdyno.run.servers import Options

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
        servers=Options(target, embedded, False, force, pg_bin),
        adjust=lambda e: verb.adjusted(e, scale, run_options, axes(e), shrink),
        runs=runs,
        json_output=json_output,
        quiet=quiet,
    )
    raise typer.Exit(code)


@app.command()
def sql(
    query: Annotated[str, typer.Argument(help="SQL over the views trials and intervals.")],
    runs: Annotated[Path, typer.Option(help="A run directory, or a folder of them.")] = Path("runs"),
    json_output: Annotated[bool, typer.Option("--json", help="Rows as JSON on standard output.")] = False,
) -> None:
    """Query run directories with DuckDB: "select workload, clients, avg(tps) from trials group by all"."""
    from pgdyno.cli import sql as verb

    raise typer.Exit(verb.main(query, runs, json_output))


@app.command(add_help_option=False, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def pgbench(arguments: Annotated[list[str] | None, typer.Argument(metavar="[OPTION]... [DBNAME]")] = None) -> None:
    """pgbench, drop-in: its options, output, logs and exit codes, and what its users miss (pgdyno pgbench --help)."""
    # The console script takes this way before it comes here; this one is for the list of commands.
    from pgdyno.pgbench.main import main

    raise typer.Exit(main(arguments or []))


def entry() -> NoReturn:
    """The console script: every error of ours becomes a message and an exit code, never a traceback."""
    from pgdyno.errors import EXIT_SIGINT, EXIT_SIGTERM, PgdynoError
    from pgdyno.interrupt import Terminated

    try:
        code = app(standalone_mode=False)
    except PgdynoError as e:
        sys.stderr.write(f"pgdyno: {e}\n")
        code = e.exit_code
    except (KeyboardInterrupt, typer.Abort):
        # Before a run has begun; a run winds itself up.
        sys.stderr.write("pgdyno: interrupted by Ctrl-C\n")
        code = EXIT_SIGINT
    except Terminated:
        code = EXIT_SIGTERM
    except PermissionError as e:
        sys.stderr.write(f"pgdyno: permission denied: {e.filename}\nUse the account that it belongs to, or root.\n")
        code = 5
    except BrokenPipeError:
        # Whoever read our output has closed it (| head).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    except Exception as e:
        # The command line's own mistakes know how to show themselves.
        if not hasattr(e, "show"):
            raise
        e.show()
        code = getattr(e, "exit_code", 2)
    sys.exit(code or 0)
