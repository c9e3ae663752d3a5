"""Runs of the same experiment beside a run: they say how far two runs of it lie apart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pgdyno.errors import UsageError
from pgdyno.judge.runs import differences
from pgdyno.store import manifest, reading
from pgdyno.store.reading import RunData

#: The newest ones; more take longer to read than they add.
_MOST = 20


def siblings(a: Sequence[RunData], b: Sequence[RunData]) -> list[list[RunData]]:
    """Other runs in the same folders, of the same name, whole; of each side's environment a list."""
    seen = {Path(r.path).resolve() for r in (*a, *b)}
    folders = dict.fromkeys(path.parent for path in seen)
    beside = sorted((p.parent for f in folders for p in f.glob(f"*/{manifest.FILE}")), reverse=True)
    like_a: list[RunData] = []
    like_b: list[RunData] = []
    for path in beside:
        if len(like_a) + len(like_b) >= _MOST:
            break
        if path.resolve() in seen:
            continue
        try:
            m = manifest.read(path)
            if not m.ended_at or m.error:
                continue
            for side, like in ((a, like_a), (b, like_b)):
                known = side[0].manifest
                if m.name == known.name and not differences(known, m):
                    like.append(reading.read(path))
                    break
        except UsageError:
            # One that cannot be read says nothing.
            continue
    return [like for like in (like_a, like_b) if like]
