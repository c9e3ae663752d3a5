"""`pgdyno load` and `storage`: their options. What is heavy is imported inside them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pgdyno.cli import options

#: Groups of --help.
_DATASET, _METHOD = "Dataset", "Loading"


def load(
    dataset: Annotated[str, typer.Argument(help="Dataset: tpcb, pk, feed or tpcc.", metavar="DATASET")],
    scale: Annotated[
        int | None,
        typer.Option(
            help="Scale factor (tpcb: 1 is 100,000 accounts); millions of rows in all tables (pk, feed).",
            metavar="N",
            min=1,
            rich_help_panel=_DATASET,
        ),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            help="Rows per table. Default: 50,000,000 (pk), 0 (feed).", metavar="N", min=0, rich_help_panel=_DATASET
        ),
    ] = None,
    tables: Annotated[
        int | None,
        typer.Option(help="Number of tables (feed).", metavar="N", min=1, max=10_000, rich_help_panel=_DATASET),
    ] = None,
    warehouses: Annotated[
        int | None,
        typer.Option(
            help="Warehouses per set, about 100 MB each (tpcc).", metavar="N", min=1, rich_help_panel=_DATASET
        ),
    ] = None,
    sets: Annotated[
        int | None,
        typer.Option(help="Sets of the nine tables (tpcc).", metavar="N", min=1, max=1_000, rich_help_panel=_DATASET),
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Random seed of the rows (tpcc).", metavar="N", min=0, rich_help_panel=_DATASET)
    ] = 1,
    foreign_keys: Annotated[
        bool, typer.Option("--foreign-keys", help="Create foreign keys (tpcc).", rich_help_panel=_DATASET)
    ] = False,
    method: Annotated[
        str,
        typer.Option(
            help="Method: copy (binary COPY over --connections), direct (write the files of a stopped server, --data), "
            "server (INSERT ... SELECT), or auto (direct with --data, else copy).",
            metavar="NAME",
            rich_help_panel=_METHOD,
        ),
    ] = "auto",
    target: options.RunningTarget = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Data directory of a stopped server, or the folder of a pgdyno cluster.",
            metavar="FOLDER",
            rich_help_panel=options.SERVER,
        ),
    ] = None,
    user: Annotated[
        str, typer.Option(help="Superuser of the server (--data).", metavar="NAME", rich_help_panel=options.SERVER)
    ] = "postgres",
    dbname: Annotated[
        str, typer.Option(help="Database (--data).", metavar="NAME", rich_help_panel=options.SERVER)
    ] = "postgres",
    fillfactor: Annotated[
        int,
        typer.Option(
            help="Fill factor of the tables, percent.", metavar="PERCENT", min=10, max=100, rich_help_panel=_DATASET
        ),
    ] = 100,
    partitions: Annotated[
        int,
        typer.Option(
            help="Partitions of pgbench_accounts by range (tpcb), of large tables by warehouse (tpcc).",
            metavar="N",
            min=0,
            rich_help_panel=_DATASET,
        ),
    ] = 0,
    unlogged: Annotated[
        bool, typer.Option("--unlogged", help="Create unlogged tables.", rich_help_panel=_DATASET)
    ] = False,
    tablespace: Annotated[
        str, typer.Option(help="Tablespace of tables.", metavar="NAME", rich_help_panel=_DATASET)
    ] = "",
    index_tablespace: Annotated[
        str, typer.Option(help="Tablespace of indexes.", metavar="NAME", rich_help_panel=_DATASET)
    ] = "",
    index: Annotated[
        str,
        typer.Option(help="Index on the time (feed): brin, btree or none.", metavar="NAME", rich_help_panel=_DATASET),
    ] = "brin",
    check: Annotated[
        bool,
        typer.Option(
            "--check/--no-check",
            help="Check the loaded tables by the rules of the standard (tpcc).",
            rich_help_panel=_METHOD,
        ),
    ] = True,
    connections: Annotated[
        int | None,
        typer.Option(
            help="Parallel sessions (copy, server). Default: chosen for the machine.",
            metavar="N",
            min=1,
            rich_help_panel=_METHOD,
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(help="Writer threads (direct). Default: 2 per core.", metavar="N", min=1, rich_help_panel=_METHOD),
    ] = None,
    plan: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            "--plan",
            help="Print size and estimated duration, load nothing.",
            rich_help_panel=options.SAFETY,
        ),
    ] = False,
    disk_mbps: Annotated[
        float | None,
        typer.Option(
            "--disk-mbps",
            help="Assumed write speed of the disk in MB/s (--dry-run). Default: measured.",
            metavar="MBPS",
            min=0.001,
            rich_help_panel=options.SAFETY,
        ),
    ] = None,
    pg_bin: Annotated[
        Path | None,
        typer.Option(
            "--pg-bin",
            help="Folder of the programs of the server (--data).",
            metavar="FOLDER",
            rich_help_panel=options.SERVER,
        ),
    ] = None,
    force: options.Force = False,
    replace: options.Replace = False,
    ignore_archive: Annotated[
        bool,
        typer.Option(
            "--ignore-archive",
            help="Load even if WAL is archived (--data); take a new base backup afterwards.",
            rich_help_panel=options.SAFETY,
        ),
    ] = False,
    connect_timeout: options.ConnectTimeoutOf10 = 10.0,
    json_output: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Load a dataset at disk speed: over connections into a running server, or as files into a stopped one."""
    from pgdyno.cli import load as verb
    from pgdyno.errors import UsageError
    from pgdyno.load.loader import dataset_of

    for option, value in (("--warehouses", warehouses), ("--sets", sets)):
        if value is not None and dataset != "tpcc":
            raise UsageError(f"{option} goes with tpcc", f"The size of {dataset} is its --scale.")
    if dataset == "tpcc" and scale is not None and warehouses is not None:
        raise UsageError("--scale and --warehouses say the same", "Give one of them.")
    if dataset == "tpcc" and tables is not None:
        raise UsageError("tpcc has the tables that it has", "Several sets of them: --sets.")
    wanted = dataset_of(
        dataset,
        scale=warehouses if dataset == "tpcc" and warehouses is not None else scale,
        rows=rows,
        tables=(sets if dataset == "tpcc" else tables) or 1,
        partitions=partitions,
        fillfactor=fillfactor,
        unlogged=unlogged,
        tablespace=tablespace,
        index_tablespace=index_tablespace,
        index=index,
        seed=seed,
        foreign_keys=foreign_keys,
        check=check,
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
        replace=replace,
        ignore_archive=ignore_archive,
        connect_timeout_s=connect_timeout,
        json_output=json_output,
        quiet=quiet,
    )
    raise typer.Exit(code)


def storage(
    path: Annotated[Path, typer.Argument(help="Folder on the storage to measure.", metavar="FOLDER")],
    seconds: Annotated[
        float, typer.Option(help="Duration of each job.", metavar="SECONDS", min=1.0, rich_help_panel=options.MEASURING)
    ] = 10.0,
    size: Annotated[
        str | None,
        typer.Option(
            help="Size of the file that fio works on, e.g. 10g. Default: 10g, at most a quarter of the free space.",
            metavar="SIZE",
            rich_help_panel=options.MEASURING,
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            help="Threads of fio. Default: 16 per core, at most 64.",
            metavar="N",
            min=1,
            rich_help_panel=options.MEASURING,
        ),
    ] = None,
    json_output: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Measure storage with pg_test_fsync and fio.

    fio runs random and sequential, direct and buffered, in pages of 8 kB, 65% reads. Its file is removed afterwards.
    """
    from pgdyno.cli import storage as verb

    raise typer.Exit(verb.main(path, seconds=seconds, size=size, threads=threads, json_output=json_output, quiet=quiet))
