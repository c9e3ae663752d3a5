"""The way to the server: how long an empty query takes there and back, and the round trip as TCP measures it."""

from __future__ import annotations

import os
import socket
import struct
import time
from typing import Any

import psycopg

from pgdyno.collect.sources.base import Row

Connection = psycopg.Connection[tuple[Any, ...]]
#: Empty queries of a sample, of which the fastest counts: a busy server answers some of them late.
_TIMES = 3
#: Of Linux's struct tcp_info behind its eight bytes, which number is tcpi_rtt (µs).
_RTT = 15


class Network:
    """Round trips to the server, one row per sample.

    `round_trip_ns` is the time of an empty query, including any proxy or pooler between client and server. It contains
    about 0.1 ms of pgdyno's own work. `tcp_round_trip_ns` is the TCP round trip to the peer that terminates the
    connection; 0 means that there is no TCP.
    """

    name = "network"
    period_s = 1.0

    def __init__(self, conn: Connection) -> None:
        self._conn = conn

    def rows(self, seconds: float) -> list[Row]:
        """See Source."""
        times = []
        for _ in range(_TIMES):
            began = time.perf_counter_ns()
            self._conn.execute("")
            times.append(time.perf_counter_ns() - began)
        return [{"round_trip_ns": float(min(times)), "tcp_round_trip_ns": self._tcp_counters()}]

    def _tcp_counters(self) -> float:
        with socket.socket(fileno=os.dup(self._conn.fileno())) as s:
            if s.family == socket.AF_UNIX or not hasattr(socket, "TCP_INFO"):
                return 0.0
            info = s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        return float(struct.unpack("=24I", info[8:104])[_RTT]) * 1e3
