"""Records of a drill's rounds: the options that they had, what was measured in each, and its file."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from pgdyno import home
from pgdyno.drill.beside import Beside
from pgdyno.drill.ledger import Audit, Entry, Outage
from pgdyno.message import Name, Text, message
from pgdyno.store.texts import data_of, english, restored

#: Error in a round's record until the round is over.
KILLED = message("drill-killed")

#: Shows the step that a round is at.
Say = Callable[[str], object]


@dataclass(frozen=True)
class Options:
    """Options of a drill."""

    clients: int = 8
    #: Seconds of load before the fault, and after somebody is served again.
    before_s: float = 2.0
    after_s: float = 1.0
    #: How long a client waits for an answer, and for a connection.
    answer_timeout_s: float = 3.0
    connect_timeout_s: float = 1.0
    #: The old primary is killed before another is promoted.
    fence: bool = True
    #: Clients go through the cluster's pooler.
    pooled: bool = False
    #: A workload beside the ledger.
    beside: Beside | None = None


@dataclass
class Round:
    """Result of one round.

    Times are nanoseconds since 1970.
    """

    number: int
    fault: str
    synchronous_standby_names: str
    synchronous_commit: str
    #: Of its rows in the ledger.
    run: int = 0
    #: Standbys that there are, and that a commit waits for; 0 and 0: another tool's cluster, of which nothing is known.
    standbys: int = 0
    waits_for: int = 0
    fault_ns: int = 0
    #: When the primary was gone, and was found to be.
    down_ns: int | None = None
    detected_ns: int | None = None
    promoted_ns: int | None = None
    #: That pg_promote took.
    promote_s: float | None = None
    old_primary: str = ""
    new_primary: str = ""
    #: Commits a second, and the latency of a ledger's transaction, before the fault.
    tps: float = 0.0
    #: Transactions a second of the workload beside it.
    beside_tps: float | None = None
    p50_s: float | None = None
    p99_s: float | None = None
    audit: Audit | None = None
    outages: list[Outage] = field(default_factory=list)
    #: Of the others after the round: how each came back.
    rejoined: dict[str, Text] = field(default_factory=dict)
    #: Members whose ledger differs from the primary's.
    differing: list[str] = field(default_factory=list)
    #: Of the workload beside the ledger what its tables break of its conditions, on the primary.
    inconsistent: list[Text] = field(default_factory=list)
    #: The policy's words where it declined to promote anybody; it was forced then.
    refused: str = ""
    #: Two members acknowledged commits, each after the other had become a primary.
    split_brain: bool = False
    #: Members that were primaries beside the new one, whether they took writes or not.
    other_primaries: list[str] = field(default_factory=list)
    #: Before mending: how many acknowledged commits only one of several primaries had, by that primary.
    divided: dict[str, int] = field(default_factory=dict)
    #: When each client had a commit acknowledged again.
    served_ns: int | None = None
    #: Commits a second and 99th percentile of the latency: from the fault until then, and from then to the end.
    during_tps: float | None = None
    during_p99_s: float | None = None
    after_tps: float | None = None
    after_p99_s: float | None = None
    #: Seconds from the fault to the first acknowledged commit behind an outage, and until a second held 90% of the
    #: commits of before; None: not within the round, which went on for `watched_s` behind the fault.
    first_commit_s: float | None = None
    recovered_s: float | None = None
    watched_s: float = 0.0
    #: The mode's manager lets commits wait for nobody where no standby is there.
    fell_back: bool = False
    events: list[tuple[int, Text]] = field(default_factory=list)
    #: Seconds since the fault, and commits a second: of each tenth of a second.
    series: list[tuple[float, float]] = field(default_factory=list)
    #: Why the round says nothing about what is kept, where it does not; what it lost counts all the same.
    error: Text | None = None
    #: The cluster could not be mended after it.
    broken: bool = False

    def as_json(self) -> dict[str, Any]:
        """For machines, and for `pgdyno report`: all of it."""
        values = asdict(replace(self, **_NO_TEXTS))
        texts_of = self._texts()
        values |= {
            "events": [[at, english(text)] for at, text in self.events],
            "inconsistent": [english(text) for text in self.inconsistent],
            "rejoined": {name: english(text) for name, text in self.rejoined.items()},
            "error": english(self.error),
            # The same texts as data, for other languages.
            "messages": {name: [data_of(text) for text in found] for name, found in texts_of.items()},
        }
        if self.audit is not None:
            values["audit"]["lost_count"] = len(self.audit.lost)
            values["audit"]["lost_in_silence"] = len(self.audit.lost_in_silence)
        return values

    def _texts(self) -> dict[str, list[Text | None]]:
        return {
            "events": [text for _, text in self.events],
            "inconsistent": list(self.inconsistent),
            "rejoined": list(self.rejoined.values()),
            "error": [self.error],
        }


#: A round without texts.
_NO_TEXTS: dict[str, Any] = {"events": [], "inconsistent": [], "rejoined": {}, "error": None}
_ROUND = TypeAdapter(Round)


def round_from(facts: dict[str, Any]) -> Round:
    """Return the round of a file. Raise ValueError, TypeError, KeyError or AttributeError if it is damaged."""
    found = _ROUND.validate_python({k: v for k, v in facts.items() if k != "messages"} | _NO_TEXTS)
    messages = facts.get("messages", {})

    def texts(name: str, written: list[str]) -> list[Text | None]:
        return [restored(str(x), data) for x, data in zip_longest(written, messages.get(name, [])[: len(written)])]

    events = facts.get("events", [])
    found.events = [
        (int(at), text or Name(""))
        for (at, _), text in zip(events, texts("events", [x for _, x in events]), strict=True)
    ]
    found.inconsistent = [x for x in texts("inconsistent", facts.get("inconsistent", [])) if x is not None]
    rejoined = facts.get("rejoined", {})
    how = texts("rejoined", list(rejoined.values()))
    found.rejoined = {name: text or Name("") for name, text in zip(rejoined, how, strict=True)}
    (found.error,) = texts("error", [facts.get("error", "")])
    return found


def save(folder: Path, found: Round) -> None:
    """Write a round beside its records, at once."""
    home.replace_file(folder / "round.json", json.dumps(found.as_json(), indent=2) + "\n")


def write_lost(path: Path, lost: list[Entry]) -> None:
    """All lost rows; without any there is no such file."""
    if lost:
        rows = [f"{e.client},{e.sequence},{e.at_ns},{'warned' if e.warned else ''}" for e in lost]
        home.replace_file(path, "\n".join(["client,sequence,acknowledged_ns,warning", *rows]) + "\n")
