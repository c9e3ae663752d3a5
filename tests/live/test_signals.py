"""A signal ends what it was sent to, whatever else happens in that moment."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

from pgdyno import _core
from pgdyno.engine import Plan
from pgdyno.interrupt import Terminated, signals_raise

from tests.support.server import Server


class _Ending:
    """Ends the run at the first interval; while its transactions come to their end, SIGTERM arrives."""

    def __init__(self) -> None:
        self.timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM))

    def started(self, *_: Any) -> None: ...
    def event(self, _: Any) -> None: ...
    def interval(self, _: Any) -> None:
        if not self.timer.is_alive():
            self.timer.start()
            raise ValueError("enough")


def test_a_signal_is_not_lost_in_a_run_that_is_being_ended(server: Server) -> None:
    workload = _core.Workload()
    workload.add("slow.sql", "SELECT pg_sleep(1.5);")
    config = _core.ConnConfig(host=str(server.socket), port=server.port, user="postgres", dbname="postgres")
    observer = _Ending()
    try:
        with signals_raise():
            result = _core.run([config], workload, observer, Plan(clients=1, duration_s=20, interval_s=0.2))
    finally:
        observer.timer.join()
    assert isinstance(result.raised, Terminated)
