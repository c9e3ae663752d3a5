"""`pgdyno load` and `storage`: their options. What is heavy is imported inside them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def load(
    dataset: Annotated[str, typer.Argument(help="tpcb, pk, feed or tpcc.")],
    scale: Annotated[
        int | None,
        typer.Option(help="tpcb: pgbench's scale, 100,000 rows each. pk, feed: millions of rows in all tables.", min=1),
    ] = None,
    rows: Annotated[
        int | None, typer.Option(help="pk, feed: rows of each table. Default: 50,000,000; 0.", min=0)
    ] = None,
    tables: Annotated[int | None, typer.Option(help="feed: how many tables.", min=1, max=10_000)] = None,
    warehouses: Annotated[
        int | None, typer.Option(help="tpcc: warehouses of each set, about 100 MB each.", min=1)
    ] = None,
    sets: Annotated[int | None, typer.Option(help="tpcc: sets of its nine tables.", min=1, max=1_000)] = None,
    seed: Annotated[int, typer.Option(help="tpcc: what its rows are drawn from.", min=0)] = 1,
    foreign_keys: Annotated[bool, typer.Option("--foreign-keys", help="tpcc: with foreign keys.")] = False,
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
    partitions: Annotated[
        int, typer.Option(help="tpcb: of pgbench_accounts, by range. tpcc: of large tables, by warehouse.", min=0)
    ] = 0,
    unlogged: Annotated[bool, typer.Option("--unlogged", help="Tables without WAL.")] = False,
    tablespace: Annotated[str, typer.Option(help="Where the tables go.", metavar="NAME")] = "",
    index_tablespace: Annotated[str, typer.Option(help="Where the indexes go.", metavar="NAME")] = "",
    index: Annotated[str, typer.Option(help="feed: on the time: brin, btree or none.", metavar="NAME")] = "brin",
    check: Annotated[
        bool, typer.Option("--check/--no-check", help="tpcc: check what was loaded by the standard's rules.")
    ] = True,
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
    replace: Annotated[
        bool, typer.Option("--replace", help="Drop a dataset of pgdyno's of another size that is there.")
    ] = False,
    ignore_archive: Annotated[
        bool,
        typer.Option(
            "--ignore-archive", help="With --data: load although WAL is archived; take a new base backup then."
        ),
    ] = False,
    connect_timeout: Annotated[float, typer.Option(help="Seconds to wait for a session.", min=0.1, max=86_400)] = 10.0,
    json_output: Annotated[bool, typer.Option("--json", help="The result as JSON on standard output.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Load a dataset, at the speed of the disk.

    Over connections into any server, or as files into a stopped one.
    """
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
