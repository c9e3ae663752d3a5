"""Promises that the servers of a run make of a commit, where two products are compared."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.message import Message, Name, Text, listed, message
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store.manifest import Place, Server

_OFF = ("off", "0", "false", "no")
#: Settings that decide whether commits are on disk, and whether pages are repaired.
_COMMITS = {
    "synchronous_commit", "fsync", "innodb_flush_log_at_trx_commit", "innodb_flush_method", "sync_binlog", "log_bin"
}  # fmt: skip
_PAGES = {"full_page_writes", "innodb_doublewrite"}


def _is_durable(s: Server) -> bool:
    """Return True if a commit is on disk when it is acknowledged."""
    if not s.product:
        return all((s.setting(name) or "on").lower() not in _OFF for name in ("fsync", "synchronous_commit"))
    flush = s.setting("innodb_flush_log_at_trx_commit") or "1"
    logs = (s.setting("log_bin") or "off").lower() in _OFF or s.setting("sync_binlog") == "1"
    return flush == "1" and logs and (s.setting("innodb_flush_method") or "").lower() != "nosync"


def _is_whole(s: Server) -> bool:
    """Return True if a page that a crash has torn is repaired."""
    name = "innodb_doublewrite" if s.product else "full_page_writes"
    return (s.setting(name) or "on").lower() not in _OFF


def _isolation(s: Server) -> str:
    """Return the isolation level of the sessions."""
    if s.product:
        level = s.setting("transaction_isolation") or s.setting("tx_isolation") or "repeatable-read"
    else:
        level = s.setting("default_transaction_isolation") or "read committed"
    return level.replace("-", " ").lower()


def sentences(run: RunAnalysis) -> list[Text]:
    """Return what the answer begins with where servers of two products are compared: whether they promise the same."""
    places = list({p.target: p for p in run.data.manifest.places.values()}.values())
    if len({bool(p.server.product) for p in places}) < 2:
        return []
    varied = {name.lower() for t in run.data.trials for name in t.plan.varied}
    durable, whole = (_split(places, [test(p.server) for p in places]) for test in (_is_durable, _is_whole))
    levels = {p.target: _isolation(p.server) for p in places}
    differ: list[Message] = []
    if all(durable) and not varied & _COMMITS:
        differ.append(message("promise-durable", yes=_listed(durable[0]), no=_listed(durable[1])))
    if all(whole) and not varied & _PAGES:
        differ.append(message("promise-whole", yes=_listed(whole[0]), no=_listed(whole[1])))
    if len(set(levels.values())) > 1:
        each = [message("promise-level", target=Name(name), level=Name(level)) for name, level in levels.items()]
        differ.append(message("promise-isolation", levels=listed(each, "list")))
    if differ:
        return [message("answer-unequal-promises", what=listed(differ, "semicolon"))]
    # Each server's settings are known as of its first trial.
    if varied & (_COMMITS | _PAGES):
        return []
    return [
        message(
            "answer-equal-promises",
            commits=message("promise-commits" if durable[0] else "promise-no-commits"),
            pages=message("promise-pages" if whole[0] else "promise-no-pages"),
            level=Name(next(iter(levels.values()))),
        )
    ]


def _split(places: Sequence[Place], holds: Sequence[bool]) -> tuple[list[str], list[str]]:
    pairs = list(zip(places, holds, strict=True))
    return [p.target for p, yes in pairs if yes], [p.target for p, yes in pairs if not yes]


def _listed(names: Sequence[str]) -> Text:
    return listed(map(Name, names), "list")
