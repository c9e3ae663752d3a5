"""What the server's processes do or wait for: pg_stat_activity, sampled."""

from __future__ import annotations

from collections import Counter
from typing import Any, LiteralString

import psycopg

from pgdyno.collect.sources.base import Row

Connection = psycopg.Connection[tuple[Any, ...]]
#: By the function beneath the view: the view joins names that nobody asks for here. Our own clients apart from others.
_ACTIVITY: LiteralString = """
select backend_type, coalesce(application_name = %s and backend_type = 'client backend', false),
       coalesce(state, ''), coalesce(wait_event_type, ''), coalesce(wait_event, ''), count(*)::float8
from pg_stat_get_activity(null)
where pid <> pg_backend_pid() and coalesce(application_name, '') <> 'pgdyno admin'
group by 1, 2, 3, 4, 5"""


class Waits:
    """Looked at often (`look`), and told as one row a sample and kind: how many processes were in it on average. A
    process that is active and waits for nothing runs, or waits for a CPU: of that PostgreSQL does not know.
    """

    name = "waits"
    period_s = 0.0

    def __init__(self, conn: Connection, application: str) -> None:
        """`application`: what our clients call themselves."""
        self._conn = conn
        self._application = application
        self._seen: Counter[tuple[str, bool, str, str, str]] = Counter()
        self._looks = 0
        #: Some of our clients waited for a lock when we last looked.
        self.is_locked = False

    def look(self) -> None:
        """Once. May raise psycopg.Error."""
        found = self._conn.execute(_ACTIVITY, [self._application], prepare=True).fetchall()
        self._looks += 1
        self.is_locked = False
        for kind, ours, state, what, event, n in found:
            self._seen[kind or "?", ours, state, what, event] += n
            self.is_locked |= ours and what == "Lock"

    def rows(self, seconds: float) -> list[Row]:
        """See Source."""
        looks, seen = self._looks, self._seen
        self._looks, self._seen = 0, Counter()
        return [
            {"kind": kind, "ours": float(ours), "state": state, "wait_type": what, "wait": event,
             "processes": n / looks, "looks": float(looks)}
            for (kind, ours, state, what, event), n in seen.items()
        ]  # fmt: skip
