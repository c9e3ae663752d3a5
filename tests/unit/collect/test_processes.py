"""What a server's processes have used, held against what this process knows of its own children."""

from __future__ import annotations

import os
import subprocess
import sys

from pgdyno.collect import processes

BURN = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n"


def test_children_count_while_they_live_and_after() -> None:
    before = processes.cpu_ns(os.getpid())
    child = subprocess.Popen([sys.executable, "-c", BURN + "print(flush=True); input()"], stdin=-1, stdout=-1)
    assert child.stdout is not None
    child.stdout.readline()
    alive = processes.cpu_ns(os.getpid())
    child.communicate(b"\n")
    ended = processes.cpu_ns(os.getpid())
    assert before is not None and alive is not None and ended is not None
    assert 0.25e9 < alive - before < 5e9
    assert ended >= alive - 20_000_000, "what has ended is not lost"


def test_what_cannot_be_read_is_none() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert processes.cpu_ns(ended.pid) is None
