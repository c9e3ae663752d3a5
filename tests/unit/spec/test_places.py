"""Lines of keys in TOML files: random files with known places, and mistakes that name theirs."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pgdyno.errors import SpecError
from pgdyno.spec import load
from pgdyno.spec.places import lines

NAMES = st.sampled_from(["a", "b-1", "run", "with space", 'q"uote', "dots.in", "表", "0"])
PLAIN = st.one_of(
    st.integers(-5, 5).map(str), st.sampled_from(["true", "1.5", "2026-11-23 09:30:00Z", "'li#t [x]'", '"b = \\" ]"']),
    st.sampled_from(['"""\nlong = 1\n[not.a.table]\n"""', "'''\nx = {\n'''"]),
)  # fmt: skip


class Writer:
    """Writes random TOML and remembers the line of each key."""

    def __init__(self, draw: Any) -> None:
        self.draw, self.text = draw, ""
        self.places: dict[tuple[str, ...], int] = {}

    def put(self, text: str) -> None:
        self.text += text

    def mark(self, path: tuple[str, ...]) -> None:
        self.places.setdefault(path, self.text.count("\n") + 1)

    def gap(self) -> None:
        self.put(self.draw(st.sampled_from(["", " ", "\n", "  # [x] = 1\n", "\n\n"])))

    def key(self, name: str) -> str:
        if name.isascii() and name.replace("-", "").isalnum():
            return str(self.draw(st.sampled_from([name, f'"{name}"', f"'{name}'"])))
        return json.dumps(name, ensure_ascii=self.draw(st.booleans()))

    def value(self, path: tuple[str, ...], depth: int) -> None:
        kind = self.draw(st.sampled_from(["plain", "plain", "array", "table"] if depth else ["plain"]))
        if kind == "plain":
            self.put(self.draw(PLAIN))
        elif kind == "array":
            self.put("[")
            for n in range(self.draw(st.integers(0, 3))):
                if n:
                    self.put(",")
                self.gap()
                self.mark((*path, str(n)))
                self.value((*path, str(n)), depth - 1)
                self.gap()
            self.put("]")
        else:
            self.put("{")
            for n, name in enumerate(self.draw(st.lists(NAMES, max_size=3, unique=True))):
                self.put(", " if n else " ")
                self.mark((*path, name))
                self.put(f"{self.key(name)} = ")
                self.value((*path, name), depth - 1)
            self.put(" }")

    def pairs(self, path: tuple[str, ...]) -> None:
        for name in self.draw(st.lists(NAMES, max_size=3, unique=True)):
            self.put(self.draw(st.sampled_from(["", "  ", "\n", "# note = 1\n"])))
            self.mark((*path, name))
            self.put(f"{self.key(name)} = ")
            self.value((*path, name), 2)
            self.put(self.draw(st.sampled_from(["\n", "  # end\n"])))


@settings(max_examples=150)
@given(st.data())
def test_each_key_of_random_files_has_its_line(data: st.DataObject) -> None:
    w = Writer(data.draw)
    w.pairs(())
    used = {path[0] for path in w.places}
    for name in data.draw(st.lists(NAMES, max_size=3, unique=True)):
        if name in used:
            continue
        if data.draw(st.booleans()):
            w.mark((name,))
            w.put(f"[{w.key(name)}]\n")
            w.pairs((name,))
            continue
        for n in range(data.draw(st.integers(1, 3))):
            w.mark((name,))
            w.mark((name, str(n)))
            w.put(f"[[ {w.key(name)} ]]\n")
            w.pairs((name, str(n)))
    tomllib.loads(w.text)
    assert lines(w.text) == w.places


def test_parts_of_headers_and_dotted_keys_have_lines() -> None:
    text = 'x.y.z = 1\n[a.b."c.d"]\ne = 2\n[[a.l]]\n[a.l.m]\nk = 1\n[[a.l]]\nk = [\n1,\n{ p.q = 2 },\n]\n'
    assert lines(text) == {
        ("x",): 1, ("x", "y"): 1, ("x", "y", "z"): 1, ("a",): 2, ("a", "b"): 2, ("a", "b", "c.d"): 2,
        ("a", "b", "c.d", "e"): 3, ("a", "l"): 4, ("a", "l", "0"): 4, ("a", "l", "0", "m"): 5,
        ("a", "l", "0", "m", "k"): 6, ("a", "l", "1"): 7, ("a", "l", "1", "k"): 8, ("a", "l", "1", "k", "0"): 9,
        ("a", "l", "1", "k", "1"): 10, ("a", "l", "1", "k", "1", "p"): 10, ("a", "l", "1", "k", "1", "p", "q"): 10,
    }  # fmt: skip


TEXT = """
name = "n"
title = "t"
[dataset]
kind = "tpcb"
[workloads.first]
scripts = [{ builtin = "select-only", weight = 1 }]
[workloads.second]
scripts = [
  { builtin = "tpcb-like", weight = 1 },
  { builtin = "select-only", weight = -3 },
]
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (TEXT, 11),
        (TEXT.replace("-3", "3").replace('kind = "tpcb"', 'kind = "tpcx"'), 5),
        (TEXT.replace("-3", "3") + "[run]\nseed = 1\nrepetitons = 2\n", 15),
        (TEXT.replace("-3", "3").replace('builtin = "tpcb-like"', 'text = "select 1;", builtin = "tpcb-like"'), 10),
    ],
)
def test_a_mistake_names_its_own_line(text: str, line: int) -> None:
    with pytest.raises(SpecError) as e:
        load.parse(text, "x.toml")
    assert str(e.value).startswith(f"x.toml:{line}: "), e.value
