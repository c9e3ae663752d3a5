"""Servers that tests share."""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.server import DEBIAN_15, Server

# The machine may be busy: how long an example takes is no property. The same examples each time: what fails here fails
# again; new ones are drawn by `make fuzz`.
settings.register_profile("pgdyno", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("pgdyno")

#: Of unshare(2).
_CLONE_NEWNET = 0x40000000
#: Of the ioctls of a network device (linux/sockios.h), and of its flags.
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1


def _network_of_its_own() -> None:
    """Programs that load a machine at a time see each other by their network; those of another network are on another
    machine for them. Loopback alone is in this one. Root may do that.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "no network of its own for a worker (see the Makefile: LOADING)")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", _IFF_UP))


def pytest_configure() -> None:
    """Signals act as a terminal has them: a shell's background job ignores SIGINT, nohup SIGHUP, and every program
    that the tests start would inherit that.
    """
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    if "PYTEST_XDIST_WORKER" in os.environ and "PGDYNO_TESTS_APART" in os.environ:
        _network_of_its_own()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Cases of a test beyond those that are `sampled` are slow.

    PGDYNO_TESTS_SHARE=1/3: the second of three shares of the tests, each test in one of them by its name.
    """
    cases: Counter[tuple[Path, str]] = Counter()
    for item in items:
        if (sampled := item.get_closest_marker("sampled")) is not None and isinstance(item, pytest.Function):
            test = (item.path, item.originalname)
            cases[test] += 1
            if cases[test] > sampled.args[0]:
                item.add_marker(pytest.mark.slow)
    share = os.environ.get("PGDYNO_TESTS_SHARE", "")
    if not share:
        return
    which, of = (int(n) for n in share.split("/"))
    others = [item for item in items if zlib.crc32(item.nodeid.encode()) % of != which]
    items[:] = [item for item in items if item not in others]
    config.hook.pytest_deselected(items=others)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """PostgreSQL 18, the wheel's."""
    s = Server(hba="host all all 127.0.0.1/32 scram-sha-256", conf="max_prepared_transactions=4\n")
    with s:
        yield s


@pytest.fixture(scope="session")
def tls_server() -> Iterator[tuple[Server, Path]]:
    """Debian's PostgreSQL 15 with TLS, SCRAM, md5 and password; the wheel is built without TLS."""
    if not (DEBIAN_15 / "postgres").exists():
        pytest.skip("needs TLS in the server, which the wheel lacks: apt-get install postgresql-15")
    s = Server(
        bin_folder=DEBIAN_15,
        hba=(
            "hostssl all scram 127.0.0.1/32 scram-sha-256\n"
            "host all plain 127.0.0.1/32 password\n"
            "host all md5user 127.0.0.1/32 md5\n"
            "host all scram 127.0.0.1/32 reject\n"
        ),
    )
    ca = s.use_tls("localhost")
    with s:
        s.sql("create role scram login password 'geheim'")
        s.sql("create role plain login password 'geheim'")
        s.sql("set password_encryption = md5; create role md5user login password 'geheim'")
        yield s, ca


@pytest.fixture
def database(server: Server, request: pytest.FixtureRequest) -> Iterator[str]:
    """An empty database of its own."""
    name = f"t{abs(hash(request.node.nodeid)) % 10**10}"
    server.sql(f"create database {name}")
    yield name
    server.sql(f"drop database if exists {name} with (force)")
