"""`pgdyno cluster link`: a slower link, or none, between members, for as long as it runs."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pgdyno.cli import console, streams
from pgdyno.cluster.network import Links, Network
from pgdyno.errors import RefusedError, UsageError, msg
from pgdyno.format import integer, size
from pgdyno.interrupt import Terminated, signals_held, signals_raise
from pgdyno.message import listed
from pgdyno.replication.cluster import ReplicatedCluster
from pgdyno.spec.values import size_bytes

_out = console.output()
#: Of its end it is asked so often.
_TICK_S = 0.1


def main(
    folder: Path, between: str, *, round_trip_ms: float, rate: str, cut: bool, seconds: float | None
) -> int:  # fmt: skip
    """Wait for a number of seconds, or for Ctrl-C; then restore the link."""
    if cut == bool(round_trip_ms or rate):
        raise UsageError(msg("error-what-become-link"), msg("remedy-round-trip-ms-2-rate"))
    cluster = ReplicatedCluster(folder)
    network = _network(cluster)
    pairs = _pairs(cluster, between)
    named = ", ".join(f"{a} – {b}" for a, b in pairs)
    limit = _bytes(rate)
    with signals_raise():
        with _cut(network, pairs) if cut else _slowed(network, pairs, round_trip_ms / 1e3, limit) as links:
            slower = [msg("link-slower", ms=f"{round_trip_ms:g}")] if round_trip_ms else []
            slower += [msg("link-rate", size=size(limit))] if limit else []
            until = msg("link-until-stopped") if seconds is None else msg("link-seconds", seconds=f"{seconds:g}")
            how = msg("link-cut") if cut else listed(slower)
            _out.print(streams.written(msg("link-changed", pairs=named, how=how, until=until)), soft_wrap=True)
            # Ctrl-C is the way to end it.
            with suppress(KeyboardInterrupt, Terminated):
                _wait(seconds)
            carried = links.counts() if links is not None else None
        if carried is not None:
            packets, moved, dropped = carried
            _out.print(
                streams.written(
                    msg("link-carried", integer=integer(packets), moved=size(moved), integer2=integer(dropped))
                )
            )
        _out.print(streams.written(msg("link-restored")), soft_wrap=True)
    return 0


def _network(cluster: ReplicatedCluster) -> Network:
    network = cluster.network
    if network is None:
        raise RefusedError(
            msg("error-members-share-this-machine-s"),
            msg("remedy-make-cluster-root-ip-iproute2"),
        )
    if not network.is_up():
        raise RefusedError(msg("error-cluster-s-network-down"), msg("remedy-pgdyno-cluster-start", base=cluster.base))
    return network


def _pairs(cluster: ReplicatedCluster, between: str) -> list[tuple[str, str]]:
    """Return the pair of members that `between` names, or all pairs."""
    names = [m.name for m in cluster.members]
    if not between:
        return list(itertools.combinations(names, 2))
    given = [x.strip() for x in between.split(",")]
    unknown = [x for x in given if x not in names]
    if unknown or len(given) != 2 or given[0] == given[1]:
        raise UsageError(
            msg("error-between-not-two-members", between=between), msg("remedy-members-are", names=", ".join(names))
        )
    return [(given[0], given[1])]


def _bytes(rate: str) -> int | None:
    if not rate:
        return None
    try:
        found = size_bytes(rate)
    except (ValueError, KeyError):
        found = 0
    if found <= 0:
        raise UsageError(msg("error-rate-no-size", rate=rate), msg("remedy-write-rate-10mb-bytes-second"))
    return found


@contextmanager
def _slowed(
    network: Network, pairs: list[tuple[str, str]], round_trip_s: float, bytes_per_s: int | None
) -> Iterator[Links]:  # fmt: skip
    links = Links(network)
    try:
        for a, b in pairs:
            links.slow(a, b, round_trip_s, bytes_per_s)
        yield links
    finally:
        with signals_held():
            links.close()


@contextmanager
def _cut(network: Network, pairs: list[tuple[str, str]]) -> Iterator[None]:
    try:
        for a, b in pairs:
            network.cut(a, b)
        yield None
    finally:
        with signals_held():
            for a, b in pairs:
                network.mend(a, b)


def _wait(seconds: float | None) -> None:
    end = None if seconds is None else time.monotonic() + seconds
    while end is None or (left := end - time.monotonic()) > 0:
        time.sleep(_TICK_S if end is None else min(_TICK_S, left))
