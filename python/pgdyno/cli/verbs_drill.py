"""`pgdyno drill`: its options. What is heavy is imported inside."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pgdyno.cli import options


def drill(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="A cluster with standbys (pgdyno cluster create FOLDER --standbys 2), or a file that describes one "
            "which another tool manages."
        ),
    ] = None,
    fault: Annotated[
        str | None,
        typer.Option(
            help="Which, or several with commas, or all. --list shows them. Default: kill-primary; with --modes those "
            "that tell modes apart.",
            metavar="NAME[,NAME]",
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(help="Rounds of each fault.", min=1, max=10_000)] = 3,
    modes: Annotated[
        bool,
        typer.Option(
            "--modes",
            help="In each protection mode: what it costs, and what it loses.",
        ),
    ] = False,
    clients: Annotated[int, typer.Option(help="Connections that write the ledger.", min=1, max=1000)] = 8,
    before: Annotated[float, typer.Option(help="Seconds of load before the fault.", min=0.6, max=3600)] = 2.0,
    after: Annotated[float, typer.Option(help="Seconds of load after all are served again.", min=0, max=3600)] = 1.0,
    answer_timeout: Annotated[
        float,
        typer.Option(help="Seconds that a client waits for an answer.", min=0.1, max=600),
    ] = 3.0,
    no_fence: Annotated[
        bool, typer.Option("--no-fence", help="Promote without killing the old primary first: see what that costs.")
    ] = False,
    workload: Annotated[
        str,
        typer.Option(help="Beside the ledger: tpcb-like, simple-update, select-only or tpcc.", metavar="SCRIPT"),
    ] = "",
    workload_clients: Annotated[int, typer.Option(help="Connections of that workload.", min=1, max=1000)] = 8,
    scale: Annotated[int, typer.Option(help="Of its tables: 100,000 accounts each, or warehouses.", min=1)] = 10,
    through_pooler: Annotated[
        bool, typer.Option("--through-pooler", help="Clients go through the cluster's PgBouncer (create --pooler).")
    ] = False,
    i_know_this_breaks_it: Annotated[
        bool, typer.Option("--i-know-this-breaks-it", help="Of a cluster that is not pgdyno's: break it.")
    ] = False,
    list_: Annotated[bool, typer.Option("--list", help="List the faults.")] = False,
    runs: options.Runs = Path("runs"),
    json_output: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Break a cluster with standbys under load, let it fail over, and count the acknowledged commits that are lost.

    Each client writes down what it was told of each of its commits; afterwards the surviving primary is compared with
    these records. Clusters that are not pgdyno's are broken only when told so. Exit code 1: commits were lost, unless
    the fault must lose some or the mode promises nothing; or something else is wrong.
    """
    from pgdyno.cli import drill as verb

    if list_:
        raise typer.Exit(verb.list_faults())
    if folder is None:
        raise typer.BadParameter("name a cluster's folder, or --list")
    code = verb.main(
        folder,
        fault,
        rounds,
        in_modes=modes,
        clients=clients,
        before_s=before,
        after_s=after,
        answer_timeout_s=answer_timeout,
        fence=not no_fence,
        pooled=through_pooler,
        beside=(workload, workload_clients, scale),
        may_break=i_know_this_breaks_it,
        runs=runs,
        json_output=json_output,
        quiet=quiet,
    )
    raise typer.Exit(code)
