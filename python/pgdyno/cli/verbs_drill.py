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
            help="Folder of a pgdyno cluster with standbys (pgdyno cluster create FOLDER --standbys 2), or a file "
            "describing an external cluster.",
            metavar="CLUSTER",
        ),
    ] = None,
    fault: Annotated[
        str | None,
        typer.Option(
            help="Faults to inject, or all; --list shows them. Default: kill-primary; with --modes, those that "
            "distinguish modes.",
            metavar="NAME,...",
            rich_help_panel=options.WHAT,
        ),
    ] = None,
    rounds: Annotated[
        int,
        typer.Option(help="Rounds of each fault.", metavar="N", min=1, max=10_000, rich_help_panel=options.MEASURING),
    ] = 3,
    modes: Annotated[
        bool,
        typer.Option(
            "--modes",
            help="Drill each protection mode, and report what it costs and loses.",
            rich_help_panel=options.WHAT,
        ),
    ] = False,
    clients: Annotated[
        int,
        typer.Option(
            help="Connections that write the ledger.", metavar="N", min=1, max=1000, rich_help_panel=options.WHAT
        ),
    ] = 8,
    before: Annotated[
        float,
        typer.Option(
            help="Load before the fault.", metavar="SECONDS", min=0.6, max=3600, rich_help_panel=options.MEASURING
        ),
    ] = 2.0,
    after: Annotated[
        float,
        typer.Option(
            help="Load after all clients are served again.",
            metavar="SECONDS",
            min=0,
            max=3600,
            rich_help_panel=options.MEASURING,
        ),
    ] = 1.0,
    answer_timeout: Annotated[
        float,
        typer.Option(
            help="Timeout of a statement at the client.",
            metavar="SECONDS",
            min=0.1,
            max=600,
            rich_help_panel=options.MEASURING,
        ),
    ] = 3.0,
    no_fence: Annotated[
        bool,
        typer.Option(
            "--no-fence",
            help="Promote without killing the old primary first, to show the lost commits.",
            rich_help_panel=options.SAFETY,
        ),
    ] = False,
    workload: Annotated[
        str,
        typer.Option(
            help="Background workload: tpcb-like, simple-update, select-only or tpcc. Default: none.",
            metavar="SCRIPT",
            show_default=False,
            rich_help_panel=options.WHAT,
        ),
    ] = "",
    workload_clients: Annotated[
        int,
        typer.Option(
            help="Connections of the background workload.",
            metavar="N",
            min=1,
            max=1000,
            rich_help_panel=options.WHAT,
        ),
    ] = 8,
    scale: Annotated[
        int,
        typer.Option(
            help="Scale factor of the background workload (100,000 accounts each), or warehouses.",
            metavar="N",
            min=1,
            rich_help_panel=options.WHAT,
        ),
    ] = 10,
    through_pooler: Annotated[
        bool,
        typer.Option(
            "--through-pooler",
            help="Connect through the PgBouncer of the cluster (create --pooler).",
            rich_help_panel=options.SERVER,
        ),
    ] = False,
    i_know_this_breaks_it: Annotated[
        bool,
        typer.Option(
            "--i-know-this-breaks-it",
            help="Allow faults on an external cluster (required).",
            rich_help_panel=options.SAFETY,
        ),
    ] = False,
    list_: Annotated[bool, typer.Option("--list", help="List the faults.", rich_help_panel=options.WHAT)] = False,
    runs: options.Runs = Path("runs"),
    lang: options.Lang = None,
    json_output: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Inject faults into a cluster under load, let it fail over, and count lost commits.

    Each client records the acknowledgement of each commit; afterwards these records are compared with the surviving
    primary. Exit code 1: commits were lost although the mode promises that none is, or a round failed.
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
        all_modes=modes,
        clients=clients,
        before_s=before,
        after_s=after,
        answer_timeout_s=answer_timeout,
        fence=not no_fence,
        pooled=through_pooler,
        background=(workload, workload_clients, scale),
        may_break=i_know_this_breaks_it,
        runs=runs,
        json_output=json_output,
        quiet=quiet,
        lang=options.language(lang),
    )
    raise typer.Exit(code)
