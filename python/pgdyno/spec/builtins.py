"""The scripts that pgbench has built in: the same commands, so that figures compare."""

from __future__ import annotations

from typing import NamedTuple

_KEYS = """\
\\set aid random(1, 100000 * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
"""
_ACCOUNT = """\
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
"""
_OTHERS = """\
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
"""
_HISTORY = """\
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
"""


class Builtin(NamedTuple):
    """A script: the name that selects it, and the one that reports show."""

    name: str
    description: str
    text: str


ALL = (
    Builtin("tpcb-like", "<builtin: TPC-B (sort of)>", f"{_KEYS}BEGIN;\n{_ACCOUNT}{_OTHERS}{_HISTORY}END;\n"),
    Builtin("simple-update", "<builtin: simple update>", f"{_KEYS}BEGIN;\n{_ACCOUNT}{_HISTORY}END;\n"),
    Builtin(
        "select-only",
        "<builtin: select only>",
        "\\set aid random(1, 100000 * :scale)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n",
    ),
)


def named(name: str) -> Builtin:
    """Return the built-in script with exactly this name."""
    return next(b for b in ALL if b.name == name)
