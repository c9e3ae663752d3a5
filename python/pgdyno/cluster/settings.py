"""Server settings sized to a machine; each with its reason, because a report must be able to give it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pgdyno import i18n
from pgdyno.cluster.binaries import has_library
from pgdyno.message import message

MIB = 1024 * 1024
GIB = 1024 * MIB

STATEMENTS = "pg_stat_statements"
#: How we reach the server, and where its files are.
OURS = {
    "port",
    "unix_socket_directories",
    "data_directory",
    "hba_file",
    "ident_file",
    "config_file",
    "external_pid_file",
}


@dataclass(frozen=True)
class Setting:
    """A server setting."""

    name: str
    #: As it is meant, without quotes.
    value: str
    #: Id of the reason in the catalogues without `reason-`; in records of earlier versions, its text.
    reason: str
    #: The first version that has it.
    since: int = 0

    @property
    def why(self) -> str:
        """The reason in English."""
        id = f"reason-{self.reason}"
        return i18n.text(message(id)) if id in i18n.catalogue("en") else self.reason

    @property
    def line(self) -> str:
        """A line of postgresql.conf."""
        doubled = self.value.replace("\\", "\\\\").replace("'", "''")
        return f"{self.name} = '{doubled}'  # {self.why}"


def sized(memory_bytes: int, cores: int, clients: int) -> list[Setting]:
    """Return settings for a machine of this size that also runs the client, and for `clients` connections.

    Durability is PostgreSQL's default: fsync, full_page_writes and synchronous_commit stay on.
    """
    shared = min(max(memory_bytes // 4, 128 * MIB), 32 * GIB)
    maintenance = min(max(memory_bytes // 16, 64 * MIB), 2 * GIB)
    connections = max(100, clients + 20)
    return [
        Setting("shared_buffers", _mb(shared), "shared-buffers"),
        Setting("effective_cache_size", _mb(memory_bytes * 3 // 4), "cache-size"),
        Setting("maintenance_work_mem", _mb(maintenance), "maintenance"),
        Setting("max_connections", str(connections), "connections"),
        Setting("max_wal_size", "4GB", "max-wal"),
        Setting("min_wal_size", "1GB", "min-wal"),
        Setting("checkpoint_timeout", "15min", "checkpoint-timeout"),
        Setting("max_worker_processes", str(max(8, cores)), "one-per-core"),
        Setting("max_parallel_maintenance_workers", str(max(2, cores // 2)), "index-workers"),
        Setting("jit", "off", "jit"),
        Setting("track_io_timing", "on", "io-timing"),
        Setting("track_wal_io_timing", "on", "wal-timing", since=14),
        Setting("log_checkpoints", "on", "log-checkpoints"),
        Setting("log_autovacuum_min_duration", "0", "log-autovacuum"),
        Setting("log_temp_files", "0", "log-temp-files"),
        Setting("log_lock_waits", "on", "log-lock-waits"),
        Setting("listen_addresses", "", "private-socket"),
        Setting("unix_socket_permissions", "0700", "private"),
        Setting("logging_collector", "off", "log-file"),
        Setting("cluster_name", "pgdyno", "cluster-name"),
    ]


def counting_statements(programs: Path) -> list[Setting]:
    """Return settings that let reports show the work of each statement.

    They load pg_stat_statements, if the programs include it. It counts only when it is switched on, because counting
    costs too much during a measurement.
    """
    if not has_library(programs, STATEMENTS):
        return []
    return [
        Setting("shared_preload_libraries", STATEMENTS, "statements"),
        Setting(f"{STATEMENTS}.track", "none", "statements-off"),
    ]


def _mb(size: int) -> str:
    return f"{size // MIB}MB"
