"""Kinds of datasets: the size that options give, or that fits; one list of options for files and the command line."""

from __future__ import annotations

from dataclasses import fields

import pytest
from pgdyno.cli.requests import LoadRequest
from pgdyno.errors import UsageError
from pgdyno.load.dataset import _SIZED, KINDS, Dataset, kind_named
from pgdyno.load.planned import plan_dataset
from pgdyno.spec import datasets as spec

OPTIONS = [f for f in fields(Dataset) if f.init and f.name not in _SIZED]


def planned(kind: str, room_bytes: int | None = None, **options: object) -> Dataset:
    return kind_named(kind).plan(spec.Dataset.model_validate({"kind": kind, **options}), room_bytes)


def test_files_and_the_command_line_have_every_option_of_a_dataset() -> None:
    request = LoadRequest(dataset="tpcb")
    for option in OPTIONS:
        assert spec.Dataset.model_fields[option.name].default == option.default == getattr(request, option.name)


@pytest.mark.parametrize("kind", KINDS)
def test_the_command_line_and_a_file_describe_the_same(kind: str) -> None:
    size = {"scale": 3}
    assert kind_named(kind).plan(LoadRequest(dataset=kind, **size)) == planned(kind, **size)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "options", "size"),
    [
        ("tpcb", {"scale": 7}, 7),
        ("tpcc", {"scale": 7, "tables": 2}, 7),
        ("pk", {"scale": 2}, 2_000_000),
        ("pk", {"rows": 5}, 5),
        ("feed", {"scale": 6, "tables": 3}, 2_000_000),
        ("tpcb", {}, 1),
        ("pk", {}, 50_000_000),
        ("feed", {}, 0),
    ],
)
def test_sizes(kind: str, options: dict[str, object], size: int) -> None:
    assert planned(kind, **options).size == size


@pytest.mark.parametrize("kind", ["tpcb", "pk", "tpcc"])
def test_an_open_size_takes_the_room(kind: str) -> None:
    room = 1 << 30
    assert 0.6 * room < planned(kind, room).total_bytes <= 1.05 * room
    # However little there is, something is made.
    assert planned(kind, 1).size >= 1


def test_what_is_fed_starts_empty() -> None:
    assert planned("feed", 1 << 40, tables=4).size == 0


def test_what_contradicts_itself_is_refused() -> None:
    with pytest.raises(UsageError):
        kind_named("tpcc").plan(LoadRequest(dataset="tpcc", rows=5))
    with pytest.raises(UsageError):
        kind_named("pk").plan(LoadRequest(dataset="pk", rows=5, scale=1))
    with pytest.raises(UsageError):
        kind_named("nosuch")


def test_own_datasets_are_planned_as_they_are() -> None:
    wanted = plan_dataset(spec.Dataset.model_validate({"kind": "none"}), folder=None)
    assert wanted.kind == "none" and wanted.name == "as it is"
