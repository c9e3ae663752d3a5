"""Samples of a trial, held against the columns that are declared for their source."""

from __future__ import annotations

from pathlib import Path

from pgdyno import samples as declared
from pgdyno.store import samples


def undeclared(trial: Path) -> list[str]:
    """Return what is not as declared: unknown sources and columns, missing ones, values of another type."""
    found = []
    for source in samples.names(trial):
        if source not in declared.SAMPLES:
            found.append(source)
            continue
        columns = declared.columns(source)
        for row in samples.read(trial, source):
            found += [f"{source}.{name}: missing" for name in declared.missing(source, row)]
            for name, value in row.items():
                if name not in columns:
                    found.append(f"{source}.{name}: unknown")
                elif value is not None and not isinstance(value, columns[name]):
                    found.append(f"{source}.{name}: {value!r}")
    return sorted(set(found))
