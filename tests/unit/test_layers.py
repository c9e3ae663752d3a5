"""Arrows that import-linter cannot see: the native module is no Python source."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pgdyno
import pytest

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
    # The cluster: whose rights a thread has; drills: the ledger's load; the protocols of databases: their parameters.
    assert users == {"run", "store", "pgbench", "load", "cluster", "drill", "dbms", "driver", "mysql"}


def test_only_the_command_line_exits_and_prints() -> None:
    for path in ROOT.rglob("*.py"):
        if path.relative_to(ROOT).parts[0] == "cli":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                assert name not in {"sys.exit", "exit", "quit", "print"}, f"{path}: {name}"


#: Packages that take a tenth of a second to import, or more.
HEAVY = {"psycopg", "asyncio", "pyarrow", "duckdb", "numpy", "scipy", "jinja2", "psutil"}


@pytest.mark.parametrize(
    "code, without",
    [
        (
            "from pgdyno.cli import entry; from pgdyno.pgbench import bench, main, options",
            HEAVY | {"typer", "rich", "pydantic"},
        ),
        ("from pgdyno.cli import main, options", HEAVY),
        ("from pgdyno.cli import main, experiments; experiments.listing()", HEAVY),
    ],
    ids=["pgbench", "--help", "experiments"],
)
def test_what_starts_at_once_imports_nothing_heavy(code: str, without: set[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}\nprint(*{{m.split('.')[0] for m in sys.modules}})"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert not without & set(done.stdout.split("\n")[-2].split())


def _cycles(arrows: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that lead to each other (strongly connected components, Tarjan 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in arrows[module]:
            if other not in index:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], index[other])
        if low[module] == index[module]:
            group = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            found.extend([group] if len(group) > 1 else [])

    for module in arrows:
        if module not in index:
            visit(module)
    return found


def test_python_modules_have_no_cycles() -> None:
    """Also those that imports within functions, and imports for types alone, would hide."""
    modules = {".".join(p.relative_to(ROOT.parent).with_suffix("").parts): p for p in ROOT.rglob("*.py")}
    modules = {name.removesuffix(".__init__"): p for name, p in modules.items()}
    arrows: dict[str, set[str]] = {}
    for name, path in modules.items():
        arrows[name] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                arrows[name] |= {a.name for a in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                whole = {f"{node.module}.{a.name}" for a in node.names}
                arrows[name] |= {m if m in modules else node.module for m in whole}
        arrows[name] = {m for m in arrows[name] if m in modules and m != name}
    assert _cycles(arrows) == []


def _paths(use: str) -> list[str]:
    """The paths of a `use` of Rust, its braces expanded."""
    head, brace, rest = use.partition("{")
    if not brace:
        return [use.split(" as ")[0].strip()]
    parts, depth, last = [], 0, ""
    for c in rest.rpartition("}")[0]:
        depth += (c == "{") - (c == "}")
        if c == "," and depth == 0:
            parts, last = [*parts, last], ""
        else:
            last += c
    return [path for part in (*parts, last) if part.strip() for path in _paths(head.strip() + part.strip())]


def test_rust_modules_have_no_cycles() -> None:
    """Follow what modules use; a module may use its parent's items unless the parent uses its own."""
    crates = Path(__file__).parents[2] / "crates"
    for source in sorted(crates.glob("*/src")):
        modules = {}
        for path in source.rglob("*.rs"):
            parts = path.relative_to(source).with_suffix("").parts
            modules["::".join(parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts)] = path
        arrows: dict[str, set[str]] = {}
        for name, path in modules.items():
            arrows[name] = set()
            code = re.sub(r"//[^\n]*", "", path.read_text()).split("#[cfg(test)]")[0]
            for use in re.findall(r"\buse ((?:crate|super|self)\b[^;]*);", code):
                for found in _paths(" ".join(use.split())):
                    here, words = name.split("::") if name else [], found.split("::")
                    if words[0] == "crate":
                        here = []
                    while words and words[0] in ("crate", "self", "super"):
                        here = here[:-1] if words[0] == "super" else here
                        words = words[1:]
                    whole = [*here, *words]
                    target = next(t for n in range(len(whole), -1, -1) if (t := "::".join(whole[:n])) in modules)
                    arrows[name] |= {target} - {name}
        assert _cycles(arrows) == [], source


def test_tests_lie_at_the_path_of_what_they_test() -> None:
    """A folder of tests/unit is a package of pgdyno; what tests the whole tree, or one of its modules, lies above."""
    tests = Path(__file__).parent
    assert {p.parent.name for p in tests.glob("*/test_*.py")} <= {p.parent.name for p in ROOT.glob("*/__init__.py")}
    whole = {"docs", "layers", "style", "tells"}
    assert {p.stem.removeprefix("test_").lstrip("_") for p in tests.glob("test_*.py")} - whole <= {
        p.stem.lstrip("_") for p in [*ROOT.glob("*.py"), *ROOT.glob("*.pyi")]
    }
