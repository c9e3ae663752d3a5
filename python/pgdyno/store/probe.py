"""Results of a storage probe.

Latencies are in nanoseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Stream:
    """The reads, or the writes, of one fio job."""

    operations: int
    iops: float
    bytes_per_s: float
    mean_ns: float
    stddev_ns: float
    p50_ns: int
    p95_ns: int
    p99_ns: int
    p999_ns: int
    max_ns: int


@dataclass(frozen=True)
class FioJob:
    """One fio job: its name, what it is, and what it came to."""

    name: str
    title: str
    read: Stream
    write: Stream


@dataclass(frozen=True)
class SyncMethod:
    """One line of pg_test_fsync: writes made durable in one way, one after the other."""

    group: str
    method: str
    #: None: not available here.
    operations_per_s: float | None


@dataclass(frozen=True)
class Probe:
    """A storage probe of a folder."""

    path: str
    file_system: str
    device: str
    #: Bytes of the file that fio worked on, threads, seconds of each job.
    file_bytes: int
    threads: int
    seconds: float
    fio_version: str = ""
    jobs: list[FioJob] = field(default_factory=list)
    syncs: list[SyncMethod] = field(default_factory=list)
    #: What could not be measured, or limits what the figures say; with the remedy.
    caveats: list[str] = field(default_factory=list)
