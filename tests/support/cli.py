"""Runs pgdyno as a user does."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.tells import tells

PGDYNO = Path(sys.executable).parent / "pgdyno"
#: The shortest run that has every part.
SHORT = ("--duration", "0.4", "--warmup", "0.1", "--repetitions", "1", "--clients", "2", "--scale", "1")


@dataclass
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def environment(**more: str) -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
    return {**env, "COLUMNS": "80", **more}


def pgdyno(*args: Any, env: dict[str, str] | None = None, timeout: float = 120, **more: Any) -> Result:
    done = subprocess.run(
        [PGDYNO, *map(str, args)], capture_output=True, text=True, env=env or environment(), timeout=timeout,
        check=False, **more,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    # A message that was put into a string as it is, and not written in a language.
    assert not re.search(r"(Message\(id|Name\(text|Listed\(items)=", done.stdout + done.stderr), (
        done.stdout + done.stderr
    )
    # A cause of the diagnosis that raised: shown to the user, and a failure here whatever the test looks at.
    assert not tells(done.stdout, "not-judged-defect") and '"defect": "' not in done.stdout, done.stdout
    return Result(done.returncode, done.stdout, done.stderr)
