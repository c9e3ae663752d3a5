"""A proxy that does harm: between a client and a real server, at a message that is named."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from dataclasses import dataclass
from types import TracebackType

from tests.support.server import Server

#: What a server may say at any time, as often as it likes.
_FIELDS = b"SNOTICE\0VNOTICE\0C00000\0Mmind this\0\0"
NOTICE = b"N" + struct.pack("!I", 4 + len(_FIELDS)) + _FIELDS
KINDS = ("cut", "delay", "corrupt", "freeze", "flood")


@dataclass(frozen=True)
class Fault:
    """What happens from message `after` on, counted over all that the server says on one connection."""

    kind: str
    after: int
    #: Of "corrupt": which bit of the message; of "delay": milliseconds for each message.
    detail: int = 0
    #: The connections that it happens to begin with this one, counted from 0.
    first: int = 0


class Proxy:
    """Use as a context manager; connect to `port` on 127.0.0.1, without TLS."""

    def __init__(self, server: Server, fault: Fault, *, at_once: bool = True) -> None:
        """`at_once`: with TCP_NODELAY; without it a message waits until the one before has been acknowledged."""
        self.at_once = at_once
        self.server = server
        self.fault = fault
        self.connections = 0
        self._ended = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])

    def __enter__(self) -> Proxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        # A thread that accepts holds the socket: closing alone would not wake it.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def conninfo(self, dbname: str) -> str:
        return f"host=127.0.0.1 port={self.port} user=postgres dbname={dbname} sslmode=disable"

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                client, _ = self._listener.accept()
                # What is delayed is delayed by the fault, not by acknowledgements that the kernel waits for.
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, self.at_once)
                upstream = socket.socket(socket.AF_UNIX)
                upstream.connect(str(self.server.socket / f".s.PGSQL.{self.server.port}"))
            except OSError:
                continue
            number, self.connections = self.connections, self.connections + 1
            fault = self.fault if number >= self.fault.first else None
            for pump in (self._requests, self._answers):
                threading.Thread(target=pump, args=(client, upstream, fault), daemon=True).start()

    def _requests(self, client: socket.socket, upstream: socket.socket, _: Fault | None) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                upstream.sendall(data)
        with contextlib.suppress(OSError):
            upstream.shutdown(socket.SHUT_WR)

    def _answers(self, client: socket.socket, upstream: socket.socket, fault: Fault | None) -> None:
        with contextlib.suppress(OSError), upstream.makefile("rb") as answers:
            number = 0
            while len(head := answers.read(5)) == 5:
                message = head + answers.read(struct.unpack("!I", head[1:])[0] - 4)
                if fault is not None and number >= fault.after:
                    if fault.kind == "cut":
                        break
                    if not self._harm(client, fault, message, number):
                        continue
                else:
                    client.sendall(message)
                number += 1
        for s in (client, upstream):
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)
            s.close()

    def _harm(self, client: socket.socket, fault: Fault, message: bytes, number: int) -> bool:
        if fault.kind == "delay":
            time.sleep(fault.detail / 1000)
        elif fault.kind == "freeze":
            self._ended.wait()
        elif fault.kind == "flood":
            while not self._ended.is_set():
                client.sendall(NOTICE * 100)
        elif fault.kind == "corrupt" and number == fault.after:
            at = fault.detail % (8 * len(message))
            broken = bytearray(message)
            broken[at // 8] ^= 1 << at % 8
            message = bytes(broken)
        client.sendall(message)
        return True
