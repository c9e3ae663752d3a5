"""`pgdyno tpcc`: its verbs. What they do is in `tpcc.py`, imported when it is needed."""

from __future__ import annotations

from typing import Annotated

import typer

from pgdyno.cli import options
from pgdyno.cli.help import Command, Group

tpcc = typer.Typer(
    cls=Group,
    help="Check TPC-C tables, test ACID properties, print the SQL of the transactions.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@tpcc.command(cls=Command)
def check(
    target: options.RunningTarget = None,
    population: Annotated[
        bool,
        typer.Option("--population", help="Check also the initial population (clause 4.3.3); transactions change it."),
    ] = False,
    connect_timeout: options.ConnectTimeoutOf10 = 10.0,
    lang: options.Lang = None,
    json_output: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Check the consistency conditions of TPC-C in the tables.

    The check reads all tables and changes nothing; nobody should write meanwhile. Exit code 1: a condition is violated.
    """
    from pgdyno.cli import tpcc as verb

    raise typer.Exit(
        verb.check(
            target,
            population=population,
            connect_timeout_s=connect_timeout,
            json_output=json_output,
            quiet=quiet,
            lang=options.language(lang),
        )
    )


@tpcc.command(cls=Command)
def acid(
    target: Annotated[
        str | None,
        typer.Option(
            help="Connection string of a server with tables that pgdyno loaded. Default: a private server, which is "
            "also killed.",
            metavar="CONNINFO",
            rich_help_panel=options.SERVER,
        ),
    ] = None,
    isolation: Annotated[
        str, typer.Option(help="Isolation level: read committed, repeatable read or serializable.", metavar="LEVEL")
    ] = "read committed",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Setting of the private server. Repeatable.", metavar="NAME=VALUE"),
    ] = None,
    seconds: Annotated[
        float, typer.Option(help="Load before the private server is killed.", metavar="SECONDS", min=0.5)
    ] = 5.0,
    clients: Annotated[int, typer.Option(help="Clients of the load.", metavar="N", min=1, max=1000)] = 8,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Continue even if other sessions are active in the database.",
            rich_help_panel=options.SAFETY,
        ),
    ] = False,
    connect_timeout: options.ConnectTimeoutOf10 = 10.0,
    json_output: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Test atomicity, isolation and durability by clause 3 of TPC-C.

    A private server is killed under load, and each acknowledged order is looked for. Exit code 1: a test failed, or an
    order is lost.
    """
    from pgdyno.cli import acid as verb

    raise typer.Exit(
        verb.main(
            target,
            isolation=isolation,
            settings=settings or [],
            seconds=seconds,
            clients=clients,
            force=force,
            connect_timeout_s=connect_timeout,
            json_output=json_output,
            quiet=quiet,
        )
    )


@tpcc.command(cls=Command)
def show(
    round_trips: Annotated[
        str, typer.Option(help="Form of the transactions: statements, pipelined or functions.", metavar="NAME")
    ] = "statements",
    transaction: Annotated[
        str | None,
        typer.Argument(
            help="Transaction: new-order, payment, order-status, delivery or stock-level. Default: all.", metavar="NAME"
        ),
    ] = None,
) -> None:
    """Show the statements or functions of the transactions."""
    from pgdyno.cli import tpcc as verb

    raise typer.Exit(verb.show(round_trips, transaction))
