"""The storage probe's parsers, and its command line."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pgdyno.cli.storage import bytes_of
from pgdyno.errors import LocalError, UsageError
from pgdyno.storage import fio, sync

from tests.support.cli import PGDYNO, environment, pgdyno
from tests.support.tells import telling, tells
from tests.support.waiting import wait_until

LATENCY = {"min": 1, "max": 42_900_000, "mean": 6_000_000.5, "stddev": 1.5, "N": 4,
           "percentile": {"50.000000": 5_603_000, "95.000000": 12_300_000, "99.000000": 17_700_000,
                          "99.900000": 24_800_000}}  # fmt: skip
STREAM = {"total_ios": 47_078, "iops": 47_078.25, "bw_bytes": 385_663_000, "lat_ns": LATENCY}
FSYNC = """\
1 second per test
O_DIRECT supported on this platform for open_datasync and open_sync.

Compare file sync methods using one 8kB write:
(in "wal_sync_method" preference order, except fdatasync is Linux's default)
        open_datasync                     46355.824 ops/sec      22 usecs/op
        fsync_writethrough                              n/a
        open_sync                                       n/a*

Compare open_sync with different write sizes:
(This is designed to compare the cost of writing 16kB in different write
open_sync sizes.)
         2 *  8kB open_sync writes        15674.805 ops/sec      64 usecs/op

Non-sync'ed 8kB writes:
        write                            385505.858 ops/sec       3 usecs/op
"""


def test_fio_is_read_with_warnings_before_it() -> None:
    text = "fio: warning, something\n" + json.dumps({"jobs": [{"read": STREAM, "write": STREAM}]})
    job = fio.parse(text, "n", "t")
    assert (job.read.operations, job.read.iops, job.read.bytes_per_s) == (47_078, 47_078.25, 385_663_000)
    assert (job.write.p50_ns, job.write.p999_ns, job.write.max_ns) == (5_603_000, 24_800_000, 42_900_000)


@given(
    st.one_of(
        st.text(),
        st.recursive(
            st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x), max_leaves=8
        ).map(lambda x: json.dumps({"jobs": [x]})),
    )
)
def test_anything_else_is_an_error_of_ours(text: str) -> None:
    with telling(LocalError, "error-fio-s-output-not-what"):
        fio.parse(text, "n", "t")


def test_pg_test_fsync_is_read() -> None:
    one = "Compare file sync methods using one 8kB write"
    found = [(s.group, s.method, s.operations_per_s) for s in sync.parse(FSYNC)]
    assert found == [
        (one, "open_datasync", 46355.824),
        (one, "fsync_writethrough", None),
        (one, "open_sync", None),
        ("Compare open_sync with different write sizes", "2 * 8kB open_sync writes", 15674.805),
        ("Non-sync'ed 8kB writes", "write", 385505.858),
    ]


@pytest.mark.parametrize(("text", "size"), [("64m", 64 << 20), ("10G", 10 << 30), ("1gb", 1 << 30), ("4096", 4096)])
def test_sizes(text: str, size: int) -> None:
    assert bytes_of(text) == size


@pytest.mark.parametrize("text", ["", "m", "1.5g", "-1", "0", "ten"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="not a size"):
        bytes_of(text)


@pytest.mark.slow
def test_a_probe_measures_and_leaves_nothing(tmp_path: Path) -> None:
    done = pgdyno("storage", tmp_path, "--seconds=1", "--size=64m", "--threads=2", "--json")
    assert done.code == 0, done.err
    facts: dict[str, Any] = done.json
    methods = [s["method"] for s in facts["syncs"]]
    assert "fdatasync" in methods and len(methods) == 18
    if shutil.which("fio"):
        assert [j["name"] for j in facts["jobs"]] == [name for name, *_ in fio.JOBS]
        for job in facts["jobs"]:
            share = job["read"]["operations"] / (job["read"]["operations"] + job["write"]["operations"])
            assert 0.6 < share < 0.7 and job["read"]["p50_ns"] <= job["read"]["p99_ns"] <= job["read"]["max_ns"]
    assert list(tmp_path.iterdir()) == []
    assert any("page cache" in c for c in facts["caveats"])


@pytest.mark.slow
def test_without_fio_it_says_how_to_get_it(tmp_path: Path) -> None:
    # Named as a user does who stands beside it.
    words = ["storage", tmp_path.name, "--seconds=1", "--size=64m"]
    done = pgdyno(*words, env=environment(PATH="/nonexistent"), cwd=tmp_path.parent)
    assert done.code == 0 and tells(done.out, "probe-no-fio") and "fdatasync" in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_interrupted_it_leaves_nothing(tmp_path: Path) -> None:
    words = [PGDYNO, "storage", tmp_path, "--seconds=20", "--size=64m"]
    probe = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    wait_until(lambda: list(tmp_path.glob("pgdyno-storage-*/*")), 20, process=probe)
    probe.send_signal(signal.SIGINT)
    _, err = probe.communicate(timeout=20)
    assert probe.returncode == 130 and b"interrupted" in err and b"Traceback" not in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("/no/such",), 5, "is not a folder"),
        (("/tmp", "--size=900t"), 5, "too little"),
        (("/tmp", "--size=1k"), 5, "too little"),
        (("/proc",), 5, ""),
    ],
)
def test_mistakes(args: tuple[str, ...], code: int, words: str) -> None:
    done = pgdyno("storage", *args)
    # Beside other tests it may say first that another pgdyno is at work.
    assert done.code == code and words in done.err and re.search("^pgdyno: ", done.err, re.MULTILINE)
