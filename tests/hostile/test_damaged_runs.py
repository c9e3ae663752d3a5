"""Damaged run directories: every verb answers, or says what is wrong. `make fuzz` does so for longer."""

from __future__ import annotations

from pathlib import Path

import pytest
from pgdyno.errors import UsageError
from pgdyno.store import query, reading

from tests.hostile.fuzz_runs import fuzz
from tests.support import synthetic


@pytest.mark.slow
def test_damaged_runs_for_a_moment() -> None:
    """The same each time: what `make fuzz` finds with other seeds gets a test of its own."""
    assert sum(fuzz(16, seed=1_000_000).values()) > 10


def test_damaged_names_of_columns_are_said(tmp_path: Path) -> None:
    """pyarrow decodes them unchecked."""
    run = synthetic.make_run(tmp_path, synthetic.plans([2], 1), lambda *_: 1000.0, intervals=5)
    file = next(run.rglob("intervals.parquet"))
    raw = file.read_bytes()
    file.write_bytes(raw.replace(b"committed", b"c\xefmmitted"))
    with pytest.raises(UsageError, match=r"intervals\.parquet"):
        query.run("select count(*) from intervals", tmp_path)
    data = reading.read(run)
    assert data.series[1] == []
    assert [name for name, _ in data.unreadable] == [str(file.relative_to(run))]
