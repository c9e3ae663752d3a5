"""pg_test_fsync: how many writes a second one session can make durable, by each method that PostgreSQL has."""

from __future__ import annotations

import re
from pathlib import Path

from pgdyno.cluster.account import Account
from pgdyno.cluster.process import run_while_we_live
from pgdyno.errors import LocalError, msg
from pgdyno.store.probe import SyncMethod

_LINE = re.compile(r"^\s+(.+?)\s+(?:([\d.]+) ops/sec.*|(n/a\*?))$")
_GROUP = re.compile(r"^(Compare|Test|Non-sync)")


def run(program: Path, folder: Path, account: Account, seconds: int) -> list[SyncMethod]:
    """Run each sync method for `seconds` seconds, as the account, on a file in `folder`.

    Raise LocalError, with the program's message, if it fails.
    """
    argv: list[str | Path] = [program, "-s", str(seconds), "-f", folder / "fsync"]
    done = run_while_we_live(argv, account)
    if done.returncode != 0:
        reason = " ".join(done.stderr.split())
        raise LocalError(msg("error-pg-test-fsync-failed", reason=reason), msg("remedy-there-space-may-you-write"))
    return parse(done.stdout)


def parse(text: str) -> list[SyncMethod]:
    """Return the result lines of the program's output, with the headings above them."""
    found, group = [], ""
    for line in text.splitlines():
        if _GROUP.match(line):
            group = line.rstrip(":").strip()
        elif match := _LINE.match(line):
            found.append(SyncMethod(group, " ".join(match[1].split()), float(match[2]) if match[2] else None))
    return found
