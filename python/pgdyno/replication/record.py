"""What a cluster with standbys is, on disk: its members, how they find each other, and what is being done to it."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pgdyno.errors import RefusedError

#: In the cluster's folder.
FILE = "replication.json"


@dataclass
class Record:
    """See the module. `save` replaces the file at once: it is never half written."""

    #: Names of the members: of their folders, their slots, and as standbys are called in synchronous_standby_names.
    members: list[str]
    #: The TCP port of each.
    ports: dict[str, int]
    #: synchronous_standby_names; empty: asynchronous.
    synchronous_standby_names: str
    #: Who is the primary, as far as pgdyno has made it so.
    primary: str
    #: Of the role for replication, and of that for clients.
    replication_password: str = field(repr=False)
    client_password: str = field(repr=False)
    #: Of each member: name, value, reason, first version.
    settings: list[tuple[str, str, str, int]]
    #: Part of the names of its namespaces, and of their addresses; None: the members share this machine's network.
    network: tuple[str, int] | None = None
    #: Members that are whole.
    built: list[str] = field(default_factory=list)
    #: Members that were seen to follow the primary, on its timeline, since it has become that.
    following: list[str] = field(default_factory=list)
    #: What was begun and not ended: the verb, and the member that is to be the primary.
    unfinished: tuple[str, str] | None = None

    def save(self, base: Path) -> None:
        """Writes it; only we may read it."""
        path = base / FILE
        part = path.with_suffix(".part")
        fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as f:
            f.write(json.dumps({"format": 1, **asdict(self)}, indent=2) + "\n")
            f.flush()
            os.fsync(f.fileno())
        part.rename(path)


def is_there(base: Path) -> bool:
    """Whether a folder holds a cluster with standbys."""
    return (base / FILE).exists()


def load(base: Path) -> Record:
    """Reads it. Raises RefusedError."""
    try:
        values: dict[str, Any] = json.loads((base / FILE).read_text(encoding="utf-8"))
        if values.pop("format") != 1:
            raise ValueError("it is of another version of pgdyno")
        record = Record(**values)
    except FileNotFoundError:
        raise RefusedError(
            f"{base} holds no cluster with standbys: it has no {FILE}",
            f"Make one: pgdyno cluster create {base} --standbys 2.",
        ) from None
    except (OSError, ValueError, TypeError, KeyError) as e:
        raise RefusedError(f"{base / FILE} cannot be read: {e}", "Its members are whole clusters.") from e
    record.settings = [tuple(s) for s in record.settings]  # type: ignore[misc]
    record.network = None if record.network is None else (str(record.network[0]), int(record.network[1]))
    record.unfinished = None if record.unfinished is None else (record.unfinished[0], record.unfinished[1])
    return record
