"""Server settings sized to a machine; each with its reason, because a report must be able to give it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pgdyno.cluster.binaries import has_library

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


def sized(memory_bytes: int, cores: int, clients: int) -> list[Setting]:
    """Return settings for a machine of this size that also runs the client, and for `clients` connections.

    Durability is PostgreSQL's default: fsync, full_page_writes and synchronous_commit stay on.
    """
    shared = min(max(memory_bytes // 4, 128 * MIB), 32 * GIB)
    maintenance = min(max(memory_bytes // 16, 64 * MIB), 2 * GIB)
    connections = max(100, clients + 20)
    return [
        Setting("shared_buffers", _mb(shared), "a quarter of the memory"),
        Setting("effective_cache_size", _mb(memory_bytes * 3 // 4), "what the page cache may hold as well"),
        Setting("maintenance_work_mem", _mb(maintenance), "index builds: a sixteenth of the memory, at most 2 GB"),
        Setting("max_connections", str(connections), "the most clients, and some for administration"),
        Setting("max_wal_size", "4GB", "checkpoints by time, not by volume, in a short run"),
        Setting("min_wal_size", "1GB", "WAL segments are recycled, not made anew"),
        Setting("checkpoint_timeout", "15min", "none within a short run, unless the volume asks for it"),
        Setting("max_worker_processes", str(max(8, cores)), "one a core"),
        Setting("max_parallel_maintenance_workers", str(max(2, cores // 2)), "index builds use half the cores"),
        Setting("jit", "off", "the statements are too short for it"),
        Setting("track_io_timing", "on", "so that reports can tell how long reads took"),
        Setting("track_wal_io_timing", "on", "the same of WAL", since=14),
        Setting("log_checkpoints", "on", "so that reports can mark them"),
        Setting("log_autovacuum_min_duration", "0", "the same of autovacuums"),
        Setting("log_temp_files", "0", "the same of temporary files"),
        Setting("log_lock_waits", "on", "so that the log tells of contention"),
        Setting("listen_addresses", "", "private: a Unix-domain socket only"),
        Setting("unix_socket_permissions", "0700", "private"),
        Setting("logging_collector", "off", "the log is the server's standard error, in a file of ours"),
        Setting("cluster_name", "pgdyno", "so that ps tells whose it is"),
    ]


def counting_statements(programs: Path) -> list[Setting]:
    """Return settings that let reports show the work of each statement.

    They load pg_stat_statements, if the programs include it. It counts only when it is switched on, because counting
    costs too much during a measurement.
    """
    if not has_library(programs, STATEMENTS):
        return []
    return [
        Setting("shared_preload_libraries", STATEMENTS, "so that reports can tell what each statement did"),
        Setting(f"{STATEMENTS}.track", "none", "it is told when: to count costs 3 to 4% of short statements"),
    ]


def _mb(size: int) -> str:
    return f"{size // MIB}MB"
