"""Patroni for real, as Debian packages it: etcd and three members, each on a host of its own (a network namespace)."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

from pgdyno.cluster import network as networks
from pgdyno.cluster.account import server_account
from pgdyno.cluster.network import Network

from tests.support.server import DEBIAN_15
from tests.support.waiting import wait_until

MEMBERS = ("node1", "node2", "node3")
PASSWORD = "drill"
#: Its settings, as short as Patroni takes them: what is measured then is how Patroni decides, not how long it waits.
_DCS = {"ttl": 20, "loop_wait": 1, "retry_timeout": 3, "maximum_lag_on_failover": 1 << 20}
_READY_S = 90.0


def is_possible() -> bool:
    """Whether it can run here."""
    programs = all(map(shutil.which, ("patroni", "etcd")))
    return programs and networks.is_possible() and (DEBIAN_15 / "postgres").exists()


class Patroni:
    """Use as a context manager: a cluster with a leader and two replicas that stream."""

    def __init__(self, folder: Path, *, synchronous: bool = False, strict: bool = False) -> None:
        self.folder = folder
        self.account = server_account()
        self.network = Network.for_folder(folder, ["etcd", *MEMBERS])
        self._dcs = {**_DCS, "synchronous_mode": synchronous, "synchronous_mode_strict": strict}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Patroni:
        try:
            self.network.up()
            self._start_etcd()
            for name in MEMBERS:
                self._configure(name)
                self.start(name)
            self.wait_whole()
            self._make_role()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name in (*MEMBERS, "etcd"):
            self.kill(name)
        self.network.down()

    def _start_etcd(self) -> None:
        address = self.network.address("etcd")
        data = self.folder / "etcd"
        data.mkdir(mode=0o700)
        self.account.own(data)
        urls = (f"http://{address}:2379", f"http://{address}:2380")
        words = [
            "etcd", "--data-dir", str(data), "--listen-client-urls", urls[0], "--advertise-client-urls", urls[0],
            "--listen-peer-urls", urls[1], "--initial-advertise-peer-urls", urls[1], "--initial-cluster",
            f"default={urls[1]}", "--log-level", "error",
        ]  # fmt: skip
        self._run("etcd", words)

    def _configure(self, name: str) -> None:
        address, base = self.network.address(name), self.folder / name
        base.mkdir(mode=0o755)
        socket = base / "socket"
        socket.mkdir(mode=0o700)
        for owned in (base, socket):
            self.account.own(owned)
        roles = {r: {"username": r, "password": PASSWORD} for r in ("replication", "superuser", "rewind")}
        roles["superuser"]["username"] = "postgres"
        config: dict[str, Any] = {
            "scope": "drill",
            "name": name,
            "restapi": {"listen": f"{address}:8008", "connect_address": f"{address}:8008"},
            "etcd3": {"host": f"{self.network.address('etcd')}:2379"},
            "bootstrap": {
                "dcs": {
                    **self._dcs,
                    "postgresql": {
                        "use_pg_rewind": True,
                        "use_slots": True,
                        "parameters": {"shared_buffers": "32MB", "wal_log_hints": "on", "max_connections": 100},
                    },
                },
                "initdb": [{"encoding": "UTF8"}, {"locale": "C"}],
                "pg_hba": [
                    "local all all trust",
                    "host replication replication 198.18.0.0/16 scram-sha-256",
                    "host all all 198.18.0.0/16 scram-sha-256",
                ],
            },
            "postgresql": {
                "listen": f"{address}:5432",
                "connect_address": f"{address}:5432",
                "data_dir": str(base / "data"),
                "bin_dir": str(DEBIAN_15),
                "pgpass": str(base / "pgpass"),
                "authentication": roles,
                "parameters": {"unix_socket_directories": str(socket)},
            },
        }
        # JSON is YAML.
        (base / "patroni.yml").write_text(json.dumps(config, indent=2))

    def _run(self, name: str, words: list[str]) -> None:
        log = (self.folder / f"{name}.log").open("ab")
        # Killed with the test, however that ends.
        launch = self.network.launch(name, self.account, dies_by="KILL")
        env = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "PYTHON", "VIRTUAL"))}
        self._processes[name] = subprocess.Popen([*launch, *words], stdout=log, stderr=log, cwd="/", env=env)
        log.close()

    def start(self, name: str) -> None:
        """A member, with its PostgreSQL."""
        self._run(name, ["/usr/bin/patroni", str(self.folder / name / "patroni.yml")])

    def kill(self, name: str) -> None:
        """A host's end: Patroni and its PostgreSQL at once."""
        process = self._processes.pop(name, None)
        if process is not None:
            process.kill()
        with contextlib.suppress(subprocess.CalledProcessError):
            listed = subprocess.check_output(["ip", "netns", "pids", self.network.namespace(name)], text=True)
            for pid in map(int, listed.split()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        if process is not None:
            process.wait()

    def kill_command(self) -> str:
        """The same as a shell command of a drill: it kills PGDYNO_PRIMARY's."""
        prefix = self.network.namespace("")
        # Some end by themselves when others are killed.
        return f"ip netns pids {prefix}$PGDYNO_PRIMARY | xargs -r kill -9 || true"

    def start_missing(self) -> None:
        """Members that were killed come back."""
        for name, process in list(self._processes.items()):
            if process.poll() is not None and name != "etcd":
                self.start(name)

    def cluster(self) -> dict[str, Any]:
        """As Patroni's REST API shows it; empty: nobody answers."""
        for name in MEMBERS:
            with contextlib.suppress(OSError, ValueError):
                url = f"http://{self.network.address(name)}:8008/cluster"
                with urllib.request.urlopen(url, timeout=2) as answer:
                    found: dict[str, Any] = json.load(answer)
                    return found
        return {}

    def wait_whole(self) -> None:
        """Until there is a leader, and the others stream."""

        def is_whole() -> bool:
            members = self.cluster().get("members", [])
            leaders = [m for m in members if m["role"] == "leader" and m["state"] == "running"]
            others = [m for m in members if m["role"] != "leader" and m["state"] in ("running", "streaming")]
            return len(leaders) == 1 and len(others) == len(MEMBERS) - 1

        def logs() -> str:
            ends = "\n".join((self.folder / f"{n}.log").read_text()[-1500:] for n in (*MEMBERS, "etcd"))
            return f"Patroni is not ready: {self.cluster()}\n{ends}"

        wait_until(is_whole, _READY_S, every_s=0.2, why=logs)

    def set(self, **values: bool) -> None:
        """Changes Patroni's own configuration, for all members."""
        url = f"http://{self.network.address(self.leader)}:8008/config"
        request = urllib.request.Request(url, json.dumps(values).encode(), method="PATCH")
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=5):
            pass

    def wait_synchronous(self, wanted: bool) -> None:
        """Until the leader waits for a standby, or for none."""
        psql = [str(DEBIAN_15 / "psql"), "-X", "-A", "-t", "-U", "postgres", "-c", "show synchronous_standby_names"]

        def is_set() -> bool:
            words = [*psql, "-h", self.network.address(self.leader), "postgres"]
            done = subprocess.run(
                words, capture_output=True, text=True, check=False, env={**os.environ, "PGPASSWORD": PASSWORD}
            )
            return done.returncode == 0 and bool(done.stdout.strip()) == wanted

        wait_until(is_set, _READY_S, every_s=0.2, why=lambda: "the leader does not take its mode")

    @property
    def leader(self) -> str:
        """Its name."""
        return next(str(m["name"]) for m in self.cluster()["members"] if m["role"] == "leader")

    def conninfo(self, name: str) -> str:
        """How the drill's clients reach a member."""
        return f"host={self.network.address(name)} port=5432 user=app dbname=postgres"

    def _make_role(self) -> None:
        psql = [str(DEBIAN_15 / "psql"), "-X", "-q", "-h", self.network.address(self.leader), "-U", "postgres", "-c"]
        sql = f"create role app login password '{PASSWORD}' in role pg_monitor; grant create on schema public to app"
        subprocess.run([*psql, sql, "postgres"], check=True, env={**os.environ, "PGPASSWORD": PASSWORD})
