"""Options of trials whose length is open."""

from __future__ import annotations

import pytest
from pgdyno.cli.overrides import run_overrides
from pgdyno.cli.requests import RunRequest
from pgdyno.errors import SpecError, UsageError
from pgdyno.spec.experiment import Experiment
from pgdyno.spec.load import read

from tests.support import plans
from tests.support.tells import tells


def _applied(**options: object) -> Experiment:
    request = RunRequest(experiment="quick", **options)  # type: ignore[arg-type]
    return run_overrides(request).apply(read("quick")[0])[0]


def test_a_trial_lasts_its_duration_unless_its_length_is_open() -> None:
    run = _applied(duration=20.0).run
    assert (run.duration_limit_s, run.longest_s) == (None, 20.0)
    run = _applied(until_steady=True).run
    assert (run.duration_limit_s, run.longest_s) == (1800.0, 1800.0)
    run = _applied(duration=20.0, until_steady=True, at_most=60.0).run
    assert (run.duration_s, run.longest_s) == (20.0, 60.0)


def test_mistakes_name_the_options() -> None:
    with pytest.raises(UsageError) as alone:
        _applied(at_most=60.0)
    assert tells(str(alone.value), "error-at-most-alone")
    with pytest.raises(SpecError) as shorter:
        _applied(duration=90.0, until_steady=True, at_most=60.0)
    assert "--at-most" in str(shorter.value) and "90" in str(shorter.value)
    with pytest.raises(SpecError) as duet:
        _applied(until_steady=True, order="duet")
    assert "duet" in str(duet.value)


def test_two_values_are_no_duet_if_the_length_is_open() -> None:
    """The sides of a duet take equal turns."""
    varied = ("synchronous_commit=on,off",)
    for until_steady, order in ((False, "duet"), (True, "random")):
        experiment = _applied(vary=varied, duration=60.0, until_steady=until_steady)
        assert plans.plan_of(experiment).experiment.run.order == order
