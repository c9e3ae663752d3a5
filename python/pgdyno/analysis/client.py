"""Check whether this machine, not the server, limits the measured result.

See docs/math.md, The client, for the formulas.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Part of the time above which a worker had no rest worth speaking of.
BUSY = 0.9
#: Part of the time that a worker waited for a CPU, and how late its timers woke it: nanoseconds, 99th percentile.
DELAYED, LATE_NS = 0.1, 1e6


@dataclass(frozen=True)
class ClientHealth:
    """CPU time and wake-up delays of the worker threads on their machine.

    Each share is that of the worker with the worst value.
    """

    #: Part of the time on a CPU.
    cpu_share: float
    #: Part of the time ready to run and waiting for a CPU.
    delay_share: float
    #: How late timers woke a worker that nothing else woke, 99th percentile in nanoseconds; 0: none did.
    wakeup_p99_ns: float = 0.0
    #: Part of the time on a CPU or waiting for one, of the worker that had least rest.
    busy_share: float = 0.0
    #: The server runs on the same machine: that its processes take the CPUs from a busy client is what sharing means.
    shared: bool = False

    @property
    def limits(self) -> bool:
        """Return True if the client may be the limit; only evidence of the client itself counts.

        A client that waits for the server is not on a CPU, does not want one, and its timers are on time.
        """
        late = self.delay_share > DELAYED and self.wakeup_p99_ns > LATE_NS
        return self.cpu_share > BUSY or late or (self.busy_share > BUSY and not self.shared)

    @property
    def evidence(self) -> str:
        """Observed in words if the client limits the result, otherwise an empty string."""
        if self.cpu_share > BUSY:
            return f"the busiest thread used {100 * self.cpu_share:.0f}% of a CPU"
        if self.busy_share > BUSY and not self.shared:
            return f"a thread used a CPU or waited for one {100 * self.busy_share:.0f}% of the time"
        if self.limits:
            waited = f"a thread waited for a CPU {100 * self.delay_share:.0f}% of the time"
            return f"{waited}, and timers woke it {self.wakeup_p99_ns / 1e6:.1f} ms late (p99)"
        return ""
