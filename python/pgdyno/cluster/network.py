"""Hosts on one machine: a network namespace for each member, joined by a bridge that this machine is on as well.

Links between two hosts are cut without anybody being told, as by a switch that drops packets: each end is given a wrong
hardware address for the other, so that what it sends is taken by nobody. Connections stay open, and hang.

Links are made slower by `Links`: packets between two hosts take another way, through TUN devices and a thread of this
process. When it ends, however it ends, they take the first way again.

Needs root and Linux's `ip` and `setpriv`. What is made here is gone when the machine starts anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import ipaddress
import json
import os
import secrets
import shutil
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pgdyno import _core
from pgdyno.cluster.account import Account
from pgdyno.errors import LocalError, RefusedError, msg

#: Of the block for benchmarks of networks (RFC 2544): no real network uses it.
_BLOCK = "198.18"
#: This machine's place in each network: where clients are.
_OURS = 254
#: An address that no interface has.
_NOBODY = "02:00:00:00:00:00"
#: ioctl(TUNSETIFF) with IFF_TUN | IFF_NO_PI: packets of IPv4, and nothing before them.
_TUNSETIFF, _TUN = 0x400454CA, 0x1001
#: Of slowed links, bytes a packet: as clouds have them.
_JUMBO = 9000
#: File with the name of the network that belongs to a folder, and the network namespace that it was created in.
_NAME = "network"


def is_possible() -> bool:
    """Return True if this process can create network namespaces on this machine."""
    return (
        sys.platform == "linux"
        and os.geteuid() == 0
        and shutil.which("ip") is not None
        and shutil.which("setpriv") is not None
    )


class Network:
    """Hosts of one cluster.

    `name` is part of the names of the interfaces and namespaces, and has at most 8 letters. `number` is part of their
    addresses.
    """

    def __init__(self, name: str, number: int, hosts: Sequence[str], owner: str) -> None:
        """`owner`: whose it is, in a word; another's of the same name is not touched."""
        self.name = name
        self.owner = f"pgdyno:{owner}"
        self.number = number
        self.hosts = list(hosts)

    @classmethod
    def for_folder(cls, folder: Path, hosts: Sequence[str]) -> Network:
        """Return a new network that belongs to a folder (see `remove_of`).

        Raise RefusedError if no network number is free.
        """
        made = cls(secrets.token_hex(3), free_number(), hosts, owner_word(folder))
        (folder / _NAME).write_text(f"{made.name} {_own_namespace()}\n", encoding="utf-8")
        return made

    @property
    def client(self) -> str:
        """The address of this machine."""
        return f"{_BLOCK}.{self.number}.{_OURS}"

    def address(self, host: str) -> str:
        """Return the address of a host."""
        return f"{_BLOCK}.{self.number}.{self.hosts.index(host) + 1}"

    def namespace(self, host: str) -> str:
        """Its namespace's name."""
        return f"pgdyno-{self.name}-{host}"

    @property
    def _bridge(self) -> str:
        return f"pd{self.name}"

    def up(self) -> None:
        """Create the parts of the network that do not exist yet.

        Raise LocalError if a command fails. Raise RefusedError if something else uses the network.
        """
        there = set(_names())
        if self._bridge not in _interfaces():
            if self.number in taken():
                raise RefusedError(
                    msg("error-network-0-24-use-on", block=_BLOCK, number=self.number),
                    msg("remedy-another-cluster-may-now-stop"),
                )
            _ip(f"link add {self._bridge} type bridge")
            _ip(f"link set {self._bridge} alias {self.owner}")
        elif not self._is_ours():
            raise RefusedError(
                msg("error-network-another-cluster-which-this", bridge=self._bridge),
                msg("remedy-stop-cluster-first"),
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

    def is_up(self) -> bool:
        """Return True if the network exists and belongs to this cluster."""
        return self._is_ours() and set(map(self.namespace, self.hosts)) <= set(_names())

    def _is_whole(self, host: str) -> bool:
        shown = _ip(f"-n {self.namespace(host)} -4 -o addr show dev eth0 up", check=False)
        lo = _ip(f"-n {self.namespace(host)} -o link show dev lo up", check=False)
        return f" {self.address(host)}/24 " in shown and bool(lo.strip())

    def _outside(self, host: str) -> str:
        return f"{self._bridge}-{self.hosts.index(host) + 1}"

    def _is_ours(self) -> bool:
        return _interfaces().get(self._bridge) == self.owner

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
        """Remove the whole network; skip parts that do not exist."""
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
        """Let packets pass again between two hosts."""
        for here, there in ((a, b), (b, a)):
            self._neighbour(here, f"del {self._of(there)}", check=False)

    def links_cut(self) -> list[tuple[str, str]]:
        """Pairs of hosts between which nothing gets through."""
        names = {self._of(host): host for host in ["", *self.hosts]}
        found = set()
        for host in self.hosts:
            for line in _ip(f"-n {self.namespace(host)} neigh show nud permanent dev eth0", check=False).splitlines():
                words = line.split()
                if _NOBODY in words and words[0] in names:
                    found.add((min(host, names[words[0]]), max(host, names[words[0]])))
        return sorted(found)

    def links_slowed(self) -> bool:
        """Return True if any link goes through a relay (see Links); `cut` does not cut such a link."""
        routes = (_ip(f"-n {self.namespace(host)} -o route show", check=False) for host in self.hosts)
        return any(f"dev pd{self.name}t" in shown for shown in routes)

    def mend_all(self) -> None:
        """No link is cut."""
        everybody = ["", *self.hosts]
        for n, a in enumerate(everybody):
            for b in everybody[n + 1 :]:
                self.mend(a, b)

    def _of(self, host: str) -> str:
        return self.address(host) if host else self.client

    def _neighbour(self, host: str, command: str, *, check: bool = True) -> None:
        if host:
            _ip(f"-n {self.namespace(host)} neigh {command} dev eth0", check=check)
        else:
            _ip(f"neigh {command} dev {self._bridge}", check=check)

    def launch(self, host: str, account: Account, dies_by: str = "") -> list[str]:
        """Return the words to put before a command so that it runs on a host, as an account.

        `dies_by` names the signal that the command receives when pgdyno ends, however it ends.
        """
        user = [
            "setpriv", f"--reuid={account.uid}", f"--regid={account.gid}", "--clear-groups", "--no-new-privs"
        ]  # fmt: skip
        bound = [f"--pdeathsig={dies_by}"] if dies_by else []
        return ["ip", "netns", "exec", self.namespace(host), *user, *bound, "--"]


class Links:
    """Slower links between the hosts of a network that is up.

    Links stay slow until this object is closed or this process ends. Network.cut does not cut a slowed link.
    """

    def __init__(self, network: Network) -> None:
        """Create the devices for slower links.

        Raise LocalError if links cannot be slowed on this machine.
        """
        self._network = network
        self._devices: list[int] = []
        self._through: set[frozenset[str]] = set()
        try:
            for host in network.hosts:
                self._devices.append(self._device(host))
            addresses = [network.address(h) for h in network.hosts]
            self._relay = _core.Relay(list(zip(addresses, self._devices, strict=True)))
        except OSError as e:
            self._close_devices()
            raise LocalError(
                msg("error-links-cannot-be-slowed-here", value=e.strerror or e),
                msg("remedy-leave-delay-out-or-use"),
            ) from e
        except BaseException:
            self._close_devices()
            raise

    def _name(self, host: str) -> str:
        return f"pd{self._network.name}t{self._network.hosts.index(host) + 1}"

    def _device(self, host: str) -> int:
        space, name = self._network.namespace(host), self._name(host)
        fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            fcntl.ioctl(fd, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _TUN))
            _ip(f"link set {name} netns {space}")
            _ip(f"-n {space} link set {name} mtu {_JUMBO} up")
        except BaseException:
            os.close(fd)
            raise
        return fd

    def slow(self, a: str, b: str, round_trip_s: float = 0.0, bytes_per_s: int | None = None) -> None:
        """Slow the link between two hosts from now on.

        A round trip takes `round_trip_s` seconds longer, half of it in each direction. Each direction passes at most
        `bytes_per_s` bytes per second. A slow link buffers a quarter of a second; packets beyond that are dropped.
        """
        if frozenset((a, b)) not in self._through:
            for here, there in ((a, b), (b, a)):
                route = f"{self._network.address(there)}/32 dev {self._name(here)} src {self._network.address(here)}"
                _ip(f"-n {self._network.namespace(here)} route replace {route}")
            self._through.add(frozenset((a, b)))
        numbers = [self._network.hosts.index(h) for h in (a, b)]
        for one, other in (numbers, numbers[::-1]):
            self._relay.set(one, other, round(round_trip_s / 2 * 1e9), bytes_per_s)

    def counts(self) -> tuple[int, int, int]:
        """Packets and bytes that went through, and packets that were dropped."""
        return self._relay.counts()

    def close(self) -> None:
        """All links are as fast as they were."""
        self._relay.close()
        self._close_devices()

    def _close_devices(self) -> None:
        # The devices go with their descriptors, and the routes with the devices.
        for fd in self._devices:
            os.close(fd)
        self._devices = []


def owner_word(folder: Path) -> str:
    """Return the word that identifies the network of a folder."""
    status = folder.stat()
    return f"{status.st_dev}:{status.st_ino}"


def remove_of(folder: Path) -> bool:
    """Remove the network of a folder whose pgdyno process was killed.

    Return False if this process cannot remove it: it has other rights, no `ip`, or is in another namespace. The folder
    must stay then, because it is the only trace of the network.
    """
    try:
        name, space = (folder / _NAME).read_text(encoding="utf-8").split()
    except (OSError, ValueError):
        return True
    if space != _own_namespace():
        # A container that was started again has another namespace: the network went with the old one.
        return not _is_in_use(space)
    if not is_possible():
        return False
    bridge = f"pd{name}"
    try:
        there = _interfaces()
        if there.get(bridge, f"pgdyno:{owner_word(folder)}") != f"pgdyno:{owner_word(folder)}":
            # The folder is a copy of another one.
            return True
        for space in _names():
            if space.startswith(f"pgdyno-{name}-"):
                _ip(f"netns del {space}", check=False)
        for interface in there:
            if interface.startswith(f"{bridge}-"):
                _ip(f"link del {interface}", check=False)
        _ip(f"link del {bridge}", check=False)
        return bridge not in _interfaces()
    except (OSError, LocalError):
        return False


def _is_in_use(space: str) -> bool:
    """Return True if a process that this one can see runs in a network namespace."""
    for link in Path("/proc").glob("[0-9]*/ns/net"):
        with contextlib.suppress(OSError):
            if str(link.readlink()) == space:
                return True
    return False


def _own_namespace() -> str:
    """Return the identity of the network namespace in which this process runs."""
    return str(Path("/proc/self/ns/net").readlink())


def free_number() -> int:
    """Return the number of a network that is not in use on this machine.

    Raise RefusedError if all networks are in use.
    """
    used = taken()
    number = next((n for n in range(1, 255) if n not in used), None)
    if number is None:
        raise RefusedError(msg("error-all-networks-198-18-0"), msg("remedy-stop-clusters-not-needed"))
    return number


def taken() -> set[int]:
    """Numbers of the networks in use here."""
    used = []
    for route in json.loads(_ip("-j -4 route show table all") or "[]"):
        if route.get("dst", "default") != "default":
            used.append(ipaddress.ip_network(route["dst"], strict=False))
    ours = {n: ipaddress.ip_network(f"{_BLOCK}.{n}.0/24") for n in range(1, 255)}
    return {n for n, network in ours.items() if any(network.overlaps(u) for u in used)}


def _interfaces() -> dict[str, str]:
    """Return the network interfaces with their aliases.

    They are those of this machine, or of the namespace in which pgdyno runs.
    """
    return {link["ifname"]: link.get("ifalias", "") for link in json.loads(_ip("-j link show") or "[]")}


def _names() -> list[str]:
    return [line.split()[0] for line in _ip("netns list").splitlines() if line]


def _ip(command: str, *, check: bool = True) -> str:
    done = subprocess.run(["ip", *command.split()], capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        reason = " ".join(done.stderr.split())
        raise LocalError(
            msg("error-ip-failed", command=command, reason=reason), msg("remedy-without-network-members-share-this")
        )
    return done.stdout
