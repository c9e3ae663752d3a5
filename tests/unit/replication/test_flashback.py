"""A server that is about to end while it replays."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pgdyno import i18n
from pgdyno.cluster import administration
from pgdyno.errors import RefusedError, TargetError
from pgdyno.message import Name, Text, message
from pgdyno.replication import flashback

from tests.support.tells import telling


def test_a_target_behind_the_end_is_said_though_sessions_are_cut_before_the_server_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "server.log"
    log.write_text(
        "LOG:  last completed transaction was at log time 2026-11-25 10:00:00+00\n"
        "FATAL:  recovery ended before configured recovery target was reached\n"
    )
    ends = time.monotonic() + 0.2
    new: Any = SimpleNamespace(
        start=lambda: None,
        process_id=lambda: 7 if time.monotonic() < ends else None,
        layout=SimpleNamespace(log=log),
    )

    @contextmanager
    def cut(*_: object, **__: object) -> Any:
        raise TargetError("server closed the connection unexpectedly")
        yield

    monkeypatch.setattr(flashback, "_superuser", lambda _: None)
    monkeypatch.setattr(administration, "connect", cut)
    with telling(RefusedError, "error-wal-ends-before-last-transaction", value="2026-11-25"):
        flashback._start(new)


@pytest.mark.parametrize("stopped", [Name("recovery stopping after commit"), message("flashback-end-of-wal")])
def test_machines_get_texts(tmp_path: Path, stopped: Text) -> None:
    found = flashback.Flashback(tmp_path, "s", stopped, "", 1.0)
    assert json.loads(json.dumps(found.as_json()))["stopped"] == i18n.text(stopped)
