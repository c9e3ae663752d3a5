"""Nothing runs on, and nothing stays for good, after whatever ended pgdyno."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.support.cli import PGDYNO, environment, pgdyno


def working_on(folder: Path) -> list[str]:
    """Programs that have the folder on their command line, or files in it open."""
    found = []
    for process in psutil.process_iter():
        try:
            if any(str(folder) in word for word in process.cmdline()):
                found.append(process.name())
        except psutil.Error:
            continue
    return found


def wait_for(true: Callable[[], object], process: subprocess.Popen[bytes] | None = None) -> None:
    deadline = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline and (process is None or process.poll() is None)
        time.sleep(0.01)


def test_fio_dies_with_pgdyno_and_the_next_call_sweeps(tmp_path: Path) -> None:
    words = [PGDYNO, "storage", tmp_path, "--seconds=20", "--size=64m"]
    probe = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment())
    wait_for(lambda: [n for n in working_on(tmp_path) if n in ("fio", "pg_test_fsync")], probe)
    probe.kill()
    probe.wait()
    wait_for(lambda: not working_on(tmp_path))
    assert list(tmp_path.glob("pgdyno-storage-*"))
    assert pgdyno("storage", tmp_path, "--seconds=1", "--size=64m").code == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL])
def test_a_plan_that_is_cut_off_leaves_no_probe(tmp_path: Path, number: signal.Signals) -> None:
    words = [PGDYNO, "load", "tpcb", "--scale", "1000", "--plan"]
    process = subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment(TMPDIR=str(tmp_path))
    )
    wait_for(lambda: list(tmp_path.glob("pgsql_tmp_pgdyno_probe_*/probe*")), process)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert b"Traceback" not in err
    if number == signal.SIGKILL:
        assert pgdyno("load", "tpcb", "--plan", env=environment(TMPDIR=str(tmp_path))).code == 0
    elif process.returncode != 0:
        # Else it had just ended.
        assert process.returncode == (130 if number == signal.SIGINT else 143)
    assert list(tmp_path.iterdir()) == []
