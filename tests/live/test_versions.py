"""Other versions of the server: what is supported works, what is older is driven and said to be older."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import SHORT, Result, pgdyno
from tests.support.columns import undeclared
from tests.support.server import Server
from tests.support.versions import folder_of


def trials(done: Result) -> list[Path]:
    return list(Path(done.json["path"]).glob("trials/*"))


@pytest.mark.slow
@pytest.mark.parametrize("major", [14, 15, 16, 17])
def test_supported_versions(major: int, tmp_path: Path) -> None:
    with Server(bin_folder=folder_of(major)) as s:
        done = pgdyno("run", "quick", "--target", s.conninfo(), *SHORT, "--runs", tmp_path, "--json")
        assert done.code == 0, done.err
        manifest = done.json["manifest"]
        assert manifest["server"]["settings"]["server_version"]["value"].startswith(str(major))
        assert manifest["not_recorded"] == []
        # Whatever views a version has: no source failed.
        events = [json.loads(x) for f in trials(done) for x in (f / "events.jsonl").read_text().splitlines()]
        sources = ("waits", "snapshots", "standbys", "slots", "progress", "tables", "io", "statements", "pg_stat_")
        assert not [e for e in events if e["kind"] == "not_recorded" and e["text"].startswith(sources)]
        assert [x for f in trials(done) for x in undeclared(f)] == []


@pytest.mark.slow
def test_a_server_older_than_14_is_driven_and_named(tmp_path: Path) -> None:
    with Server(bin_folder=folder_of(13)) as s:
        done = pgdyno("run", "quick", "--target", s.conninfo(), *SHORT, "--runs", tmp_path, "--json")
        assert done.code == 0, done.err
        assert all(t["summary"]["committed"] > 0 for t in done.json["trials"])
        assert any("before 14" in x for x in done.json["manifest"]["not_recorded"])
        assert "before 14" in (Path(done.json["path"]) / "report.md").read_text()


@pytest.mark.slow
def test_any_installed_server_can_be_provisioned(tmp_path: Path) -> None:
    words = ["--embedded", "--pg-bin", folder_of(15), *SHORT, "--warmup", "0.5"]
    done = pgdyno("run", "quick", *words, "--runs", tmp_path, "--json")
    assert done.code == 0, done.err
    assert done.json["manifest"]["server"]["settings"]["server_version"]["value"].startswith("15")
    assert all((f / "samples" / "statements.parquet").exists() for f in trials(done))
