"""A drill: rounds of one or several faults, in one configuration or in several, written down as they are over."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from pgdyno import home
from pgdyno.cluster import target as targets
from pgdyno.cluster.process import environment
from pgdyno.drill import foreign, modes, verdict
from pgdyno.drill.faults import FAULTS
from pgdyno.drill.foreign import ForeignCluster
from pgdyno.drill.modes import Mode
from pgdyno.drill.rounds import Options, Round, play, refuse_unfit
from pgdyno.drill.verdict import Verdict
from pgdyno.errors import ClusterError, PgdynoError, TrialError
from pgdyno.format import one_line
from pgdyno.load.listener import LoadListener
from pgdyno.replication.cluster import ReplicatedCluster
from pgdyno.replication.member import Member

#: In the drill's folder.
FILE = "drill.json"
#: Called with: rounds that are over, rounds in all, the fault, what is done.
Watch = Callable[[int, int, str, str], object]


@dataclass
class Drill:
    """What a drill came to."""

    folder: Path
    #: The cluster's.
    name: str
    version: str
    options: Options
    members: list[str]
    #: Of each mode (one without a name: the cluster's own) and fault its rounds.
    rounds: list[tuple[Mode, str, list[Round]]] = field(default_factory=list)
    #: Members where pg_amcheck found something, with its words.
    damaged: dict[str, str] = field(default_factory=dict)
    #: Why it ended early.
    stopped: str = ""
    #: Another tool manages the cluster: whom it promotes, and when, is its own; pgdyno does not fence, nor check files.
    is_foreign: bool = False

    @property
    def verdicts(self) -> list[tuple[Mode, Verdict]]:
        """Of each mode and fault."""
        return [(mode, verdict.of_rounds(rounds)) for mode, _, rounds in self.rounds if rounds]

    @property
    def defects(self) -> list[str]:
        """What is wrong with the files that the rounds have left."""
        return [f"pg_amcheck on {m}: {words}" for m, words in self.damaged.items()]

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "folder": str(self.folder),
            "cluster": self.name,
            "version": self.version,
            "options": asdict(self.options),
            "members": self.members,
            "verdicts": [{"mode": mode.name, **v.as_json()} for mode, v in self.verdicts],
            "damaged": self.damaged,
            "stopped": self.stopped,
            "managed_by": "another tool" if self.is_foreign else "pgdyno",
        }

    def save(self) -> None:
        """Writes it beside its rounds."""
        home.replace_file(self.folder / FILE, json.dumps(self.as_json(), indent=2) + "\n")


@contextlib.contextmanager
def _kept(drill: Drill, remedy: str) -> Iterator[None]:
    """What was found is written down however the drill ends. Raises TrialError where nothing was."""
    try:
        yield
    except (PgdynoError, psycopg.Error) as e:
        drill.stopped = one_line(e)
    except BaseException as e:
        drill.stopped = f"stopped: {type(e).__name__}"
        raise
    finally:
        drill.rounds = [r for r in drill.rounds if r[2]]
        drill.save()
    if not drill.rounds:
        raise TrialError(f"no round came to its end: {drill.stopped}", remedy)


def run(
    cluster: ReplicatedCluster,
    faults: Sequence[str],
    rounds: int,
    options: Options,
    folder: Path,
    watch: Watch,
    in_modes: Sequence[Mode] = (),
) -> Drill:
    """So many rounds of each fault, in each of the modes; without modes as the cluster is. Raises RefusedError before
    anything is broken. A cluster that cannot be mended ends the drill; what was found until then is in `folder`.
    """
    for name in faults:
        refuse_unfit(cluster, FAULTS[name])
    # No server changes while it is looked at.
    own = Mode("", cluster.record.synchronous_standby_names, cluster.setting("synchronous_commit"))
    if options.beside is not None:
        options.beside.prepare(cluster, LoadListener())
    folder.mkdir(parents=True)
    drill = Drill(folder, cluster.base.name, cluster.primary.cluster.version(), options, cluster.record.members)
    every = [(mode, name) for mode in in_modes or [own] for name in faults]
    with _kept(drill, f"pgdyno cluster repair {cluster.base}"):
        for n, (mode, name) in enumerate(every):
            played: list[Round] = []
            drill.rounds.append((mode, name, played))
            with modes.manager(cluster, mode):
                for number in range(1, rounds + 1):
                    done = n * rounds + number - 1
                    place = folder / f"{n + 1:02}-{name}" / f"round-{number:02}"
                    say = partial(watch, done, len(every) * rounds, name)
                    played.append(play(cluster, FAULTS[name], number, options, place, say, falls_back=mode.falls_back))
                    drill.save()
                    if played[-1].broken:
                        raise ClusterError(
                            f"the cluster could not be mended after round {number} of {name}: {played[-1].error}",
                            f"pgdyno cluster repair {cluster.base}",
                        )
        watch(len(every) * rounds, len(every) * rounds, "", "pg_amcheck")
        # The primary first: what the check needs is installed there.
        for m in [cluster.primary, *cluster.others(cluster.primary)]:
            cluster.wait_caught_up()
            if words := _checked(m):
                drill.damaged[m.name] = words
    return drill


def run_foreign(
    cluster: ForeignCluster, faults: Sequence[str], rounds: int, options: Options, folder: Path, watch: Watch
) -> Drill:
    """So many rounds of each fault of a cluster that another tool manages. One that does not become whole again ends
    the drill; what was found until then is in `folder`.
    """
    foreign.refuse_unknown(cluster.description, list(faults))
    cluster.wait_whole(cluster.description.whole_s)
    with targets.administrative(cluster.members[0].target) as conn:
        row = conn.execute("select current_setting('server_version')").fetchone()
    folder.mkdir(parents=True)
    names = [m.name for m in cluster.members]
    drill = Drill(folder, cluster.description.name, str(row[0]) if row else "?", options, names, is_foreign=True)
    with _kept(drill, "Put the cluster right; whole_s says how long that may take."):
        for n, name in enumerate(faults):
            played: list[Round] = []
            drill.rounds.append((Mode("", "", ""), name, played))
            for number in range(1, rounds + 1):
                say = partial(watch, n * rounds + number - 1, len(faults) * rounds, name)
                place = folder / f"{n + 1:02}-{name}" / f"round-{number:02}"
                played.append(foreign.play(cluster, name, number, options, place, say))
                drill.save()
                if played[-1].broken:
                    raise ClusterError(f"the cluster is not whole after round {number} of {name}: {played[-1].error}")
    return drill


def _checked(member: Member) -> str:
    """What pg_amcheck finds: a first line, or nothing."""
    amcheck = member.program("pg_amcheck")
    if not amcheck.exists():
        return "not checked: it is not among the server's programs"
    words: list[str | Path] = [
        amcheck, "-h", member.cluster.layout.socket, "-p", str(member.port), "-U", "postgres", "--install-missing",
        "-d", "postgres",
    ]  # fmt: skip
    if member.is_marked_as_standby:
        # Nothing can be installed there; the primary has it.
        words.remove("--install-missing")
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, cwd="/", env=environment(), **member.cluster.account.popen()
    )
    return "" if done.returncode == 0 else " ".join((done.stdout + done.stderr).split())[:300]


def folder_for(runs: Path, name: str) -> Path:
    """A new folder for a drill of a cluster."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    return runs / f"{stamp}-drill-{name}"
