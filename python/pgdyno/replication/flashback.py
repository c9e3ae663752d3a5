"""Snapshots of a standby while it replays, and clusters as they were at a point in time.

Such a cluster begins with a snapshot and replays the archived WAL after it.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from pgdyno import home, i18n
from pgdyno.cluster import administration, clone
from pgdyno.cluster.administration import is_plain_table
from pgdyno.cluster.binaries import Binaries
from pgdyno.cluster.layout import write
from pgdyno.cluster.managed import FACTS, ManagedCluster
from pgdyno.cluster.process import last_words
from pgdyno.cluster.removal import Made
from pgdyno.cluster.settings import Setting
from pgdyno.cluster.target import Target
from pgdyno.errors import ClusterError, RefusedError, TargetError, UsageError, msg
from pgdyno.message import Name, Text
from pgdyno.replication import archives, state
from pgdyno.replication.cluster import ReplicatedCluster
from pgdyno.replication.member import Member

#: Of a data directory: what a copy of a running server is without (as pg_basebackup leaves it).
_EMPTIED = (
    "pg_wal",
    "pg_replslot",
    "pg_dynshmem",
    "pg_notify",
    "pg_serial",
    "pg_snapshots",
    "pg_stat_tmp",
    "pg_subtrans",
)
_LEFT_OUT = (
    "postmaster.pid",
    "postmaster.opts",
    "standby.signal",
    "backup_label.old",
    "recovery.done",
    "current_logfiles",
)
_LSN = re.compile(r"[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}")
#: How long the last segment may take to be archived.
_ARCHIVED_S = 20.0
#: For a server to end whose sessions it has cut.
_ENDS_S = 10.0
#: Settings that are the replicated cluster's alone.
_ITS_OWN = {"synchronous_standby_names", "archive_mode", "archive_command", "archive_timeout"}


@dataclass(frozen=True)
class Snapshot:
    """A copy of a standby's data directory, with what it takes to begin from it."""

    folder: Path
    member: str
    #: The server's clock when it was whole; WAL positions from which it must be replayed, and to which at least.
    at: str
    start_lsn: str
    stop_lsn: str
    #: Of that WAL.
    timeline: int
    shared_bytes: int
    copied_bytes: int
    seconds: float

    @property
    def data(self) -> Path:
        """The copy."""
        return self.folder / "data"

    @property
    def when(self) -> datetime:
        """The server's clock when it was whole."""
        return datetime.fromisoformat(self.at)


@dataclass
class Flashback:
    """A cluster as another was."""

    folder: Path
    snapshot: str
    #: The server's words on where recovery ended, and the last transaction that it has, by its log.
    stopped: Text
    last_transaction: str
    seconds: float
    #: Of each table its rows.
    rows: dict[str, int] = field(default_factory=dict)
    #: Of the ledger of drills: its rows here, and in the cluster as it is now; None: there is none, or no primary runs.
    ledger: tuple[int, int] | None = None
    #: Clients of the ledger that have fewer of their first rows here than the cluster has; and rows here that the
    #: cluster has no more: a failover has lost them.
    torn: int = 0
    lost_since: int = 0

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        return {**asdict(self), "folder": str(self.folder), "stopped": i18n.text(self.stopped)}


def snapshots(base: Path) -> list[Snapshot]:
    """Return the snapshots of a cluster, the oldest first."""
    found = []
    for file in sorted(archives.snapshots_of(base).glob(f"*/{archives.SNAPSHOT}")):
        facts = json.loads(file.read_text())
        found.append(Snapshot(folder=file.parent, **facts))
    return found


def prune(cluster: ReplicatedCluster, keep: int) -> tuple[int, int]:
    """Remove all snapshots except the last `keep`, and archived WAL from before the first of these.

    Return the numbers of removed snapshots and of removed WAL files.
    """
    every = snapshots(cluster.base)
    gone, kept = every[: max(0, len(every) - keep)], every[max(0, len(every) - keep) :]
    for s in gone:
        Made.at(s.folder).remove()
    if not kept:
        return len(gone), 0
    label = (kept[0].data / "backup_label").read_text()
    # As pg_archivecleanup: by position, whatever the timeline.
    first = re.findall(r"^START WAL LOCATION: .* \(file ([0-9A-F]{24})\)", label, re.MULTILINE)[0][8:]
    removed = 0
    for path in archives.folder_of(cluster.base).iterdir():
        if re.fullmatch(r"[0-9A-F]{24}(\.partial)?", path.name) and path.name[8:24] < first:
            path.unlink(missing_ok=True)
            removed += 1
    return len(gone), removed


def take(cluster: ReplicatedCluster, watch: Callable[[int], object] = lambda _: None) -> Snapshot:
    """Take a snapshot of a streaming standby while it replays.

    Take it from the primary if no standby streams. Raise RefusedError if the cluster archives no WAL or has
    tablespaces.
    """
    if cluster.archive is None:
        raise RefusedError(
            msg("error-archives-no-wal-so-snapshot", base=cluster.base), msg("remedy-make-cluster-archive")
        )
    if cluster.record.tablespaces:
        raise RefusedError(msg("error-snapshots-clusters-tablespaces-not-supported"), msg("remedy-make-one-without"))
    states = {s.name: s for s in cluster.states()}
    standbys = [m for m in cluster.members if states[m.name].streaming == "streaming"]
    member = min(standbys, key=lambda m: states[m.name].lag_bytes or 0) if standbys else cluster.primary
    began = time.monotonic()
    snapshots = archives.snapshots_of(cluster.base)
    snapshots.mkdir(mode=0o700, exist_ok=True)
    archives.remove_unfinished_snapshots(cluster.base)
    folder = snapshots / f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{member.name}"
    folder.mkdir(mode=0o700)
    try:
        with administration.connect(member.local, patience_s=None) as conn:
            copied, start, stop, timeline, at = _copied(conn, member, folder / "data", watch)
        found = Snapshot(
            folder, member.name, at.isoformat(), start, stop, timeline, copied.shared_bytes, copied.copied_bytes,
            time.monotonic() - began,
        )  # fmt: skip
        facts = {k: v for k, v in asdict(found).items() if k != "folder"}
        # Last: without it the folder is no snapshot.
        home.replace_file(folder / archives.SNAPSHOT, json.dumps(facts, indent=2) + "\n")
    except BaseException:
        Made.at(folder).remove()
        raise
    return found


def _copied(
    conn: psycopg.Connection[tuple[Any, ...]], member: Member, to: Path, watch: Callable[[int], object]
) -> tuple[clone.Copied, str, str, int, datetime]:
    """Copy a member's data directory by the protocol of base backups.

    The files change during the copy. The protocol makes the copy consistent again by WAL.
    """
    account, old = member.cluster.account, member.major < 15
    begin = "select pg_start_backup('pgdyno', true, false)" if old else "select pg_backup_start('pgdyno', true)"
    end = "pg_stop_backup(false, false)" if old else "pg_backup_stop(false)"
    start = _one(conn, begin)[0]
    copied = clone.tree(
        member.data, to, account, watch, online=True, emptied=_EMPTIED, left_out=[*_LEFT_OUT, "backup_label"]
    )
    # Last, as of a standby it says from when on the copy is whole.
    with account.rights():
        control = (member.data / "global" / "pg_control").read_bytes()
    # Nobody else reaches the copy yet.
    (to / "global" / "pg_control").write_bytes(control)
    stop, label, _ = _one(conn, f"select lsn::text, labelfile, spcmapfile from {end}")
    write(to / "backup_label", label)
    account.own(to / "backup_label")
    # As the server writes it since 11.
    timeline = int(re.findall(r"^START TIMELINE: (\d+)", label, re.MULTILINE)[0])
    return copied, str(start), str(stop), timeline, _one(conn, "select clock_timestamp()")[0]


def _one(conn: psycopg.Connection[tuple[Any, ...]], query: str) -> tuple[Any, ...]:
    row = conn.execute(query.encode()).fetchone()
    assert row is not None
    return row


def restore(
    cluster: ReplicatedCluster,
    to: str,
    into: Path,
    timeline: str = "latest",
    watch: Callable[[str, int], object] = lambda *_: None,
) -> Flashback:
    """Create and start a new cluster in `into`, in the state that `cluster` had at `to`.

    `to` is a time, a position in the WAL, or "latest" for the end of the WAL. If the new cluster does not reach that
    state, nothing of it is left. Raise UsageError if `to` or `timeline` is invalid. Raise RefusedError if no snapshot
    or no WAL leads to that state. Raise ClusterError if archiving or the new server fails.
    """
    if cluster.archive is None:
        raise RefusedError(msg("error-archives-no-wal", base=cluster.base), msg("remedy-make-cluster-archive"))
    if timeline != "latest" and not timeline.isdigit():
        raise UsageError(
            msg("error-timeline-none", timeline=repr(timeline)), msg("remedy-latest-or-number-pgdyno-cluster")
        )
    target = _target(to)
    every = snapshots(cluster.base)
    # Of a later timeline there is no way to an earlier one.
    chosen = _before([s for s in every if timeline == "latest" or s.timeline <= int(timeline)], to, target)
    began = time.monotonic()
    _archive_all(cluster)
    new = ManagedCluster(into)
    new.prepare()
    try:
        copied = clone.tree(chosen.data, new.data, new.account, lambda n: watch("copy", n))
        _configure(cluster, new, target, timeline)
        programs = cluster.primary.cluster
        new.remember(Binaries(programs.programs(), programs.version(), "of the primary"))
        watch("replay", copied.shared_bytes + copied.copied_bytes)
        _start(new)
    except BaseException:
        if (new.base / FACTS).exists():
            new.stop()
        new.abandon()
        raise
    stopped, last = _reason(new.layout.log)
    found = Flashback(new.base, chosen.folder.name, stopped, last, time.monotonic() - began)
    _verify(cluster, new, found)
    return found


def _target(to: str) -> tuple[str, str] | None:
    """Return the setting that ends recovery, with its value, or None for the end of WAL."""
    if to == "latest":
        return None
    if _LSN.fullmatch(to):
        return "recovery_target_lsn", to
    try:
        when = datetime.fromisoformat(to)
    except ValueError:
        raise UsageError(msg("error-no-time-lsn-or-latest", to=repr(to)), msg("remedy-write-2026-11-23-09")) from None
    if when.tzinfo is None:
        raise UsageError(msg("error-no-time-zone", to=repr(to)), msg("remedy-write-one-00-for-utc", to=to))
    return "recovery_target_time", when.isoformat(sep=" ")


def _before(found: list[Snapshot], to: str, target: tuple[str, str] | None) -> Snapshot:
    """Return the last snapshot that was complete before the target.

    Raise RefusedError if no such snapshot exists.
    """

    def is_before(s: Snapshot) -> bool:
        if target is None:
            return True
        if target[0] == "recovery_target_lsn":
            return _position(s.stop_lsn) <= _position(target[1])
        return s.when <= datetime.fromisoformat(target[1])

    fitting = [s for s in found if is_before(s)]
    if not fitting:
        there = msg("why-first-snapshot", at=found[0].at, lsn=found[0].stop_lsn) if found else msg("why-no-snapshot")
        raise RefusedError(
            msg("error-no-snapshot-from-before", to=to, there=there), msg("remedy-pgdyno-cluster-snapshot-keeps-one")
        )
    return fitting[-1]


def _position(lsn: str) -> int:
    high, _, low = lsn.partition("/")
    return (int(high, 16) << 32) + int(low, 16)


def _archive_all(cluster: ReplicatedCluster) -> None:
    """Archive all WAL that the primary has written so far.

    Do nothing if no primary runs: the restore command also searches the pg_wal of each member. Raise ClusterError if
    the last segment is not archived in time.
    """
    primary = cluster.primary
    if state.member_state(primary).role != "primary":
        return
    with administration.connect(primary.local) as conn:
        # A record of its own: a segment that nothing was written to is not switched.
        conn.execute("select pg_create_restore_point('pgdyno flashback')")
        last = _one(conn, "select pg_walfile_name(pg_switch_wal())")[0]
        deadline = time.monotonic() + _ARCHIVED_S
        while not (archives.folder_of(cluster.base) / last).exists():
            if time.monotonic() > deadline:
                raise ClusterError(
                    msg(
                        "error-not-archived-within-s",
                        last=last,
                        archived_s=f"{_ARCHIVED_S:g}",
                        last_words=primary.last_words(),
                    )
                )
            time.sleep(0.02)


def _configure(cluster: ReplicatedCluster, new: ManagedCluster, target: tuple[str, str] | None, timeline: str) -> None:
    folders = [archives.folder_of(cluster.base), *(m.data / "pg_wal" for m in cluster.members)]
    own = [
        Setting("restore_command", archives.restore_command(folders), "flashback"),
        Setting("recovery_target_timeline", timeline, "flashback"),
        Setting("listen_addresses", "", "socket-only"),
        Setting("cluster_name", "flashback", "cluster-name"),
    ]
    if target is not None:
        own += [
            Setting(*target, "flashback"),
            Setting("recovery_target_action", "promote", "flashback"),
            Setting("recovery_target_inclusive", "on", "flashback"),
        ]
    names = {s.name for s in own} | _ITS_OWN
    settings = [Setting(*s) for s in cluster.record.settings if s[0] not in names]
    new.layout.configure(new.account, [*settings, *own])
    with new.account.rights():
        write(new.data / "recovery.signal", "")


def _start(new: ManagedCluster) -> None:
    """Until it has replayed, and takes writes."""
    try:
        new.start()
        while new.process_id() is not None:
            with administration.connect(_superuser(new)) as conn:
                if not _one(conn, "select pg_is_in_recovery()")[0]:
                    return
            time.sleep(0.05)
    except (ClusterError, TargetError, psycopg.Error):
        # It has ended, or is about to: sessions are cut first, and its log says why.
        if not _has_ended(new):
            raise
    if "recovery ended before configured recovery target was reached" in new.layout.log.read_text(errors="replace"):
        raise RefusedError(
            msg("error-wal-ends-before-last-transaction", value=_reason(new.layout.log)[1] or msg("state-unknown")),
            msg("remedy-latest-takes-all-there-timeline"),
        )
    raise ClusterError(msg("error-server-ended-while-replayed", last_words=last_words(new.layout.log)))


def _has_ended(new: ManagedCluster) -> bool:
    deadline = time.monotonic() + _ENDS_S
    while new.process_id() is not None:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _superuser(new: ManagedCluster) -> Target:
    # What the database's owner has set is not heeded: whatever is called is PostgreSQL's own.
    return replace(new.layout.target, options={"options": "-c search_path=pg_catalog"})


def _reason(log: Path) -> tuple[Text, str]:
    """Return the position at which recovery stopped, and the time of the last transaction, from the log."""
    text = log.read_text(errors="replace")
    stopped = re.findall(r"LOG:\s+(recovery stopping .*)", text)
    last = re.findall(r"last completed transaction was at log time (.*)", text)
    return Name(stopped[-1]) if stopped else msg("flashback-end-of-wal"), last[-1] if last else ""


def _verify(cluster: ReplicatedCluster, new: ManagedCluster, found: Flashback) -> None:
    """Rows of all tables; and the ledger's: of each client those that are here must be the first that it has."""
    ask = """select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
             where c.relkind in ('r', 'p') and not c.relispartition
               and n.nspname not in ('pg_catalog', 'information_schema') order by 1, 2"""
    ours = "select run, client, count(*), max(sequence) from public.pgdyno_ledger group by 1, 2"
    with administration.connect(_superuser(new), patience_s=None) as conn:
        for schema, name in conn.execute(ask.encode()).fetchall():
            query = sql.SQL("select count(*) from {}").format(sql.Identifier(schema, name))
            row = conn.execute(query).fetchone()
            found.rows[f"{schema}.{name}"] = int(row[0]) if row else 0
        if "public.pgdyno_ledger" not in found.rows or state.member_state(cluster.primary).role != "primary":
            return
        if not is_plain_table(conn, "public.pgdyno_ledger"):
            return
        here = {(run, client): (n, last) for run, client, n, last in conn.execute(ours.encode()).fetchall()}
    with administration.connect(cluster.target_of(cluster.primary), patience_s=None) as conn:
        there = _one(conn, "select count(*) from public.pgdyno_ledger")[0]
        for (run, client), (n, last) in here.items():
            first = "select count(*) from public.pgdyno_ledger where run = %s and client = %s and sequence <= %s"
            row = conn.execute(first, [run, client, last]).fetchone()
            has = int(row[0]) if row else 0
            found.torn += n < has
            found.lost_since += max(0, n - has)
    found.ledger = (found.rows["public.pgdyno_ledger"], int(there))
