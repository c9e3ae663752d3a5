"""A drill: rounds of one or several faults, in one configuration or in several, written down as they are over."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from pydantic import TypeAdapter

from pgdyno import home
from pgdyno.cluster import administration
from pgdyno.cluster.target import Target
from pgdyno.collect import host
from pgdyno.drill import verdict
from pgdyno.drill.modes import Mode
from pgdyno.drill.records import Options, Round, round_from
from pgdyno.drill.rounds import play
from pgdyno.drill.target import DrillTarget
from pgdyno.drill.verdict import Verdict
from pgdyno.errors import ClusterError, PgdynoError, TrialError, UsageError, msg, reason
from pgdyno.format import one_line, size
from pgdyno.message import Name, Text, message
from pgdyno.store.texts import data_of, english, fields_of, restored
from pgdyno.stream.events import RoundProgress
from pgdyno.stream.stream import RunStream

#: In the drill's folder.
FILE = "drill.json"


@dataclass
class Drill:
    """Result of a drill."""

    folder: Path
    #: The cluster's.
    name: str
    version: str
    options: Options
    members: list[str]
    #: Of each mode (one without a name: the cluster's own) and fault its rounds.
    rounds: list[tuple[Mode, str, list[Round]]] = field(default_factory=list)
    #: Members where pg_amcheck found something, with its words.
    damaged: dict[str, Text] = field(default_factory=dict)
    #: Why it ended early.
    stopped: Text | None = None
    #: Another tool manages the cluster: whom it promotes, and when, is its own; pgdyno does not fence, nor check files.
    is_foreign: bool = False
    #: In the order of its folders, the modes and faults that were asked for, and how many rounds of each.
    plan: list[tuple[Mode, str]] = field(default_factory=list)
    planned_rounds: int = 0
    #: What a reader needs to judge the figures, by name: when, the command, the machine, settings of the primary.
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def verdicts(self) -> list[tuple[Mode, Verdict]]:
        """Verdicts, one for each mode and fault."""
        return [(mode, verdict.judge_rounds(rounds)) for mode, _, rounds in self.rounds if rounds]

    @property
    def defects(self) -> list[Text]:
        """Defects in the files that the rounds have left."""
        return [message("drill-damaged", member=Name(m), reason=words) for m, words in self.damaged.items()]

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "folder": str(self.folder),
            "cluster": self.name,
            "version": self.version,
            "options": asdict(self.options),
            "members": self.members,
            "verdicts": [{"mode": mode.name, **v.as_json()} for mode, v in self.verdicts],
            "damaged": {m: english(words) for m, words in self.damaged.items()},
            "damaged_messages": {m: data_of(words) for m, words in self.damaged.items()},
            **fields_of("stopped", self.stopped),
            "managed_by": "another tool" if self.is_foreign else "pgdyno",
            "plan": [{"mode": asdict(mode), "fault": fault} for mode, fault in self.plan],
            "planned_rounds": self.planned_rounds,
            "facts": self.facts,
        }

    def save(self) -> None:
        """Write the drill to a file beside its rounds."""
        home.replace_file(self.folder / FILE, json.dumps(self.as_json(), indent=2) + "\n")


_OPTIONS, _MODE = TypeAdapter(Options), TypeAdapter(Mode)


def is_drill(folder: Path) -> bool:
    """Return True for a folder that a drill has made."""
    return (folder / FILE).is_file()


def read(folder: Path) -> Drill:
    """Read a drill from its folder, whether it came to its end or not. Raise UsageError for a file that is damaged."""
    path = folder / FILE
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        drill = Drill(
            folder,
            str(facts["cluster"]),
            str(facts["version"]),
            _OPTIONS.validate_python(facts["options"]),
            [str(m) for m in facts["members"]],
            damaged={
                str(m): restored(str(words), facts.get("damaged_messages", {}).get(m)) or Name("")
                for m, words in facts["damaged"].items()
            },
            stopped=restored(str(facts["stopped"]), facts.get("stopped_message")),
            is_foreign=facts.get("managed_by") == "another tool",
            plan=[(_MODE.validate_python(p["mode"]), str(p["fault"])) for p in facts.get("plan", [])],
            planned_rounds=int(facts.get("planned_rounds", 0)),
            facts={str(k): str(v) for k, v in facts.get("facts", {}).items()},
        )
        for place in sorted(p for p in folder.iterdir() if re.fullmatch(r"\d+-.+", p.name)):
            number, _, fault = place.name.partition("-")
            # Drills of versions before the plan was written down had no modes, or are shown as if they had none.
            mode = drill.plan[int(number) - 1][0] if int(number) <= len(drill.plan) else Mode("", "", "")
            rounds = []
            for path in sorted(place.glob("round-*/round.json")):
                rounds.append(round_from(json.loads(path.read_text(encoding="utf-8"))))
            if rounds:
                drill.rounds.append((mode, fault, rounds))
        played = sum(len(rounds) for _, _, rounds in drill.rounds)
        planned = drill.planned_rounds * len(drill.plan)
        if not drill.stopped and played < planned:
            drill.stopped = message("drill-was-killed", played=played, planned=planned)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as e:
        raise UsageError(
            msg("error-cannot-be-read", path=path, reason=one_line(e)), msg("remedy-was-changed-hand")
        ) from e
    return drill


@contextlib.contextmanager
def _kept(drill: Drill, remedy: Text | str) -> Iterator[None]:
    """Save the results however the drill ends.

    Raise TrialError if there are no results.
    """
    try:
        yield
    except (PgdynoError, psycopg.Error) as e:
        drill.stopped = reason(e)
    except BaseException as e:
        drill.stopped = message("drill-was-stopped", by=Name(type(e).__name__))
        raise
    finally:
        drill.rounds = [r for r in drill.rounds if r[2]]
        drill.save()
    if not drill.rounds:
        raise TrialError(msg("error-no-round-came-end", stopped=drill.stopped or ""), remedy)


def _tell(stream: RunStream, done: int, of: int, fault: str, what: str) -> None:
    stream.emit(RoundProgress(done, of, fault, what))


def run(
    target: DrillTarget,
    faults: Sequence[str],
    rounds: int,
    options: Options,
    folder: Path,
    stream: RunStream,
    all_modes: Sequence[Mode] = (),
    *,
    command: str = "",
) -> Drill:
    """Run `rounds` rounds of each fault in each of the modes.

    Without modes, the cluster keeps its configuration. Raise PgdynoError, before anything is broken, if the drill is
    not possible. A cluster that does not become whole again ends the drill. The results up to that point are in
    `folder`.
    """
    target.refuse_unfit(faults)
    target.prepare(options, stream)
    every = [(mode, name) for mode in all_modes or [target.mode] for name in faults]
    folder.mkdir(parents=True)
    drill = Drill(
        folder,
        target.name,
        target.version(),
        options,
        target.members,
        is_foreign=target.is_foreign,
        plan=every,
        planned_rounds=rounds,
        facts=_facts(target.primary(), command),
    )
    drill.save()
    with _kept(drill, target.remedy):
        for n, (mode, name) in enumerate(every):
            played: list[Round] = []
            drill.rounds.append((mode, name, played))
            with target.hold_mode(mode):
                for number in range(1, rounds + 1):
                    done = n * rounds + number - 1
                    place = folder / f"{n + 1:02}-{name}" / f"round-{number:02}"
                    say = partial(_tell, stream, done, len(every) * rounds, name)
                    played.append(play(target, name, number, options, place, say, mode))
                    drill.save()
                    if played[-1].broken:
                        raise ClusterError(
                            msg(
                                "error-cluster-not-whole-after-round", number=number, name=name, reason=played[-1].error
                            ),
                            target.remedy,
                        )
        if not target.is_foreign:
            _tell(stream, len(every) * rounds, len(every) * rounds, "", "pg_amcheck")
        drill.damaged = target.damaged()
    return drill


#: Settings that decide what is lost, and how long nobody is served.
_SETTINGS = (
    "fsync", "full_page_writes", "synchronous_commit", "synchronous_standby_names", "wal_sender_timeout",
    "wal_receiver_timeout", "wal_level", "max_wal_size", "shared_buffers",
)  # fmt: skip


def _facts(primary: Target, command: str) -> dict[str, str]:
    """Return what the figures depend on: when and where it was, what was typed, the settings of the primary."""
    machine = host.describe()
    found = {
        "began": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
        "command": command,
        "machine": f"{machine['cpu']}, {machine['cores'] or '?'} cores, {size(machine['memory_bytes'])}",
    }
    with contextlib.suppress(PgdynoError, psycopg.Error), administration.connect(primary) as conn:
        rows = conn.execute(
            "select name, current_setting(name) from pg_catalog.pg_settings where name = any(%s)", [list(_SETTINGS)]
        ).fetchall()
        found |= {str(name): str(value) or "(empty)" for name, value in sorted(rows)}
    return {name: value for name, value in found.items() if value}


def folder_for(runs: Path, name: str) -> Path:
    """Return the path of a new folder for a drill of a cluster."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    return runs / f"{stamp}-drill-{name}"
