"""The list of runs in a folder: which there are, in which state, and what came of them."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path
from typing import Any

import pytest
from pgdyno import i18n
from pgdyno.cli import runs
from pgdyno.cli.runs import RunsRequest
from pgdyno.errors import UsageError
from pgdyno.message import message
from pgdyno.store import catalog, texts

from tests.support import synthetic
from tests.support.tells import telling, tells

VERDICT = message("error-nothing-connections")


def folder_of_runs(folder: Path) -> None:
    """One of each state, named by it."""
    for name, facts in {
        "finished": {"ended_at": "x", "exit_code": 0, "tags": ["disk", "new"], "remark": "after", "trials": 2}
        | texts.fields_of("verdict", VERDICT),
        "failed": {"ended_at": "x", "exit_code": 4, "error": "it died"},
        "interrupted": {"ended_at": "x", "exit_code": 130, "tags": ["disk"]},
        "killed": {"trials": 3, "ended_at": None},
        "running": {},
    }.items():
        path = synthetic.make_run(folder / name, synthetic.plans([4], 2), lambda *_: 100.0, intervals=2, manifest=facts)
        path.rename(folder / f"run-{name}")


def request(folder: Path, **more: Any) -> RunsRequest:
    given: dict[str, Any] = {
        "experiment": None,
        "tags": [],
        "state": None,
        "server": None,
        "sort": "date",
        "lang": "en",
    }
    return RunsRequest(folder=folder, **given | {"json_output": True} | more)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder_of_runs(tmp_path)
    return tmp_path


def listed(capsys: pytest.CaptureFixture[str], r: RunsRequest) -> list[dict[str, Any]]:
    assert runs.main(r) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def test_each_run_has_its_state_and_verdict(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (folder / "run-running" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = {Path(r["path"]).name: r for r in listed(capsys, request(folder))}
    assert {name.removeprefix("run-"): r["state"] for name, r in found.items()} == {s: s for s in catalog.STATES}
    done = found["run-finished"]
    assert (done["verdict"], done["tags"], done["note"]) == (i18n.text(VERDICT), ["disk", "new"], "after")
    assert (done["trials_begun"], done["trials_planned"], found["run-killed"]["trials_planned"]) == (2, 2, 3)
    assert found["run-failed"]["error"] == "it died"


@pytest.mark.parametrize(
    ("more", "names"),
    [
        ({"tags": ["disk"]}, {"finished", "interrupted"}),
        ({"tags": ["disk", "new"]}, {"finished"}),
        ({"state": "failed"}, {"failed"}),
        ({"experiment": "no"}, set()),
        ({"server": "no such server"}, set()),
    ],
)
def test_options_choose(
    folder: Path, capsys: pytest.CaptureFixture[str], more: dict[str, Any], names: set[str]
) -> None:
    found = listed(capsys, request(folder, **more))
    assert {Path(r["path"]).name.removeprefix("run-") for r in found} == names


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_table_has_all_of_it(folder: Path, capsys: pytest.CaptureFixture[str], lang: str) -> None:
    assert runs.main(request(folder, json_output=False, lang=lang)) == 0
    out = capsys.readouterr().out
    assert "run-killed" in out and "2/3" in out and "#disk #new after" in out
    assert " ".join(i18n.text(VERDICT, lang).split())[:12] in " ".join(out.split())


def test_what_cannot_be_read_is_told_and_the_rest_is_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "run-failed" / "manifest.json").write_text("{")
    assert runs.main(request(folder)) == 0
    done = capsys.readouterr()
    assert len(json.loads(done.out)) == 4 and "run-failed" in done.err


def test_what_is_no_run_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "manifest.json").write_text('{"name": "an application", "schema": 1}')
    (tmp_path / "drill").mkdir()
    assert listed(capsys, request(tmp_path)) == []


def test_nothing_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert runs.main(request(tmp_path, json_output=False)) == 0
    assert tells(capsys.readouterr().out, "error-there-no-run")
    with telling(UsageError, "error-no-folder"):
        runs.main(request(tmp_path / "no"))
    with telling(UsageError, "error-no-choice", value="dead"):
        runs.main(request(tmp_path, state="dead"))
