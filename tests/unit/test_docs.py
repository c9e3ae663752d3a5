"""What the documentation says is what there is."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path

import pgdyno
from pgdyno.spec.datasets import Dataset
from pgdyno.spec.experiment import Axes, Experiment, Run, Target

ROOT = Path(__file__).parent.parent.parent


def test_generated_pages_are_current() -> None:
    spec = importlib.util.spec_from_file_location("docs", ROOT / "scripts" / "docs.py")
    assert spec is not None and spec.loader is not None
    docs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(docs)
    for path, text in docs.files().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is out of date: make docs"


def test_every_key_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "experiment.md").read_text()
    sections = page.split("\n## ")
    for heading, model in (("", Experiment), ("Targets", Target), ("Datasets", Dataset), ("Axes", Axes), ("Run", Run)):
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
