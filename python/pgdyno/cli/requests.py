"""Requests: the options of a command as one object, from the parser to the verb."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pgdyno.cli import options

if TYPE_CHECKING:
    from pgdyno.run.planning.options import Options

#: Groups of `load --help`.
DATASET, METHOD = "Dataset", "Loading"


@dataclass(frozen=True, kw_only=True)
class ServerRequest:
    """The server of a run: one that exists, or a private one."""

    target: options.Target = None
    embedded: options.Embedded = False
    keep: options.Keep = False
    force: options.Force = False
    replace: options.Replace = False
    pg_bin: options.PgBin = None
    templates: options.Templates = "use"

    def options(self) -> Options:
        """Return the options by which a run reaches its servers."""
        from pgdyno.run.planning.options import Options

        return Options(self.target, self.embedded, self.keep, self.force, self.replace, self.pg_bin, self.templates)


@dataclass(frozen=True, kw_only=True)
class OutputRequest:
    """Form of what a command prints."""

    details: options.Details = False
    lang: options.Lang = None
    json_output: options.Json = False
    quiet: options.Quiet = False


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """Run of an experiment, and what the command line changes of it."""

    experiment: Annotated[
        str,
        typer.Argument(
            help="Experiment: a built-in name (pgdyno experiments lists them), a .toml file, or an interrupted run "
            "directory, which is continued.",
            metavar="EXPERIMENT",
        ),
    ]
    workload: options.Workloads = None
    shrink: options.Shrink = None
    scale: options.Scale = None
    clients: options.Clients = None
    hot_set: options.HotSet = None
    duration: options.Duration = None
    until_steady: options.UntilSteady = False
    at_most: options.LongestTrial = None
    warmup: options.WarmUp = None
    repetitions: options.Repetitions = None
    set_: options.Set = None
    vary: options.Vary = None
    against: options.Against = None
    restarts: options.Restarts = None
    order: options.Order = None
    interval: options.Interval = None
    protocol: options.Protocol = None
    rate: options.Rate = None
    workers: options.Workers = None
    driver: options.Driver = None
    collect: options.Collect = None
    seed: options.Seed = None
    connect_timeout: options.ConnectTimeout = None
    runs: options.Runs = Path("runs")
    tag: options.Tag = None
    note: options.Note = None
    fail_if: options.FailIfBound = None
    report_format: options.ReportFormat = "pgdyno"
    server: ServerRequest = field(default_factory=ServerRequest)
    output: OutputRequest = field(default_factory=OutputRequest)


@dataclass(frozen=True, kw_only=True)
class CapacityRequest:
    """Search for the highest rate under a latency objective."""

    slo: Annotated[
        str,
        typer.Option(
            "--slo",
            help="Latency objective, e.g. 'p99<5ms' (p50, p95, p99, p99.9, mean, max).",
            metavar="BOUND",
            rich_help_panel=options.WHAT,
        ),
    ]
    experiment: Annotated[
        str, typer.Argument(help="Experiment: a built-in name or a .toml file.", metavar="EXPERIMENT")
    ] = "quick"
    target: options.Target = None
    embedded: options.Embedded = False
    workload: Annotated[
        str | None,
        typer.Option(
            help="Workload of the experiment. Default: its first.", metavar="NAME", rich_help_panel=options.WHAT
        ),
    ] = None
    shrink: options.Shrink = None
    scale: options.Scale = None
    clients: Annotated[
        int | None,
        typer.Option(
            help="Client connections. Default: 16 per core.", metavar="N", min=1, rich_help_panel=options.WHAT
        ),
    ] = None
    hot_set: Annotated[
        float | None,
        typer.Option(
            "--hot-set", help="Fraction of rows accessed. Default: 1.", metavar="F", rich_help_panel=options.WHAT
        ),
    ] = None
    duration: options.Duration = None
    warmup: options.WarmUp = None
    interval: options.Interval = None
    protocol: options.Protocol = None
    workers: options.Workers = None
    seed: options.Seed = None
    connect_timeout: options.ConnectTimeout = None
    runs: options.Runs = Path("runs")
    force: options.Force = False
    replace: options.Replace = False
    pg_bin: options.PgBin = None
    output: OutputRequest = field(default_factory=OutputRequest)


@dataclass(frozen=True, kw_only=True)
class LoadRequest:
    """Dataset, and the server or the files that it goes into."""

    dataset: Annotated[
        str,
        typer.Argument(
            help="Dataset: tpcb (pgbench's tables), pk (one table with a primary key), feed (a time series) or tpcc.",
            metavar="DATASET",
        ),
    ]
    scale: Annotated[
        int | None,
        typer.Option(
            help="Size: 100,000 accounts each (tpcb), or millions of rows, all tables together (pk, feed). Default: 1 "
            "(tpcb).",
            metavar="N",
            min=1,
            rich_help_panel=DATASET,
        ),
    ] = None
    rows: Annotated[
        int | None,
        typer.Option(
            help="Rows per table (pk, feed), instead of --scale. Default: 50,000,000 (pk), none (feed: its workload "
            "inserts).",
            metavar="N",
            min=0,
            rich_help_panel=DATASET,
        ),
    ] = None
    tables: Annotated[
        int | None,
        typer.Option(help="Number of tables (feed).", metavar="N", min=1, max=10_000, rich_help_panel=DATASET),
    ] = None
    warehouses: Annotated[
        int | None,
        typer.Option(help="Warehouses per set, about 100 MB each (tpcc).", metavar="N", min=1, rich_help_panel=DATASET),
    ] = None
    sets: Annotated[
        int | None,
        typer.Option(
            help="Sets of the nine tables (tpcc), as sysbench-tpcc has.",
            metavar="N",
            min=1,
            max=1_000,
            rich_help_panel=DATASET,
        ),
    ] = None
    seed: Annotated[
        int, typer.Option(help="Random seed of the rows (tpcc).", metavar="N", min=0, rich_help_panel=DATASET)
    ] = 1
    foreign_keys: Annotated[
        bool, typer.Option("--foreign-keys", help="Create foreign keys (tpcc).", rich_help_panel=DATASET)
    ] = False
    method: Annotated[
        str,
        typer.Option(
            help="Method: copy (binary COPY over --connections), direct (write the files of a stopped server, --data), "
            "server (INSERT ... SELECT), or auto (direct with --data, else copy).",
            metavar="NAME",
            rich_help_panel=METHOD,
        ),
    ] = "auto"
    target: options.RunningTarget = None
    data: Annotated[
        Path | None,
        typer.Option(
            help="Data directory of a stopped server, or the folder of a pgdyno cluster.",
            metavar="FOLDER",
            rich_help_panel=options.SERVER,
        ),
    ] = None
    user: Annotated[
        str,
        typer.Option(help="Superuser in the data directory (--data).", metavar="NAME", rich_help_panel=options.SERVER),
    ] = "postgres"
    dbname: Annotated[str, typer.Option(help="Database (--data).", metavar="NAME", rich_help_panel=options.SERVER)] = (
        "postgres"
    )
    fillfactor: Annotated[
        int,
        typer.Option(
            help="Fill factor of the tables, percent.", metavar="PERCENT", min=10, max=100, rich_help_panel=DATASET
        ),
    ] = 100
    partitions: Annotated[
        int,
        typer.Option(
            help="Partitions of pgbench_accounts by range (tpcb), of large tables by warehouse (tpcc).",
            metavar="N",
            min=0,
            rich_help_panel=DATASET,
        ),
    ] = 0
    unlogged: Annotated[bool, typer.Option("--unlogged", help="Create unlogged tables.", rich_help_panel=DATASET)] = (
        False
    )
    tablespace: Annotated[str, typer.Option(help="Tablespace of tables.", metavar="NAME", rich_help_panel=DATASET)] = ""
    index_tablespace: Annotated[
        str, typer.Option(help="Tablespace of indexes.", metavar="NAME", rich_help_panel=DATASET)
    ] = ""
    index: Annotated[
        str,
        typer.Option(
            help="Index on the column of the time (feed): brin, btree or none.", metavar="NAME", rich_help_panel=DATASET
        ),
    ] = "brin"
    check: Annotated[
        bool,
        typer.Option(
            "--check/--no-check",
            help="Check the consistency conditions of TPC-C after loading (tpcc).",
            rich_help_panel=METHOD,
        ),
    ] = True
    connections: Annotated[
        int | None,
        typer.Option(
            help="Parallel sessions (copy, server). Default: chosen for the machine.",
            metavar="N",
            min=1,
            rich_help_panel=METHOD,
        ),
    ] = None
    threads: Annotated[
        int | None,
        typer.Option(help="Writer threads (direct). Default: 2 per core.", metavar="N", min=1, rich_help_panel=METHOD),
    ] = None
    page: Annotated[
        Path | None,
        typer.Option(help="Write the result as an HTML page as well.", metavar="FILE", rich_help_panel=options.OUTPUT),
    ] = None
    plan: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            "--plan",
            help="Print size and estimated duration, load nothing.",
            rich_help_panel=options.SAFETY,
        ),
    ] = False
    disk_mbps: Annotated[
        float | None,
        typer.Option(
            "--disk-mbps",
            help="Assumed write speed of the disk in MB/s (--dry-run). Default: measured.",
            metavar="MBPS",
            min=0.001,
            rich_help_panel=options.SAFETY,
        ),
    ] = None
    pg_bin: Annotated[
        Path | None,
        typer.Option(
            "--pg-bin",
            help="Folder of the programs of the server (--data).",
            metavar="FOLDER",
            rich_help_panel=options.SERVER,
        ),
    ] = None
    force: options.Force = False
    replace: options.Replace = False
    ignore_archive: Annotated[
        bool,
        typer.Option(
            "--ignore-archive",
            help="Load even if WAL is archived (--data). You must take a new base backup afterwards.",
            rich_help_panel=options.SAFETY,
        ),
    ] = False
    connect_timeout: options.ConnectTimeoutOf10 = 10.0
    lang: options.Lang = None
    json_output: options.Json = False
    quiet: options.Quiet = False


@dataclass(frozen=True, kw_only=True)
class DrillRequest:
    """Faults, and the cluster that they break."""

    folder: Annotated[
        Path | None,
        typer.Argument(
            help="Folder of a pgdyno cluster with standbys (pgdyno cluster create FOLDER --standbys 2), or a file "
            "that describes an external cluster, e.g. of Patroni (docs/guide/failover.md).",
            metavar="CLUSTER",
        ),
    ] = None
    fault: Annotated[
        str | None,
        typer.Option(
            help="Faults to inject, or all; --list shows them. Default: kill-primary; with --modes, those that "
            "distinguish modes.",
            metavar="NAME,...",
            rich_help_panel=options.WHAT,
        ),
    ] = None
    rounds: Annotated[
        int,
        typer.Option(help="Rounds of each fault.", metavar="N", min=1, max=10_000, rich_help_panel=options.MEASURING),
    ] = 3
    modes: Annotated[
        bool,
        typer.Option(
            "--modes",
            help="Repeat the drill in five protection modes, from synchronous_commit = off (recent commits may be "
            "lost) to remote_apply, and report what each costs and loses.",
            rich_help_panel=options.WHAT,
        ),
    ] = False
    clients: Annotated[
        int,
        typer.Option(
            help="Connections whose commits are recorded.", metavar="N", min=1, max=1000, rich_help_panel=options.WHAT
        ),
    ] = 8
    before: Annotated[
        float,
        typer.Option(
            help="Load before the fault.", metavar="SECONDS", min=0.6, max=3600, rich_help_panel=options.MEASURING
        ),
    ] = 2.0
    after: Annotated[
        float,
        typer.Option(
            help="Load after all clients are served again.",
            metavar="SECONDS",
            min=0,
            max=3600,
            rich_help_panel=options.MEASURING,
        ),
    ] = 1.0
    answer_timeout: Annotated[
        float,
        typer.Option(
            help="Timeout of a statement at the client.",
            metavar="SECONDS",
            min=0.1,
            max=600,
            rich_help_panel=options.MEASURING,
        ),
    ] = 3.0
    no_fence: Annotated[
        bool,
        typer.Option(
            "--no-fence",
            help="Promote without killing the old primary first, to show the lost commits.",
            rich_help_panel=options.SAFETY,
        ),
    ] = False
    workload: Annotated[
        str,
        typer.Option(
            help="Background workload: tpcb-like, simple-update, select-only or tpcc. Default: none.",
            metavar="SCRIPT",
            show_default=False,
            rich_help_panel=options.WHAT,
        ),
    ] = ""
    workload_clients: Annotated[
        int,
        typer.Option(
            help="Connections of the background workload.",
            metavar="N",
            min=1,
            max=1000,
            rich_help_panel=options.WHAT,
        ),
    ] = 8
    scale: Annotated[
        int,
        typer.Option(
            help="Scale factor of the background workload (100,000 accounts each), or warehouses.",
            metavar="N",
            min=1,
            rich_help_panel=options.WHAT,
        ),
    ] = 10
    through_pooler: Annotated[
        bool,
        typer.Option(
            "--through-pooler",
            help="Connect through the PgBouncer of the cluster (pgdyno cluster create --pooler).",
            rich_help_panel=options.SERVER,
        ),
    ] = False
    i_know_this_breaks_it: Annotated[
        bool,
        typer.Option(
            "--i-know-this-breaks-it",
            help="Required for faults on an external cluster.",
            rich_help_panel=options.SAFETY,
        ),
    ] = False
    list_: Annotated[bool, typer.Option("--list", help="List the faults.", rich_help_panel=options.WHAT)] = False
    runs: options.Runs = Path("runs")
    lang: options.Lang = None
    json_output: options.Json = False
    quiet: options.Quiet = False
