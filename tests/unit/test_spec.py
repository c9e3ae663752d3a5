"""Experiment files: right ones are read, wrong ones say where and what."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pgdyno.errors import PgdynoError, SpecError
from pgdyno.load.dataset import Dataset
from pgdyno.run import plan
from pgdyno.run.prepared import variables_for
from pgdyno.spec import load

GOOD = """
name = "x"
title = "X"
[workloads.a]
scripts = [{ text = "SELECT 1;" }]
[axes]
hot_set = [0.5]
clients = [1, 2]
[run]
repetitions = 2
"""


def test_ready_made_experiments_are_valid() -> None:
    for name in load.names():
        experiment, text, folder = load.read(name)
        assert experiment.name == name and text and folder is None
        assert load.script_texts(experiment, folder)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            ("[run]", "[run]\nduratoin_s = 5"),
            ("x.toml:10", "run.duratoin_s", "unknown key", "did you mean duration_s?"),
        ),
        (("repetitions = 2", "repetitions = 0"), ("x.toml:10: run.repetitions", "greater than or equal to 1", "0")),
        (("clients = [1, 2]", "clients = [1, 0]"), ("axes.clients.1", "greater than or equal to 1")),
        (("hot_set = [0.5]", "hot_set = [1.5]"), ("axes.hot_set.0", "less than or equal to 1", "1.5")),
        (("hot_set = [0.5]", 'hot_set = [0.5]\nworkload = ["b"]'), ('"b" is not among the workloads',)),
        (('{ text = "SELECT 1;" }', "{ weight = 2 }"), ("workloads.a.scripts.0", 'give either "text" or "file"')),
        (
            ("hot_set = [0.5]", "hot_set = [0.5]\nvariables = { v = [inf] }"),
            ("axes.variables.v.0", "finite number", "inf"),
        ),
        (
            ("hot_set = [0.5]", "hot_set = [0.5]\nsettings = { s = [nan] }"),
            ("axes.settings.s.0", "finite number", "nan"),
        ),
        (("[axes]", '[targets.t]\nfile_system = { type = "ext4", mkfs = ["/dev/sdb"] }\n[axes]'), ("mkfs", "no paths")),
        (
            ("[axes]", '[targets.t]\nfile_system = { type = "xfs", mount = "loop=/dev/sdb" }\n[axes]'),
            ("mount", "no paths"),
        ),
        (('name = "x"', 'name = "../x"'), ("name", "pattern")),
        (('title = "X"', "title = "), ("not valid TOML", "line 3")),
    ],
)
def test_mistakes_name_file_key_and_value(change: tuple[str, str], words: tuple[str, ...]) -> None:
    with pytest.raises(SpecError) as e:
        load.parse(GOOD.replace(*change), "x.toml")
    for word in ("x.toml", *words):
        assert word in str(e.value), str(e.value)


@given(st.text(max_size=200))
def test_no_text_breaks_the_reader(text: str) -> None:
    with pytest.raises(PgdynoError):
        load.parse(text, "x.toml")


def test_trials_are_complete_numbered_and_interleaved() -> None:
    experiment = load.parse(GOOD, "x.toml")
    plans = [t.plan for t in plan.trials(experiment, 2)]
    assert [p.number for p in plans] == [1, 2, 3, 4]
    assert [p.repetition for p in plans] == [1, 1, 2, 2], "each repetition sees every configuration before the next"
    assert {(p.clients, p.repetition) for p in plans} == {(1, 1), (2, 1), (1, 2), (2, 2)}
    assert plans == [t.plan for t in plan.trials(experiment, 2)], "the order comes from the seed"


def test_the_hot_set_is_a_part_of_the_rows() -> None:
    expected = {"scale": "50", "range": "500000", "hot_set": "0.1", "tables": "1"}
    assert variables_for(Dataset("tpcb", 50), 0.1) == expected
    assert variables_for(Dataset("tpcb", 1), 1e-9)["range"] == "1"
    assert variables_for(Dataset("pk", 700), 0.5)["range"] == "350"
    assert variables_for(Dataset("feed", 10, tables_wanted=7), 1)["tables"] == "7"
