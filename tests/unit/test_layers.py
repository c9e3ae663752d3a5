"""Arrows that import-linter cannot see: the native module is no Python source."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pgdyno

ROOT = Path(pgdyno.__file__).parent


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{a.name}" for a in node.names)}
    return found


def test_who_knows_the_native_module() -> None:
    users = {p.relative_to(ROOT).parts[0] for p in ROOT.rglob("*.py") if "pgdyno._core" in imports(p)}
    # The cluster: whose rights a thread has; drills: the ledger's load.
    assert users == {"run", "store", "pgbench", "load", "cluster", "drill"}


def test_only_the_command_line_exits_and_prints() -> None:
    for path in ROOT.rglob("*.py"):
        if path.relative_to(ROOT).parts[0] == "cli":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                assert name not in {"sys.exit", "exit", "quit", "print"}, f"{path}: {name}"


def test_pgbench_starts_without_what_experiments_need() -> None:
    heavy = {
        "psycopg",
        "asyncio",
        "typer",
        "rich",
        "pydantic",
        "pyarrow",
        "duckdb",
        "numpy",
        "jinja2",
        "psutil",
        "vl_convert",
    }
    code = "import sys; from pgdyno.cli import entry; from pgdyno.pgbench import bench, main, options\n"
    done = subprocess.run(
        [sys.executable, "-c", code + "print(*{m.split('.')[0] for m in sys.modules})"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert not heavy & set(done.stdout.split())
