"""The relay that slows links: `make bench`, or this with --rounds, --seconds. Needs root.

Between two hosts in network namespaces, in turn by their own pair of interfaces (the peer) and through the relay: the
round trip of a byte over TCP, and bytes a second of one connection; then what comes of a round trip and of a rate that
are asked for. Figures are medians of the rounds; ratios the medians of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from pgdyno.cluster import network as networks
from pgdyno.cluster.network import Links, Network

#: On the far host: answers each byte, or swallows everything.
_FAR = """
import socket, sys
listener = socket.create_server((sys.argv[1], 7000))
while True:
    conn, _ = listener.accept()
    conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if conn.recv(1) == b"e":
        while (got := conn.recv(1)):
            conn.sendall(got)
    else:
        into = bytearray(1 << 20)
        while conn.recv_into(into):
            pass
"""
#: On the near host: the median round trip in microseconds; or bytes a second.
_NEAR = """
import socket, statistics, sys, time
address, what, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
conn = socket.create_connection((address, 7000))
conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
end = time.monotonic() + seconds
if what == "trip":
    conn.sendall(b"e")
    took = []
    while time.monotonic() < end:
        began = time.perf_counter()
        conn.sendall(b"x")
        conn.recv(1)
        took.append(time.perf_counter() - began)
    print(statistics.median(took) * 1e6)
else:
    conn.sendall(b"s")
    block, sent, began = bytes(1 << 18), 0, time.monotonic()
    while time.monotonic() < end:
        sent += conn.send(block)
    print(sent / (time.monotonic() - began))
"""


def main() -> None:
    """Run all measurements and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    args = parser.parse_args()
    if not networks.is_possible():
        print("relay: needs root, ip (iproute2) and setpriv")
        return
    with tempfile.TemporaryDirectory() as folder:
        network = Network.for_folder(Path(folder), ["a", "b"])
        network.up()
        far = None
        try:
            far = subprocess.Popen(_on(network, "b", _FAR, network.address("b")))
            measured = _measure(network, args.rounds, args.seconds)
        finally:
            if far is not None:
                far.kill()
                far.wait()
            network.down()
    _show(measured)


def _on(network: Network, host: str, program: str, *args: str) -> list[str]:
    return ["ip", "netns", "exec", network.namespace(host), sys.executable, "-c", program, *args]


def _near(network: Network, what: str, seconds: float) -> float:
    argv = _on(network, "a", _NEAR, network.address("b"), what, str(seconds))
    return float(subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout)


def _measure(network: Network, rounds: int, seconds: float) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}

    def keep(name: str, what: str) -> None:
        found.setdefault(name, []).append(_near(network, what, seconds))

    for _ in range(rounds):
        keep("direct trip", "trip")
        keep("direct rate", "rate")
        links = Links(network)
        try:
            links.slow("a", "b")
            keep("relay trip", "trip")
            keep("relay rate", "rate")
            links.slow("a", "b", round_trip_s=0.5e-3)
            keep("0.5 ms", "trip")
            links.slow("a", "b", round_trip_s=2e-3)
            keep("2 ms", "trip")
            links.slow("a", "b", bytes_per_s=10_000_000)
            keep("10 MB/s", "rate")
        finally:
            links.close()
    return found


def _show(found: dict[str, list[float]]) -> None:
    def median(name: str) -> float:
        return statistics.median(found[name])

    def ratio(a: str, b: str) -> float:
        return statistics.median(x / y for x, y in zip(found[a], found[b], strict=True))

    n = len(found["direct trip"])
    print(f"\nthe relay between two hosts, {n} rounds, medians:")
    for title, what, unit, scale in (("round trip", "trip", "µs", 1.0), ("one connection", "rate", "MB/s", 1e-6)):
        through, without = (median(f"{way} {what}") * scale for way in ("relay", "direct"))
        times = ratio(f"relay {what}", f"direct {what}")
        print(f"  {title}: {through:,.0f} {unit} through the relay, {without:,.0f} without ({times:.2f} times)")
    trips = [median(name) / 1e3 for name in ("0.5 ms", "2 ms")]
    print(f"  asked for a round trip of 0.5 ms: {trips[0]:.2f} ms; of 2 ms: {trips[1]:.2f} ms")
    print(f"  asked for 10 MB/s: {median('10 MB/s') / 1e6:.1f} MB/s")


if __name__ == "__main__":
    main()
