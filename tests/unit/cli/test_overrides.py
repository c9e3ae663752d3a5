"""Values of the command line in place of an experiment's."""

from __future__ import annotations

import pytest
from pgdyno.cli.overrides import Overrides, run_overrides
from pgdyno.cli.requests import RunRequest
from pgdyno.errors import UsageError
from pgdyno.spec.load import read

from tests.support.tells import tells


def _of(name: str, workload: str) -> Overrides:
    return run_overrides(RunRequest(experiment=name, workload=workload))


def test_some_workloads_of_an_experiment_run_alone() -> None:
    quick = read("quick")[0]
    experiment, _ = _of("quick", "read-only").apply(quick)
    assert [m.workload for m in experiment.matrices] == [["read-only"]]
    # The order is the experiment's.
    experiment, _ = _of("quick", "read-write, read-only").apply(quick)
    assert [m.workload for m in experiment.matrices] == [
        [n for n in quick.workloads if n in ("read-write", "read-only")]
    ]


@pytest.mark.parametrize("name", ["quick", "essd-100b", "cloud-matrix", "iot-brin", "pk-oltp"])
def test_each_workload_of_an_experiment_may_run_alone(name: str) -> None:
    """Matrices of other workloads are left out."""
    whole = read(name)[0]
    used = {w for m in whole.matrices for w in m.workload or whole.workloads}
    for workload in used:
        experiment, _ = _of(name, workload).apply(whole)
        assert [m.workload for m in experiment.matrices] == [[workload]] * len(experiment.matrices)
        assert 1 <= len(experiment.matrices) <= len(whole.matrices)


def test_a_workload_that_an_experiment_does_not_run_is_refused_with_those_that_it_does() -> None:
    with pytest.raises(UsageError) as raised:
        _of("quick", "read-only,nothing").apply(read("quick")[0])
    assert tells(str(raised.value), "error-workload-no-workload", name="quick", workload="nothing")
    assert "read-only" in raised.value.text()
