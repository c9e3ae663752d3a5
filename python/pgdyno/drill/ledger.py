"""The ledger: the table, the clients' records of what they were told, and what of it is there afterwards.

Only a commit that was acknowledged and is missing counts as lost. One whose connection was lost before the answer is
unknown, and may be there or not. The records are written by the native module; see `crates/ledger`.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import psycopg

from pgdyno import _core
from pgdyno.cluster.administration import is_plain_table
from pgdyno.errors import TrialError, msg

Outcome = Literal["acknowledged", "failed", "unknown"]
#: A row, by its client and its sequence.
Key = tuple[int, int]
#: A client, its register, its tokens, its last row.
State = tuple[int, int | None, tuple[int, ...], int | None]

#: A row for each transaction; and of each client a register that is updated, and a token that is deleted and inserted.
_TABLES = {
    "public.pgdyno_ledger": "run bigint, client int, sequence bigint, inserted timestamptz not null "
    "default clock_timestamp(), content bigint, primary key (run, client, sequence)",
    "public.pgdyno_ledger_register": "run bigint, client int, sequence bigint, primary key (run, client)",
    "public.pgdyno_ledger_token": "run bigint, client int, sequence bigint, primary key (run, client, sequence)",
}
_ROWS = "select client, sequence, content from public.pgdyno_ledger where run = %s order by 1, 2"
#: Of each client its register, its tokens and its last row, of one snapshot.
_STATES = """
with r as (select client, sequence from public.pgdyno_ledger_register where run = %(run)s),
t as (select client, pg_catalog.array_agg(sequence order by sequence) as tokens
      from public.pgdyno_ledger_token where run = %(run)s group by 1),
l as (select client, pg_catalog.max(sequence) as last from public.pgdyno_ledger where run = %(run)s group by 1)
select client, r.sequence, t.tokens, l.last
from r full join t using (client) full join l using (client) order by client"""


@dataclass(frozen=True)
class Entry:
    """Outcome of one transaction, as reported to its client."""

    client: int
    sequence: int
    outcome: Outcome
    #: Nanoseconds since 1970.
    at_ns: int
    #: The server has sent a warning with it: of a cancelled wait it says that the commit may be only local.
    warned: bool = False

    @property
    def key(self) -> Key:
        """Its row."""
        return (self.client, self.sequence)


@dataclass(frozen=True)
class Audit:
    """The records compared with the table."""

    acknowledged: int
    failed: int
    unknown: int
    #: Acknowledged behind a warning.
    warned: int
    #: Acknowledged, and missing.
    lost: list[Entry] = field(default_factory=list)
    #: Failed, and there.
    resurrected: list[Entry] = field(default_factory=list)
    #: Unknown, and there.
    unknown_there: int = 0
    #: There, and of no record: begun last by a client that could not write down how it ended.
    unrecorded: list[Key] = field(default_factory=list)
    #: There, and written by no client: none of its number was at work, or it was not at that number.
    phantoms: list[Key] = field(default_factory=list)
    #: Rows that are there more than once, against the primary key.
    twice: int = 0
    #: There with another content than was written.
    changed: list[Key] = field(default_factory=list)
    #: Clients whose register (updates) or token (deletes) is not where their last row is, in words.
    torn: list[str] = field(default_factory=list)
    #: Lost, though a later one of the same client from before the fault is there: a piece is missing, not the end.
    holes: list[Entry] = field(default_factory=list)
    #: Rows that somebody has read, and that are missing.
    seen_and_missing: int = 0

    @property
    def lost_in_silence(self) -> list[Entry]:
        """Lost, and the server had not warned."""
        return [e for e in self.lost if not e.warned]


def workload(run: int, records: Path) -> _core.Workload:
    """Return the workload of the clients, which write their records into the folder `records`."""
    return _core.Workload.ledger(run, records)


@dataclass(frozen=True)
class There:
    """Rows and client states of one run, as found on a member."""

    #: By client and sequence; also such that are there twice.
    rows: list[Key]
    #: Of those, such with another content than was written.
    changed: list[Key]
    #: Of each client its register, its tokens and its last row.
    states: list[State]


def create(conn: psycopg.Connection[tuple[object, ...]]) -> None:
    """Make the tables, unless they are there."""
    for name, columns in _TABLES.items():
        conn.execute(f"create table if not exists {name} ({columns})".encode())
    has_content = conn.execute(
        "select from pg_catalog.pg_attribute where attrelid = 'public.pgdyno_ledger'::pg_catalog.regclass "
        "and attname = 'content'"
    ).fetchone()
    # One of a version that wrote keys alone. Only its owner can add one.
    if has_content is None:
        conn.execute("alter table public.pgdyno_ledger add column content bigint")


def look(conn: psycopg.Connection[tuple[Any, ...]], run: int) -> There:
    """Read the rows of a run on a member.

    Raise TrialError if one of the tables is no longer a table. Reading a view calls functions that its owner chooses,
    and pgdyno may be superuser.
    """
    for name in _TABLES:
        if is_plain_table(conn, name) is False:
            raise TrialError(msg("error-not-table-pgdyno-made", name=name), msg("remedy-who-replaced"))
    found = conn.execute(_ROWS, [run]).fetchall()
    states = conn.execute(_STATES, {"run": run}).fetchall()
    return There(
        [(client, sequence) for client, sequence, _ in found],
        [(client, sequence) for client, sequence, is_ in found if is_ != _core.ledger_content(run, client, sequence)],
        [(client, register, tuple(tokens or ()), last) for client, register, tokens, last in states],
    )


def rows(conn: psycopg.Connection[tuple[Any, ...]], run: int) -> list[Key]:
    """Return the rows of a run alone, for looks in passing."""
    if is_plain_table(conn, "public.pgdyno_ledger") is False:
        raise TrialError(msg("error-public-pgdyno-ledger-not-table"), msg("remedy-who-replaced"))
    return conn.execute("select client, sequence from public.pgdyno_ledger where run = %s", [run]).fetchall()


def read(folder: Path) -> list[Entry]:
    """All records of a folder, by client and sequence. Raises TrialError where one is not what the engine writes."""
    entries = []
    for path in sorted(folder.glob("client-*.log")):
        client = int(path.stem.removeprefix("client-"))
        lines = path.read_text(encoding="ascii", errors="replace").split("\n")
        # Without its end the last line was cut off by whatever ended pgdyno: its transaction has no record.
        for number, line in enumerate(lines[:-1], 1):
            entries.append(_entry(client, line, f"{path}:{number}"))
    return sorted(entries, key=lambda e: (e.client, e.sequence))


def _entry(client: int, line: str, where: str) -> Entry:
    words = line.split(" ")
    try:
        outcome, sequence, at, *rest = words
        if outcome not in ("acknowledged", "failed", "unknown") or rest not in ([], ["warned"]):
            raise ValueError
        return Entry(client, int(sequence), outcome, int(at), bool(rest))  # type: ignore[arg-type]
    except ValueError:
        raise TrialError(
            msg("error-no-line-ledger-s-record", where=where, line=repr(line[:60])), msg("remedy-was-changed-hand")
        ) from None


def are_served(folder: Path, clients: int, since_ns: int) -> bool:
    """Return True if each client has had a commit acknowledged since `since_ns`."""
    for client in range(clients):
        try:
            with (folder / f"client-{client}.log").open("rb") as f:
                f.seek(max(0, f.seek(0, 2) - 200))
                words = f.read().decode("ascii", "replace").rstrip("\n").rpartition("\n")[2].split(" ")
        except OSError:
            return False
        if words[0] != "acknowledged" or len(words) < 3 or int(words[2]) <= since_ns:
            return False
    return True


def _per_client(entries: list[Entry]) -> dict[int, list[Entry]]:
    found: dict[int, list[Entry]] = {}
    for e in entries:
        found.setdefault(e.client, []).append(e)
    return found


def torn(states: Sequence[State], entries: Sequence[Entry]) -> list[str]:
    """Clients whose transactions are there in part: the last of each set row, register and token to one number.

    A token that is left over of a transaction whose outcome was unknown is none of that: the next one did not see yet
    what it waited for.
    """
    unknown = {e.key for e in entries if e.outcome == "unknown"}
    found = []
    for client, register, tokens, last in states:
        counted = [t for t in tokens if t == last or (client, t) not in unknown]
        if register != last or counted != ([] if last is None else [last]):
            found.append(
                f"client {client}: its last row is {last}, its register (UPDATE) {register}, its token (DELETE) "
                f"{', '.join(map(str, tokens)) or None}"
            )
    return found


def audit(
    entries: list[Entry],
    there: list[Key],
    *,
    fault_ns: int,
    seen: Set[Key] = frozenset(),
    changed: Sequence[Key] = (),
    states: Sequence[State] = (),
) -> Audit:
    """Compare the clients' records with the rows of the surviving primary.

    `there` holds the rows of the surviving primary, `changed` the changed ones among them, and `states` the states of
    its clients. `fault_ns` is the time when the old primary was broken, in nanoseconds since 1970. `seen` holds rows
    that were read before.
    """
    present = set(there)
    by_outcome: dict[str, list[Entry]] = {"acknowledged": [], "failed": [], "unknown": []}
    for e in entries:
        by_outcome[e.outcome].append(e)
    lost = [e for e in by_outcome["acknowledged"] if e.key not in present]
    last: dict[int, int] = {}
    for e in entries:
        if e.key in present and e.at_ns <= fault_ns:
            last[e.client] = max(e.sequence, last.get(e.client, 0))
    recorded = {e.key for e in entries}
    # A client that was killed could not write down how its last transaction ended; nobody else writes.
    may_be_next = {client: max(e.sequence for e in own) + 1 for client, own in _per_client(entries).items()}
    unrecorded = sorted(present - recorded)
    return Audit(
        acknowledged=len(by_outcome["acknowledged"]),
        failed=len(by_outcome["failed"]),
        unknown=len(by_outcome["unknown"]),
        warned=sum(e.warned for e in by_outcome["acknowledged"]),
        lost=lost,
        resurrected=[e for e in by_outcome["failed"] if e.key in present],
        unknown_there=sum(e.key in present for e in by_outcome["unknown"]),
        unrecorded=unrecorded,
        phantoms=[key for key in unrecorded if may_be_next.get(key[0], 1) != key[1]],
        twice=len(there) - len(present),
        changed=list(changed),
        torn=torn(states, entries),
        holes=[e for e in lost if e.sequence < last.get(e.client, 0)],
        seen_and_missing=len(seen - present),
    )


@dataclass(frozen=True)
class Outage:
    """Time during which one client had no commit acknowledged."""

    client: int
    #: The last acknowledged before, the first after: nanoseconds since 1970. None: none came.
    last_ns: int | None
    first_ns: int | None
    #: Nanoseconds that it lasted at least, where it had not ended with the load.
    at_least_ns: int = 0

    @property
    def seconds(self) -> float | None:
        """Between them."""
        return None if self.last_ns is None or self.first_ns is None else (self.first_ns - self.last_ns) / 1e9


def outages(
    entries: list[Entry], clients: int, fault_ns: int, end_ns: int, lost: Set[Key] = frozenset()
) -> list[Outage]:
    """Return each client's longest time after the fault without an acknowledged commit.

    Commits in `lost` do not count as acknowledged. An outage that lasts until the end of the load has no end.
    """
    found = []
    good = [e for e in entries if e.outcome == "acknowledged" and e.key not in lost]
    for client in range(clients):
        times = sorted(e.at_ns for e in good if e.client == client)
        if not times:
            found.append(Outage(client, None, None, max(0, end_ns - fault_ns)))
            continue
        gaps = [(b - a, a, b) for a, b in pairwise([*times, end_ns]) if b > fault_ns]
        _, last, first = max(gaps, default=(0, times[-1], end_ns))
        ended = first != end_ns
        found.append(Outage(client, last, first if ended else None, 0 if ended else end_ns - last))
    return found
