"""A server that speaks the protocol and answers nonsense: one row of one column to whatever it is asked."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def answer(value: bytes | None, rows: int) -> bytes:
    """What a query gets: a row description of one text column, rows, and the end."""
    described = message(b"T", struct.pack("!h", 1) + b"x\0" + struct.pack("!ihihih", 0, 0, 25, -1, -1, 0))
    length = struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value
    row = message(b"D", struct.pack("!h", 1) + length)
    return described + row * rows + message(b"C", b"SELECT %d\0" % rows)


@contextmanager
def serving(value: bytes | None, rows: int = 1, notice: bytes = b"", rounds: int = 0) -> Iterator[int]:
    """Yield the port; `notice` is sent `rounds` times while a session is made."""
    listening = socket.create_server(("127.0.0.1", 0))
    reply = answer(value, rows)

    def serve(conn: socket.socket) -> None:
        stream = conn.makefile("rb")
        with suppress(OSError, struct.error), conn:
            while True:
                (length,) = struct.unpack("!i", stream.read(4))
                (code,) = struct.unpack("!i", stream.read(length - 4)[:4])
                if code == 196608 or code >> 16 == 3:
                    break
                conn.sendall(b"N")
            for _ in range(rounds):
                conn.sendall(message(b"N", b"SNOTICE\0VNOTICE\0C00000\0M" + notice + b"\0\0") * 50)
            parameters = {"server_version": "18.0", "client_encoding": "UTF8", "server_encoding": "UTF8",
                          "integer_datetimes": "on", "DateStyle": "ISO"}  # fmt: skip
            conn.sendall(
                message(b"R", struct.pack("!i", 0))
                + b"".join(message(b"S", f"{k}\0{v}\0".encode()) for k, v in parameters.items())
                + message(b"K", struct.pack("!ii", 4711, 1)) + message(b"Z", b"I")
            )  # fmt: skip
            while kind := stream.read(1):
                (length,) = struct.unpack("!i", stream.read(4))
                stream.read(length - 4)
                if kind == b"Q":
                    conn.sendall(reply + message(b"Z", b"I"))
                elif kind == b"P":
                    conn.sendall(message(b"1"))
                elif kind == b"B":
                    conn.sendall(message(b"2"))
                elif kind == b"D":
                    conn.sendall(reply[: 1 + 4 + 2 + 2 + 18])
                elif kind == b"E":
                    conn.sendall(reply[1 + 4 + 2 + 2 + 18 :])
                elif kind == b"S":
                    conn.sendall(message(b"Z", b"I"))

    def accept() -> None:
        with suppress(OSError):
            while True:
                conn, _ = listening.accept()
                threading.Thread(target=serve, args=(conn,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.close()
