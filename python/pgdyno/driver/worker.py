"""A worker process: serves the engine's connections, each through a connection of the driver.

Started by `pool` as `python -m pgdyno.driver.worker`. The order comes on standard input, as JSON, because it holds the
password. A line on standard output says that the worker listens; the end of standard input ends it.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import json
import os
import resource
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar

from pgdyno import _core
from pgdyno.driver import adapters
from pgdyno.driver.adapters import Driver, Failed, Result, Server, Statement

_READ = 1 << 16


class _Session:
    """One connection of the engine's: bytes in, statements for the driver, bytes out."""

    #: Of all sessions, for the floor: groups that clients awaited, and statements.
    counts: ClassVar[list[_Session]] = []

    def __init__(self) -> None:
        self.core = _core.ServedSession()
        self.groups = self.count = 0
        self._texts: dict[int, str] = {}
        self.counts.append(self)

    def statements(self, group: list[tuple[int | None, str, tuple[object, ...]]]) -> list[Statement]:
        """Return the statements of a group."""
        self.groups += 1
        self.count += len(group)
        out = []
        for number, mode, values in group:
            if number is None:
                out.append(Statement(self.core.text() or "", values, mode))
                continue
            if (text := self._texts.get(number)) is None:
                text = self._texts[number] = self.core.text(number) or ""
            out.append(Statement(text, values, mode))
        return out

    def answer(self, done: list[list[Result]]) -> None:
        """Answer statements with their results."""
        for results in done:
            for n, (columns, rows, tag) in enumerate(results, 1):
                self.core.result(columns, rows, tag, n == len(results))

    def fail(self, error: Failed) -> None:
        """Answer that a statement failed, behind the results of those before it."""
        self.answer(error.done)
        self.core.failed(error.sqlstate, str(error), error.is_fatal)


def _failure(error: BaseException) -> Failed:
    return error if isinstance(error, Failed) else Failed([], error, is_fatal=False)


def _serve(conn: socket.socket, connect: Callable[[], Driver]) -> None:
    """Serve a connection in a thread of its own."""
    session, driver = _Session(), None
    with conn:
        try:
            while data := conn.recv(_READ):
                session.core.feed(data)
                while (work := session.core.next()) is not None:
                    if work == "end":
                        return
                    if work == "begin":
                        try:
                            driver = connect()
                        except Exception as e:
                            session.core.failed(adapters.sqlstate_of(e), _line(e), True)
                            conn.sendall(session.core.take())
                            return
                        session.core.began("0", os.getpid())
                        continue
                    assert driver is not None and isinstance(work, list)
                    try:
                        session.answer(driver.run(session.statements(work)))
                    except Exception as e:
                        session.fail(_failure(e))
                    session.core.end_group(driver.status())
                if out := session.core.take():
                    conn.sendall(out)
        except (OSError, _core.CoreError):
            # The engine has closed the connection.
            return
        finally:
            if driver is not None:
                with contextlib.suppress(Exception):
                    driver.close()


async def _serve_awaited(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connect: Callable[[], Any]
) -> None:
    """Serve a connection in the event loop."""
    session: _Session = _Session()
    driver: Any = None
    try:
        while data := await reader.read(_READ):
            session.core.feed(data)
            while (work := session.core.next()) is not None:
                if work == "end":
                    return
                if work == "begin":
                    try:
                        driver = await connect()
                    except Exception as e:
                        session.core.failed(adapters.sqlstate_of(e), _line(e), True)
                        writer.write(session.core.take())
                        return
                    session.core.began("0", os.getpid())
                    continue
                assert isinstance(work, list)
                try:
                    session.answer(await driver.run(session.statements(work)))
                except Exception as e:
                    session.fail(_failure(e))
                session.core.end_group(driver.status())
            if out := session.core.take():
                writer.write(out)
    except (OSError, _core.CoreError):
        return
    finally:
        if driver is not None:
            with contextlib.suppress(Exception):
                await driver.close()
        writer.close()


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


#: Where the answers to `pool` go. Whatever a driver prints goes to the log.
_answers = -1


def _say(**what: object) -> None:
    os.write(_answers, (json.dumps(what) + "\n").encode())


def _answer_orders() -> None:
    """Answer each line of standard input with the counts so far, until it ends."""
    for _ in sys.stdin:
        sessions = list(_Session.counts)
        _say(groups=sum(s.groups for s in sessions), statements=sum(s.count for s in sessions))
    # Sessions that are still open end with the process.
    os._exit(0)


def main() -> None:
    """Serve until standard input ends."""
    global _answers
    _answers = os.dup(1)
    os.dup2(2, 1)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    order: dict[str, Any] = json.loads(sys.stdin.readline())
    server = Server(**order["server"])
    module_name, name = order["module"], order["factory"]
    # Drivers of the user's own stand beside the experiment, or where pgdyno was started.
    sys.path[:0] = order["path"]
    try:
        make = adapters.factory(module_name, name)
        importlib.import_module(module_name)
    except Exception as e:
        _say(error=_line(e), kind=type(e).__name__)
        return
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(order["socket"])
    listener.listen(4096)
    is_awaited = inspect.iscoroutinefunction(make)
    _say(listens=True, awaited=is_awaited)
    if is_awaited:
        asyncio.run(_loop(listener, make, module_name, server))
    else:
        _threads(listener, make, module_name, server)


def _threads(listener: socket.socket, make: Callable[[Server], Any], module_name: str, server: Server) -> None:
    def connect() -> Driver:
        driver = adapters.adapted(make(server), module_name, server)
        for statement in adapters.preparing(server):
            driver.run([statement])
        return driver

    def accept() -> None:
        while True:
            try:
                conn, _ = listener.accept()
            except OSError as e:
                # Of descriptors there may be more in a moment.
                sys.stderr.write(f"{e}\n")
                time.sleep(0.1)
                continue
            try:
                threading.Thread(target=_serve, args=(conn, connect), daemon=True).start()
            except RuntimeError as e:
                sys.stderr.write(f"{e}\n")
                conn.close()

    threading.Thread(target=accept, daemon=True).start()
    _answer_orders()


async def _loop(listener: socket.socket, make: Callable[[Server], Any], module_name: str, server: Server) -> None:
    async def connect() -> Any:
        driver = adapters.adapted(await make(server), module_name, server)
        for statement in adapters.preparing(server):
            await driver.run([statement])
        return driver

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _serve_awaited(reader, writer, connect)

    await asyncio.start_unix_server(serve, sock=listener, limit=1 << 20)
    await asyncio.get_running_loop().run_in_executor(None, _answer_orders)


if __name__ == "__main__":
    main()
