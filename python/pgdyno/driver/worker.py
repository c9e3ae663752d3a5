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
import socket
import sys
import threading
from collections.abc import Callable
from typing import Any

from pgdyno import _core
from pgdyno.driver import adapters
from pgdyno.driver.adapters import Driver, Failed, Result, Server, Statement

_READ = 1 << 16


class _Session:
    """One connection of the engine's: bytes in, statements for the driver, bytes out."""

    def __init__(self) -> None:
        self.core = _core.ServedSession()
        self._texts: dict[int, str] = {}

    def statements(self, group: list[tuple[int, str, tuple[object, ...]]]) -> list[Statement]:
        """Return the statements of a group."""
        out = []
        for number, mode, values in group:
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


def _say(**what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Serve until standard input ends."""
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
        if naming := adapters.naming(server):
            driver.run(naming)
        return driver

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                conn, _ = listener.accept()
                threading.Thread(target=_serve, args=(conn, connect), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    sys.stdin.read()
    # Sessions that are still open end with the process.
    os._exit(0)


async def _loop(listener: socket.socket, make: Callable[[Server], Any], module_name: str, server: Server) -> None:
    async def connect() -> Any:
        driver = adapters.adapted(await make(server), module_name, server)
        if naming := adapters.naming(server):
            await driver.run(naming)
        return driver

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _serve_awaited(reader, writer, connect)

    await asyncio.start_unix_server(serve, sock=listener, limit=1 << 20)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    os._exit(0)


if __name__ == "__main__":
    main()
