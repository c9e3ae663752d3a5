"""Plain technical English: the rules of docs/style.md that a program can hold. What is not yet right is counted in
style_baseline.json, and may only become less.
"""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from pgdyno.cli.help import EXAMPLES, SHORT
from pgdyno.cli.main import app

from tests.support.source import parsed

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "pgdyno"
BASELINE = Path(__file__).with_name("style_baseline.json")
OPENINGS = re.compile(
    r"(What|Whether|Who|Whose|Whom|Of|By|In|Where|Those|How|Why|When|That|With|At|As|From|The same)\b"
)
HELP = re.compile(
    r"\bso (many|long|often)\b|^(Of|As|Only|By|In|With|What|Whether|Where|Whose|Who|The same|Although|Also) |"
    r"\bwhere\b.*\bit is\b|\b(is|are) said\b"
)
NAMES = {"said", "told", "did", "beside", "asked", "made", "begun", "mostly", "words"}
PREPOSITIONS = re.compile(r"(of|by|as|in)_")
#: Established forms.
ALLOWED = {"as_json", "as_csv", "in_transaction"}


def modules() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path, parsed(path)


def docstrings() -> Iterator[tuple[str, str]]:
    for path, tree in modules():
        for node in ast.walk(tree):
            has_one = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            if has_one and (text := ast.get_docstring(node)):
                yield f"{path.relative_to(ROOT)}: {getattr(node, 'name', '')}", text


def helps() -> Iterator[tuple[str, str]]:
    """The help of every command, and of each of its options."""

    def of(command: object, path: str) -> Iterator[tuple[str, str]]:
        yield path, str(getattr(command, "help", "") or "")
        for param in getattr(command, "params", ()):
            if getattr(param, "help", None):
                yield f"{path} {'/'.join(param.opts)}", param.help
        for name, child in getattr(command, "commands", {}).items():
            yield from of(child, f"{path} {name}".strip())

    yield from of(typer.main.get_command(app), "")


def identifiers() -> Iterator[str]:
    """Names of functions, classes and their parameters."""
    for path, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield f"{path.relative_to(ROOT)}:{node.name}"
            if isinstance(node, ast.arg):
                yield f"{path.relative_to(ROOT)}:{node.arg}"


def words_to_avoid() -> list[str]:
    lines = (ROOT / "docs" / "style-words.txt").read_text().splitlines()
    return [line.partition(" -> ")[0].lower() for line in lines if " -> " in line]


def counted() -> dict[str, int]:
    """How often each rule is broken, of those that are not at zero yet."""
    bad_names = 0
    for full in identifiers():
        name = full.rpartition(":")[2].strip("_")
        bad_names += name in NAMES or (PREPOSITIONS.match(name) is not None and name not in ALLOWED)
    rust = sum(
        OPENINGS.match(block.group(1)) is not None
        for path in sorted((ROOT / "crates").rglob("*.rs"))
        for block in re.finditer(r"(?m)(?:^(?!\s*///).*\n|\A)\s*/// (.*)", path.read_text())
    )
    texts = [path.read_text().lower() for path in sorted((ROOT / "docs").rglob("*.md"))]
    texts += [text.lower() for _, text in docstrings()]
    flat = [" ".join(text.split()) for text in texts]
    phrases = sum(text.count(word) for text in flat for word in words_to_avoid())
    long_lines = sum(
        len(line) > 120 and "|" not in line and "](" not in line
        for path in sorted((ROOT / "docs" / "guide").rglob("*.md"))
        # Lines of Chinese cannot be broken: the break would be shown as a blank.
        if not path.name.endswith(".zh.md")
        # Output stays as it was printed.
        for line in re.sub(r"(?ms)^```.*?^```$", "", path.read_text()).splitlines()
    )
    return {
        "names": bad_names,
        "openings in Rust": rust,
        "words to avoid": phrases,
        "long lines of the guide": long_lines,
    }


def test_docstrings_begin_with_what_a_reader_expects() -> None:
    assert [where for where, text in docstrings() if OPENINGS.match(text)] == []


def test_help_texts_have_their_form() -> None:
    found = [(where, text) for where, text in helps() if HELP.search(text) or not text.rstrip().endswith((".", ")"))]
    assert [x for x in found if x[1]] == []


def test_every_command_has_a_line_and_examples() -> None:
    commands = typer.main.get_command(app)
    names = set(getattr(commands, "commands", {})) - {"pgbench", "cluster", "tpcc"}
    assert names == set(SHORT) and names <= set(EXAMPLES)
    assert all(len(line) <= 60 for line in SHORT.values())


def test_what_is_not_right_yet_becomes_less() -> None:
    """PGDYNO_TEST_STYLE=write writes down what is left; it must not be more than before."""
    now, before = counted(), json.loads(BASELINE.read_text())
    worse = {rule: (n, before.get(rule, 0)) for rule, n in now.items() if n > before.get(rule, 0)}
    assert not worse, f"{worse}: see docs/style.md"
    if os.environ.get("PGDYNO_TEST_STYLE") == "write":
        BASELINE.write_text(json.dumps(now, indent=2) + "\n")
    elif now != before:
        pytest.fail(f"fewer than in {BASELINE.name}: PGDYNO_TEST_STYLE=write pytest {Path(__file__).name}")
