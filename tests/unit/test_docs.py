"""What the documentation says is what there is."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pgdyno
import pytest
from pgdyno.spec.datasets import Column, Dataset, Fill
from pgdyno.spec.experiment import Axes, Experiment, Run, Target

from tests.support.cli import PGDYNO, environment

ROOT = Path(__file__).parent.parent.parent


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs", ROOT / "scripts" / "docs.py")
    assert spec is not None and spec.loader is not None
    docs = importlib.util.module_from_spec(spec)
    sys.modules["docs"] = docs
    spec.loader.exec_module(docs)
    return docs


def test_quotes_are_what_this_version_prints() -> None:
    assert generator().stale() == [], "make docs"


@pytest.mark.slow
def test_the_workflow_of_the_guide_works(tmp_path: Path) -> None:
    """As a script: a run that keeps its bound, and one that does not."""
    file = tmp_path / "bench.toml"
    file.write_text(
        'name = "nightly"\ntitle = "Nightly"\ndataset = { scale = 1 }\n'
        '[workloads.r]\nscripts = [{ builtin = "select-only" }]\n[axes]\nclients = [2]\n'
        "[run]\nduration_s = 0.3\nwarmup_s = 0.1\nrepetitions = 1\n"
    )
    script = ROOT / "docs" / "guide" / "ci" / "nightly.sh"
    assert "ci/nightly.sh bench.toml" in script.with_suffix(".yml").read_text()
    env = environment(STARTS="1", PATH=f"{PGDYNO.parent}:{os.environ['PATH']}")
    for bound, code in (("p99 > 60s", 0), ("p99 > 1us", 6)):
        done = subprocess.run(
            [script, file, tmp_path / "runs"], env={**env, "BOUND": bound}, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stderr


def test_generated_pages_are_current() -> None:
    docs = generator()
    for path, text in docs.files().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is out of date: make docs"


def test_every_key_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "experiment.md").read_text()
    sections = page.split("\n## ")
    for heading, model in (
        ("", Experiment),
        ("Targets", Target),
        ("Datasets", Dataset),
        ("Columns", Fill),
        ("Columns", Column),
        ("Axes", Axes),
        ("Run", Run),
    ):
        section = sections[0] if not heading else next(s for s in sections if s.startswith(heading))
        for key in model.model_fields:
            # Sections of their own explain these.
            assert re.search(rf"`{key}(\.|`)", section) or key in ("datasets", "run"), f"{heading}: {key}"


def test_links_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_versions_agree() -> None:
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text())
    assert cargo["workspace"]["package"]["version"] == pgdyno.__version__


def test_no_registry_is_named() -> None:
    hosts = re.compile(r"crates\.io|pypi\.org|pythonhosted|npmjs|maven\.org")
    for name in ("pyproject.toml", "constraints.txt", "Cargo.toml", "Makefile", "README.md", ".ci/run"):
        assert not hosts.search((ROOT / name).read_text()), name


def test_the_map_has_every_package_and_crate() -> None:
    root = Path(__file__).parents[2]
    text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    packages = {f"python/pgdyno/{p.parent.name}" for p in (root / "python" / "pgdyno").glob("*/__init__.py")}
    modules = {f"python/pgdyno/{p.name}" for p in (root / "python" / "pgdyno").glob("*.py")} - {
        "python/pgdyno/__init__.py"
    }
    crates = {f"crates/{p.parents[1].name}" for p in (root / "crates").glob("*/src/lib.rs")}
    named = re.findall(r"^((?:python|crates)/\S+) {2,}\S", text, re.MULTILINE)
    assert sorted(named) == sorted(packages | modules | crates)


def test_what_the_recipes_name_is_there() -> None:
    root = Path(__file__).parents[2]
    text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Recipes")[2]
    for path in re.findall(r"`([a-z_/0-9]+(?:\.[a-z]+|/))`", text):
        places = [root / path, root / "python" / "pgdyno" / path, root / "python" / "pgdyno" / "i18n" / path]
        assert any(p.exists() for p in places), path
