"""`pgdyno cluster`: its verbs. What they do is in `cluster.py`, imported when it is needed."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
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
    standbys: Annotated[
        int, typer.Option(help="Standbys, each made by pg_basebackup, with a slot; all are started.", min=0, max=16)
    ] = 0,
    sync: Annotated[
        str,
        typer.Option(
            help='synchronous_standby_names: "ANY 1 (*)", "FIRST 1 (node2, node3)". Default: asynchronous.',
            metavar="NAMES",
        ),
    ] = "",
    network: Annotated[
        bool | None,
        typer.Option(
            "--network/--no-network",
            help="With standbys: each member in a network namespace of its own, so that links can be cut. Default: "
            "where we are root.",
        ),
    ] = None,
    tablespace: Annotated[
        list[str] | None,
        typer.Option(
            help="With standbys: a tablespace, and the folder that each member's is made in; may be repeated.",
            metavar="NAME=FOLDER",
        ),
    ] = None,
    disk: Annotated[
        str,
        typer.Option(
            help="With standbys: each member on a disk of its own, of this size, that can get full.", metavar="SIZE"
        ),
    ] = "",
    pooler: Annotated[
        bool, typer.Option("--pooler", help="With standbys: PgBouncer before them, which leads to the primary.")
    ] = False,
    archive: Annotated[
        bool, typer.Option("--archive", help="With standbys: WAL is archived in the folder, for flashback.")
    ] = False,
) -> None:
    """Make a cluster, with settings for this machine; with standbys, if you like."""
    if standbys:
        from pgdyno.cli import replication

        raise typer.Exit(
            replication.create(
                folder,
                standbys,
                sync,
                clients,
                settings or [],
                checksums,
                network=network,
                archive=archive,
                pooler=pooler,
                disk=disk,
                spaces=tablespace or [],
                pg_bin=pg_bin,
            )
        )
    from pgdyno.cli import cluster as verb

    if sync or network is not None or archive or pooler or disk or tablespace:
        raise typer.BadParameter("--sync, --network, --archive, --pooler, --disk and --tablespace go with --standbys")
    raise typer.Exit(verb.create(folder, clients, settings or [], checksums, pg_bin))


@cluster.command()
def start(folder: _Folder) -> None:
    """Start its server, or all of its members; they go on running."""
    raise typer.Exit(_verbs_of(folder).start(folder))


@cluster.command()
def stop(folder: _Folder) -> None:
    """Stop its server, or all of its members."""
    raise typer.Exit(_verbs_of(folder).stop(folder))


@cluster.command()
def destroy(folder: _Folder) -> None:
    """Stop a cluster, and remove all of it."""
    raise typer.Exit(_verbs_of(folder).destroy(folder))


@cluster.command()
def switchover(
    folder: _Folder,
    to: Annotated[str, typer.Option(help="The standby. Default: the most advanced.", metavar="MEMBER")] = "",
) -> None:
    """Make a standby the primary, in order: nothing is lost, the old primary follows."""
    from pgdyno.cli import replication as verb

    raise typer.Exit(verb.switchover(folder, to))


@cluster.command()
def failover(
    folder: _Folder,
    to: Annotated[str, typer.Option(help="The standby. Default: the most advanced.", metavar="MEMBER")] = "",
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Also where the primary lives (it is killed), or too few standbys answer to lose nothing."
        ),
    ] = False,
) -> None:
    """Promote the most advanced standby of a primary that is dead; the others follow."""
    from pgdyno.cli import replication as verb

    raise typer.Exit(verb.failover(folder, to, force=force))


@cluster.command()
def rejoin(
    folder: _Folder,
    member: Annotated[str | None, typer.Argument(help="Default: all that do not stream.", metavar="MEMBER")] = None,
) -> None:
    """Make a member a standby of the primary again: by pg_rewind, or a new base backup where that cannot."""
    from pgdyno.cli import replication as verb

    raise typer.Exit(verb.rejoin(folder, member))


@cluster.command()
def link(
    folder: _Folder,
    between: Annotated[str, typer.Option(help="Two members. Default: each with each.", metavar="A,B")] = "",
    round_trip_ms: Annotated[
        float, typer.Option("--round-trip-ms", help="Milliseconds more of each round trip.", min=0, max=10_000)
    ] = 0.0,
    rate: Annotated[str, typer.Option(help="Bytes a second that it carries, each way: 10MB.", metavar="SIZE")] = "",
    cut: Annotated[bool, typer.Option("--cut", help="It carries nothing.")] = False,
    seconds: Annotated[float | None, typer.Option(help="How long. Default: until Ctrl-C.", min=0.1)] = None,
) -> None:
    """Slow, throttle or cut the links between members, while this runs.

    Links are as they were when it ends, also when it is killed; cut ones are mended by the next pgdyno cluster start.
    """
    from pgdyno.cli import link as verb

    raise typer.Exit(
        verb.main(folder, between, round_trip_ms=round_trip_ms, rate=rate, cut=cut, seconds=seconds)
    )  # fmt: skip


@cluster.command()
def flashback(
    folder: _Folder,
    to: Annotated[
        str, typer.Option(help='A time ("2026-11-23 09:30:00+00"), an LSN (0/5000060), or latest.', metavar="TIME|LSN")
    ],
    into: Annotated[Path, typer.Option(help="The folder to make; must not exist, or be empty.")],
    timeline: Annotated[
        str, typer.Option(help="Whose history is followed: latest, or a number.", metavar="TLI")
    ] = "latest",
    json_output: Annotated[bool, typer.Option("--json", help="Print it for machines.")] = False,
) -> None:
    """Make a cluster as a replicated one was at a time: from its last snapshot before, and archived WAL.

    Of a cluster that was made with --archive; pgdyno cluster snapshot keeps its snapshots.
    """
    from pgdyno.cli import flashback as verb

    raise typer.Exit(verb.main(folder, to, into, timeline, json_output=json_output))


@cluster.command()
def repair(folder: _Folder) -> None:
    """Finish, or undo, what a pgdyno was killed over; all members follow one primary again."""
    from pgdyno.cli import replication as verb

    raise typer.Exit(verb.repair(folder))


def _verbs_of(folder: Path) -> ModuleType:
    """For a cluster with standbys, or for one server."""
    from pgdyno.cli import cluster as one
    from pgdyno.cli import replication as several

    return several if (folder / "replication.json").exists() else one


@cluster.command()
def status(
    folder: _Folder,
    json_output: Annotated[bool, typer.Option("--json", help="Print it for machines.")] = False,
) -> None:
    """Show what a cluster is: version, whether its server runs, how to reach it, what it holds.

    With standbys: of each member its role, position, lag and timeline.
    """
    raise typer.Exit(_verbs_of(folder).status(folder, json_output))


@cluster.command()
def snapshot(
    folder: Annotated[Path, typer.Argument(help="The cluster's folder, or the data directory of a stopped server.")],
    name: Annotated[str | None, typer.Option(help="Default: by what is in it.")] = None,
    store: _Store = None,
    online: Annotated[bool, typer.Option("--online", help="Of a running server, by pg_basebackup.")] = False,
    pg_bin: _Programs = None,
    user: Annotated[str, typer.Option(help="The server's superuser.")] = "postgres",
    keep: Annotated[
        int | None,
        typer.Option(help="Of a standby: how many snapshots stay, with this one, and WAL from the first on.", min=1),
    ] = None,
) -> None:
    """Keep a stopped cluster as a template; of a cluster with standbys, a standby while it replays, for flashback.

    By reflink where the file system can, else byte by byte.
    """
    if (folder / "replication.json").exists():
        from pgdyno.cli import flashback

        if name or store or online or pg_bin:
            raise typer.BadParameter("the snapshot of a standby is kept in the cluster's folder, and takes no options")
        raise typer.Exit(flashback.snapshot(folder, keep))
    if keep is not None:
        raise typer.BadParameter("--keep goes with snapshots of a cluster with standbys")
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
