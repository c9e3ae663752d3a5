"""Detection of a failed primary by its standbys, with pg_isready from the host of each standby."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from pgdyno.cluster.process import environment
from pgdyno.replication.cluster import ReplicatedCluster
from pgdyno.replication.member import Member

#: How long one look waits for an answer, how long it is to the next, and how many in a row must fail.
ANSWER_S = 1
PAUSE_S = 0.5
FAILURES = 2


class Detector:
    """Failure detector that checks the primary from every other running member.

    The primary is down when most of them report so `FAILURES` times in a row. An agent on each host would do the same,
    and detection takes as long.
    """

    def __init__(self, cluster: ReplicatedCluster) -> None:
        self._cluster = cluster
        self._primary = cluster.primary

    def wait_down(self, patience_s: float) -> bool:
        """Wait until the primary counts as down.

        Return False if that did not happen within `patience_s` seconds.
        """
        deadline, failures = time.monotonic() + patience_s, 0
        while time.monotonic() < deadline:
            began = time.monotonic()
            failures = 0 if self.is_up() else failures + 1
            if failures >= FAILURES:
                return True
            time.sleep(max(0.0, PAUSE_S - (time.monotonic() - began)))
        return False

    def is_up(self) -> bool:
        """One look, of all at once."""
        looks = [self._look(m) for m in self._cluster.others(self._primary) if m.process_id is not None]
        failed = sum(look.wait() != 0 for look in looks)
        return 2 * failed <= len(looks)

    def _look(self, member: Member) -> subprocess.Popen[bytes]:
        primary = self._primary
        words: list[str | Path] = [
            *member.launch, member.program("pg_isready"), "-q", "-h", primary.address, "-p", str(primary.port),
            "-t", str(ANSWER_S), "-d", "postgres",
        ]  # fmt: skip
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=environment(),
            **({} if member.launch else member.cluster.account.popen()),
        )
