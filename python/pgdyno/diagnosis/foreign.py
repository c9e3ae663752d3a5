"""Commands of other sessions: who ran what, and when."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pgdyno.diagnosis.phrases import shortened
from pgdyno.diagnosis.recorded import Recorded
from pgdyno.samples import OTHER_SESSION

#: Checkpoints have causes of their own, whoever asks for them.
_CHECKPOINT = re.compile(r"\s*checkpoint\b", re.IGNORECASE)
_DIGITS = re.compile(r"\d+")
#: States in which a session works.
_WORKING = ("active", "fastpath function call")


@dataclass(frozen=True)
class Ran:
    """A command of another session in one sample: its times in ns, and the mean number of sessions that ran it."""

    start_ns: int
    end_ns: int
    command: str
    sessions: float
    #: Of those, the sessions that had no wait event: they ran, or waited for a CPU.
    running: float


def commands(r: Recorded) -> list[Ran]:
    """Return the commands of other sessions, by sample.

    They are those of pg_stat_activity. Runs of earlier versions have only the progress views. Those do not name the
    session, so a command that a script of the workload has is left out.
    """
    rows = r.rows("commands")
    if rows:
        names = _grouped({shortened(str(row["command"])) for row in rows})
        found: dict[tuple[int, int, str], Ran] = {}
        for row in rows:
            if row["state"] in _WORKING and not _CHECKPOINT.match(str(row["command"])):
                key = (row["start_ns"], row["end_ns"], names[shortened(str(row["command"]))])
                before = found.get(key)
                sessions = row["sessions"] + (before.sessions if before else 0.0)
                running = (0.0 if row["wait"] else row["sessions"]) + (before.running if before else 0.0)
                found[key] = Ran(*key, sessions, running)
        return list(found.values())
    return [
        Ran(row["start_ns"], row["end_ns"], _named(str(row["command"]), str(row["relation"])), 1.0, 1.0)
        for row in r.rows("progress")
        if not row["auto"] and not r.mentions(_verb(str(row["command"])))
    ]


@dataclass(frozen=True)
class Moved:
    """Bytes that a command of other sessions read, wrote (WAL among them), and added to WAL; None: not known."""

    read: float | None = None
    written: float | None = None
    wal: float | None = None


def moved(rs: Sequence[Recorded], command: str) -> Moved | None:
    """Return the bytes of a command over all trials; None: they are not known.

    Those read and written are the kernel's, if no other command ran. PostgreSQL counts WAL, and pages that were read,
    at the end of a command, and forgets them with the session.
    """
    kernel, (read, wal) = _kernel_bytes(rs, command), _counted(rs, command)
    if kernel is None and wal is None:
        return None
    return Moved(kernel[0] if kernel else read, kernel[1] if kernel else None, wal)


def _kernel_bytes(rs: Sequence[Recorded], command: str) -> tuple[float, float] | None:
    """Return the bytes that the kernel saw other sessions read and write while the command ran."""
    read = written = 0.0
    is_known = False
    for r in rs:
        ran = commands(r)
        if any(x.command != command for x in ran):
            return None
        times = [(x.start_ns, x.end_ns) for x in ran]
        for row in r.rows("processes"):
            if row["kind"] != OTHER_SESSION or row.get("write_bytes_per_s") is None:
                continue
            if any(start < row["end_ns"] and row["start_ns"] < end for start, end in times):
                is_known = True
                length_s = (row["end_ns"] - row["start_ns"]) / 1e9
                read += float(row.get("read_bytes_per_s") or 0.0) * length_s
                written += float(row["write_bytes_per_s"]) * length_s
    return (read, written) if is_known else None


def _counted(rs: Sequence[Recorded], command: str) -> tuple[float | None, float | None]:
    """Return the bytes that PostgreSQL counted for a command: read, and WAL."""
    read = wal = None
    for r in rs:
        names = _grouped({shortened(str(row["command"])) for s in ("commands", "command_io") for row in r.rows(s)})
        for row in r.rows("command_io"):
            if names[shortened(str(row["command"]))] == command:
                read, wal = (read or 0.0) + row["read_bytes"], (wal or 0.0) + row["wal_bytes"]
    return read, wal


def _grouped(texts: Collection[str]) -> dict[str, str]:
    """Return the name of each command: those that differ in numbers only (part_2024, part_2025) have one name."""
    kinds: dict[str, set[str]] = {}
    for text in texts:
        kinds.setdefault(_DIGITS.sub("…", text), set()).add(text)
    return {text: kind if len(own) > 1 else text for kind, own in kinds.items() for text in own}


def _named(command: str, relation: str) -> str:
    return f"{command.upper()} {relation}" if relation else command.upper()


def _verb(command: str) -> str:
    """Return the words that a script would have: "vacuum" of "vacuum full", "create index" of "create index x"."""
    parts = command.split()
    return " ".join(parts[:2] if parts[:1] in (["create"], ["base"]) else parts[:1])
