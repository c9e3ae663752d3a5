"""Guarantee of synchronous_standby_names, and number of standbys that a failover must inspect for it to hold."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pgdyno.errors import UsageError, msg

_FORM = re.compile(r"^\s*(?:(ANY|FIRST)\s+)?(?:(\d+)\s*)?(?:\(([^()]*)\)|([^()\d][^()]*))?\s*$", re.IGNORECASE)


@dataclass(frozen=True)
class Promise:
    """A commit is acknowledged when a number of `candidates` have it; 0: it does not wait."""

    wanted: int
    #: Members that count.
    candidates: tuple[str, ...]

    def must_be_seen(self) -> int:
        """Return how many candidates must be inspected so that every acknowledged commit is on one of them.

        Each such commit is on `wanted` candidates. So any set that leaves out fewer than `wanted` candidates contains
        one that has the commit. A result above the number of candidates means that nothing is promised. A result of 0
        means that more standbys are wanted than exist, so no commit is ever acknowledged.
        """
        return max(0, len(self.candidates) - self.wanted + 1)


def read(text: str, members: list[str], primary: str) -> Promise:
    """Parse synchronous_standby_names for a cluster of these members.

    The forms are `ANY n (list)`, `FIRST n (list)` and `n (list)`. A list alone means FIRST 1, and `*` is any name.
    Raise UsageError if the text has no such form or names an unknown member.

    Source: https://www.postgresql.org/docs/current/runtime-config-replication.html
    """
    standbys = [m for m in members if m != primary]
    if not text.strip():
        return Promise(0, tuple(standbys))
    found = _FORM.match(text)
    if found is None or (found[3] is None and (found[4] is None or found[1] or found[2])):
        raise UsageError(
            msg("error-sync-not-what-synchronous-standby", text=repr(text)),
            msg("remedy-write-any-1-first-1"),
        )
    names = [n.strip().strip('"') for n in (found[3] if found[3] is not None else found[4]).split(",")]
    unknown = [n for n in names if n != "*" and n not in members]
    if unknown:
        raise UsageError(
            msg("error-sync-no-member", unknown=repr(unknown[0])),
            msg("remedy-members-any-them", members=", ".join(members)),
        )
    # The primary itself is no standby: named, it is waited for in vain.
    return Promise(int(found[2] or 1), tuple(n for n in standbys if "*" in names or n in names))
