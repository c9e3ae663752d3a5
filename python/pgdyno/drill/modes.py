"""Protection modes, in Oracle Data Guard's words, by PostgreSQL's settings; and the manager that falls back."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg

from pgdyno.cluster import administration
from pgdyno.errors import PgdynoError
from pgdyno.replication import configuration
from pgdyno.replication.cluster import ReplicatedCluster

#: How often the manager looks at the primary's standbys.
_LOOK_S = 0.5


_LOOK = """
select pg_is_in_recovery(), count(*) from pg_stat_replication
where state = 'streaming' and application_name = any(%s)"""


@dataclass(frozen=True)
class Mode:
    """Protection mode, which defines what commits wait for."""

    name: str
    synchronous_standby_names: str
    synchronous_commit: str
    #: Where no standby streams commits wait for none: PostgreSQL does not do that by itself, a manager does.
    falls_back: bool = False

    @property
    def promises(self) -> bool:
        """Commits that are acknowledged are on a standby."""
        return bool(self.synchronous_standby_names) and self.synchronous_commit not in ("off", "local")

    def keeps(self, fault: str) -> bool:
        """Return True if acknowledged commits survive that fault."""
        return self.promises and not (self.falls_back and fault == _LONELY)

    @property
    def settings(self) -> str:
        """synchronous_commit, synchronous_standby_names."""
        falls_back = " or none" if self.falls_back else ""
        return f"{self.synchronous_commit}, {self.synchronous_standby_names or 'async'}{falls_back}"


MODES = (
    Mode("no durability", "", "off"),
    Mode("maximum performance", "", "on"),
    Mode("maximum availability", "ANY 1 (*)", "remote_write", falls_back=True),
    Mode("maximum protection", "ANY 1 (*)", "on"),
    Mode("protection, replayed", "ANY 1 (*)", "remote_apply"),
)
#: The fault that a mode which falls back does not survive.
_LONELY = "kill-lonely-primary"
#: The faults that tell them apart.
FAULTS = ("kill-primary", "cut-primary", "cut-standbys", _LONELY)


@contextlib.contextmanager
def manager(cluster: ReplicatedCluster, mode: Mode) -> Iterator[None]:
    """Set the cluster to the mode during the block.

    A mode that falls back has its manager in a thread. Afterwards the cluster's own settings are restored.
    """
    if not mode.name:
        # As it is.
        yield
        return
    before = {
        "synchronous_standby_names": cluster.record.synchronous_standby_names,
        "synchronous_commit": configuration.setting_of(cluster, "synchronous_commit"),
    }
    # Written down first: a pgdyno that is killed must not leave a cluster that does not wait for its standbys.
    cluster.record.set_aside = before
    configuration.change_settings(
        cluster, synchronous_standby_names=mode.synchronous_standby_names, synchronous_commit=mode.synchronous_commit
    )
    over = threading.Event()
    thread = threading.Thread(target=_fall_back, args=(cluster, mode, over), daemon=True)
    try:
        if mode.falls_back:
            thread.start()
        yield
    finally:
        over.set()
        if mode.falls_back:
            thread.join()
        cluster.record.set_aside = None
        configuration.change_settings(cluster, **before)


def _fall_back(cluster: ReplicatedCluster, mode: Mode, over: threading.Event) -> None:
    """Empty synchronous_standby_names while no standby streams.

    Patroni's synchronous_mode does the same, unless it is strict. Patroni first records the change at a place that a
    promotion reads. This manager informs no one: a primary that fails while it waits for no standby loses commits.
    """
    waits = True
    while not over.wait(_LOOK_S):
        try:
            with administration.connect(cluster.primary.local, patience_s=2.0) as conn:
                row = conn.execute(_LOOK, [cluster.record.members]).fetchone()
                if row is None or row[0]:
                    continue
                wanted = bool(row[1])
                if wanted != waits:
                    names = configuration.names_of(cluster, mode.synchronous_standby_names) if wanted else ""
                    conn.execute(f"alter system set synchronous_standby_names = '{names}'".encode())
                    conn.execute("select pg_reload_conf()")
                    waits = wanted
        except (PgdynoError, psycopg.Error):
            # It is being broken.
            waits = True
