"""`pgdyno tpcc`: its verbs. What they do is in `tpcc.py`, imported when it is needed."""

from __future__ import annotations

from typing import Annotated

import typer

tpcc = typer.Typer(
    help="TPC-C's tables: are they consistent, and what are its transactions?",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_Target = Annotated[
    str | None,
    typer.Option(
        help='A running server, as libpq takes it: "host=db1 dbname=bench". Default: PG*.', metavar="CONNINFO"
    ),
]


@tpcc.command()
def check(
    target: _Target = None,
    population: Annotated[
        bool, typer.Option("--population", help="Also what holds only until the first transaction: clause 4.3.3.")
    ] = False,
    connect_timeout: Annotated[float, typer.Option(help="Seconds to wait for a session.", min=0.1, max=86_400)] = 10.0,
    json_output: Annotated[bool, typer.Option("--json", help="The result as JSON on standard output.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Check the standard's consistency conditions in the tables.

    Reads all tables, changes nothing. Nobody should write meanwhile. Exit code 1: a condition does not hold.
    """
    from pgdyno.cli import tpcc as verb

    raise typer.Exit(
        verb.check(
            target, population=population, connect_timeout_s=connect_timeout, json_output=json_output, quiet=quiet
        )
    )


@tpcc.command()
def acid(
    target: Annotated[
        str | None,
        typer.Option(
            help="A server with tables that pgdyno has loaded. Default: a private one, which is killed as well.",
            metavar="CONNINFO",
        ),
    ] = None,
    isolation: Annotated[
        str, typer.Option(help="read committed, repeatable read or serializable.", metavar="LEVEL")
    ] = "read committed",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting of the private server; may be repeated.", metavar="NAME=VALUE"),
    ] = None,
    seconds: Annotated[float, typer.Option(help="Of load, before the private server is killed.", min=0.5)] = 5.0,
    clients: Annotated[int, typer.Option(help="Clients of that load.", min=1, max=1000)] = 8,
    force: Annotated[bool, typer.Option("--force", help="Although other sessions are active in the database.")] = False,
    connect_timeout: Annotated[float, typer.Option(help="Seconds to wait for a session.", min=0.1, max=86_400)] = 10.0,
    json_output: Annotated[bool, typer.Option("--json", help="The result as JSON on standard output.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Test atomicity, isolation and durability, as clause 3 of the standard has it.

    A private server is killed under load, and each order that it had acknowledged is looked for. Exit code 1: a test
    did not pass, or an order is lost.
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


@tpcc.command()
def show(
    round_trips: Annotated[
        str, typer.Option(help="statements, pipelined or functions.", metavar="NAME")
    ] = "statements",
    transaction: Annotated[
        str | None, typer.Argument(help="new-order, payment, order-status, delivery or stock-level. Default: all.")
    ] = None,
) -> None:
    """Show the transactions: their statements, or their functions."""
    from pgdyno.cli import tpcc as verb

    raise typer.Exit(verb.show(round_trips, transaction))
