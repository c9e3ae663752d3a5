"""PostgreSQL and MariaDB side by side, both private: trials of their own, and a duet in one run of the engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.cli import pgdyno
from tests.support.mariadb import why_not
from tests.support.tells import tells

pytestmark = [pytest.mark.skipif(why_not() != "", reason=why_not()), pytest.mark.slow]

_FILE = """
name = "both"
title = "Both products"

[dataset]
kind = "pk"
rows = 20_000
setup = ["create table if not exists log (id bigserial primary key, info text)"]
setup_mysql = ["create table if not exists log (id bigint auto_increment primary key, info text)"]

[workloads.mix]
scripts = [{ name = "mix", text = '''
\\\\set id random(1, :range)
BEGIN;
UPDATE pk SET crt_time = now() WHERE id = :id;
SELECT id AS got FROM pk WHERE id = :id \\\\gset
INSERT INTO log (info) VALUES (:got);
END;
''' }]

[axes]
clients = [3]

[run]
duration_s = 4.0
warmup_s = 0.5
repetitions = 1
"""


def _file(folder: Path) -> Path:
    path = folder / "both.toml"
    path.write_text(_FILE.replace("\\\\", "\\"), encoding="utf-8")
    return path


def _run(folder: Path, *options: str) -> dict[str, Any]:
    done = pgdyno("run", _file(folder), "--against", "mariadb", *options, "--runs", folder / "runs", "--json")
    assert done.code in (0, 1), done.err
    return dict(json.loads(done.out))


def _left_over() -> list[str]:
    ours = (p for p in psutil.process_iter() if p.name() == "mariadbd" and p.ppid() == 1)
    return [line for line in (" ".join(p.cmdline()) for p in ours) if "pgdyno-cluster-" in line]


@pytest.mark.parametrize("protocol", ["simple", "prepared"])
def test_a_duet_of_both_products_drives_each_by_its_own_protocol(tmp_path: Path, protocol: str) -> None:
    found = _run(tmp_path, "--order", "duet", "--protocol", protocol)
    trials = found["trials"]
    assert {t["varied"]["target"] for t in trials} == {"postgresql", "mariadb"}
    for t in trials:
        assert t["state"] == "finished", t
        assert t["summary"]["committed"] > 100, t
        assert not t["summary"]["failed"], t
    assert not _left_over()


def test_trials_of_their_own_compare_both_and_say_that_promises_are_equal(tmp_path: Path) -> None:
    found = _run(tmp_path, "--order", "interleaved", "--duration", "1")
    assert len(found["trials"]) == 2
    run = next((tmp_path / "runs").iterdir())
    text = (run / "report.md").read_text(encoding="utf-8")
    assert tells(text, "answer-equal-promises")
    assert "MariaDB 1" in text
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    assert {p["server"].get("product", "") for p in manifest["places"].values()} == {"", "MariaDB"}
    assert not _left_over()


def test_a_weaker_promise_stands_in_the_first_lines(tmp_path: Path) -> None:
    path = tmp_path / "weak.toml"
    targets = '[targets.pg]\n[targets.maria]\nproduct = "mariadb"\nsettings = { innodb_flush_log_at_trx_commit = 2 }\n'
    text = _file(tmp_path).read_text(encoding="utf-8").replace("[dataset]", f"{targets}\n[dataset]")
    path.write_text(text, encoding="utf-8")
    done = pgdyno("run", path, "--duration", "1", "--order", "written", "--runs", tmp_path / "runs")
    assert done.code in (0, 1), done.err
    first = done.out.strip().splitlines()[0]
    assert first.startswith("The servers do not promise the same"), done.out


def test_a_variable_that_mariadb_does_not_know_is_an_error_with_its_words(tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    targets = '[targets.maria]\nproduct = "mariadb"\nsettings = { shared_buffers = "1GB" }\n'
    text = _file(tmp_path).read_text(encoding="utf-8").replace("[dataset]", f"{targets}\n[dataset]")
    path.write_text(text, encoding="utf-8")
    done = pgdyno("run", path, "--runs", tmp_path / "runs")
    assert done.code not in (0, 1)
    assert "shared" in done.err and "Traceback" not in done.err
    assert not _left_over()


def test_tpcc_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    done = pgdyno("run", "tpcc", "--shrink", "100", "--against", "mariadb", "--runs", tmp_path / "runs")
    assert done.code not in (0, 1)
    assert "tpcc" in done.err
    assert not (tmp_path / "runs").exists()
