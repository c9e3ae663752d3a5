"""System variables of a private MariaDB, sized to a machine, and what promises equal PostgreSQL's settings."""

from __future__ import annotations

from collections.abc import Mapping

from pgdyno.cluster.settings import GIB, MIB, Setting

#: Where the server is reached, and where its files are.
_OURS = ("datadir", "socket", "port", "pid_file", "skip_networking", "bind_address", "user", "log_error", "basedir")
#: Ways to write one variable as another, and variables that name files elsewhere or let others in.
_PREFIXES = ("loose_", "skip_", "enable_", "disable_", "maximum_", "init_", "plugin_", "tmpdir", "log_bin", "chroot")
_SUFFIXES = ("_dir", "_directory", "_file", "_path")
_OFF = ("off", "false", "no", "0", "local_off")
#: PostgreSQL's settings that decide what a commit promises, with their defaults.
PROMISES: Mapping[str, str] = {"synchronous_commit": "on", "fsync": "on", "full_page_writes": "on"}


def is_ours(name: str) -> bool:
    """Return True for a variable that an experiment may not set; the server takes the beginning of a name for it."""
    name = name.lower()
    return name.startswith(_PREFIXES) or name.endswith(_SUFFIXES) or any(own.startswith(name) for own in _OURS)


def sized(memory_bytes: int, clients: int) -> list[Setting]:
    """Return system variables for a machine of this size that also runs the client, and for `clients` connections.

    InnoDB reads and writes past the kernel's cache, so that its buffer pool is all the cache that it has; PostgreSQL
    uses shared_buffers and the kernel's cache. A commit promises what a commit of PostgreSQL does by default.
    """
    pool = max(memory_bytes // 2, 128 * MIB)
    return [
        Setting("innodb_buffer_pool_size", f"{pool // MIB}M", "buffer-pool"),
        Setting("innodb_log_file_size", f"{2 * GIB // MIB}M", "redo-log"),
        Setting("max_connections", str(max(100, clients + 20)), "connections"),
        Setting("transaction_isolation", "READ-COMMITTED", "same-isolation"),
        Setting("innodb_flush_log_at_trx_commit", "1", "same-promise"),
        Setting("innodb_doublewrite", "ON", "same-promise"),
        Setting("max_allowed_packet", "64M", "load-packets"),
    ]


def equal_promises(settings: Mapping[str, object]) -> dict[str, str]:
    """Return the system variables whose promises equal those of PostgreSQL's settings, of those that are named.

    A commit that PostgreSQL does not wait for is lost when the server's processes die, so its equal is 0, not 2:
    with 2 such a commit survives them. Settings without an equal are left out.
    """
    found = {}
    for name, value in ((n.lower(), v) for n, v in settings.items()):
        is_off = str(value).lower() in _OFF
        if name == "synchronous_commit":
            found["innodb_flush_log_at_trx_commit"] = "0" if is_off else "1"
        elif name == "full_page_writes":
            found["innodb_doublewrite"] = "OFF" if is_off else "ON"
        elif name == "fsync":
            found["innodb_flush_method"] = "nosync" if is_off else "O_DIRECT"
    return found
