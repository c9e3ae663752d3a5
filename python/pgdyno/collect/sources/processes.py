"""The server's processes by kind, and our own: CPU, waiting for a CPU, bytes read and written. Linux's /proc."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Hashable
from contextlib import suppress
from pathlib import Path

from pgdyno.collect.sources.base import Differences, Row, slurp
from pgdyno.driver.pool import RUNNING
from pgdyno.message import Text, message
from pgdyno.samples import OTHER_SESSION

_NS_A_TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_CORES = os.cpu_count() or 1
#: What a title begins with: "postgres: ", the cluster's name if it has one; then a kind, or a client's role.
_KINDS = (
    "checkpointer", "background writer", "walwriter", "autovacuum launcher", "autovacuum worker", "io worker",
    "walsender", "walreceiver", "startup", "archiver", "walsummarizer", "slotsync worker", "logger",
    "logical replication launcher", "logical replication", "parallel worker", "stats collector",
)  # fmt: skip
_TITLE = re.compile(rb"^postgres: ([^\0]*)")
#: As whole words, behind the cluster's name if there is one, which may have blanks: a role may be called startup_app.
_KIND = re.compile(rf"(?:.*?: )?({'|'.join(_KINDS)})(?: |$)")
#: So many processes are read each second: of thousands of clients each is read less often.
_EACH_SECOND = 100
_NAMES = ("processes", "cpu", "waiting_for_cpu", "read_bytes_per_s", "write_bytes_per_s", "in_disk_sleep", "stopped")


class Processes:
    """Resource usage of processes, one row per kind of process and sample.

    `cpu` is the average number of processes that ran. `waiting_for_cpu` is the average number of processes that were
    ready and had no CPU.

    Bytes read are those of the block layer, so reads from the page cache are not included. Bytes written are those
    passed to the kernel. The kernel counts whole folios as written to the block layer, which may be a hundred times
    the size of a small change.

    The kind "ended" holds the usage of processes after their last sample, and "other session" that of client backends
    that carry no load of pgdyno.
    """

    name = "processes"

    def __init__(
        self,
        postmaster: int,
        note: Callable[[Text], None] = lambda _: None,
        others: Callable[[], Collection[int]] | None = None,
    ) -> None:
        """`others` returns the process ids of client backends that are not pgdyno's; None: they are not told apart."""
        self._postmaster = postmaster
        self._note = note
        self._others = others
        self._differences = Differences()
        self._kinds: dict[int, str] = {}
        #: CPU time of those that are there, as last seen, and of all that ended, as the postmaster knows; both by clock
        #: ticks, which are not the scheduler's nanoseconds.
        self._cpu_ns: dict[int, float] = {}
        self._ended_ns: float | None = None
        self.period_s = 0.0

    def rows(self, seconds: float) -> list[Row]:
        """See Source."""
        children = [int(x) for x in slurp(f"/proc/{self._postmaster}/task/{self._postmaster}/children").split()]
        self.period_s = len(children) / _EACH_SECOND
        totals: dict[str, dict[str, float]] = {}
        # A driver's workers are the client.
        ours = {self._postmaster: "postmaster", **dict.fromkeys((os.getpid(), *RUNNING), "pgdyno")}
        there: set[Hashable] = set()
        others: Collection[int] = ()
        if self._others is not None:
            # There is a row although there may be no such session: what the clients' backends used is theirs alone.
            others, totals[OTHER_SESSION] = self._others(), dict.fromkeys(_NAMES, 0.0)
        for pid in (*children, *ours):
            try:
                kind = ours.get(pid) or (OTHER_SESSION if pid in others else self._kind(pid))
                used, state, ticks_ns, sees_bytes = _used(pid)
            except (OSError, ValueError, IndexError):
                # It has ended.
                continue
            if not sees_bytes:
                self._note(message("gap-process-bytes"))
            there.add(pid)
            t = totals.setdefault(kind, dict.fromkeys(_NAMES, 0.0))
            t["processes"] += 1
            t["in_disk_sleep"] += state == "D"
            t["stopped"] += state in "Tt"
            is_new = self._ended_ns is not None and pid not in self._cpu_ns and pid not in ours
            self._cpu_ns[pid] = ticks_ns
            d = self._differences.of(pid, used)
            # One that was started since the last sample has used all of it since.
            if (d := used if is_new else d) is not None:
                t["cpu"] += d["cpu_ns"] / 1e9 / seconds
                # Threads that have ended take their time with them.
                t["waiting_for_cpu"] += max(0.0, d["delay_ns"]) / 1e9 / seconds
                if kind != "postmaster":
                    # What its children have read and written becomes its own when they end.
                    t["read_bytes_per_s"] += d["read"] / seconds
                    t["write_bytes_per_s"] += d["written"] / seconds
        if (rest := self._ended_usage(there, seconds)) > 0:
            totals["ended"] = dict.fromkeys(_NAMES, 0.0) | {"cpu": rest / 1e9 / seconds}
        self._differences.only(there)
        self._kinds = {pid: kind for pid, kind in self._kinds.items() if pid in there}
        return [{"kind": kind, **t} for kind, t in totals.items()]

    def _ended_usage(self, there: set[Hashable], seconds: float) -> float:
        """CPU time of processes that have ended since the last sample, but for what was seen of it."""
        fields = slurp(f"/proc/{self._postmaster}/stat").rpartition(b")")[2].split()
        now = (float(fields[13]) + float(fields[14])) * _NS_A_TICK
        gone = [pid for pid in self._cpu_ns if pid not in there]
        seen = sum(self._cpu_ns[pid] for pid in gone)
        self._cpu_ns = {pid: ns for pid, ns in self._cpu_ns.items() if pid in there}
        before, self._ended_ns = self._ended_ns, now
        # When the load ends, its sessions do: what they used in their last moment is much, and of no sample.
        if before is None or any(self._kinds.get(pid) == "client backend" for pid in gone):
            return 0.0
        rest = max(0.0, now - before - seen)
        # More than there is since the last sample is of one that ended long ago, and was waited for only now.
        return rest if rest <= seconds * 1e9 * _CORES else 0.0

    def _kind(self, pid: int) -> str:
        if pid not in self._kinds:
            kind = kind_of(slurp(f"/proc/{pid}/cmdline"))
            if kind == "starting":
                return kind
            self._kinds[pid] = kind
        return self._kinds[pid]


def kind_of(title: bytes) -> str:
    """Return the kind of a server process, by its process title.

    The kind is "starting" if the process has no title yet.
    """
    match = _TITLE.match(title)
    words = match[1].decode(errors="replace").rstrip() if match else ""
    if not words:
        return "starting"
    kind = _KIND.match(words)
    return kind[1] if kind else "client backend"


def _delay_ns(thread: Path) -> float:
    """Return the time that a thread was ready to run and had no CPU; 0 if it has ended."""
    try:
        return float(slurp(f"{thread}/schedstat").split()[1])
    except (OSError, IndexError):
        return 0.0


def _used(pid: int) -> tuple[dict[str, float], str, float, bool]:
    """Return the usage of a process since its start, its state, its CPU time, and if its bytes are visible.

    The usage covers all threads together. The CPU time is measured in clock ticks and returned in ns. The last value
    is True if pgdyno may read the bytes.
    """
    text = slurp(f"/proc/{pid}/stat")
    # The command may have blanks and parentheses in it.
    fields = text.rpartition(b")")[2].split()
    ticks_ns = (float(fields[11]) + float(fields[12])) * _NS_A_TICK
    used = {"cpu_ns": ticks_ns, "delay_ns": 0.0, "read": 0.0, "written": 0.0}
    # Not every kernel has it.
    with suppress(OSError, ValueError):
        if fields[17] == b"1":
            # In nanoseconds, where it is of the whole process.
            cpu, delay, _ = slurp(f"/proc/{pid}/schedstat").split()
            used["cpu_ns"], used["delay_ns"] = float(cpu), float(delay)
        else:
            used["delay_ns"] = sum(_delay_ns(thread) for thread in Path(f"/proc/{pid}/task").iterdir())
    sees_bytes = True
    try:
        for line in slurp(f"/proc/{pid}/io").splitlines():
            key, _, value = line.partition(b":")
            if key in (b"read_bytes", b"wchar"):
                used["read" if key == b"read_bytes" else "written"] = float(value)
    except PermissionError:
        sees_bytes = False
    except (OSError, ValueError):
        # Not every kernel has it.
        pass
    return used, fields[0].decode(), ticks_ns, sees_bytes
