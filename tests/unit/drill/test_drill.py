"""The ledger's audit, what synchronous_standby_names promises, and the verdicts of drills."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pgdyno import i18n
from pgdyno._core import Histogram
from pgdyno.cluster.account import Account
from pgdyno.drill import copies, drill, ledger, page, verdict, words
from pgdyno.drill.copies import Copy
from pgdyno.drill.drill import Drill
from pgdyno.drill.ledger import Audit, Entry, Outage
from pgdyno.drill.load import Load, Slice
from pgdyno.drill.modes import Mode
from pgdyno.drill.records import Options, Round, save
from pgdyno.drill.rounds import note_outages, speeds
from pgdyno.errors import RefusedError, TrialError, UsageError
from pgdyno.message import Argument, Message, Name, message
from pgdyno.replication import archives, quorum, record
from pgdyno.replication.record import Record
from pgdyno.replication.state import State, primary_of
from pgdyno.report import whitepaper
from pgdyno.units import Quantity

from tests.support import reports
from tests.support.tells import telling, tells

S = 1_000_000_000


def acknowledged(client: int, sequence: int, at_s: float = 0, warned: bool = False) -> Entry:
    return Entry(client, sequence, "acknowledged", round(at_s * S), warned)


def test_only_what_was_acknowledged_and_is_missing_is_lost() -> None:
    entries = [
        acknowledged(0, 1),
        acknowledged(0, 2),
        acknowledged(0, 3, warned=True),
        Entry(1, 1, "unknown", 0),
        Entry(1, 2, "unknown", 0),
        Entry(1, 3, "failed", 0),
        Entry(1, 4, "failed", 0),
    ]
    found = ledger.audit(entries, [(0, 1), (1, 2), (1, 4), (2, 9)], fault_ns=0, seen={(0, 2), (0, 1)})
    assert [e.key for e in found.lost] == [(0, 2), (0, 3)]
    assert [e.key for e in found.lost_in_silence] == [(0, 2)]
    assert (found.acknowledged, found.unknown, found.failed, found.warned) == (3, 2, 2, 1)
    assert found.unknown_there == 1
    assert [e.key for e in found.resurrected] == [(1, 4)]
    assert found.unrecorded == [(2, 9)]
    assert found.seen_and_missing == 1


def test_a_hole_is_told_from_a_lost_end() -> None:
    entries = [acknowledged(0, n, at_s=n) for n in range(1, 8)]
    # The fault is at 5.5; 6 and 7 were acknowledged by the new primary.
    end = ledger.audit(entries, [(0, n) for n in (1, 2, 3, 6, 7)], fault_ns=round(5.5 * S))
    assert [e.sequence for e in end.lost] == [4, 5] and not end.holes
    hole = ledger.audit(entries, [(0, n) for n in (1, 3, 4, 5, 6, 7)], fault_ns=round(5.5 * S))
    assert [e.sequence for e in hole.holes] == [2]


def test_a_row_that_is_there_twice_is_a_broken_key() -> None:
    """And what is lost is counted all the same."""
    found = ledger.audit([acknowledged(0, 1), acknowledged(0, 2)], [(0, 1), (0, 1)], fault_ns=0)
    assert found.twice == 1 and [e.key for e in found.lost] == [(0, 2)]


def test_rows_that_nobody_wrote_are_phantoms() -> None:
    entries = [acknowledged(0, 1), acknowledged(0, 2), acknowledged(1, 1)]
    there = [(0, 1), (0, 2), (1, 1), (0, 3), (2, 1), (0, 90_000_001), (7, 5)]
    found = ledger.audit(entries, there, fault_ns=0)
    # One that was killed could not write down its last one; one that had begun none, its first.
    assert found.phantoms == [(0, 90_000_001), (7, 5)] and found.unrecorded[:1] == [(0, 3)]
    v = verdict.judge_rounds([round_with(phantoms=found.phantoms, lost=[])])
    assert not v.is_sound and v.sentence.id == "drill-wrong-phantoms" and v.sentence.args["n"] == 2


@pytest.mark.parametrize(
    ("state", "whole"),
    [
        ((0, 5, (5,), 5), True), ((0, None, (), None), True), ((0, 4, (5,), 5), False), ((0, 5, (4,), 5), False),
        ((0, 5, (4, 5), 5), False), ((0, 5, (), 5), False), ((0, 5, (5,), None), False), ((0, None, (), 1), False),
        ((0, 5, (3, 5), 5), True), ((0, 5, (3,), 5), False),
    ],
)  # fmt: skip
def test_a_transaction_is_there_whole_or_not_at_all(state: Any, whole: bool) -> None:
    entries = [Entry(0, 3, "unknown", 3 * S), acknowledged(0, 5)]
    found = ledger.audit(entries, [(0, 5)], fault_ns=0, changed=[(0, 5)], states=[state])
    assert bool(found.torn) is not whole
    assert found.changed == [(0, 5)] and not found.lost
    v = verdict.judge_rounds([round_with(lost=[], torn=found.torn)])
    assert v.is_sound is whole and v.sentence.id == ("drill-nothing-lost" if whole else "drill-wrong-torn")


def test_what_vanished_from_the_middle_is_not_blamed_on_asynchrony() -> None:
    hole = acknowledged(0, 2)
    v = verdict.judge_rounds([round_with(lost=[hole], holes=[hole])])
    assert v.why == message("drill-why-holes")


@pytest.mark.parametrize(("losing", "rounds", "bound"), [(0, 5, 0.4507), (2, 5, 0.8107), (5, 5, 1.0)])
def test_the_bound_holds_for_what_was_seen(losing: int, rounds: int, bound: float) -> None:
    """One-sided 95%, Clopper and Pearson: of 2 in 5 the largest part under which so few are seen in 5%."""
    of = [round_with(lost=[acknowledged(0, 2)] if n < losing else []) for n in range(rounds)]
    assert verdict.judge_rounds(of).most_losing == pytest.approx(bound, abs=1e-4)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3), st.integers(1, 50), st.sampled_from(["acknowledged", "failed", "unknown"]), st.booleans()
        ),
        unique_by=lambda e: e[:2],
    ),
    st.sets(st.tuples(st.integers(0, 3), st.integers(1, 50))),
)
def test_every_row_and_every_record_is_accounted_for(
    drawn: list[tuple[int, int, ledger.Outcome, bool]], there: set[tuple[int, int]]
) -> None:
    entries = [Entry(c, s, o, s * S, w and o == "acknowledged") for c, s, o, w in drawn]
    found = ledger.audit(entries, list(there), fault_ns=25 * S)
    kept = found.acknowledged - len(found.lost)
    assert kept + len(found.resurrected) + found.unknown_there + len(found.unrecorded) == len(there)
    assert found.acknowledged + found.failed + found.unknown == len(entries)
    assert set(found.holes) <= set(found.lost)


def test_records_are_read_and_a_torn_line_is_no_record(tmp_path: Path) -> None:
    (tmp_path / "client-0.log").write_text("acknowledged 1 5\nacknowledged 2 6 warned\nunknown 3 7\nfailed 4 8\nackno")
    (tmp_path / "client-11.log").write_text("")
    found = ledger.read(tmp_path)
    assert [(e.client, e.sequence, e.outcome, e.at_ns, e.warned) for e in found] == [
        (0, 1, "acknowledged", 5, False),
        (0, 2, "acknowledged", 6, True),
        (0, 3, "unknown", 7, False),
        (0, 4, "failed", 8, False),
    ]


@pytest.mark.parametrize("line", ["acknowledged", "maybe 1 5", "acknowledged x 5", "acknowledged 1 5 really", ""])
def test_a_record_that_was_changed_is_named_by_its_line(tmp_path: Path, line: str) -> None:
    (tmp_path / "client-0.log").write_text(f"acknowledged 1 5\n{line}\n")
    with telling(TrialError, "error-no-line-ledger-s-record", where="client-0.log:2"):
        ledger.read(tmp_path)


def test_an_outage_is_the_longest_wait_behind_the_fault() -> None:
    entries = [acknowledged(0, n, t) for n, t in enumerate([0, 4, 4.5, 5.5, 7.5, 7.6], 1)]
    entries += [acknowledged(1, n, t) for n, t in enumerate([4, 5], 1)]
    # What is lost was no service.
    entries += [Entry(2, 1, "failed", 5 * S), acknowledged(0, 9, 6.5)]
    found = ledger.outages(entries, 3, 5 * S, 8 * S, lost={(0, 9)})
    # The four seconds before the fault are none; the second client does not come back, the third never was.
    assert found == [
        Outage(0, round(5.5 * S), round(7.5 * S)),
        Outage(1, 5 * S, None, 3 * S),
        Outage(2, None, None, 3 * S),
    ]
    assert [o.seconds for o in found] == [2.0, None, None]


def test_served_is_who_was_answered_since(tmp_path: Path) -> None:
    (tmp_path / "client-0.log").write_text("acknowledged 1 50\n" * 30 + "acknowledged 31 99\n")
    assert ledger.are_served(tmp_path, 1, 98) and not ledger.are_served(tmp_path, 1, 99)
    assert not ledger.are_served(tmp_path, 2, 98)
    (tmp_path / "client-1.log").write_text("unknown 1 200\n")
    assert not ledger.are_served(tmp_path, 2, 98)


STANDBYS = ["node2", "node3", "node4"]


@pytest.mark.parametrize(
    ("text", "wanted", "candidates", "must_be_seen"),
    [
        ("", 0, STANDBYS, 4),
        ("ANY 1 (*)", 1, STANDBYS, 3),
        ("any 2 (node2, node3, node4)", 2, STANDBYS, 2),
        ("ANY 3 (*)", 3, STANDBYS, 1),
        ('FIRST 1 (node2, "node3")', 1, ["node2", "node3"], 2),
        ("2 (node2, node4)", 2, ["node2", "node4"], 1),
        ("node3", 1, ["node3"], 1),
        ("node2, node3", 1, ["node2", "node3"], 2),
        ("*", 1, STANDBYS, 3),
        # The primary is no standby of its own; more than there are is waited for in vain, and nothing is answered.
        ("FIRST 1 (node1, node2)", 1, ["node2"], 1),
        ("FIRST 1 (node1)", 1, [], 0),
    ],
)
def test_what_synchronous_standby_names_promises(
    text: str, wanted: int, candidates: list[str], must_be_seen: int
) -> None:
    promise = quorum.read(text, ["node1", *STANDBYS], "node1")
    assert (promise.wanted, list(promise.candidates)) == (wanted, candidates)
    assert promise.must_be_seen() == must_be_seen


@given(st.integers(1, 6).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n))))
def test_so_many_must_be_seen_that_none_can_hide_a_commit(sizes: tuple[int, int]) -> None:
    n, wanted = sizes
    must = quorum.read(f"ANY {wanted} (*)", [f"node{i}" for i in range(n + 1)], "node0").must_be_seen()
    # Whoever has the commit, and whoever is seen, share one; with one less they need not.
    assert must + wanted > n and (must - 1) + wanted <= n


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ANY 1", "not what synchronous_standby_names takes"),
        ("ANY (*", "not what synchronous_standby_names takes"),
        ("FIRST 1 (node9)", "'node9' is no member"),
    ],
)
def test_what_it_cannot_promise_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        quorum.read(text, ["node1", *STANDBYS], "node1")


def round_with(fault: str = "kill-primary", sync: str = "ANY 1 (*)", commit: str = "on", **audit: object) -> Round:
    known = {"acknowledged": 100, "failed": 0, "unknown": 3, "warned": 0, **audit}
    found = Round(1, fault, sync, commit, standbys=2, waits_for=int(bool(sync)), tps=50.0)
    found.audit = Audit(**known)  # type: ignore[arg-type]
    return found


def test_a_verdict_says_what_was_lost_and_why() -> None:
    calm = verdict.judge_rounds([round_with()] * 20)
    assert calm.is_good and not calm.why
    assert i18n.text(calm.sentence) == (
        "nothing lost: 0 of 2,000 acknowledged commits in 20 rounds (at 95% confidence, at most 14% of such failures "
        "lose a commit)"
    )
    lost = [acknowledged(0, 9)]
    for found, word in (
        (round_with(commit="off", sync="", lost=lost), "commit-off"),
        (round_with(sync="", lost=lost), "asynchronous"),
        (round_with("stale-promotion", lost=lost), "stale"),
        (round_with("double-failure", lost=lost), "double"),
        (round_with(lost=lost), "promise"),
        (round_with("cancel-sync-wait", lost=[acknowledged(0, 9, warned=True)]), "cancelled"),
    ):
        calm_one = round_with(found.fault, found.synchronous_standby_names, found.synchronous_commit)
        v = verdict.judge_rounds([calm_one, found])
        assert not v.is_good and i18n.text(v.sentence).startswith("LOST 1 of 200 acknowledged commits")
        assert v.sentence.args["losing"] == 1 and v.why is not None and v.why.id == f"drill-why-{word}"


def test_a_round_that_does_not_count_is_no_round_without_loss() -> None:
    broken = round_with()
    broken.error = Name("the load did not begin")
    v = verdict.judge_rounds([broken, round_with()])
    assert not v.is_good and v.acknowledged == 200 and v.most_losing == pytest.approx(0.95)
    assert verdict.judge_rounds([broken]).sentence == message("drill-no-round", why=Name("the load did not begin"))


def test_what_a_round_has_lost_counts_however_it_went_on() -> None:
    broken = round_with(lost=[acknowledged(0, 9)])
    broken.error = Name("the cluster could not be mended")
    v = verdict.judge_rounds([round_with(), broken])
    assert v.lost == 1 and tells(i18n.text(v.sentence), "drill-lost", n=1, of=200, losing=1)


def test_who_is_not_served_again_waits_longer_than_all_others() -> None:
    r = round_with()
    r.outages = [Outage(n, 0, n * S) for n in range(1, 20)] + [Outage(20, 0, None)]
    v = verdict.judge_rounds([r])
    assert (v.outage_p50_s, v.outage_p95_s, v.outage_max_s, v.not_back) == (10.0, 19.0, None, 1)
    assert not v.is_good and not v.is_as_expected


def test_a_fault_that_must_lose_and_does_not_is_not_as_expected() -> None:
    assert not verdict.judge_rounds([round_with("stale-promotion")]).is_as_expected
    assert verdict.judge_rounds([round_with("stale-promotion", lost=[acknowledged(0, 9)])]).is_as_expected
    assert not verdict.judge_rounds([round_with(lost=[acknowledged(0, 9)])]).is_as_expected


def test_what_a_fault_must_lose_depends_on_who_waits_for_whom() -> None:
    lost = [acknowledged(0, 9)]
    # Commits that wait for two, or a third standby that has them, outlive what one of two does not.
    for standbys, waits_for in ((2, 2), (3, 1)):
        kept = replace(round_with("double-failure"), standbys=standbys, waits_for=waits_for)
        assert verdict.judge_rounds([kept]).is_as_expected
    # Behind a warning, and no others.
    warned = round_with("cancel-sync-wait", lost=[acknowledged(0, 9, warned=True)])
    assert verdict.judge_rounds([warned]).is_as_expected
    silent = verdict.judge_rounds([warned, round_with("cancel-sync-wait", lost=lost)])
    assert not silent.is_as_expected and "drill-note-silent" in reports.ids(words.notes(silent))
    asynchronous = round_with("cancel-sync-wait", sync="", lost=lost)
    assert verdict.judge_rounds([asynchronous]).is_as_expected
    # Of another tool's cluster a name says nothing.
    foreign = replace(round_with("double-failure", lost=lost), standbys=0, waits_for=0)
    assert not verdict.judge_rounds([foreign]).is_as_expected
    assert verdict.judge_rounds([replace(foreign, audit=round_with().audit)]).is_as_expected


def test_tables_that_a_failover_has_torn_are_a_defect() -> None:
    torn = replace(round_with(), inconsistent=[Name("TPC-C 3.3.2.1, W_YTD is the sum: 1 times, e.g. warehouse 1")])
    v = verdict.judge_rounds([torn])
    assert not v.is_good and not v.is_as_expected and any("3.3.2.1" in n for n in reports.words(words.notes(v)))


def test_a_standbys_wal_of_this_timeline_is_not_archived(tmp_path: Path) -> None:
    account = Account("me", os.getuid(), os.getgid(), other=False)
    wal, archive = tmp_path / "wal", tmp_path / "archive"
    for folder in (wal, archive):
        folder.mkdir()
    names = {n: f"{n:08X}0000000000000007" for n in (1, 2)}
    for name in (*names.values(), "00000002.history", "archive_status"):
        (wal / name).write_text("mine")
    # What it is receiving, or has set aside for later, is of the primary's timeline: the primary archives it.
    assert archives.save(wal, archive, account, 2, was_primary=False) == 1
    assert [p.name for p in archive.iterdir()] == [names[1]]
    # Of the same timeline a standby may have had less.
    (wal / names[1]).write_text("all of it")
    assert archives.save(wal, archive, account, 2, was_primary=False) == 0
    assert archives.save(wal, archive, account, 2, was_primary=True) == 1
    assert (archive / names[1]).read_text() == "all of it"


def test_only_unfinished_snapshots_are_removed(tmp_path: Path) -> None:
    home = archives.snapshots_of(tmp_path)
    for name in ("20260101-000000-node2", "20260102-000000-node2", "keep", "20260103-000000-node2 of mine"):
        (home / name / "data").mkdir(parents=True)
    (home / "20260102-000000-node2" / archives.SNAPSHOT).write_text("{}")
    (home / "notes.txt").write_text("mine")
    (home / "20260104-000000-node3").symlink_to(tmp_path)
    assert archives.remove_unfinished_snapshots(tmp_path) == 1
    assert not (home / "20260101-000000-node2").exists() and len(list(home.iterdir())) == 5


@pytest.mark.parametrize(
    "damage",
    [
        {"members": ["/srv/other", "node2"]},
        {"primary": "node9"},
        {"network": ["abc def", 1]},
        {"network": ["abcdef", 700]},
        {"ports": {"node1": "22; x", "node2": 5432}},
        {"format": 2},
    ],
)
def test_a_record_that_names_what_no_record_does_is_refused(tmp_path: Path, damage: dict[str, object]) -> None:
    ports = {"node1": 5433, "node2": 5434}
    Record(["node1", "node2"], ports, "", "node1", "a", "b", [], ("abcdef", 3)).save(tmp_path)
    path = tmp_path / record.FILE
    path.write_text(json.dumps(json.loads(path.read_text()) | damage))
    with pytest.raises(RefusedError, match=r"replication\.json cannot be read"):
        record.load(tmp_path)


def test_others_folders_and_links_are_not_worked_in(tmp_path: Path) -> None:
    Record(["node1"], {"node1": 5433}, "", "node1", "a", "b", []).save(tmp_path)
    (tmp_path / record.FILE).chmod(0o666)
    with telling(RefusedError, "why-others-may-write"):
        record.load(tmp_path)
    (tmp_path / record.FILE).chmod(0o600)
    (link := tmp_path.parent / "link").symlink_to(tmp_path)
    with telling(RefusedError, "error-not-folder-our-own-nobody"):
        record.load(link)
    tmp_path.chmod(0o777)
    with telling(RefusedError, "error-not-folder-our-own-nobody"):
        record.load(tmp_path)


def test_one_pgdyno_at_a_time(tmp_path: Path) -> None:
    Record(["node1"], {"node1": 5433}, "", "node1", "a", "b", []).save(tmp_path)
    assert not record.is_locked(tmp_path)
    with record.locked(tmp_path):
        assert record.is_locked(tmp_path)
        with pytest.raises(RefusedError, match="another pgdyno is at work"), record.locked(tmp_path):
            pass


@pytest.mark.parametrize(
    "trouble",
    [
        {"resurrected": [Entry(0, 1, "failed", 0)]},
        {"holes": [acknowledged(0, 1)], "lost": []},
        {"phantoms": [(9, 9)]},
        {"twice": 1},
        {"changed": [(0, 1)]},
        {"torn": ["client 0"]},
    ],
)
def test_what_is_odd_is_not_good(trouble: dict[str, object]) -> None:
    assert not verdict.judge_rounds([round_with(**trouble)]).is_good


def test_of_two_primaries_the_later_timeline_counts() -> None:
    old = State("node1", "primary", "a", 1, timeline=1, received=900)
    new = State("node2", "primary", "b", 1, timeline=2, received=500)
    assert primary_of([old, new]) is new
    assert new.lsn == "0/1F4"


def test_the_record_survives_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    made = Record(
        ["node1", "node2"], {"node1": 1, "node2": 2}, "ANY 1 (*)", "node1", "a", "b", [("x", "1", "", 0)], ("abcdef", 3)
    )
    made.unfinished = ("failover", "node2")
    made.save(tmp_path)
    assert record.load(tmp_path) == made
    assert (tmp_path / record.FILE).stat().st_mode & 0o077 == 0
    (tmp_path / record.FILE).write_text("{")
    with pytest.raises(RefusedError, match=r"replication\.json cannot be read"):
        record.load(tmp_path)
    with telling(RefusedError, "error-holds-no-cluster-standbys-no"):
        record.load(tmp_path / "elsewhere")


def test_what_two_primaries_have_apart_is_counted() -> None:
    entries = [acknowledged(0, n) for n in range(1, 11)] + [Entry(1, 1, "unknown", S), Entry(1, 2, "failed", S)]
    both = {(0, n) for n in range(1, 6)}
    old = Copy("node1", True, frozenset(both | {(0, 6), (0, 7), (1, 1)}))
    new = Copy("node2", True, frozenset(both | {(0, 8)}))
    follows = Copy("node3", False, frozenset(both))
    apart = copies.divided(entries, [old, new, follows])
    # What neither has is lost; what is unknown was not promised.
    assert {m: [e.sequence for e in of] for m, of in apart.items()} == {"node1": [6, 7], "node2": [8]}
    assert copies.divided(entries, [old, follows]) == {}
    r = replace(round_with(), divided={"node1": 2, "node2": 1}, other_primaries=["node1"], split_brain=True)
    v = verdict.judge_rounds([r])
    assert i18n.text(v.sentence).startswith(
        "SPLIT BRAIN: 3 of 100 acknowledged commits are on one of two primaries only, in 1"
    )
    assert not v.is_sound and "drill-note-split-brain" in reports.ids(words.notes(v))
    # Of a round that never became whole it is all there is to tell.
    r.error = Name("not whole")
    assert verdict.judge_rounds([r]).sentence.id == "drill-split-brain"


def test_two_primaries_that_took_no_writes_could_have() -> None:
    v = verdict.judge_rounds([replace(round_with(), other_primaries=["node1"])])
    assert not v.is_sound and "drill-note-two-primaries" in reports.ids(words.notes(v))


def test_what_a_fault_did_to_the_speed_is_told() -> None:
    load = SimpleNamespace(series=[], started_ns=100 * S)
    for n in range(100):
        rate = 300 if n < 20 else 0 if n < 35 else 30
        latency = Histogram()
        latency.record(1_000_000 if n < 35 else 20_000_000)
        load.series.append(Slice(n / 10, rate, latency))
    load.between = partial(Load.between, load)
    found = Round(1, "slow-standby", "*", "on", fault_ns=102 * S, tps=3000.0, p99_s=0.001, served_ns=104 * S)
    speeds(found, load)  # type: ignore[arg-type]
    assert found.first_commit_s == pytest.approx(1.5) and found.recovered_s is None
    assert found.watched_s == pytest.approx(8.0) and found.after_tps == pytest.approx(300.0)
    assert found.during_tps == pytest.approx(30 * 5 / 2)
    found.audit = Audit(100, 0, 0, 0)
    v = verdict.judge_rounds([found])
    said = " ".join(reports.words(words.timing(v, Options())))
    assert "3,000 before the fault, 75 on average until all were served again, 300 afterwards" in said, said
    assert tells(said, "drill-not-recovered", rounds="1 round", seconds="8.0"), said


def test_a_recovery_begins_with_a_commit() -> None:
    """The second that is as good as before may not begin within the outage."""
    load = SimpleNamespace(series=[], started_ns=100 * S)
    for n in range(60):
        latency = Histogram()
        latency.record(1_000_000)
        load.series.append(Slice(n / 10, 0 if 20 <= n < 27 else 300, latency))
    load.between = partial(Load.between, load)
    found = Round(1, "kill-primary", "*", "on", fault_ns=102 * S, tps=3000.0, p99_s=0.001, served_ns=103 * S)
    speeds(found, load)  # type: ignore[arg-type]
    assert found.first_commit_s == pytest.approx(0.7) and found.recovered_s == pytest.approx(0.7)


def test_a_fault_that_acts_late_is_recovered_from_behind_its_outage() -> None:
    """Full speed until the fault acts is no recovery."""
    load = SimpleNamespace(series=[], started_ns=100 * S)
    for n in range(60):
        latency = Histogram()
        latency.record(1_000_000)
        load.series.append(Slice(n / 10, 0 if 32 <= n < 38 else 300, latency))
    load.between = partial(Load.between, load)
    found = Round(1, "command", "*", "on", fault_ns=102 * S, tps=3000.0, p99_s=0.001, served_ns=103_800_000_000)
    speeds(found, load)  # type: ignore[arg-type]
    assert found.first_commit_s == pytest.approx(0.0) and found.recovered_s == pytest.approx(1.8)


def test_the_first_commit_is_as_exact_as_the_ledger() -> None:
    """Tenths of a second would put it before the promotion."""
    found = replace(round_with(), fault_ns=100 * S, first_commit_s=0.7, recovered_s=0.7, tps=1.0, after_tps=1.0)
    ends = [Outage(n, 99 * S, 100 * S + 780_000_000 + n) for n in range(3)] + [Outage(3, 99 * S, None, 5 * S)]
    note_outages(found, SimpleNamespace(series=[], started_ns=98 * S), [], ends)  # type: ignore[arg-type]
    assert found.first_commit_s == found.recovered_s == pytest.approx(0.78)
    found.promoted_ns, found.promote_s = 100 * S + 800_000_000, 0.1
    said = " ".join(reports.words(words.timing(verdict.judge_rounds([found]), Options())))
    assert tells(said, "drill-new-primary", seconds="0.78", answer="3", connect="1"), said


def test_commits_until_all_were_served_come_from_the_ledger() -> None:
    found = replace(round_with(), fault_ns=100 * S, tps=1.0, after_tps=1.0)
    load = SimpleNamespace(series=[], started_ns=98 * S)
    at = (99.9, 100.05, 100.79, 100.8, 100.81)
    entries = [Entry(0, n, "acknowledged", round(s * S)) for n, s in enumerate(at)]
    entries.append(Entry(0, 9, "unknown", round(100.5 * S)))
    note_outages(found, load, entries, [Outage(0, 100 * S, 100 * S + 800_000_000)])  # type: ignore[arg-type]
    assert found.served_ns == 100 * S + 800_000_000
    assert found.during_tps == pytest.approx(3 / 0.8)


def test_the_answer_names_what_a_commit_waited_for() -> None:
    for names, commit, expected in (
        ("ANY 1 (node2, node3)", "on", "synchronous_commit = on, waits for ANY 1 (node2, node3)"),
        ("", "on", "synchronous_commit = on, asynchronous standbys"),
        ("ANY 1 (node2, node3)", "local", "synchronous_commit = local, asynchronous standbys"),
    ):
        v = verdict.judge_rounds([round_with(sync=names, commit=commit)])
        assert i18n.text(words.waited_for(v)) == expected


def test_who_was_never_served_waited_at_least_so_long() -> None:
    r = round_with()
    r.outages = [Outage(0, 0, None, 7 * S)]
    assert any(tells(n, "drill-note-not-back") for n in reports.words(words.notes(verdict.judge_rounds([r]))))


def test_a_drill_is_read_as_it_was_written(tmp_path: Path) -> None:
    mode = Mode("maximum availability", "ANY 1 (*)", "on", True)
    r = round_with(lost=[acknowledged(0, n) for n in range(1, 1500)], phantoms=[(7, 1)])
    r.outages, r.series = [Outage(0, 1, 2)], [(0.1, 5.0)]
    r.events = [(3, Name("x")), (4, message("drill-event-promoted", member=Name("a"), time=Quantity(1e6, "ns")))]
    r.rejoined, r.error = {"node1": message("rejoined-rewound")}, message("drill-load-over")
    r.inconsistent = [Name("of another version"), message("drill-note-differing", members=Name("b"))]
    made = Drill(tmp_path, "c", "18.1", Options(), ["node1", "node2"], plan=[(mode, "kill-primary")], planned_rounds=2)
    made.rounds.append((mode, "kill-primary", [r]))
    folder = tmp_path / "01-kill-primary" / "round-01"
    folder.mkdir(parents=True)
    made.save()
    save(folder, r)
    found = drill.read(tmp_path)
    assert found.rounds == made.rounds and found.verdicts == made.verdicts
    assert found.stopped == message("drill-was-killed", played=1, planned=2)
    # Rounds of versions before texts were data.
    facts = json.loads((folder / "round.json").read_text())
    del facts["messages"]
    (folder / "round.json").write_text(json.dumps(facts))
    old = drill.read(tmp_path).rounds[0][2][0]
    assert old.error == Name(i18n.text(r.error)) and [at for at, _ in old.events] == [3, 4]
    for damage in ("{", '{"cluster": 1}', "[]", "null"):
        (tmp_path / "drill.json").write_text(damage)
        with pytest.raises(UsageError, match="cannot be read"):
            drill.read(tmp_path)


def test_a_drill_in_chinese_has_no_english_sentence(tmp_path: Path) -> None:
    """Each event that may happen in a round, and each text of a record."""
    ids = [id for id in i18n.catalogue("en") if id.startswith("drill-event-")]
    r = round_with(lost=[acknowledged(0, 1)])
    r.events = [(n, Message(id, _example(id))) for n, id in enumerate(ids)]
    r.inconsistent = [Message(id, _example(id)) for id in ("drill-sums-differ", "drill-condition-broken")]
    r.rejoined = {"node2": message("rejoined-rebuilt")}
    failed = replace(round_with(), error=message("drill-load-ended", reason=message("drill-load-over")))
    made = Drill(
        tmp_path,
        "c",
        "18.1",
        Options(),
        ["node1", "node2"],
        damaged={"node2": Name("a heap page"), "node1": message("why-no-amcheck")},
    )
    made.rounds.append((Mode("", "", ""), "kill-primary", [r, failed]))
    made.stopped = message("drill-was-killed", played=1, planned=2)
    assert len(ids) > 20 and reports.english(page.written(made, "zh")) == []
    paper = whitepaper.render([page.source(made, "zh")], None, "zh")
    assert reports.english(paper) == [] and "故障切换" in paper


def _example(id: str) -> dict[str, Argument]:
    """Arguments of a message, any that will do."""
    return {name: Name("x") for name in i18n.arguments_of(i18n.catalogue("en")[id])}
