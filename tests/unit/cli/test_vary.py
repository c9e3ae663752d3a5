"""Options that `--vary` chooses when it reduces an experiment to a comparison."""

from __future__ import annotations

from typing import Any

import pytest
from pgdyno.cli import vary
from pgdyno.spec.load import read


@pytest.mark.parametrize("axes", [{"protocol": ["simple", "prepared"]}, {"variables": {"x": [1, 2]}}])
@pytest.mark.parametrize("duration_s", [None, 5.0, 60.0])
def test_what_needs_no_start_has_repetitions_for_a_verdict(axes: dict[str, Any], duration_s: float | None) -> None:
    run: dict[str, Any] = {} if duration_s is None else {"duration_s": duration_s}
    chosen = vary.for_a_comparison(read("quick")[0], dict(axes), run)
    assert run["repetitions"] == 5 and "restarts" not in run and "--repetitions 5" in chosen


@pytest.mark.parametrize("duration_s", [None, 5.0, 60.0])
def test_starts_are_the_units_of_a_setting(duration_s: float | None) -> None:
    run: dict[str, Any] = {} if duration_s is None else {"duration_s": duration_s}
    chosen = vary.for_a_comparison(read("quick")[0], {"settings": {"work_mem": ["4MB", "64MB"]}}, run)
    assert (run["restarts"], run["repetitions"]) == (5, 1)
    assert {"--restarts 5", "--repetitions 1"} <= set(chosen)


def test_what_the_command_line_names_stays() -> None:
    run: dict[str, Any] = {"repetitions": 2, "restarts": 3, "duration_s": 7.0}
    vary.for_a_comparison(read("quick")[0], {"protocol": ["simple", "prepared"]}, run)
    assert run == {"repetitions": 2, "restarts": 3, "duration_s": 7.0}
