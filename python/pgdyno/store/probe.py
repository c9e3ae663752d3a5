"""Results of a storage probe.

Latencies are in nanoseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pgdyno import i18n
from pgdyno.message import Message, Name, Text


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
class ProbeCaveat:
    """Limit of a probe's figures: an id in the catalogues, without `probe-`, and its arguments."""

    id: str
    args: dict[str, str] = field(default_factory=dict)

    @property
    def message(self) -> Message:
        """Sentence about it."""
        return Message(f"probe-{self.id}", {name: Name(text) for name, text in self.args.items()})


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
    #: What could not be measured, or limits what the figures say; in records of older versions sentences.
    caveats: list[ProbeCaveat | str] = field(default_factory=list)

    @property
    def limits(self) -> list[Text]:
        """Caveats as messages."""
        return [c.message if isinstance(c, ProbeCaveat) else _older(c) for c in self.caveats]


def _older(sentence: str) -> Text:
    whole = f"{sentence[:1].upper()}{sentence[1:]}."
    return i18n.known(whole, "probe-") or Name(whole)
