"""Damaged run directories: every verb answers, or says what is wrong. `make fuzz` does so for longer."""

from __future__ import annotations

import os
import time

import pytest

from tests.hostile.fuzz_runs import fuzz


def test_damaged_runs_for_a_moment() -> None:
    assert sum(fuzz(8, seed=0).values()) > 5


@pytest.mark.slow
def test_damaged_runs_for_a_minute() -> None:
    """Others each time; a failure says the seed."""
    assert sum(fuzz(60, seed=time.time_ns() ^ os.getpid()).values()) > 50
