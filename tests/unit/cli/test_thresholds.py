"""`--fail-if` of a run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pgdyno import i18n
from pgdyno.cli import thresholds
from pgdyno.errors import UsageError
from pgdyno.figures import COMPARED
from pgdyno.judge import runs
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store import reading

from tests.support import synthetic
from tests.support.cli import pgdyno


@pytest.mark.parametrize(
    ("text", "figure", "above", "bound"),
    [
        ("p99 > 10ms", "p99", True, 10e6),
        ("p99.9>1.5s", "p99.9", True, 1.5e9),
        ("mean > 250 us", "mean", True, 250e3),
        ("TPS < 1000", "TPS", False, 1000),
        ("failed > 0", "failed", True, 0),
    ],
)
def test_bounds(text: str, figure: str, above: bool, bound: float) -> None:
    found = thresholds.threshold(text)
    assert (found.figure.name, found.above, found.bound) == (figure, above, bound)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("p99", "is not a bound"),
        ("p99 = 3ms", "is not a bound"),
        ("p42 > 3ms", 'no figure "p42"'),
        ("p99 > 10", "needs a unit"),
        ("TPS < 10ms", "has no unit"),
        ("TPS < -1", "is not a bound"),
        ("", "is not a bound"),
    ],
)
def test_what_is_no_bound_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        thresholds.threshold(text)


def test_each_configuration_is_held_against_them(tmp_path: Path) -> None:
    data = reading.read(
        synthetic.make_run(tmp_path, synthetic.plans([4, 8], 3), lambda p, i, r: 1000.0 if p.clients == 4 else 500.0)
    )
    bounds = [thresholds.threshold(t) for t in ("TPS < 800", "p99 > 10s")]
    (found,) = thresholds.met(RunAnalysis(data), bounds)
    assert i18n.text(found) == "--fail-if TPS < 800: w c=8 has TPS 500"


def test_the_help_names_figures_that_there_are() -> None:
    said = pgdyno("compare", "--help").out
    names = re.search(r"Default: (.+?)\. Also", " ".join(said.split()))
    assert names is not None
    assert tuple(re.findall(r"TPS|p\d+|\w+/tx|memory", names[1])) == runs.DEFAULT
    assert all(name in COMPARED for name in runs.DEFAULT)
