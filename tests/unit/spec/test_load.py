"""Experiment files: right ones are read, wrong ones say where and what."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pgdyno.errors import PgdynoError, SpecError
from pgdyno.load.dataset import Dataset
from pgdyno.run.planning.prepared import variables_for
from pgdyno.spec import keys, load

from tests.support import plans as planning
from tests.support.mistakes import mistakes
from tests.support.tells import telling

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
    ("change", "words", "ids"),
    [
        (
            ("[run]", "[run]\nduratoin_s = 5"),
            ("x.toml:10", "did you mean duration_s?"),
            {"run.duratoin_s": "spec-unknown-near"},
        ),
        (
            ("repetitions = 2", "repetitions = 0"),
            ("x.toml:10: run.repetitions", "(it is 0)"),
            {"run.repetitions": "spec-at-least"},
        ),
        (("clients = [1, 2]", "clients = [1, 0]"), ("at least 1",), {"axes.clients, item 2": "spec-at-least"}),
        (("hot_set = [0.5]", "hot_set = [1.5]"), ("at most 1", "1.5"), {"axes.hot_set, item 1": "spec-at-most"}),
        (
            ("hot_set = [0.5]", 'hot_set = [0.5]\nworkload = ["b"]'),
            ('axes.workload: "b"',),
            {"axes.workload": "spec-not-among"},
        ),
        (('{ text = "SELECT 1;" }', "{ weight = 2 }"), (), {"workloads.a.scripts, item 1": "spec-script-source"}),
        (
            ("hot_set = [0.5]", "hot_set = [0.5]\nvariables = { v = [inf] }"),
            ("inf",),
            {"axes.variables.v, item 1": "spec-finite"},
        ),
        (
            ("hot_set = [0.5]", "hot_set = [0.5]\nsettings = { s = [nan] }"),
            ("nan",),
            {"axes.settings.s, item 1": "spec-finite"},
        ),
        (
            ("[axes]", '[targets.t]\nfile_system = { type = "ext4", mkfs = ["/dev/sdb"] }\n[axes]'),
            ("mkfs",),
            {"targets.t.file_system": "spec-no-paths"},
        ),
        (
            ("[axes]", '[targets.t]\nfile_system = { type = "xfs", mount = "loop=/dev/sdb" }\n[axes]'),
            ("mount",),
            {"targets.t.file_system": "spec-no-paths"},
        ),
        (('name = "x"', 'name = "../x"'), (), {"name": "spec-pattern"}),
        (('title = "X"', "title = "), ("not valid TOML", ":3:"), {}),
        (("repetitions = 2", 'duration_s = "soon"'), (), {"run.duration_s": "spec-seconds"}),
        (('title = "X"', 'title = "X"\nname = "y"'), (":4:", "name is given a second time; first in line 2"), {}),
        # A key of another table; one that no table has; a time as the command line writes it; a file's name alone.
        (
            ("repetitions = 2", "repetitions = 2\nclients = [1]"),
            ("[axes]",),
            {"run.clients": "spec-unknown-belongs"},
        ),
        (("repetitions = 2", "repetitions = 2\nfoo = 1"), ("duration_s",), {"run.foo": "spec-unknown-known"}),
        (("repetitions = 2", 'duration_s = "10m"'), (": 600",), {"run.duration_s": "spec-seconds-write"}),
        (
            ('{ text = "SELECT 1;" }', '"read.sql"'),
            ('{ file = "read.sql" }',),
            {"workloads.a.scripts, item 1": "spec-script-table"},
        ),
        (
            ("[axes]", '[targets.t]\nconninfo = "host=a"\n[axes]\nsettings = { work_mem = ["4MB"] }'),
            ("x.toml:9",),
            {"axes.settings": "spec-private-only"},
        ),
    ],
)
def test_mistakes_name_file_key_and_value(change: tuple[str, str], words: tuple[str, ...], ids: dict[str, str]) -> None:
    with pytest.raises(SpecError) as e:
        load.parse(GOOD.replace(*change), "x.toml")
    for word in ("x.toml", *words):
        assert word in str(e.value), str(e.value)
    assert ids.items() <= mistakes(e.value).items(), mistakes(e.value)


def test_a_wrong_choice_is_named_beside_other_mistakes() -> None:
    with pytest.raises(SpecError) as e:
        load.parse(GOOD.replace("[run]", '[run]\norder = "backwards"\nduration_s = -1'), "x.toml")
    assert mistakes(e.value) == {"run.order": "spec-one-of", "run.duration_s": "spec-at-least"}


@given(st.text(max_size=200))
def test_no_text_breaks_the_reader(text: str) -> None:
    with pytest.raises(PgdynoError):
        load.parse(text, "x.toml")


def test_trials_are_complete_numbered_and_interleaved() -> None:
    experiment = load.parse(GOOD, "x.toml")
    plans = [t.plan for t in planning.trials(experiment)]
    assert [p.number for p in plans] == [1, 2, 3, 4]
    assert [p.repetition for p in plans] == [1, 1, 2, 2], "each repetition sees every configuration before the next"
    assert {(p.clients, p.repetition) for p in plans} == {(1, 1), (2, 1), (1, 2), (2, 2)}
    assert plans == [t.plan for t in planning.trials(experiment)], "the order comes from the seed"


def test_the_hot_set_is_a_part_of_the_rows() -> None:
    expected = {"scale": "50", "range": "500000", "hot_set": "0.1", "tables": "1"}
    assert variables_for(Dataset("tpcb", 50), 0.1) == expected
    assert variables_for(Dataset("tpcb", 1), 1e-9)["range"] == "1"
    assert variables_for(Dataset("pk", 700), 0.5)["range"] == "350"
    assert variables_for(Dataset("feed", 10, tables_wanted=7), 1)["tables"] == "7"


def test_a_rate_of_zero_is_a_closed_loop() -> None:
    closed = load.parse(GOOD.replace("repetitions = 2", "repetitions = 2\nrate = 0"), "x.toml")
    assert closed.run.rate is None


def test_every_table_of_the_schema_is_known() -> None:
    """Find each key of the built-in experiments in the table that mistakes would look it up in."""

    def walk(value: Any, path: tuple[str | int, ...]) -> None:
        if isinstance(value, list):
            for i, item in enumerate(value):
                walk(item, (*path, i))
        elif isinstance(value, dict) and (known := keys.keys_of(path)):
            # Another name of `scale`.
            assert set(value) - {"warehouses"} <= set(known), path
            for key, below in value.items():
                walk(below, (*path, key))

    for name in load.names():
        _, text, _ = load.read(name)
        walk(tomllib.loads(text), ())
    assert ("run", "between") in keys.tables() and keys.tables_with("clients")[-1] == "[axes]"


@pytest.mark.parametrize(
    "line", ['password = "hunter2"', 'coninfo = "postgresql://u:hun/ter2@h/d"', 'uri = "u:hunter2@h"']
)
def test_the_value_of_an_unknown_key_is_not_told(line: str) -> None:
    with pytest.raises(SpecError) as e:
        load.parse(GOOD + f"[targets.db]\n{line}\n", "x.toml")
    assert "ter2" not in str(e.value)


def test_a_key_that_is_not_known_for_sure_is_not_named() -> None:
    for text in (
        GOOD + 'protocol = "simple"\nduration_s = 5\n[run.protocol]\nx = 1\n',
        GOOD.replace('title = "X"', 'title = "X"\ntitle = """\na = 1\n"""'),
    ):
        with telling(SpecError, "error-toml-again"):
            load.parse(text, "x.toml")
