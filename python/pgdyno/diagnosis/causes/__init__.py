"""Causes that may limit or disturb the server.

Each module has one `CAUSE`. A module is found because it is in this package.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from pgdyno.diagnosis.cause import Cause


@cache
def every_cause() -> tuple[Cause, ...]:
    """All of them, by name."""
    modules = [importlib.import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__)]
    return tuple(sorted((m.CAUSE for m in modules), key=lambda c: c.name))
