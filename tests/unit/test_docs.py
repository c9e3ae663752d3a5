"""What the documentation says is what there is."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pgdyno
import pytest
from pgdyno import i18n
from pgdyno.spec.datasets import Column, Dataset, Fill
from pgdyno.spec.experiment import Axes, Experiment, Run, Target

from tests.support import causes
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


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_cause_page_says_what_goes_on_beside_the_load(lang: str) -> None:
    """Script and settings alone do not make these causes."""
    pages = generator().pages
    by_name = {i.name: list(pages.beside(i, lang)) for i in causes.EVERY}
    assert "`checkpoint`" in by_name["checkpoints"][0] and "3" in by_name["checkpoints"][0]
    assert "VACUUM FULL big" in by_name["VACUUM FULL of another table"][0]
    assert by_name["processors' quota"] and by_name["slow network"] and not by_name["missing index"]


def pages_of_the_guide() -> list[Path]:
    return sorted((ROOT / "docs" / "guide").rglob("*.md"))


def test_pages_of_the_guide_are_short() -> None:
    assert [p.name for p in pages_of_the_guide() if p.read_text(encoding="utf-8").count("\n") > 250] == []
    lines = [
        f"{p.relative_to(ROOT)}:{n}"
        for p in pages_of_the_guide()
        for n, line in enumerate(p.read_text(encoding="utf-8").split("\n"), 1)
        # Lines of Chinese cannot be broken: the break would be shown as a blank.
        if len(line) > 120 and not re.search("[\u4e00-\u9fff]", line)
    ]
    assert lines == []


def test_each_page_of_a_task_is_there_in_chinese() -> None:
    guide = ROOT / "docs" / "guide"
    english = {p.stem for p in guide.glob("*.md") if not p.name.endswith(".zh.md")}
    chinese = {p.name.removesuffix(".zh.md") for p in guide.glob("*.zh.md")}
    assert english == chinese
    for name in chinese:
        assert f"({name}.zh.md)" in (guide / f"{name}.md").read_text(encoding="utf-8"), name
        assert f"({name}.md)" in (guide / f"{name}.zh.md").read_text(encoding="utf-8"), name


@pytest.mark.parametrize("lang", i18n.LANGUAGES)
def test_troubles_are_named_as_errors_are_printed(lang: str) -> None:
    page = "troubleshooting.md" if lang == "en" else "troubleshooting.zh.md"
    shown = generator().pages.shown
    texts = {shown(text) for text in i18n.catalogue(lang).values()}
    headings = re.findall(r"^### (.*)$", (ROOT / "docs" / "guide" / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert len(headings) >= 10 and [h for h in headings if h not in texts] == []


def runner() -> ModuleType:
    """scripts/commands.py."""
    spec = importlib.util.spec_from_file_location("commands", ROOT / "scripts" / "commands.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def commands() -> Iterator[tuple[str, str]]:
    """The commands of pgdyno in the README and the guide, with where they stand."""
    found = runner()
    yield from ((page.name, command) for page in found.guide() for command in found.commands(page))


def test_every_command_of_the_guide_is_run() -> None:
    """`make docs` runs each; one that cannot be run has a reason, and no placeholder is left in the others."""
    found = runner()
    typed = found.typed()
    assert len(typed) > 80
    assert [x for x in found.NOT_RUN if not any(c.startswith(x) for c in typed)] == []
    meant = {c: re.sub(r"\$[A-Z0-9]+", "", found.shortened(c) or "") for c in typed}
    placeholder = re.compile(r"\b(RUN|NAME|FILE|BASE|HEAD|SEARCH)\b|\bdb1\b|\.\.\.")
    assert [c for c, text in meant.items() if placeholder.search(text)] == []


def test_commands_of_the_guide_have_verbs_and_options_that_are_there() -> None:
    reference = (ROOT / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")
    helps = dict(re.findall(r"^## (pgdyno.*?)\n\n```\n(.*?)```", reference, re.MULTILINE | re.DOTALL))
    wrong, seen = [], 0
    for page, command in commands():
        words = command.split()
        verb = next((v for n in (3, 2) if (v := " ".join(words[:n])) in helps), None)
        if verb is None:
            wrong.append(f"{page}: {command}")
            continue
        seen += 1
        known = helps[verb] + helps["pgdyno"]
        options = re.findall(r"(?<= )--[a-z][a-z-]*", command)
        # pgbench's own options are pgbench's to explain.
        wrong += [f"{page}: {command}: {o}" for o in options if o not in known and verb != "pgdyno pgbench"]
    assert wrong == [] and seen > 150


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
    folders = [p.parent for depth in ("*", "*/*") for p in (root / "python" / "pgdyno").glob(f"{depth}/__init__.py")]
    packages = {str(p.relative_to(root)) for p in folders}
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
    # `package/module.name`: the module has it.
    for module, name in re.findall(r"`([a-z_]+/[a-z_/]+)\.([A-Za-z_]{4,})`", text):
        source = (root / "python" / "pgdyno" / module).with_suffix(".py").read_text(encoding="utf-8")
        assert re.search(rf"\b{name}\b", source), f"{module}.{name}"
