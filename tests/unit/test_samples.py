"""Declared columns of samples: what causes and tables ask for exists."""

from __future__ import annotations

import ast
from pathlib import Path

import pgdyno
import pytest
from pgdyno import samples
from pgdyno.collect.sources import counters

PACKAGE = Path(pgdyno.__file__).parent
#: Methods of `Recorded` and `Observed` that take a source, and those that take a column of it as well.
SOURCES, COLUMNS = {"rows", "before", "whole", "mean", "series", "has"}, {"mean", "series"}


def questions() -> list[tuple[str, str, str]]:
    """Place, source and column (or an empty string) of each literal question for samples."""
    found = []
    for folder in ("diagnosis", "report"):
        for path in sorted((PACKAGE / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                    continue
                texts = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
                if node.func.attr in SOURCES and texts and len(texts) == len(node.args[: len(texts)]):
                    column = texts[1] if node.func.attr in COLUMNS and len(texts) > 1 else ""
                    found.append((f"{path.name}:{node.lineno}", texts[0], column))
    return found


def test_what_is_asked_for_is_declared() -> None:
    asked = questions()
    assert len(asked) > 50
    assert [x for x in asked if x[1] not in samples.SAMPLES] == []
    assert [x for x in asked if x[2] and x[2] not in samples.columns(x[1])] == []


@pytest.mark.parametrize("version", [140000, 150000, 160000, 170000, 180000])
def test_the_counters_of_each_version_are_declared(version: int) -> None:
    names = {f"{name}_per_s" for columns, _ in counters._groups(version).values() for name in columns}
    assert names <= set(samples.columns("counters"))


def test_columns_have_types_and_times() -> None:
    assert samples.columns("waits") == {
        "start_ns": int, "end_ns": int, "kind": str, "ours": float, "state": str, "wait_type": str, "wait": str,
        "processes": float, "looks": float,
    }  # fmt: skip
    assert "start_ns" not in samples.columns("tables") and samples.columns("statements")["script"] is str
    assert samples.missing("counters", {"connections": 1.0}) == set()
    assert samples.missing("quota", {"cpus": 1.0}) == {"held_back", "throttled"}
