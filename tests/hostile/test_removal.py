"""What pgdyno removes, and what it must leave alone."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from pathlib import Path

import pytest
from pgdyno.cluster import scratch
from pgdyno.cluster.removal import Made

from tests.support.cli import pgdyno
from tests.support.messages import text
from tests.support.tells import tells

SOURCE = Path(__file__).parents[2] / "python" / "pgdyno"
FACTS = {"name": "t", "datasets": [], "version": "18", "settings": [], "bytes": 1, "created": "2026-01-01T00:00:00"}
MADE = {"made": {"by": "pgdyno 0.1.0", "id": "1", "path": "/t"}}


def template(folder: Path, facts: object) -> Path:
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "PG_VERSION").write_text("18\n")
    (folder / "template.json").write_text(json.dumps(facts))
    return folder


def test_one_place_removes_folders() -> None:
    found = [p.name for p in SOURCE.rglob("*.py") if "rmtree" in p.read_text()]
    assert found == ["removal.py"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("facts", [{**FACTS, **MADE}, FACTS], ids=["made", "before folders said who made them"])
def test_a_template_is_dropped(tmp_path: Path, facts: object) -> None:
    template(tmp_path / "t", facts)
    done = pgdyno("cluster", "drop", "t", "--store", tmp_path)
    assert done.code == 0, done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("facts", "more", "words"),
    [
        (None, "photos", "has no template.json"),
        ({"name": "t"}, "", text("why-another-template", file="template.json")),
        ({**FACTS, "made": "somebody"}, "", text("why-another-template", file="template.json")),
        ({**FACTS, **MADE, "name": "other"}, "", text("why-another-template", file="template.json")),
        ({**FACTS, **MADE}, "thesis.tex", text("why-holds-more", names="thesis.tex")),
        ([1], "", "has no template.json"),
    ],
)
def test_other_folders_are_not_dropped(tmp_path: Path, facts: object, more: str, words: str) -> None:
    folder = template(tmp_path / "t", facts)
    if facts is None:
        (folder / "template.json").unlink()
    if more:
        (folder / more).write_text("mine")
    before = sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*"))
    done = pgdyno("cluster", "drop", "t", "--store", tmp_path)
    assert done.code == 3 and words in done.err and tells(done.err, "remedy-nothing-was-removed-remove-hand"), done.err
    assert sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*")) == before


def test_nothing_is_dropped_through_a_link(tmp_path: Path) -> None:
    real = template(tmp_path / "elsewhere" / "t", {**FACTS, **MADE})
    store = tmp_path / "store"
    store.mkdir()
    (store / "t").symlink_to(real)
    done = pgdyno("cluster", "drop", "t", "--store", store)
    assert done.code == 3 and text("why-link-or-no-folder") in done.err
    assert (real / "data" / "PG_VERSION").exists()
    # Nor by a file that is a link, or would never end.
    for make in (lambda p: p.symlink_to(real / "template.json"), os.mkfifo):
        other = template(store / "u", {**FACTS, **MADE, "name": "u"})
        (other / "template.json").unlink()
        make(other / "template.json")
        assert pgdyno("cluster", "drop", "u", "--store", store).code == 3
        (other / "template.json").unlink()
        (other / "data" / "PG_VERSION").unlink()
        (other / "data").rmdir()
        other.rmdir()


def test_what_killed_snapshots_left_is_swept_and_nothing_else(tmp_path: Path) -> None:
    from pgdyno.cluster.templates import Store

    left = template(tmp_path / ".unfinished-a", MADE)
    mine = tmp_path / ".unfinished-notes"
    mine.mkdir()
    (mine / "data").write_text("mine")
    Store(tmp_path)._sweep()
    assert not left.exists() and (mine / "data").read_text() == "mine"


def test_what_stands_in_its_place_stays(tmp_path: Path) -> None:
    made = Made.new(tmp_path / "a")
    (tmp_path / "a").rename(tmp_path / "b")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "mine").write_text("mine")
    assert not made.remove() and (tmp_path / "a" / "mine").exists() and (tmp_path / "b").exists()
    (tmp_path / "a" / "mine").unlink()
    (tmp_path / "a").rmdir()
    (tmp_path / "a").symlink_to(tmp_path / "b")
    assert not made.remove() and (tmp_path / "b").exists()


def test_links_inside_are_removed_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "mine").write_text("mine")
    made = Made.new(tmp_path / "a")
    (made.path / "link").symlink_to(tmp_path / "kept")
    (made.path / "inside").mkdir()
    (made.path / "inside" / "link").symlink_to(tmp_path / "kept")
    assert made.remove() and made.remove() and not made.path.exists()
    assert (tmp_path / "kept" / "mine").read_text() == "mine"


def test_a_program_that_is_just_ending_leaves_nothing(tmp_path: Path) -> None:
    made = Made.new(tmp_path / "a")

    def write() -> None:
        for n in range(40):
            with contextlib.suppress(OSError):
                (made.path / str(n)).write_text("x")
            time.sleep(0.002)

    writer = threading.Thread(target=write)
    writer.start()
    time.sleep(0.01)
    assert made.remove() and not made.path.exists()
    writer.join()


def test_only_abandoned_scratch_folders_are_swept(tmp_path: Path) -> None:
    living = scratch.Scratch(tmp_path)
    dead = tmp_path / f"{scratch.PREFIX}dead"
    dead.mkdir()
    (dead / scratch.OWNER).touch()
    nobodys = tmp_path / f"{scratch.PREFIX}nobodys"
    nobodys.mkdir()
    scratch.sweep(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([living.path.name, nobodys.name])
    living.remove()
    assert not living.path.exists()


@pytest.mark.slow
def test_a_cluster_that_was_cut_off_is_made_again(reachable: Path) -> None:
    """kill -9 while a cluster is made leaves parts of it, and the next call must not stumble over its own."""
    base = reachable / "c"
    for part in ("data", "data.unfinished-4711", "socket"):
        (base / part).mkdir(parents=True)
        (base / part / "x").write_text("left")
    (base / "cluster.json.unfinished").touch()
    done = pgdyno("cluster", "create", base)
    assert done.code == 0, done.err
    assert not (base / "cluster.json.unfinished").exists() and not (base / "data.unfinished-4711").exists()
    # Whose parts lie there is said by that file alone.
    (base / "cluster.json").unlink()
    again = pgdyno("cluster", "create", base)
    assert again.code == 3 and tells(again.err, "error-not-empty") and (base / "data" / "PG_VERSION").exists()


@pytest.mark.slow
def test_a_cluster_that_was_finished_but_for_its_mark_stays(reachable: Path) -> None:
    """Killed at the last moment, and used since."""
    base = reachable / "c"
    assert pgdyno("cluster", "create", base).code == 0
    (base / "cluster.json.unfinished").touch()
    done = pgdyno("cluster", "create", base)
    assert done.code == 3 and tells(done.err, "error-not-empty")
    assert (base / "data" / "PG_VERSION").exists() and (base / "cluster.json").exists()


def test_a_cluster_among_other_things_is_not_made(reachable: Path) -> None:
    base = reachable / "c"
    base.mkdir()
    (base / "cluster.json.unfinished").touch()
    (base / "thesis.tex").write_text("mine")
    done = pgdyno("cluster", "create", base)
    assert done.code == 3 and (base / "thesis.tex").read_text() == "mine"
