"""Hosts on one machine: a network namespace for each member, joined by a bridge that this machine is on as well.

Links between two hosts are cut without anybody being told, as by a switch that drops packets: each end is given a wrong
hardware address for the other, so that what it sends is taken by nobody. Connections stay open, and hang.

Needs root and Linux's `ip` and `setpriv`. What is made here is gone when the machine starts anew.
"""

from __future__ import annotations

import ipaddress
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pgdyno.cluster.account import Account
from pgdyno.errors import LocalError, RefusedError

#: Of the block for benchmarks of networks (RFC 2544): nobody's own network is there.
_BLOCK = "198.18"
#: This machine's place in each network: where clients are.
_OURS = 254
#: An address that no interface has.
_NOBODY = "02:00:00:00:00:00"


def is_possible() -> bool:
    """Whether this process may make namespaces here."""
    return (
        sys.platform == "linux"
        and os.geteuid() == 0
        and shutil.which("ip") is not None
        and shutil.which("setpriv") is not None
    )


class Network:
    """The hosts of one cluster; `name` is part of what its interfaces and namespaces are called (at most 8 letters),
    `number` of their addresses.
    """

    def __init__(self, name: str, number: int, hosts: Sequence[str], owner: str) -> None:
        """`owner`: whose it is, in a word; another's of the same name is not touched."""
        self.name = name
        self.owner = f"pgdyno:{owner}"
        self.number = number
        self.hosts = list(hosts)

    @property
    def client(self) -> str:
        """The address of this machine."""
        return f"{_BLOCK}.{self.number}.{_OURS}"

    def address(self, host: str) -> str:
        """A host's address."""
        return f"{_BLOCK}.{self.number}.{self.hosts.index(host) + 1}"

    def namespace(self, host: str) -> str:
        """Its namespace's name."""
        return f"pgdyno-{self.name}-{host}"

    @property
    def _bridge(self) -> str:
        return f"pd{self.name}"

    def up(self) -> None:
        """Makes what is not there yet. Raises LocalError, RefusedError."""
        there = set(_names())
        if not Path(f"/sys/class/net/{self._bridge}").exists():
            if self.number in taken():
                raise RefusedError(
                    f"the network {_BLOCK}.{self.number}.0/24 is in use on this machine by something else",
                    "Another cluster may have it by now: stop that one first.",
                )
            _ip(f"link add {self._bridge} type bridge")
            _ip(f"link set {self._bridge} alias {self.owner}")
        elif not self._is_ours():
            raise RefusedError(
                f"the network of another cluster, of which this is a copy, is up (interface {self._bridge})",
                "Stop that cluster first.",
            )
        # Whoever was killed may have left it half made.
        _ip(f"addr replace {self.client}/24 dev {self._bridge}")
        _ip(f"link set {self._bridge} up")
        for host in self.hosts:
            if self.namespace(host) not in there:
                self._add(host)
            elif not self._is_whole(host):
                _ip(f"netns del {self.namespace(host)}")
                self._add(host)

    def _is_whole(self, host: str) -> bool:
        shown = _ip(f"-n {self.namespace(host)} -4 -o addr show dev eth0 up", check=False)
        lo = _ip(f"-n {self.namespace(host)} -o link show dev lo up", check=False)
        return f" {self.address(host)}/24 " in shown and bool(lo.strip())

    def _outside(self, host: str) -> str:
        return f"{self._bridge}-{self.hosts.index(host) + 1}"

    def _is_ours(self) -> bool:
        alias = Path(f"/sys/class/net/{self._bridge}/ifalias")
        return alias.exists() and alias.read_text().strip() == self.owner

    def _add(self, host: str) -> None:
        space, outside = self.namespace(host), self._outside(host)
        # The kernel removes that of a namespace in its own time.
        _ip(f"link del {outside}", check=False)
        _ip(f"netns add {space}")
        _ip(f"link add {outside} type veth peer name eth0 netns {space}")
        _ip(f"link set {outside} master {self._bridge} up")
        _ip(f"-n {space} addr add {self.address(host)}/24 dev eth0")
        _ip(f"-n {space} link set eth0 up")
        _ip(f"-n {space} link set lo up")

    def down(self) -> None:
        """Removes all of it; what is not there is passed over."""
        if not self._is_ours():
            return
        there = set(_names())
        for host in self.hosts:
            _ip(f"link del {self._outside(host)}", check=False)
            if self.namespace(host) in there:
                _ip(f"netns del {self.namespace(host)}", check=False)
        _ip(f"link del {self._bridge}", check=False)

    def cut(self, a: str, b: str) -> None:
        """Nothing gets through between two hosts any more; an empty name is this machine."""
        for here, there in ((a, b), (b, a)):
            self._neighbour(here, f"replace {self._of(there)} lladdr {_NOBODY} nud permanent")

    def mend(self, a: str, b: str) -> None:
        """It gets through again."""
        for here, there in ((a, b), (b, a)):
            self._neighbour(here, f"del {self._of(there)}", check=False)

    def mend_all(self) -> None:
        """No link is cut."""
        everybody = ["", *self.hosts]
        for n, a in enumerate(everybody):
            for b in everybody[n + 1 :]:
                self.mend(a, b)

    def _of(self, host: str) -> str:
        return self.address(host) if host else self.client

    def _neighbour(self, host: str, words: str, *, check: bool = True) -> None:
        if host:
            _ip(f"-n {self.namespace(host)} neigh {words} dev eth0", check=check)
        else:
            _ip(f"neigh {words} dev {self._bridge}", check=check)

    def launch(self, host: str, account: Account) -> list[str]:
        """The words before a command that runs it on a host, as an account."""
        user = [
            "setpriv", f"--reuid={account.uid}", f"--regid={account.gid}", "--clear-groups", "--no-new-privs", "--"
        ]  # fmt: skip
        return ["ip", "netns", "exec", self.namespace(host), *user]


def taken() -> set[int]:
    """Numbers of networks that are in use here."""
    used = []
    for route in json.loads(_ip("-j -4 route show table all") or "[]"):
        if route.get("dst", "default") != "default":
            used.append(ipaddress.ip_network(route["dst"], strict=False))
    ours = {n: ipaddress.ip_network(f"{_BLOCK}.{n}.0/24") for n in range(1, 255)}
    return {n for n, network in ours.items() if any(network.overlaps(u) for u in used)}


def _names() -> list[str]:
    return [line.split()[0] for line in _ip("netns list").splitlines() if line]


def _ip(words: str, *, check: bool = True) -> str:
    done = subprocess.run(["ip", *words.split()], capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        reason = " ".join(done.stderr.split())
        raise LocalError(f"`ip {words}` failed: {reason}", "Without --network the members share this machine's.")
    return done.stdout
