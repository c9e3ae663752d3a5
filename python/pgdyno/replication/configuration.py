"""Settings of a replicated cluster: those of each member, and changes to them."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.cluster import administration
from pgdyno.cluster.settings import Setting
from pgdyno.replication import archives
from pgdyno.replication.backup import quoted
from pgdyno.replication.cluster import CLIENT_ROLE, REPLICATION_ROLE, ReplicatedCluster
from pgdyno.replication.member import Member


def settings_for(cluster: ReplicatedCluster, member: Member, primary: Member) -> list[Setting]:
    """Return the settings of a member while `primary` is the primary."""
    settings = [_expanded(cluster, Setting(*s)) for s in cluster.record.settings]
    if cluster.archive is not None:
        settings += archives.settings(cluster.archive)
    if member.name == primary.name:
        return settings
    passfile = str(cluster.base / member.name / "passfile")
    source = {
        "host": primary.address,
        "port": primary.port,
        "user": REPLICATION_ROLE,
        "application_name": member.name,
        "passfile": passfile,
        "connect_timeout": 3,
        "sslmode": "disable",
    }
    return [
        *settings,
        Setting("primary_conninfo", " ".join(f"{k}={quoted(str(v))}" for k, v in source.items()), "primary"),
        Setting("primary_slot_name", member.name, "slot"),
    ]


def _expanded(cluster: ReplicatedCluster, setting: Setting) -> Setting:
    """`*` would be anybody who streams, a base backup that is being taken too: members are meant."""
    if setting.name != "synchronous_standby_names":
        return setting
    return replace(setting, value=names_of(cluster, setting.value))


def names_of(cluster: ReplicatedCluster, synchronous_standby_names: str) -> str:
    """Return the setting with the names of the members in place of `*`."""
    return synchronous_standby_names.replace("*", ", ".join(cluster.record.members))


def configure(cluster: ReplicatedCluster, member: Member, primary: Member) -> None:
    """Write a member's configuration."""
    write_passfile(cluster, member)
    member.configure(settings_for(cluster, member, primary), access(cluster))


def access(cluster: ReplicatedCluster) -> list[str]:
    """Return the lines of pg_hba.conf that let members replicate and clients connect."""
    members = sorted({m.address for m in cluster.members})
    client = "127.0.0.1" if cluster.network is None else cluster.network.client
    return [
        *(f"host replication {REPLICATION_ROLE} {a}/32 scram-sha-256" for a in members),
        f"host all {CLIENT_ROLE} {client}/32 scram-sha-256",
        *(f"host all {CLIENT_ROLE} {a}/32 scram-sha-256" for a in members if a != client),
    ]


def write_passfile(cluster: ReplicatedCluster, member: Member) -> None:
    """Write the password file by which a member connects to its primary."""
    path = cluster.base / member.name / "passfile"
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    lines = [
        f"{m.address}:{m.port}:*:{REPLICATION_ROLE}:{cluster.record.replication_password}" for m in cluster.members
    ]
    path.write_text("\n".join(lines) + "\n")
    member.cluster.account.own(path)


def change_settings(cluster: ReplicatedCluster, **values: str) -> None:
    """Change settings of all members that need no restart; the members apply them at once."""
    unlike = [s for s in cluster.record.settings if s[0] not in values]
    cluster.record.settings = [*unlike, *((name, value, "set later", 0) for name, value in values.items())]
    cluster.record.synchronous_standby_names = values.get(
        "synchronous_standby_names", cluster.record.synchronous_standby_names
    )
    cluster.record.save(cluster.base)
    for m in cluster.members:
        configure(cluster, m, cluster.primary)
        m.reload()


def setting_of(cluster: ReplicatedCluster, name: str) -> str:
    """Return the value of a setting on the primary."""
    with administration.connect(cluster.primary.local) as conn:
        row = conn.execute("select current_setting(%s)", [name]).fetchone()
    return str(row[0]) if row else ""
