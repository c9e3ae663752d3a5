"""What a server's processes have used, held against what this process knows of its own children."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

from pgdyno.collect import processes
from pgdyno.collect.sources import processes as processes_source
from pgdyno.samples import OTHER_SESSION

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


def _counts(source: processes_source.Processes) -> dict[str, float]:
    return {str(row["kind"]): float(row["processes"]) for row in source.rows(1.0)}


def test_sessions_of_others_are_told_apart() -> None:
    """This process stands for the server, and its children for backends."""
    children = [subprocess.Popen([sys.executable, "-c", BURN + "input()"], stdin=-1) for _ in range(2)]
    try:
        alone = processes_source.Processes(os.getpid())
        apart = processes_source.Processes(os.getpid(), others=lambda: {children[0].pid})
        together, told = _counts(alone), _counts(apart)
        assert OTHER_SESSION not in together and told[OTHER_SESSION] == 1
        # The rest are of the kind that their titles tell; tests before this one may have left children of their own.
        assert sum(told.values()) == sum(together.values()) >= 3
        assert _counts(processes_source.Processes(os.getpid(), others=set))[OTHER_SESSION] == 0
    finally:
        for child in children:
            child.communicate(b"\n")


def test_threads_that_wait_for_a_cpu_are_seen() -> None:
    """The client is one process of several threads; the kernel counts the waiting of each of them."""
    held = threading.Event()
    threads = [threading.Thread(target=held.wait) for _ in range(4)]
    for t in threads:
        t.start()
    whole = processes_source._used(os.getpid())[0]["delay_ns"]
    first = processes_source._delay_ns(Path(f"/proc/{os.getpid()}/task/{os.getpid()}"))
    held.set()
    for t in threads:
        t.join()
    assert whole > first > 0
    assert processes_source._delay_ns(Path("/proc/self/task/0")) == 0.0, "one that has ended"
