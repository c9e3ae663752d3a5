"""A real server for tests: any version, TCP and socket, any authentication, TLS; killed and started at will."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import psutil
import psycopg
from pgdyno.cluster import binaries
from pgdyno.cluster.account import server_account

from tests.support.waiting import wait_until

DEBIAN_15 = Path("/usr/lib/postgresql/15/bin")


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def answers(conninfo: str) -> bool:
    """Return True if a session can be made."""
    try:
        psycopg.connect(conninfo).close()
    except psycopg.Error:
        return False
    return True


def make_certificate(folder: Path, host: str) -> tuple[Path, Path, Path]:
    """An authority's certificate, and a key and certificate that it has signed for `host`."""
    ca, ca_key, key, crt, csr = (folder / n for n in ("ca.crt", "ca.key", "host.key", "host.crt", "host.csr"))
    (folder / "ext").write_text(f"subjectAltName=DNS:{host}\n")

    def openssl(*args: Any) -> None:
        subprocess.run(["openssl", *map(str, args)], check=True, capture_output=True)

    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test authority",
            "-keyout", ca_key, "-out", ca)  # fmt: skip
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={host}", "-keyout", key, "-out", csr)
    openssl("x509", "-req", "-in", csr, "-CA", ca, "-CAkey", ca_key, "-CAcreateserial", "-days", "2",
            "-extfile", folder / "ext", "-out", crt)  # fmt: skip
    return ca, key, crt


class Server:
    """A cluster in a temporary folder; trust for the superuser on the socket, `hba` for all others."""

    def __init__(
        self,
        *,
        bin_folder: Path | None = None,
        hba: str = "",
        conf: str = "",
        folder: Path | None = None,
        initdb: tuple[str, ...] = (),
    ) -> None:
        self.account = server_account()
        self.base = Path(tempfile.mkdtemp(prefix="pgdyno-test-"))
        self.base.chmod(0o755)
        self.data_parent = folder or self.base
        self.data = self.data_parent / "data"
        self.data.mkdir(mode=0o700)
        self.account.own(self.data)
        self.socket = self.base / "s"
        self.socket.mkdir(mode=0o777)
        self.account.own(self.socket)
        self.bin = binaries.find(self.account, self.base / "programs", bin_folder).folder
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self._run(
            "initdb",
            "-D",
            self.data,
            "-U",
            "postgres",
            "-A",
            "trust",
            "--no-sync",
            "--encoding=UTF8",
            "--locale=C",
            *initdb,
        )
        first = "local all postgres trust\nlocal replication postgres trust\n"
        (self.data / "pg_hba.conf").write_text(f"{first}{hba}\nlocal all all trust\n")
        with (self.data / "postgresql.conf").open("a") as f:
            f.write(
                f"port={self.port}\nlisten_addresses='127.0.0.1'\nunix_socket_directories='{self.socket}'\n"
                f"fsync=off\nshared_buffers=64MB\nmax_wal_size=1GB\n{conf}\n"
            )

    def _run(self, program: str, *args: Any) -> None:
        env = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
        done = subprocess.run(
            [self.bin / program, *map(str, args)],
            capture_output=True, text=True, cwd="/", env=env, check=False, **self.account.popen(),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def use_tls(self, host: str = "localhost") -> Path:
        """A self-made authority and a certificate for `host`; returns the authority's certificate."""
        ca, key, crt = make_certificate(self.base, host)
        for source, name in ((key, "server.key"), (crt, "server.crt")):
            shutil.copy(source, self.data / name)
            self.account.own(self.data / name)
            (self.data / name).chmod(0o600)
        with (self.data / "postgresql.conf").open("a") as f:
            f.write("ssl=on\n")
        return ca

    def start(self) -> Server:
        env = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
        with (self.base / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [self.bin / "postgres", "-D", self.data],
                stdout=log, stderr=log, cwd="/", env=env, start_new_session=True, **self.account.popen(),
            )  # fmt: skip
        wait_until(lambda: answers(f"{self.conninfo()} connect_timeout=5"), process=self.process, why=self.log)
        return self

    def log(self) -> str:
        return (self.base / "log").read_text(errors="replace")[-3000:]

    def kill(self) -> None:
        """SIGKILL, postmaster and all."""
        assert self.process is not None
        family = [self.process.pid, *(c.pid for c in psutil.Process(self.process.pid).children(recursive=True))]
        for pid in family:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(10)

    def stop(self) -> None:
        """In order."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)

    def remove(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
        shutil.rmtree(self.base, ignore_errors=True)

    def conninfo(self, **more: Any) -> str:
        values: dict[str, Any] = {
            "host": str(self.socket),
            "port": self.port,
            "user": "postgres",
            "dbname": "postgres",
        } | more
        return psycopg.conninfo.make_conninfo("", **values)

    def sql(self, text: str, **more: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.conninfo(**more), autocommit=True) as conn:
            cursor = conn.execute(text.encode())
            return cursor.fetchall() if cursor.description else []

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.remove()
