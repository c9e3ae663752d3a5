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
    reason: str
    #: The first version that has it.
    since: int = 0

    @property
    def line(self) -> str:
        """A line of postgresql.conf."""
        doubled = self.value.replace("\\", "\\\\").replace("'", "''")
        return f"{self.name} = '{doubled}'  # {self.reason}"


def reason(name: str) -> str:
    """Return the reason of a setting in English, by its id in the catalogues without `reason-`."""
    return i18n.text(message(f"reason-{name}"))


def sized(memory_bytes: int, cores: int, clients: int) -> list[Setting]:
    """Return settings for a machine of this size that also runs the client, and for `clients` connections.

    Durability is PostgreSQL's default: fsync, full_page_writes and synchronous_commit stay on.
    """
    shared = min(max(memory_bytes // 4, 128 * MIB), 32 * GIB)
    maintenance = min(max(memory_bytes // 16, 64 * MIB), 2 * GIB)
    connections = max(100, clients + 20)
    return [
        Setting("shared_buffers", _mb(shared), reason("shared-buffers")),
        Setting("effective_cache_size", _mb(memory_bytes * 3 // 4), reason("cache-size")),
        Setting("maintenance_work_mem", _mb(maintenance), reason("maintenance")),
        Setting("max_connections", str(connections), reason("connections")),
        Setting("max_wal_size", "4GB", reason("max-wal")),
        Setting("min_wal_size", "1GB", reason("min-wal")),
        Setting("checkpoint_timeout", "15min", reason("checkpoint-timeout")),
        Setting("max_worker_processes", str(max(8, cores)), reason("one-per-core")),
        Setting("max_parallel_maintenance_workers", str(max(2, cores // 2)), reason("index-workers")),
        Setting("jit", "off", reason("jit")),
        Setting("track_io_timing", "on", reason("io-timing")),
        Setting("track_wal_io_timing", "on", reason("wal-timing"), since=14),
        Setting("log_checkpoints", "on", reason("log-checkpoints")),
        Setting("log_autovacuum_min_duration", "0", reason("log-autovacuum")),
        Setting("log_temp_files", "0", reason("log-temp-files")),
        Setting("log_lock_waits", "on", reason("log-lock-waits")),
        Setting("listen_addresses", "", reason("private-socket")),
        Setting("unix_socket_permissions", "0700", reason("private")),
        Setting("logging_collector", "off", reason("log-file")),
        Setting("cluster_name", "pgdyno", reason("cluster-name")),
    ]


def counting_statements(programs: Path) -> list[Setting]:
    """Return settings that let reports show the work of each statement.

    They load pg_stat_statements, if the programs include it. It counts only when it is switched on, because counting
    costs too much during a measurement.
    """
    if not has_library(programs, STATEMENTS):
        return []
    return [
        Setting("shared_preload_libraries", STATEMENTS, reason("statements")),
        Setting(f"{STATEMENTS}.track", "none", reason("statements-off")),
    ]


def _mb(size: int) -> str:
    return f"{size // MIB}MB"
