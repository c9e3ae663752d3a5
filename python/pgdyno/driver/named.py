"""Names of drivers: python:MODULE[:FACTORY]."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = re.compile(r"python:([A-Za-z_][\w.]*)(?::([A-Za-z_][\w.]*))?")
#: The driver that does nothing: what it measures is the cost of the workers themselves.
NULL = "python:pgdyno.driver.adapters:nothing"


@dataclass(frozen=True)
class DriverName:
    """A module of Python, and what in it makes connections; empty: what the module is known by."""

    module: str
    factory: str = ""


def parse(text: str) -> DriverName | None:
    """Return the name of a driver of Python, or None if the text is not of this form."""
    match = _NAME.fullmatch(text)
    return DriverName(match[1], match[2] or "") if match else None


def is_python(text: str) -> bool:
    """Return True if statements go through a driver of Python."""
    return text.startswith("python:")
