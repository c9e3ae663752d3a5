"""Worker processes of a driver: started, asked for their CPU time, and ended."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from pgdyno import _core
from pgdyno.driver.adapters import Server
from pgdyno.driver.named import DriverName
from pgdyno.errors import LocalError, UsageError, msg
from pgdyno.message import Name

#: Seconds that importing a driver may take.
_START_S = 30.0
#: And that a worker may take to tell its counts.
_ANSWER_S = 5.0
#: Process ids of the workers that run, so that what they use is not taken for another program's.
RUNNING: set[int] = set()
_NS_A_TICK = 1e9 / os.sysconf("SC_CLK_TCK")


class Workers:
    """The workers of a driver, over which the clients are spread. Used as a context."""

    def __init__(self, driver: DriverName, server: Server, processes: int) -> None:
        self.driver = driver
        self.processes = processes
        #: The driver's calls are awaited: one event loop a process, in place of a thread a client.
        self.is_awaited = False
        self._server = server
        self._folder = tempfile.TemporaryDirectory(prefix="pgdyno-driver-")
        self._started: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Workers:
        try:
            for n in range(self.processes):
                self._started.append(self._start(n))
            for process in self._started:
                self._hear(process)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _start(self, n: int) -> subprocess.Popen[str]:
        folder = Path(self._folder.name)
        with (folder / f"{n}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "pgdyno.driver.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=log, text=True, start_new_session=True,
            )  # fmt: skip
        RUNNING.add(process.pid)
        order: dict[str, Any] = {
            "module": self.driver.module, "factory": self.driver.factory, "server": asdict(self._server),
            "socket": str(folder / f".s.PGSQL.{n + 1}"), "path": [str(Path.cwd())],
        }  # fmt: skip
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()
        return process

    def _hear(self, process: subprocess.Popen[str]) -> None:
        """Wait until a worker listens. Raise UsageError if the driver cannot be imported, LocalError if it ended."""
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], _START_S)
        line = process.stdout.readline() if ready else ""
        told: dict[str, Any] = json.loads(line) if line.startswith("{") else {}
        name = f"python:{self.driver.module}" + (f":{self.driver.factory}" if self.driver.factory else "")
        if "error" in told:
            raise UsageError(
                msg("error-driver-import", name=name, reason=Name(f"{told['kind']}: {told['error']}")),
                msg("remedy-driver-install", module=self.driver.module.partition(".")[0]),
            )
        if not told:
            raise LocalError(msg("error-driver-worker", name=name, reason=Name(self._log())))
        self.is_awaited = bool(told["awaited"])

    def _log(self) -> str:
        texts = [p.read_text(errors="replace").strip() for p in sorted(Path(self._folder.name).glob("*.log"))]
        return next((text.splitlines()[-1] for text in texts if text), "-")

    @property
    def configs(self) -> list[_core.ConnConfig]:
        """Return the address of each worker for the engine."""
        s = self._server
        return [
            _core.ConnConfig(
                host=self._folder.name, port=n + 1, user=s.user, dbname=s.dbname, sslmode="disable", tells_kinds=True
            )
            for n in range(self.processes)
        ]

    def cpu_ns(self) -> list[float]:
        """Return the CPU time of each worker so far, in ns; 0 for one that has ended."""
        return [_cpu_ns(p.pid) for p in self._started]

    def counts(self) -> tuple[int, int]:
        """Return the groups of statements that clients awaited, and the statements, so far."""
        groups = statements = 0
        for process in self._started:
            told = self._counts_of(process)
            groups += int(told.get("groups", 0))
            statements += int(told.get("statements", 0))
        return groups, statements

    @staticmethod
    def _counts_of(process: subprocess.Popen[str]) -> dict[str, Any]:
        """Return a worker's counts; nothing of one that has ended."""
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write("counts\n")
            process.stdin.flush()
        except OSError:
            return {}
        ready, _, _ = select.select([process.stdout], [], [], _ANSWER_S)
        line = process.stdout.readline() if ready else ""
        return json.loads(line) if line.startswith("{") else {}

    def stop(self) -> None:
        """End the workers."""
        for process in self._started:
            with contextlib.suppress(OSError):
                assert process.stdin is not None
                process.stdin.close()
        for process in self._started:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            assert process.stdout is not None
            process.stdout.close()
            RUNNING.discard(process.pid)
        self._started.clear()
        self._folder.cleanup()


def _cpu_ns(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0.0
    return (float(fields[11]) + float(fields[12])) * _NS_A_TICK
