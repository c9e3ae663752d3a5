"""Commands of other sessions: who ran what, and when."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from pgdyno.diagnosis.phrases import shortened
from pgdyno.diagnosis.recorded import Recorded

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
