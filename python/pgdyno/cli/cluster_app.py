"""`pgdyno cluster`: its verbs. What they do is in `cluster.py`, imported when it is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

cluster = typer.Typer(
    help="Clusters that stay, and templates of them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_Folder = Annotated[Path, typer.Argument(help="The cluster's folder.")]
_Store = Annotated[
    Path | None,
    typer.Option(help="Where templates are. Default: PGDYNO_TEMPLATES, else ~/.local/share/pgdyno/templates."),
]
_Programs = Annotated[Path | None, typer.Option("--pg-bin", help="The server's programs. Default: the embedded ones.")]


@cluster.command()
def create(
    folder: _Folder,
    clients: Annotated[int, typer.Option(help="The most connections it is for.", min=1)] = 100,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the server; may be repeated.", metavar="NAME=VALUE")
    ] = None,
    checksums: Annotated[
        bool | None, typer.Option("--checksums/--no-checksums", help="Data checksums. Default: the version's.")
    ] = None,
    pg_bin: _Programs = None,
) -> None:
    """Make a cluster, with settings for this machine."""
    from pgdyno.cli import cluster as verb

    raise typer.Exit(verb.create(folder, clients, settings or [], checksums, pg_bin))


@cluster.command()
def start(folder: _Folder) -> None:
    """Start its server; it goes on running."""
    from pgdyno.cli import cluster as verb

    raise typer.Exit(verb.start(folder))


@cluster.command()
def stop(folder: _Folder) -> None:
    """Stop its server."""
    from pgdyno.cli import cluster as verb

    raise typer.Exit(verb.stop(folder))


@cluster.command()
def status(
    folder: _Folder,
    json_output: Annotated[bool, typer.Option("--json", help="Print it for machines.")] = False,
) -> None:
    """Show what a cluster is: version, whether its server runs, how to reach it, what it holds."""
    from pgdyno.cli import cluster as verb

    raise typer.Exit(verb.status(folder, json_output))


@cluster.command()
def snapshot(
    folder: Annotated[Path, typer.Argument(help="The cluster's folder, or the data directory of a stopped server.")],
    name: Annotated[str | None, typer.Option(help="Default: by what is in it.")] = None,
    store: _Store = None,
    online: Annotated[bool, typer.Option("--online", help="Of a running server, by pg_basebackup.")] = False,
    pg_bin: _Programs = None,
    user: Annotated[str, typer.Option(help="The server's superuser.")] = "postgres",
) -> None:
    """Keep a stopped cluster as a template.

    By reflink where the file system can, else byte by byte.
    """
    from pgdyno.cli import cluster as verb

    raise typer.Exit(verb.snapshot(folder, name, store, online, pg_bin, user))


@cluster.command()
def restore(
    name: Annotated[str, typer.Argument(help="The template.")],
    folder: Annotated[Path, typer.Argument(help="The folder to make; must not exist, or be empty.")],
    store: _Store = None,
    pg_bin: _Programs = None,
) -> None:
    """Make a cluster from a template."""
    from pgdyno.cli import cluster as verb

    raise typer.Exit(verb.restore(name, folder, store, pg_bin))


@cluster.command(name="list")
def list_(
    store: _Store = None,
    json_output: Annotated[bool, typer.Option("--json", help="As JSON on standard output.")] = False,
) -> None:
    """List templates."""
    from pgdyno.cli import cluster as verb

    raise typer.Exit(verb.list_(store, json_output))


@cluster.command()
def drop(name: Annotated[str, typer.Argument(help="The template.")], store: _Store = None) -> None:
    """Remove a template."""
    from pgdyno.cli import cluster as verb

    raise typer.Exit(verb.drop(name, store))
