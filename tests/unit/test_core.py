"""The native module: what the stub says is what is there."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pgdyno
import pytest
from pgdyno import _core


def stub() -> dict[str, ast.AST]:
    path = Path(pgdyno.__file__).parent / "_core.pyi"
    tree = ast.parse(path.read_text())
    named = [n for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef)]
    return {n.name: n for n in named if not n.name.startswith("_")}


def test_the_stub_names_what_the_module_has() -> None:
    there = {n for n in dir(_core) if not n.startswith("_")}
    assert set(stub()) == there


@pytest.mark.parametrize("name", sorted(n for n, node in stub().items() if isinstance(node, ast.ClassDef)))
def test_the_stub_names_the_members(name: str) -> None:
    node, cls = stub()[name], getattr(_core, name)
    if issubclass(cls, Exception):
        assert isinstance(node, ast.ClassDef)
        return
    written = set()
    for item in node.body:  # type: ignore[attr-defined]
        if isinstance(item, ast.FunctionDef):
            written.add(item.name)
        elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            written.add(item.target.id)
    public = {n for n in vars(cls) if not n.startswith("__") or n in ("__len__",)}
    assert {w for w in written if not w.startswith("__") or w == "__len__"} == public


@pytest.mark.parametrize("name", ["run", "sqlstate_name"])
def test_the_stub_has_the_parameters(name: str) -> None:
    args = stub()[name].args  # type: ignore[attr-defined]
    written = [a.arg for a in [*args.posonlyargs, *args.args, *args.kwonlyargs]]
    assert list(inspect.signature(getattr(_core, name)).parameters) == written


def test_histograms_merge_and_survive_encoding() -> None:
    a, b = _core.Histogram(), _core.Histogram()
    for v in range(1, 1001):
        (a if v % 2 else b).record(v * 1000)
    a.merge(b)
    again = _core.Histogram.decode(a.encode())
    assert again.count == 1000 and again.percentile(50) == a.percentile(50)
    assert a.percentile(99) == pytest.approx(990_000, rel=1e-3)
    with pytest.raises(_core.CoreError, match="no HdrHistogram"):
        _core.Histogram.decode(b"nonsense")


def test_passwords_do_not_show() -> None:
    config = _core.ConnConfig(host="/tmp", port=5432, user="u", dbname="d", password="hush")
    assert "hush" not in repr(config)
    from pgdyno.cluster.target import Target

    assert "hush" not in repr(Target("h", 1, "u", "d", "hush"))


def test_sqlstates_have_names() -> None:
    assert _core.sqlstate_name("40P01") == "deadlock_detected"
    assert _core.sqlstate_name("99999") is None
