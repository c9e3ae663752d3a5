"""An action: what a finding proposes, in a form that can be applied, with the gain that it predicts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pgdyno import i18n
from pgdyno.message import Message, Name, message
from pgdyno.units import Quantity, Share

#: Settings that a server takes over at its start only.
_AT_START = {"shared_buffers", "wal_buffers", "huge_pages", "io_method", "max_connections"}
_UNITS = {"": 1, "B": 1, "kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_TIMES = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|h|d)?$")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(B|kB|MB|GB|TB)?$")


@dataclass(frozen=True)
class Action:
    """A change of the server, the schema or the load.

    `gain` is the predicted gain of throughput as a share, with its interval: 0.25 is 25% more.
    """

    #: Id of the catalogues without `price-`: what it costs otherwise.
    price: str
    gain: Share
    #: Id of the catalogues without `gain-`: the model that predicts the gain.
    model: str
    #: Server settings with the values to set.
    settings: Mapping[str, str] = field(default_factory=dict)
    #: Statements to execute in the database, each by itself.
    sql: Sequence[str] = ()
    #: Number of client connections.
    clients: int | None = None
    #: Protocol of the clients.
    protocol: str | None = None
    #: A crash of the server may lose commits that were acknowledged.
    weakens_durability: bool = False
    #: Measured effect, where the run has the configuration to which the action leads.
    measured: Message | None = None

    @property
    def lines(self) -> list[Message | Name]:
        """The action as lines to copy; what is no SQL is a message."""
        found: list[Message | Name] = [
            Name(f"ALTER SYSTEM SET {name} = '{_quoted(value)}';") for name, value in self.settings.items()
        ]
        if self.settings:
            at_start = not _AT_START.isdisjoint(self.settings)
            found.append(message("action-restart") if at_start else Name("SELECT pg_reload_conf();"))
        found += [Name(f"{statement};") for statement in self.sql]
        if self.clients is not None:
            found.append(message("action-clients", n=self.clients))
        if self.protocol is not None:
            found.append(message("action-protocol", protocol=Name(self.protocol)))
        return found

    @property
    def is_of_server(self) -> bool:
        """Return True if it changes the server or the schema, and not the load."""
        return self.clients is None and self.protocol is None

    @property
    def price_message(self) -> Message:
        """The price of the action."""
        return message(f"price-{self.price}")

    @property
    def gain_message(self) -> Message:
        """The predicted gain."""
        return gain_shown(self.gain)

    @property
    def outlook(self) -> Message:
        """The gain and the price in a sentence: as measured in the run, or else as predicted by the model."""
        if self.measured is not None:
            return message("action-measured", measured=self.measured, price=self.price_message)
        model = message(f"gain-{self.model}")
        return message("action-predicted", gain=self.gain_message, model=model, price=self.price_message)

    @property
    def key(self) -> tuple[object, ...]:
        """Identity of the change: equal for two actions that do the same."""
        return (tuple(sorted(self.settings.items())), tuple(self.sql), self.clients, self.protocol)

    def as_json(self) -> dict[str, Any]:
        """For the run's record."""
        return {
            "settings": dict(self.settings),
            "sql": list(self.sql),
            "clients": self.clients,
            "protocol": self.protocol,
            "gain": {"mean": self.gain.mean, "low": self.gain.low, "high": self.gain.high},
            "model": i18n.text(message(f"gain-{self.model}")),
            "price": i18n.text(self.price_message),
            "weakens_durability": self.weakens_durability,
        }


def gain_shown(gain: Share) -> Message:
    """Return a gain of throughput as percents, or as factors where it may be more than twice."""
    if gain.high < 1:
        return message("gain-percent", gain=gain)
    mean, low, high = (Quantity(1 + x, "times", 2) for x in (gain.mean, gain.low, gain.high))
    return message("gain-factor", mean=mean, low=low, high=high)


def _quoted(value: str) -> str:
    return value.replace("'", "''")


def size_of(text: str) -> int:
    """Return the bytes of a setting such as 128MB; 0 if it is not a size."""
    match = _SIZE.match(text.strip())
    return int(float(match[1]) * _UNITS[match[2] or ""]) if match else 0


def seconds_of(text: str) -> float:
    """Return the seconds of a setting such as 5min; 0 if it is not a time. A number without a unit is in seconds."""
    match = _TIME.match(text.strip())
    return float(match[1]) * _TIMES[match[2] or "s"] if match else 0.0


def megabytes(size: float) -> str:
    """Return a size as a server setting."""
    return f"{max(1, round(size / (1 << 20)))}MB"
