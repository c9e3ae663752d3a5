"""`pgdyno cluster`: its verbs. What they do is in `cluster.py`, imported when it is needed."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from pgdyno.cli.help import Command, Group
from pgdyno.errors import UsageError, msg

cluster = typer.Typer(
    cls=Group,
    help="Create and manage clusters, and templates: saved data directories.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_Folder = Annotated[Path, typer.Argument(help="Folder of the cluster.", metavar="FOLDER")]
_Store = Annotated[
    Path | None,
    typer.Option(
        help="Folder of templates. Default: PGDYNO_TEMPLATES, else ~/.local/share/pgdyno/templates.", metavar="FOLDER"
    ),
]
_Programs = Annotated[
    Path | None,
    typer.Option("--pg-bin", help="Folder of the PostgreSQL programs. Default: the embedded ones.", metavar="FOLDER"),
]


@cluster.command(cls=Command)
def create(
    folder: _Folder,
    clients: Annotated[
        int, typer.Option(help="Maximum number of client connections to configure for.", metavar="N", min=1)
    ] = 100,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Server setting. Repeatable.", metavar="NAME=VALUE")
    ] = None,
    checksums: Annotated[
        bool | None,
        typer.Option(
            "--checksums/--no-checksums", help="Data checksums. Default: that of initdb (on from PostgreSQL 18)."
        ),
    ] = None,
    pg_bin: _Programs = None,
    standbys: Annotated[
        int,
        typer.Option(
            help="Number of standbys, each made by pg_basebackup, with a slot; all are started.",
            metavar="N",
            min=0,
            max=16,
        ),
    ] = 0,
    sync: Annotated[
        str,
        typer.Option(
            help='Value of synchronous_standby_names, e.g. "ANY 1 (*)". Default: asynchronous.',
            show_default=False,
            metavar="NAMES",
        ),
    ] = "",
    network: Annotated[
        bool | None,
        typer.Option(
            "--network/--no-network",
            help="Run each member in its own network namespace, so that links can be cut (--standbys). Default: if "
            "run as root.",
        ),
    ] = None,
    tablespace: Annotated[
        list[str] | None,
        typer.Option(
            help="Tablespace, and the folder in which each member gets its own (--standbys). Repeatable.",
            metavar="NAME=FOLDER",
        ),
    ] = None,
    disk: Annotated[
        str,
        typer.Option(
            help="Put the files of each member on a disk image of this size, e.g. 2GB, so that a drill can fill it. "
            "Needs root and --standbys.",
            metavar="SIZE",
            show_default=False,
        ),
    ] = "",
    pooler: Annotated[
        bool, typer.Option("--pooler", help="Run a PgBouncer that connects to the primary (--standbys).")
    ] = False,
    archive: Annotated[
        bool,
        typer.Option(
            "--archive",
            help="Archive WAL in the cluster's folder; pgdyno cluster flashback needs it. Needs --standbys.",
        ),
    ] = False,
) -> None:
    """Create a cluster with settings for this machine, and standbys on request."""
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

    of_standbys = {"--sync": sync, "--network": network is not None, "--archive": archive, "--pooler": pooler}
    for option, given in {**of_standbys, "--disk": disk, "--tablespace": tablespace}.items():
        if given:
            raise UsageError(msg("error-needs-standbys", option=option), msg("remedy-say-how-many-standbys-2"))
    raise typer.Exit(verb.create(folder, clients, settings or [], checksums, pg_bin))


@cluster.command(cls=Command)
def start(folder: _Folder) -> None:
    """Start all servers of a cluster; they keep running."""
    raise typer.Exit(_verbs_of(folder).start(folder))


@cluster.command(cls=Command)
def stop(folder: _Folder) -> None:
    """Stop all servers of a cluster."""
    raise typer.Exit(_verbs_of(folder).stop(folder))


@cluster.command(cls=Command)
def destroy(folder: _Folder) -> None:
    """Stop a cluster and remove its folder."""
    raise typer.Exit(_verbs_of(folder).destroy(folder))


@cluster.command(cls=Command)
def switchover(
    folder: _Folder,
    to: Annotated[
        str, typer.Option(help="Standby to promote. Default: the most advanced.", metavar="MEMBER", show_default=False)
    ] = "",
) -> None:
    """Make a standby the primary without losing commits; the old primary becomes a standby."""
    from pgdyno.cli import replication as verb

    raise typer.Exit(verb.switchover(folder, to))


@cluster.command(cls=Command)
def failover(
    folder: _Folder,
    to: Annotated[
        str, typer.Option(help="Standby to promote. Default: the most advanced.", metavar="MEMBER", show_default=False)
    ] = "",
    force: Annotated[
        bool,
        typer.Option("--force", help="Fail over even if the primary is alive (it is killed) or commits may be lost."),
    ] = False,
) -> None:
    """Promote the most advanced standby of a dead primary; the others follow it."""
    from pgdyno.cli import replication as verb

    raise typer.Exit(verb.failover(folder, to, force=force))


@cluster.command(cls=Command)
def rejoin(
    folder: _Folder,
    member: Annotated[
        str | None, typer.Argument(help="Member. Default: all that do not stream.", metavar="MEMBER")
    ] = None,
) -> None:
    """Make a member a standby again, by pg_rewind or, if that is impossible, by a new base backup."""
    from pgdyno.cli import replication as verb

    raise typer.Exit(verb.rejoin(folder, member))


@cluster.command(cls=Command)
def link(
    folder: _Folder,
    between: Annotated[
        str, typer.Option(help="Members of the link. Default: all links.", metavar="A,B", show_default=False)
    ] = "",
    round_trip_ms: Annotated[
        float,
        typer.Option(
            "--round-trip-ms", help="Delay to add to each round trip.", metavar="MILLISECONDS", min=0, max=10_000
        ),
    ] = 0.0,
    rate: Annotated[
        str, typer.Option(help="Bytes per second, each way, e.g. 10MB.", metavar="SIZE", show_default=False)
    ] = "",
    cut: Annotated[bool, typer.Option("--cut", help="Block the link completely.")] = False,
    seconds: Annotated[
        float | None, typer.Option(help="Duration. Default: until Ctrl-C.", metavar="SECONDS", min=0.1)
    ] = None,
) -> None:
    """Delay, throttle or cut the links between members while this command runs.

    The links are restored when it ends, also if it is killed. The next pgdyno cluster start restores cut links.
    """
    from pgdyno.cli import link as verb

    raise typer.Exit(
        verb.main(folder, between, round_trip_ms=round_trip_ms, rate=rate, cut=cut, seconds=seconds)
    )  # fmt: skip


@cluster.command(cls=Command)
def flashback(
    folder: _Folder,
    to: Annotated[
        str,
        typer.Option(
            help='Recovery target: a time ("2026-11-23 09:30:00+00"), an LSN (0/5000060), or latest.',
            metavar="TIME|LSN",
        ),
    ],
    into: Annotated[Path, typer.Option(help="Folder to create; must not exist or be empty.", metavar="FOLDER")],
    timeline: Annotated[str, typer.Option(help="Timeline to follow: latest, or a number.", metavar="TLI")] = "latest",
    json_output: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Restore a replicated cluster to a point in time (PITR), from the last snapshot before that time and archived WAL.

    The cluster must have been created with --archive; pgdyno cluster snapshot makes its snapshots.
    """
    from pgdyno.cli import flashback as verb

    raise typer.Exit(verb.main(folder, to, into, timeline, json_output=json_output))


@cluster.command(cls=Command)
def repair(folder: _Folder) -> None:
    """Finish or undo an interrupted operation, so that all members follow one primary again."""
    from pgdyno.cli import replication as verb

    raise typer.Exit(verb.repair(folder))


def _verbs_of(folder: Path) -> ModuleType:
    """For a cluster with standbys, or for one server."""
    from pgdyno.cli import cluster as one
    from pgdyno.cli import replication as several

    return several if (folder / "replication.json").exists() else one


@cluster.command(cls=Command)
def status(
    folder: _Folder,
    json_output: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Show the version, state, address and datasets of a cluster.

    With standbys: the role, position, lag and timeline of each member.
    """
    raise typer.Exit(_verbs_of(folder).status(folder, json_output))


@cluster.command(cls=Command)
def snapshot(
    folder: Annotated[
        Path, typer.Argument(help="Folder of the cluster, or the data directory of a stopped server.", metavar="FOLDER")
    ],
    name: Annotated[
        str | None, typer.Option(help="Name of the template. Default: from its contents.", metavar="NAME")
    ] = None,
    store: _Store = None,
    online: Annotated[bool, typer.Option("--online", help="Copy a running server, by pg_basebackup.")] = False,
    pg_bin: _Programs = None,
    user: Annotated[str, typer.Option(help="Superuser of the server.", metavar="NAME")] = "postgres",
    keep: Annotated[
        int | None,
        typer.Option(
            help="Number of snapshots to keep, this one included, and the WAL since the first (--standbys).",
            metavar="N",
            min=1,
        ),
    ] = None,
) -> None:
    """Save a stopped cluster as a template; or, of a cluster with standbys, a snapshot of a standby for flashback.

    Files are shared by reflink where the file system supports it, else copied.
    """
    if (folder / "replication.json").exists():
        from pgdyno.cli import flashback

        if name or store or online or pg_bin:
            raise UsageError(msg("usage-standby-options"))
        raise typer.Exit(flashback.snapshot(folder, keep))
    if keep is not None:
        raise UsageError(msg("usage-keep-standbys"))
    from pgdyno.cli import cluster as verb

    raise typer.Exit(verb.snapshot(folder, name, store, online, pg_bin, user))


@cluster.command(cls=Command)
def restore(
    name: Annotated[str, typer.Argument(help="Name of the template.", metavar="TEMPLATE")],
    folder: Annotated[Path, typer.Argument(help="Folder to create; must not exist or be empty.", metavar="FOLDER")],
    store: _Store = None,
    pg_bin: _Programs = None,
) -> None:
    """Create a cluster from a template."""
    from pgdyno.cli import cluster as verb

    raise typer.Exit(verb.restore(name, folder, store, pg_bin))


@cluster.command(cls=Command, name="list")
def list_(
    store: _Store = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """List the templates."""
    from pgdyno.cli import cluster as verb

    raise typer.Exit(verb.list_(store, json_output))


@cluster.command(cls=Command)
def drop(
    name: Annotated[str, typer.Argument(help="Name of the template.", metavar="TEMPLATE")], store: _Store = None
) -> None:
    """Remove a template (no cluster is touched)."""
    from pgdyno.cli import cluster as verb

    raise typer.Exit(verb.drop(name, store))
