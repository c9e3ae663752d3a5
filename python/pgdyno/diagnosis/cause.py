"""A cause that findings are about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pgdyno.diagnosis.finding import Finding, Kind
from pgdyno.diagnosis.observed import Observed


@dataclass(frozen=True)
class Cause:
    """Something that findings are about: one module in pgdyno.diagnosis.causes, which has it as `CAUSE`."""

    name: str
    kind: Kind
    #: What it is, in a line.
    title: str
    #: None: nothing shows it.
    judge: Callable[[Observed], Finding | None]
    #: It tells when throughput was low, and not why: it gives way to a cause that does.
    is_generic: bool = False
