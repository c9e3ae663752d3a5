"""A finding: a cause, how much it costs, what shows it, and what to try."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any, Protocol

from pgdyno import i18n
from pgdyno.diagnosis.action import Action
from pgdyno.message import Message, Name, message
from pgdyno.units import Quantity, Share, Unit


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


#: Wholes of which a cost is a share: `whole-...` of the catalogues.
CLIENTS_TIME, THROUGHPUT, TRANSACTION_TIME, CPUS = "clients-time", "throughput", "transaction-time", "cpus"


@dataclass(frozen=True)
class Fact:
    """Figure that supports a finding; `name` is an id of the catalogues without `fact-`."""

    name: str
    value: float
    unit: Unit = ""
    #: Device that the figure is about.
    device: str = ""

    @property
    def quantity(self) -> Quantity:
        """The figure with its unit."""
        return Quantity(self.value, self.unit)

    @property
    def title(self) -> Message:
        """Name of the figure."""
        return message(f"fact-{self.name}", device=Name(self.device))

    def as_json(self) -> dict[str, Any]:
        """For the run's record."""
        return {"id": self.name, "name": i18n.text(self.title), "value": self.value, "unit": self.unit}


@dataclass(frozen=True)
class Finding:
    """One line of diagnosis.

    `of` names the whole of which `cost` is a share. It is the clients' time, or the throughput without the cause.
    """

    cause: str
    kind: Kind
    message: Message
    cost: Share
    of: str
    confidence: Confidence
    advice: Message
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
    #: The run has several hot sets, so that all of the rows is one of them.
    has_hot_sets: bool = False
    #: Changes that can be carried out, the best first; empty: the remedy is none that can.
    actions: list[Action] = field(default_factory=list)

    @property
    def sentence(self) -> str:
        """The finding in English."""
        return i18n.text(self.message)

    @property
    def remedy(self) -> str:
        """The remedy in English."""
        return i18n.text(self.advice)

    @property
    def whole(self) -> Message:
        """The whole of which the cost is a share."""
        return message(f"whole-{self.of}")

    def as_json(self) -> dict[str, Any]:
        """For the run's record."""
        return {
            **{k: v for k, v in asdict(self).items() if k != "has_hot_sets"},
            "kind": self.kind.value,
            "confidence": self.confidence.value,
            "of": i18n.text(self.whole),
            "sentence": self.sentence,
            "remedy": self.remedy,
            "message": self.message.as_json(),
            "advice": self.advice.as_json(),
            "facts": [f.as_json() for f in self.facts],
            "actions": [a.as_json() for a in self.actions],
        }


class MissingColumnError(KeyError):
    """A source was sampled without a column that a cause needs: by another version of pgdyno, or of the server."""

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True)
class NotJudged:
    """Cause that was not judged in some configuration.

    `missing` names what the record lacks. `defect` names the defect of pgdyno that prevented the judgement.
    """

    cause: str
    missing: str | None = None
    defect: str | None = None

    @property
    def message(self) -> Message:
        """The reason."""
        cause = Name(self.cause)
        if self.missing:
            return message("not-judged-missing", cause=cause, missing=Name(self.missing))
        return message("not-judged-defect", cause=cause, defect=Name(self.defect or ""))

    def as_json(self) -> dict[str, Any]:
        """For the run's record."""
        return {"kind": "not judged", **asdict(self)}


class CauseName(Protocol):
    """Part of a cause that a finding needs."""

    @property
    def name(self) -> str:
        """Name of the cause."""

    @property
    def kind(self) -> Kind:
        """Kind of its findings."""
