"""The way to the server: the round trip as TCP measures it. Linux's TCP_INFO."""

from __future__ import annotations

import os
import socket
import struct
from typing import Any

import psycopg

from pgdyno.collect.sources.base import Row

Connection = psycopg.Connection[tuple[Any, ...]]
#: Of struct tcp_info behind its eight bytes, which numbers are tcpi_rtt (µs; tcpi_rttvar follows) and
#: tcpi_total_retrans.
_RTT = 15
_RETRANSMITTED = 23


class Network:
    """One row a sample: the smoothed round trip of our own connection, its variation, and what had to be sent again."""

    name = "network"
    period_s = 1.0

    def __init__(self, conn: Connection) -> None:
        self._conn = conn

    @staticmethod
    def is_there(conn: Connection) -> bool:
        """Whether the connection is TCP, and tells."""
        try:
            with socket.socket(fileno=os.dup(conn.fileno())) as s:
                return s.family != socket.AF_UNIX and hasattr(socket, "TCP_INFO")
        except OSError:
            return False

    def rows(self, seconds: float) -> list[Row]:
        """See Source."""
        with socket.socket(fileno=os.dup(self._conn.fileno())) as s:
            info = s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        numbers = struct.unpack("=24I", info[8:104])
        return [
            {"round_trip_ns": numbers[_RTT] * 1e3, "variation_ns": numbers[_RTT + 1] * 1e3,
             "sent_again": float(numbers[_RETRANSMITTED])}
        ]  # fmt: skip
