"""Tables of the terminal: nothing of a text is cut, in any language and at any width."""

from __future__ import annotations

import ast
import io
from pathlib import Path

import pytest
from pgdyno import i18n
from pgdyno.cli.tables import Table
from pgdyno.drill.faults import FAULTS
from pgdyno.message import Message
from rich import box
from rich.console import Console

CLI = Path(__file__).parents[3] / "python" / "pgdyno" / "cli"


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("lang", i18n.LANGUAGES)
def test_no_text_is_cut(lang: str, width: int) -> None:
    texts = [i18n.text(Message(f"fault-{what}-{f}"), lang) for f in FAULTS for what in ("done", "expected")]
    table = Table("", "", box=box.SIMPLE_HEAD)
    for done, expected in zip(texts[::2], texts[1::2], strict=True):
        table.add_row(done, expected)
        table.add_section()
    out = io.StringIO()
    Console(file=out, width=width).print(table)
    assert "…" not in out.getvalue()
    shown = sorted(c for c in out.getvalue() if not c.isspace() and c not in "─")
    assert shown == sorted(c for c in "".join(texts) if not c.isspace())


def test_verbs_use_this_table() -> None:
    for module in CLI.glob("*.py"):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "rich.table":
                pytest.fail(f"{module.name}: cli.tables.Table folds what rich's own cuts")
