"""Thresholds of all causes: from which size on something counts.

Each class belongs to the cause of its name, or to several. Values without a unit in their name are shares: 0.05 is 5%.
Shares of time are those of the clients' time unless stated otherwise. docs/reference/thresholds.md is generated from
this file.
"""

from __future__ import annotations


class Cpus:
    """CPUs that are full."""

    #: Share of the CPUs that counts as all of them.
    FULL = 0.9
    #: Share of the CPUs that counts as all of them where backends wait for a CPU: schedulers queue beside idle ones.
    BUSY = 0.6
    #: Share of the time in which backends are ready to run that they wait for a CPU, for BUSY to count.
    QUEUEING = 0.5


class Samples:
    """Samples that count."""

    #: Share of a sample that may be disturbed, if it shows the usual throughput.
    UNDISTURBED = 0.2
    #: Share of a sample that must lie within the measurement.
    WITHIN = 0.5
    #: Share of the time that only the kernel sees on CPUs; less is within the noise of the samples.
    HIDDEN = 0.02
    #: Busy sessions below which an interval of an observed server is quiet.
    QUIET_SESSIONS = 0.02
    #: Samples from which a spread is computed.
    FEWEST = 4


class Ranking:
    """Parts that are named, and their order."""

    #: Share of the statements' time from which a function is named.
    FUNCTION_NAMED = 0.2
    #: Share of a transaction's time from which one of several statements is named.
    STATEMENT_NAMED = 0.3
    #: Tables and partitions in a plan from which their number is named.
    TABLES_NAMED = 20
    #: Share of the busy time below which a part is ruled out as the limit.
    RULED_OUT = 0.05
    #: Cost of an avoidable cause from which it comes before limits.
    AVOIDABLE_FIRST = 0.05
    #: Share of the cost of a change of level that another cause must explain to replace it.
    TELLS_WHY = 0.5


class Dips:
    """Dips of the throughput."""

    #: Intervals that are needed to know the usual throughput.
    FEWEST_INTERVALS = 10
    #: Intervals whose median is the usual throughput.
    AROUND_INTERVALS = 61
    #: Share of the median around a dip that its throughput stays below.
    BELOW = 0.7
    #: Robust standard deviations by which a dip lies below the median.
    SIGMAS = 5.0
    #: Shortest dip.
    SHORTEST_S = 0.5
    #: Share of the median that counts as nothing, whatever the noise.
    NOTHING = 0.1
    #: Transactions that would have been committed in an interval with nothing.
    EXPECTED_COMMITS = 20.0
    #: Dips from which they may be regular.
    FEWEST_REGULAR = 4
    #: Share of the period by which the start of a regular dip may be off.
    REGULAR = 0.1
    #: Share of the time in a dip that makes a wait its reason.
    WAIT = 0.5


class Freezes:
    """Freezes: no client gets an answer."""

    #: Usual latencies without any answer that make a freeze.
    LATENCIES = 20.0
    #: Usual 99th percentiles without any answer that make a freeze, if that is longer.
    P99 = 3.0
    #: Shortest freeze.
    SHORTEST_S = 0.1
    #: Share of the clients whose transaction must have lasted as long as the freeze.
    ALL_CLIENTS = 0.5
    #: Share of its throughput that an interval with a freeze must lack.
    LACKS = 0.05
    #: Robust standard deviations by which it lies below the median.
    SIGMAS = 3.0


class Contrast:
    """Contrast of slow and normal stretches."""

    #: Share of a sample that must lie within slow stretches, or outside of them; others are left out.
    WITHIN = 0.8
    #: Correlation of neighbouring samples above which a series is not judged.
    MOST_ALIKE = 0.95
    #: Samples of either kind that a series needs.
    FEWEST = 3
    #: False discoveries among the series that are named (Benjamini-Hochberg).
    FALSE_DISCOVERIES = 0.05
    #: Rise of a series, as a share of its usual level, from which it is named.
    RISE = 0.25
    #: Share of the time, or CPUs, from which a rise is named.
    SHARE = 0.05


class Difference:
    """Differences between two configurations."""

    #: Share of the transaction's time from which a difference between two configurations is named.
    SHARE = 0.05
    #: Share of what a transaction uses from which a difference is named.
    USE = 0.1
    #: Bytes per transaction from which a difference is named: what the server writes for itself is less.
    BYTES = 64


class Autovacuum:
    """Cause `autovacuum`."""

    #: Loss of throughput.
    LOSS = 0.03
    #: Share of the CPUs that vacuum uses, half of the time.
    WORKING = 0.02


class Bloat:
    """Cause `bloat`."""

    #: Updates and deletes below which dead rows are not judged.
    CHANGES = 1000
    #: Share of updates that are HOT below which the others are named.
    HOT = 0.5
    #: Dead rows per live row.
    DEAD = 0.5
    #: Change of the throughput over a trial.
    DRIFT = -0.1
    #: Dead rows of a table; fewer are a few dozen pages.
    DEAD_ROWS = 5_000
    #: Scans of a table per transaction from which the load uses it.
    SCANS = 0.05


class BufferMisses:
    """Cause `buffer-misses`."""

    #: Share of the time, estimated from misses and CPU time.
    SHARE = 0.04
    #: Page misses per page access.
    RATIO = 0.05
    #: Share of the missed pages below which the device is not what costs time.
    FROM_DEVICE = 0.2


class CheckpointFullPages:
    """Cause `checkpoint-full-pages`."""

    #: Loss of throughput.
    LOSS = 0.03
    #: Share of the WAL that is full-page images, between checkpoints, below which the usual rate is calm.
    WAL = 0.3
    #: Share of the WAL that is full-page images, below which they do not matter.
    LEAST_WAL = 0.1
    #: Checkpoints in the measurement from which they may be frequent.
    FREQUENT = 3
    #: Seconds from one frequent checkpoint to the next, at most.
    FREQUENT_S = 60.0


class CheckpointWrites:
    """Cause `checkpoint-writes`."""

    #: Loss of throughput.
    LOSS = 0.05


class ClientBound:
    """Cause `client-bound`."""

    #: Share of the time outside of the server.
    OUTSIDE = 0.25
    #: Share of the time in which the client's busiest thread has work.
    BUSY = 0.9


class Connections:
    """Cause `connections`."""

    #: Clients per CPU.
    PER_CPU = 8
    #: Share of the time in which backends are ready to run that they wait for a CPU.
    QUEUEING = 0.7


class CpuQuota:
    """Cause `cpu-quota`."""

    #: Share of the limit's periods in which the server was throttled.
    PERIODS = 0.1
    #: Share of the time.
    SHARE = 0.05


class DataIo:
    """Cause `data-io`."""

    #: Share of the time.
    SHARE = 0.1
    #: Share of the missed pages that the device had to read.
    FROM_DEVICE = 0.2


class FewClients:
    """Cause `few-clients`."""

    #: Share of the time in which the clients' backends run.
    SHARE = 0.3
    #: Share of the CPUs that are idle.
    IDLE = 0.15
    #: Share of the time in which backends are ready to run that they wait for a CPU; above it there are enough clients.
    QUEUEING = 0.3


class ForeignCommand:
    """Cause `foreign-command`."""

    #: Loss of throughput, or CPUs that other sessions are known to use.
    LOSS = 0.03
    #: Share of the running sessions where the CPU use of each is not known.
    SESSIONS = 0.05


class ForeignLock:
    """Cause `foreign-lock`."""

    #: Share of the time.
    SHARE = 0.02


class HeldSnapshot:
    """Cause `held-snapshot`."""

    #: Age of a snapshot.
    AGE_S = 5.0
    #: Age of a standby's snapshot: it is renewed each 10 s (wal_receiver_status_interval).
    STANDBY_AGE_S = 20.0
    #: Dead rows that it keeps.
    DEAD_ROWS = 1_000


class IdleInTransaction:
    """Cause `idle-in-transaction`."""

    #: Share of the busy time in which sessions are idle in transaction.
    SHARE = 0.25


class LevelChange:
    """Cause `level-change`."""

    #: Loss of throughput.
    LOSS = 0.03
    #: Change of level from which a change of definitions or settings during the trial is its reason.
    STEP = 0.05
    #: Time within which an event belongs to a change of level.
    NEAR_NS = 3_000_000_000


class MissingIndex:
    """Cause `missing-index`."""

    #: Rows that are read and thrown away per row that is wanted.
    THROWN_AWAY = 100
    #: Rows of the table.
    ROWS = 5_000
    #: Share of the transactions' time.
    SHARE = 0.1
    #: Scans of the table per transaction.
    SCANS = 0.2


class Network:
    """Cause `network`."""

    #: Share of the time outside of the server.
    OUTSIDE = 0.25
    #: Share of the latency that round trips take.
    SHARE = 0.2
    #: Round trip of an empty query; a shorter one is mostly the measurement's own.
    TRIP_NS = 300_000
    #: Share of the time outside of the server, of messages that are delayed on the way.
    DELAYED_OUTSIDE = 0.5
    #: Time of such a round trip beyond that of an empty query.
    DELAYED_NS = 1_000_000
    #: Empty queries that such a round trip takes longer.
    DELAYED_TRIPS = 5
    #: Share of the time in which the client's threads are busy, above which they are the reason.
    DELAYED_CLIENT_BUSY = 0.5


class NoisyNeighbour:
    """Cause `noisy-neighbour`."""

    #: Share of the CPUs that the hypervisor takes.
    STEAL = 0.05
    #: Share of the CPUs that other processes use.
    OTHERS = 0.15
    #: Share of the time in which a CPU is needed, below which the confidence is low.
    NEEDED = 1 / 3


class OtherWaits:
    """Cause `other-waits`."""

    #: Share of the time.
    SHARE = 0.1


class ParallelQuery:
    """Cause `parallel-query`."""

    #: Share of the time in waits for parallel workers.
    SHARE = 0.1
    #: Transaction that parallel workers hardly make shorter.
    SHORT_NS = 50e6
    #: Share of those waits that is the start and the end of workers.
    STARTS = 0.25


class PlanChanged:
    """Cause `plan-changed`."""

    #: Share of the transactions' time that the statement takes.
    SHARE = 0.05
    #: Change of the throughput over a trial.
    DRIFT = 0.1
    #: Share of the transactions' time, and change of the throughput, from which the one explains the other.
    TOGETHER = 0.5


class RowLocks:
    """Cause `row-locks`."""

    #: Share of the time.
    SHARE = 0.05
    #: Share of the time without lock waits that is WAL flushes, from which locks last as long as a flush.
    FLUSHING = 0.5
    #: Deadlocks per second from which they are named.
    DEADLOCKS_PER_S = 0.05


class ServerCpu:
    """Cause `server-cpu`."""

    #: Share of the time in which backends run, where the server's machine is not seen.
    UNSEEN = 0.6
    #: Share of the time in which backends run, where it is seen that the CPUs are full.
    SEEN = 0.15
    #: Share of the CPUs from which other processes are named.
    OTHERS = 0.02


class Stalls:
    """Cause `stalls`."""

    #: Loss of throughput.
    LOSS = 0.03


class SyncStandby:
    """Cause `sync-standby`."""

    #: Share of the time.
    SHARE = 0.05


class TemporaryFiles:
    """Cause `temporary-files`."""

    #: Bytes of temporary files per transaction.
    BYTES = 100_000
    #: Share of the time.
    SHARE = 0.02


class ThrottledStorage:
    """Cause `throttled-storage`."""

    #: Share of the time in waits for storage.
    SHARE = 0.3
    #: Samples of the device.
    SAMPLES = 8
    #: Variation of the throughput of a device at its limit.
    FLAT = 0.06
    #: Time of a request by the time at the device itself.
    BEFORE = 4.0
    #: Share of the time in flushes.
    FLUSHING = 0.5
    #: Length to which shorter samples are joined, to see a limit that holds over a second.
    JOINED_S = 1.0
    #: Joined samples that are needed.
    JOINED_SAMPLES = 6


class WalFlush:
    """Cause `wal-flush`."""

    #: Share of the time.
    SHARE = 0.1


class WalInsert:
    """Cause `wal-insert`."""

    #: Share of the time.
    SHARE = 0.05
