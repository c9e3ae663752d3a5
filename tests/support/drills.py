"""Drills from the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pgdyno.cluster import network as networks

from tests.support.cli import pgdyno

needs_network = pytest.mark.skipif(not networks.is_possible(), reason="cutting links needs root, ip and setpriv")


def drilled(cluster: Path, tmp_path: Path, *args: Any, timeout: float = 160) -> Any:
    done = pgdyno(
        "drill", cluster, "--runs", tmp_path, "--json", "-q", "--before", 1, "--after", 0.3, *args, timeout=timeout
    )
    assert done.code in (0, 1), done.err
    return done.json | {"code": done.code}
