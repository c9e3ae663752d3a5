"""A finding: a cause, how much it costs, what shows it, and what to try."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pgdyno.diagnosis.evidence import Evidence


class Kind(Enum):
    """Kind of a finding."""

    #: What every server comes to in the end: a processor, a disk, a network.
    LIMIT = "limit"
    #: Something that need not be.
    TROUBLE = "trouble"


class Confidence(Enum):
    """Degree to which the observations fit the cause, and nothing else."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True)
class Fact:
    """A figure that shows it."""

    name: str
    value: float
    #: "%" of a part (0..1), "ns", "bytes", "/s", "" of a number.
    unit: str = ""


@dataclass(frozen=True)
class Part:
    """A part of something, with its 95% interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Finding:
    """One line of diagnosis.

    `of` names the whole of which `cost` is a share. It is the clients' time, or the throughput without the cause.
    """

    cause: str
    kind: Kind
    sentence: str
    cost: Part
    of: str
    confidence: Confidence
    remedy: str
    facts: list[Fact] = field(default_factory=list)
    #: Of the configuration that it is about.
    workload: str = ""
    hot_set: float = 1.0
    clients: int = 0
    varied: dict[str, Any] = field(default_factory=dict)
    #: Numbers of its trials.
    trials: list[int] = field(default_factory=list)
    #: Throughput is what server and client can do: not a rate that they kept up with.
    is_limited: bool = True
    #: Of all findings of its configuration that are sure enough, it takes the largest part: one at most.
    is_largest: bool = False

    def as_json(self) -> dict[str, Any]:
        """For the run's record."""
        return {**asdict(self), "kind": self.kind.value, "confidence": self.confidence.value}


class MissingColumnError(KeyError):
    """A source was sampled without a column that a cause needs: by another version of pgdyno, or of the server."""

    def __str__(self) -> str:
        return f"nothing was recorded of {self.args[0]}"


@dataclass(frozen=True)
class NotJudged:
    """Cause that was not judged in some configuration.

    `missing` names what the record lacks. `defect` names the defect of pgdyno that prevented the judgement.
    """

    cause: str
    missing: str | None = None
    defect: str | None = None

    @property
    def sentence(self) -> str:
        """For reports."""
        why = self.missing or f"a defect of pgdyno, please report it: {self.defect}"
        return f"{self.cause} could not be judged: {why}"

    def as_json(self) -> dict[str, Any]:
        """For the run's record."""
        return {"kind": "not judged", **asdict(self)}


@dataclass(frozen=True)
class Cause:
    """Something that findings are about: one module in pgdyno.diagnosis.causes, which has it as `CAUSE`."""

    name: str
    kind: Kind
    #: What it is, in a line.
    title: str
    #: None: nothing shows it.
    judge: Callable[[Evidence], Finding | None]
