"""Findings: their parts, dips, and that each cause is complete."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pgdyno import i18n, samples
from pgdyno.analysis.compare import Comparison, Verdict
from pgdyno.cli import as_json
from pgdyno.collect.sources.sessions import without_literals
from pgdyno.diagnosis import difference, dips, explain, thresholds
from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.causes import every_cause, missing_index, throttled_storage
from pgdyno.diagnosis.causes.data_io import from_device
from pgdyno.diagnosis.finding import CLIENTS_TIME, THROUGHPUT, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.observed import Observed, loss
from pgdyno.diagnosis.phrases import nested, shortened
from pgdyno.diagnosis.recorded import Recorded, ratio
from pgdyno.figures import BY_NAME
from pgdyno.judge.compared import Pair, Row
from pgdyno.judge.groups import groups_of
from pgdyno.message import Name, message
from pgdyno.model import Caveat, IntervalRow
from pgdyno.plot.model import Areas, Line, Span
from pgdyno.report import client_time, findings, html, markdown, names, terminal, timeline, view, write
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store import reading, rundir
from pgdyno.units import Share
from rich.console import Console

from tests.support import causes, reports, synthetic
from tests.support.tells import tells

ROOT = Path(__file__).parents[3]


def test_every_cause_has_its_formula_and_its_injection() -> None:
    named = [c.name for c in every_cause()]
    assert len(named) == len(set(named)) >= 18
    text = (ROOT / "docs" / "math.md").read_text()
    assert [n for n in named if f"`{n}`" not in text] == []
    injected = {i.cause for i in (*causes.EVERY, *causes.OBSERVED)}
    assert set(named) <= injected
    assert injected - set(named) == {""}
    assert len(injected) - 1 >= 12


def test_a_part_is_of_all_time_and_its_interval_holds_the_truth() -> None:
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(300):
        whole = rng.uniform(5, 8, 40)
        found = ratio(list(whole * rng.normal(0.3, 0.05, 40)), list(whole))
        assert found is not None
        held += found.low <= 0.3 <= found.high
    assert held / 300 > 0.92
    assert ratio([], []) is None and ratio([0.0], [0.0]) is None
    few = ratio([1.0, 2.0], [4.0, 4.0])
    assert few == Share(0.375, 0.0, 1.0)


def _row(n: int, committed: int) -> IntervalRow:
    zeros = dict.fromkeys(
        ("scheduled", "failed", "skipped", "unknown", "unfinished", "retried", "statements", "lost", "reconnects",
         "disconnected", "client_cpu_ns", "p50_ns", "p95_ns", "p99_ns", "p999_ns", "max_ns", "lag_p99_ns"), 0
    )  # fmt: skip
    return IntervalRow(
        n, "measure", n * 10**8, (n + 1) * 10**8, committed=committed, mean_ns=0.0, failed_by_sqlstate="", **zeros
    )


class _Recorded:
    """A trial that only has intervals."""

    def __init__(self, committed: list[int]) -> None:
        self.intervals = [_row(n, c) for n, c in enumerate(committed)]
        self.rate_changes = False


@pytest.mark.parametrize("slow", [0, 40])
def test_dips_are_found_and_noise_is_none(slow: int) -> None:
    rng = np.random.default_rng(5)
    tps = rng.normal(100, 5, 200).astype(int)
    assert dips.dips_of(_Recorded(tps.tolist())) == []  # type: ignore[arg-type]
    tps[80:95] = slow
    (dip,) = dips.dips_of(_Recorded(tps.tolist()))  # type: ignore[arg-type]
    assert dip.seconds == pytest.approx(1.5, abs=0.11) and dip.loss == pytest.approx(1 - slow / 100, abs=0.05)
    assert dips.dips_of(_Recorded([1, 2, 3])) == []  # type: ignore[arg-type]


@pytest.mark.parametrize("length", [40, 70])
def test_a_stall_of_minutes_is_a_dip(length: int) -> None:
    """Longer than half of the intervals that a median is taken of: the issue's own story fell for as long."""
    tps = np.random.default_rng(5).normal(100, 5, 200).astype(int)
    tps[60 : 60 + length] = 40
    recorded: Any = _Recorded(tps.tolist())
    (dip,) = dips.dips_of(recorded)
    assert dip.seconds == pytest.approx(length / 10, abs=0.11) and dip.loss == pytest.approx(0.6, abs=0.05)
    # What was asked for less of is no dip.
    recorded.rate_changes = True
    assert dips.dips_of(recorded) == []


def _series(rng: np.random.Generator, n: int, alike: float, spread: float) -> Any:
    """First order autoregressive, about 100."""
    x = rng.normal(0, 1, n)
    for i in range(1, n):
        x[i] = alike * x[i - 1] + (1 - alike * alike) ** 0.5 * x[i]
    return 100 * (1 + spread * x)


def test_a_loss_is_none_where_throughput_wanders_or_falls_anyway() -> None:
    rng = np.random.default_rng(8)
    false = 0
    for _ in range(300):
        start = int(rng.integers(0, 80))
        found = loss([[(x, start <= i < start + 40) for i, x in enumerate(_series(rng, 120, 0.7, 0.2))]])
        assert found is not None
        false += found.low > 0 and found.mean > 0.03
    assert false / 300 < 0.1
    for _ in range(50):
        falling = _series(rng, 120, 0.3, 0.05) * np.linspace(1.0, 0.7, 120)
        found = loss([[(x, i >= 80) for i, x in enumerate(falling)]])
        assert found is not None and not (found.low > 0 and found.mean > 0.03)


def test_a_loss_is_found_with_its_size() -> None:
    rng = np.random.default_rng(9)
    held = 0
    for _ in range(200):
        trials = [
            [(x * (0.7 if i % 10 < 3 else 1.0) * level, i % 10 < 3) for i, x in enumerate(_series(rng, 40, 0.3, 0.05))]
            # Trials differ in their levels; what is lost is lost within each.
            for level in (1.0, 1.3)
        ]
        found = loss(trials)
        assert found is not None and found.low > 0 and found.mean == pytest.approx(0.09, abs=0.025)
        held += found.low <= 0.09 <= found.high
    assert held / 200 > 0.9
    assert loss([[(1.0, True)] * 10]) is None and loss([[(1.0, False)] * 10, [(1.0, True)] * 10]) is None


def test_next_to_nothing_is_a_dip_however_noisy_it_is_around() -> None:
    rng = np.random.default_rng(6)
    tps = rng.choice([40, 70, 100, 130, 160], 200)
    assert dips.dips_of(_Recorded(tps.tolist())) == []  # type: ignore[arg-type]
    tps[80:88] = 1
    (dip,) = dips.dips_of(_Recorded(tps.tolist()))  # type: ignore[arg-type]
    assert dip.seconds == pytest.approx(0.8) and dip.loss > 0.9
    # Of few transactions there are times without any.
    assert dips.dips_of(_Recorded(rng.poisson(0.7, 400).tolist())) == []  # type: ignore[arg-type]


def test_a_limit_that_is_kept_by_fractions_of_a_second_is_a_plateau() -> None:
    """150 writes a second, in slices that samples of 0.4 s meet by turns: as a cgroup's throttle was recorded."""
    recorded = np.array([126, 144, 183, 123, 162, 166, 117, 148, 161, 139, 150, 183, 120, 150, 184, 122, 143, 185, 114,
                         150, 178, 121, 154], dtype=np.float64)  # fmt: skip
    assert throttled_storage._spread(recorded, 0.4) < 0.02 < throttled_storage._spread(recorded, 1.0)
    rng = np.random.default_rng(7)
    few, many = (rng.normal(150, 40, n) for n in (15, 60))
    assert (
        min(throttled_storage._spread(few, 0.4), throttled_storage._spread(many, 0.4))
        > thresholds.ThrottledStorage.FLAT
    )


def test_a_finding_is_written_and_read() -> None:
    f = Finding(
        "wal-flush",
        Kind.LIMIT,
        message("sync-standby", share=Share(0.3, 0.2, 0.4)), Share(0.3, 0.2, 0.4), CLIENTS_TIME, Confidence.HIGH,
        message("wal-flush-remedy"),
        [Fact("sync", 2e6, "ns")], "w", 1.0, 8, {"synchronous_commit": "on"}, [1, 2],
    )  # fmt: skip
    assert json.loads(json.dumps(f.as_json()))["sentence"] == f.sentence
    told = findings.FindingText(f)
    assert i18n.text(told.cost) == "30% (20 to 40%) of the clients' time; confidence high"
    assert told.facts is not None and i18n.text(told.facts) == "sync of WAL 2.00 ms"
    assert i18n.text(names.configuration(f)) == "w, synchronous_commit = on, 8 clients"


class _Measured:
    """Parts of the clients' time, and what a transaction uses."""

    def __init__(self, latency_ms: float, parts: dict[str, float], wal: float) -> None:
        self.latency_ns = latency_ms * 1e6
        self.parts = parts
        self.wal = wal
        self.waits = [n for n in parts if ":" in n]

    def waiting(self, name: str) -> Share:
        mean = self.parts.get(name, 0.0)
        return Share(mean, max(0.0, mean - 0.01), mean + 0.01)

    @property
    def running(self) -> Share:
        return self.waiting("running")

    @property
    def outside(self) -> Share:
        return self.waiting("outside")

    def per_transaction(self, column: str) -> float | None:
        return {"wal_bytes_per_s": self.wal, "wal_full_pages_per_s": 0.05}.get(column)

    @property
    def tps(self) -> float:
        return 100.0

    is_duet = False

    @property
    def busiest_device(self) -> str:
        return "sda"

    def device(self, column: str) -> float:
        return {"writes_per_s": 4 * self.wal}.get(column, 0.0)


def test_a_difference_is_explained_by_where_the_time_went() -> None:
    a: Any = _Measured(1.0, {"running": 0.3, "outside": 0.2, "IO:WalSync": 0.5}, 1000.0)
    b: Any = _Measured(0.5, {"running": 0.6, "outside": 0.36, "IO:WalSync": 0.04}, 700.0)
    (first, *rest) = difference.moved(a, b)
    assert first.state == "IO:WalSync" and first.a_ns == 5e5 and first.b_ns == 2e4 and not rest
    why = findings.why_they_differ(a, b)
    assert why is not None and i18n.text(why) == (
        "Why: per transaction, 0.480 ms less in IO WalSync (0.500 ms to 0.0200 ms) (all of it: 1.00 ms to 0.500 ms); "
        "share of full-page images in WAL 41% to 58.5%, device requests 40 to 28."
    )
    assert findings.why_they_differ(a, a) is None


_STATES = ("active", "idle", "idle in transaction", "fastpath function call")
_WAITS = (("", ""), ("Client", "ClientRead"), ("IO", "WalSync"), ("Lock", "transactionid"), ("LWLock", "WALWrite"))


@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from(_STATES), st.sampled_from(_WAITS), st.floats(0, 8)), max_size=6),
        min_size=2, max_size=8,
    ),
    st.sampled_from(["random", "duet"]),
    st.one_of(st.none(), st.floats(0, 9)),
)  # fmt: skip
@settings(max_examples=60)
def test_parts_of_the_clients_time_come_to_at_most_all_of_it(
    tmp_path_factory: pytest.TempPathFactory, looks: list[Any], order: str, cpu: float | None
) -> None:
    """Whatever was sampled, of a closed loop as of a duet, whose clients are idle in the other side's turn."""

    def rows(i: int) -> list[dict[str, Any]]:
        return [
            {"ours": 1.0, "kind": "client backend", "state": state, "wait_type": kind, "wait": wait, "processes": n,
             "looks": 10.0}
            for state, (kind, wait), n in looks[i % len(looks)]
        ]  # fmt: skip

    sampled: dict[str, Any] = {"waits": rows}
    if cpu is not None:
        sampled["processes"] = lambda _: [{"kind": "client backend", "cpu": cpu, "waiting_for_cpu": cpu / 2}]
    run = synthetic.make_run(
        tmp_path_factory.mktemp("r"), synthetic.plans([4], 1), lambda *_: 1000.0, intervals=8, sampled=sampled,
        manifest={"run": {"repetitions": 1, "interval_s": 1.0, "order": order}},
    )  # fmt: skip
    data = reading.read(run)
    e = Observed(data, data.trials)
    parts = [e.running, e.outside, *(e.waiting(w) for w in e.waits)]
    assert sum(p.mean for p in parts if p is not None) <= 1 + 1e-6, parts
    assert all(0 <= p.mean <= 1 + 1e-9 for p in parts if p is not None)
    # The picture shows what the sentences say. What is idle on purpose is no part of the sentences' whole.
    ((recorded,),) = (e.trials,)
    shown: dict[str, float] = {}
    stacked = timeline.waits(recorded, 0, i18n.writer("en"))
    for _, values in stacked.rows:
        for name, clients in zip(stacked.names, values, strict=True):
            shown[name] = shown.get(name, 0.0) + clients
    whole = sum(n for name, n in shown.items() if name != i18n.text(message("wait-idle")))
    for name, part in (("running", e.running), ("network and client", e.outside)):
        if part is not None and "others" not in shown:
            assert shown.get(name, 0.0) / whole == pytest.approx(part.mean, abs=2e-3), shown
    # The bar has no remainder, and its parts are those of the sentences.
    if bar := client_time.shares(e, i18n.writer("en")):
        assert sum(bar.values()) == pytest.approx(1)
        assert bar.get("running", 0.0) == pytest.approx(e.running.mean if e.running else 0.0, abs=1e-6)


_LOAD = st.floats(0, 2)


@given(
    st.lists(st.sampled_from(_WAITS), min_size=1, max_size=4), st.tuples(_LOAD, _LOAD, _LOAD, _LOAD),
    st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)), st.floats(1e4, 1e7),
    st.sampled_from([None, 100.0]), st.booleans(),
)  # fmt: skip
@settings(max_examples=40)
def test_one_thing_limits_a_configuration(
    tmp_path_factory: pytest.TempPathFactory, waits: list[Any], cpu: tuple[float, ...], client: tuple[float, ...],
    rtt_ns: float, rate: float | None, behind: bool,
) -> None:  # fmt: skip
    """Whatever is full: server, client, machine, network. And a rate that is kept up with is not limited."""
    server, queued, own, others = cpu
    rows = [{"ours": 1.0, "kind": "client backend", "state": "active" if kind != "Client" else "idle",
             "wait_type": kind, "wait": wait, "processes": 2.0, "looks": 10.0} for kind, wait in waits]  # fmt: skip
    busy = min(2.0, server + own + others)
    run = synthetic.make_run(
        tmp_path_factory.mktemp("r"), synthetic.plans([4], 1), lambda *_: 1000.0, intervals=8, latency_ns=4_000_000,
        sampled={
            "waits": rows,
            "machine": [{**_IDLE_CPU, "cores": 2.0, "cpu_user": busy, "cpu_idle": 2.0 - busy}],
            "processes": [{"kind": "client backend", "cpu": server, "waiting_for_cpu": queued},
                          {"kind": "pgdyno", "cpu": own, "waiting_for_cpu": 0.0}],
            "network": [{"round_trip_ns": rtt_ns}],
        },
        manifest={"same_machine": True},
    )  # fmt: skip
    data = reading.read(run)
    busiest = dict(zip(("client_cpu_share", "client_delay_share", "client_busy_share"), client, strict=True))
    data.trials[:] = [
        replace(t, parameters={"rate": rate}, caveats=[Caveat.BACKLOG] * behind, summary=replace(t.summary, **busiest))
        for t in data.trials
        if t.summary is not None
    ]
    (group,) = groups_of(data)
    analysis = RunAnalysis(data)
    found = analysis.diagnosis_of(group)
    assert not found.not_judged or all(n.defect is None for n in found.not_judged), found.not_judged
    told = [findings.FindingText(f) for f in found.findings]
    roles = reports.ids(f.role for f in told)
    limited = rate is None or behind
    assert roles.count("role-limit") == (limited and bool(told)), told
    assert roles.count("role-largest") == (not limited and bool(told)), told
    assert not any(" the limit" in x or " bottleneck" in x for x in reports.words(f.sentence for f in told))
    # In the answer as in the list, and nothing that another thing limits it.
    answer = findings.sentences(analysis)
    assert sum(bool({"role-limit", "role-largest"} & reports.every_id(s)) for s in answer) == bool(told)


def test_what_the_server_writes_for_itself_explains_nothing() -> None:
    a: Any = _Measured(1.0, {"running": 0.5}, 26.0)
    b: Any = _Measured(1.0, {"running": 0.5}, 2.0)
    used = {u.what for u in difference.used(a, b)}
    assert not used & {"WAL", "of the WAL whole pages"}, used


@pytest.mark.parametrize(
    ("comparison", "explained"),
    [
        (Comparison(4, 4, 100.0, 80.0, 0.8, 0.7, 0.9, verdict=Verdict.SLOWER), True),
        (Comparison(4, 4, 100.0, 80.0, 0.8, 0.6, 1.1), False),
        # There is a difference, and it is not worth much.
        (Comparison(99, 99, 100.0, 99.0, 0.99, 0.985, 0.995, verdict=Verdict.SLOWER), False),
        # Two single starts, of which nobody knows how far they lie apart.
        (Comparison(1, 1, 100.0, 80.0, 0.8), False),
        (Comparison(1, 1, 100.0, 98.0, 0.98), False),
    ],
)
def test_what_is_not_known_to_differ_has_no_reason(tmp_path: Path, comparison: Comparison, explained: bool) -> None:
    a, b = (
        reading.read(
            synthetic.make_run(
                tmp_path / name, synthetic.plans([4], 1), lambda *_: 1000.0, latency_ns=4_000_000, name=name,
                sampled={"waits": [{**_RUNNING, "wait_type": kind, "wait": wait}]},
            )
        )
        for name, kind, wait in (("a", "", ""), ("b", "IO", "WalSync"))
    )  # fmt: skip
    ((left,), (right,)) = (groups_of(data) for data in (a, b))
    row = Row(Pair(left, right, "w"), BY_NAME["TPS"], comparison)
    found = [words for _, words in findings.comparison_reasons(RunAnalysis(a), RunAnalysis(b), [row, row])]
    assert ["in IO WalSync" in words for words in reports.words(found)] == [True] * explained


_RUNNING = {"ours": 1.0, "kind": "client backend", "state": "active", "wait_type": "", "wait": "", "processes": 4.0,
            "looks": 10.0}  # fmt: skip
_WAITING = {**_RUNNING, "wait_type": "IO", "wait": "WalSync"}
_LOCKED = {**_RUNNING, "wait_type": "Lock", "wait": "transactionid"}
_BLOCKER = {"statement": "x", "lock": "relation", "relation": "t", "by": "somebody", "by_ours": 0.0,
            "by_state": "active", "by_statement": "lock t", "by_seconds": 2.0}  # fmt: skip
_CHECKPOINTER = {
    **_RUNNING,
    "ours": 0.0,
    "kind": "checkpointer",
    "state": "",
    "wait_type": "IO",
    "wait": "DataFileSync",
}
_IDLE_CPU = {"cpu_user": 0.2, "cpu_nice": 0.0, "cpu_system": 0.1, "cpu_irq": 0.0, "cpu_softirq": 0.0, "cpu_iowait": 0.0,
             "cpu_idle": 1.7, "cpu_steal": 0.0, "cores": 2.0}  # fmt: skip
_DISK = {
    "device": "sda", "holds": "data", "utilisation": 0.1, "queue": 0.1,
    **dict.fromkeys(("reads_per_s", "writes_per_s", "read_bytes_per_s", "write_bytes_per_s"), 1.0),
    **dict.fromkeys(("read_request_bytes", "write_request_bytes", "read_await_ns", "write_await_ns"), 8192.0),
}  # fmt: skip
_OTHER_DISK = {**_DISK, "device": "sdb", "holds": "wal"}


def _dipping(folder: Path, sampled: dict[str, Any], events: list[tuple[float, str, str]] | None = None) -> Recorded:
    """A trial of 40 s in which little is done from second 20 to 23."""
    run = synthetic.make_run(
        folder, synthetic.plans([4], 1), lambda p, i, r: 50.0 if 20 <= i < 23 else 1000.0 * r.uniform(0.98, 1.02),
        intervals=40, sampled=sampled, events=events or [],
    )  # fmt: skip
    data = reading.read(run)
    return Recorded(data, data.trials[0])


def _in_dip(then: list[dict[str, Any]], else_: list[dict[str, Any]]) -> Any:
    return lambda i: then if 20 <= i < 23 else else_


@pytest.mark.parametrize(
    ("sampled", "events", "why"),
    [
        ({"waits": [_RUNNING]}, [], []),
        ({"waits": _in_dip([_WAITING], [_RUNNING])}, [], ["waits for IO WalSync"]),
        # What is waited for all the time explains no dip.
        ({"waits": [_WAITING]}, [], []),
        ({"waits": _in_dip([_LOCKED], [_RUNNING])}, [], ["row locks"]),
        (
            {"waits": _in_dip([_LOCKED], [_RUNNING]), "blockers": _in_dip([_BLOCKER], [])}, [],
            ["a lock held by another session"],
        ),
        ({"waits": _in_dip([_RUNNING, _CHECKPOINTER], [_RUNNING])}, [], ["a checkpoint"]),
        (
            {"waits": [_RUNNING]}, [(19.5, "checkpoint begins", "time"), (23.0, "checkpoint ends", "x")],
            ["a checkpoint"],
        ),
        ({"waits": _in_dip([_RUNNING, {**_RUNNING, "ours": 0.0, "kind": "autovacuum worker"}], [_RUNNING])}, [],
         ["autovacuum"]),
        ({"devices": _in_dip([{**_DISK, "utilisation": 0.99}], [_DISK])}, [], ["a busy device"]),
        # One of two that is not busy at all hides nothing.
        (
            {"devices": _in_dip([{**_DISK, "utilisation": 0.99}, _OTHER_DISK], [_DISK, _OTHER_DISK])}, [],
            ["a busy device"],
        ),
        (
            {"machine": _in_dip([{**_IDLE_CPU, "cpu_steal": 1.0}], [_IDLE_CPU])}, [],
            ["CPUs taken by the hypervisor"],
        ),
        ({"waits": [_RUNNING]}, [(21.0, "server process died", "signal 9")], ["server process died"]),
    ],
)  # fmt: skip
def test_a_dip_is_explained_by_what_overlaps_it(
    tmp_path: Path, sampled: dict[str, Any], events: list[tuple[float, str, str]], why: list[str]
) -> None:
    r = _dipping(tmp_path, sampled, events)
    (dip,) = dips.dips_of(r)
    assert (dip.start_ns / 1e9, dip.end_ns / 1e9) == (20, 23) and dip.loss > 0.9
    assert [i18n.text(m) for m in dips.explained(r, dip)] == why


def test_a_trial_over_time_shows_warm_up_events_and_dips(tmp_path: Path) -> None:
    run = synthetic.make_run(
        tmp_path, synthetic.plans([4], 1), lambda p, i, r: 50.0 if 20 <= i < 23 else 1000.0, intervals=40, warmup=5,
        sampled={"waits": [_RUNNING, _WAITING], "machine": [_IDLE_CPU], "devices": [_DISK]},
        events=[(30.0, "checkpoint begins", "time"), (33.0, "checkpoint ends", "x"),
                (12.0, "error", "deadlock detected"), (15.0, "server process died", "signal 9")],
    )  # fmt: skip
    data = reading.read(run)
    figure = timeline.chart(Recorded(data, data.trials[0]), i18n.writer("en"))
    assert figure is not None
    panels = {p.y.title: p for p in figure.panels}
    disk = ["disk (MB/s)", "disk (IOPS)", "await (ms)"]
    assert list(panels) == ["TPS", "p99 (ms)", "latency (ms)", "clients", *disk, "processors"]
    lines = [m for m in panels["await (ms)"].marks if isinstance(m, Line)]
    assert {(m.name, y) for m in lines for _, y in m.points} == {("sda read", 8.192e-3), ("sda write", 8.192e-3)}
    spans = {m.name: m for m in panels["TPS"].marks if isinstance(m, Span)}
    assert set(spans) == {"warm-up", "checkpoint", "dip", "error", "server process died"}
    assert {k.name for k in panels["TPS"].keys} == set(spans)
    (dots,) = [m for m in panels["TPS"].marks if isinstance(m, Line)]
    assert (spans["warm-up"].start, spans["warm-up"].end) == (-5.0, 0.0) and len(dots.points) == 40
    assert (spans["checkpoint"].start, spans["checkpoint"].end) == (25.0, 28.0)
    (areas,) = [m for m in panels["clients"].marks if isinstance(m, Areas)]
    assert set(areas.names) == {"running", "IO: WalSync"}
    write.write(view.build(RunAnalysis(data)), rundir.RunDirectory(run).write_text)
    assert "report-timeline-1.svg" in (run / "report.md").read_text() and (run / "report-timeline-1.svg").exists()


@pytest.mark.parametrize(
    ("round_trip_ms", "latency_ms", "words"),
    [
        (0.1, 40.0, "network-held-up"),
        (30.0, 40.0, "network-far"),
        # No more than the way of any message through two kernels.
        (0.1, 0.5, ""),
    ],
)
def test_what_passes_between_statements_is_the_way(
    tmp_path: Path, round_trip_ms: float, latency_ms: float, words: str
) -> None:
    idle = {**_RUNNING, "state": "idle", "wait_type": "Client", "wait": "ClientRead"}
    run = synthetic.make_run(
        tmp_path, synthetic.plans([4], 1), lambda *_: 4000 / latency_ms, latency_ns=round(latency_ms * 1e6),
        sampled={"waits": [idle], "network": [{"round_trip_ns": round_trip_ms * 1e6}]},
    )  # fmt: skip
    found = [f for f in RunAnalysis(reading.read(run)).diagnosis.findings if f.cause == "network"]
    assert [f.message.id for f in found] == ([words] if words else []), found


@pytest.mark.parametrize(
    ("locked", "flushing", "running", "first"),
    [
        # Locks are held while COMMIT waits for the disk: whichever is larger.
        (1.0, 5.0, 2.0, ["wal-flush", "row-locks"]),
        (6.0, 1.5, 0.5, ["row-locks", "wal-flush"]),
        # They are held for something else.
        (1.0, 2.0, 5.0, ["row-locks", "wal-flush"]),
    ],
)
def test_locks_that_are_held_through_a_flush_stand_beside_it(
    tmp_path: Path, locked: float, flushing: float, running: float, first: list[str]
) -> None:
    waits = [{**_LOCKED, "processes": locked}, {**_WAITING, "processes": flushing}, {**_RUNNING, "processes": running}]
    run = synthetic.make_run(tmp_path, synthetic.plans([8], 1), lambda *_: 1000.0, sampled={"waits": waits})
    found = [f.cause for f in RunAnalysis(reading.read(run)).diagnosis.findings]
    assert [c for c in found if c in ("row-locks", "wal-flush")] == first


@pytest.mark.parametrize(("flush_ms", "found"), [(0.1, True), (5.5, False)])
def test_a_queue_behind_slow_flushes_is_no_limit_of_storage(tmp_path: Path, flush_ms: float, found: bool) -> None:
    disk = {**_DISK, "holds": "data,wal", "writes_per_s": 500.0, "utilisation": 0.97, "queue": 4.5,
            "write_await_ns": 4.5e6, "flushes_per_s": 157.0, "flush_await_ns": flush_ms * 1e6}  # fmt: skip
    run = synthetic.make_run(
        tmp_path, synthetic.plans([4], 1), lambda *_: 300.0, intervals=20,
        sampled={"waits": [_WAITING], "devices": [disk]},
    )  # fmt: skip
    assert ("throttled-storage" in [f.cause for f in RunAnalysis(reading.read(run)).diagnosis.findings]) is found


def test_pages_and_wal_are_looked_for_on_their_own_devices(tmp_path: Path) -> None:
    data = {**_DISK, "device": "vda", "holds": "data", "utilisation": 0.6, "read_bytes_per_s": 8192.0 * 900}
    wal = {**_DISK, "device": "vdb", "holds": "wal", "utilisation": 0.9, "read_bytes_per_s": 0.0}
    run = synthetic.make_run(
        tmp_path, synthetic.plans([4], 1), lambda *_: 1000.0,
        sampled={"devices": [data, wal], "counters": [{"blocks_read_per_s": 1000.0}]},
    )  # fmt: skip
    e = Observed(reading.read(run), reading.read(run).trials)
    assert (e.busiest_device, e.data_device, e.wal_device) == ("vdb", "vda", "vdb")
    assert from_device(e) == pytest.approx(0.9)
    # On one device both are looked for there.
    both = synthetic.make_run(
        tmp_path / "one", synthetic.plans([4], 1), lambda *_: 1000.0,
        sampled={"devices": [{**data, "holds": "data,wal"}]},
    )  # fmt: skip
    e = Observed(reading.read(both), reading.read(both).trials)
    assert e.data_device == e.wal_device == "vda"


def test_storage_is_judged_by_the_device_that_is_waited_for(tmp_path: Path) -> None:
    """Commits that wait 5 ms for a device that takes 5 ms are throttled by nobody, whatever another one does."""
    wal = {**_DISK, "device": "sdb", "holds": "wal", "flushes_per_s": 180.0, "flush_await_ns": 4.9e6}
    data = {**_DISK, "device": "nvme0n1", "holds": "data", "write_await_ns": 1e5, "utilisation": 0.01, "queue": 0.0}

    def devices(i: int) -> list[dict[str, Any]]:
        return [{**wal, "utilisation": 0.9, "writes_per_s": 180.0 + 40 * (i % 3)}, data]

    counters = {"wal_syncs_per_s": 180.0, "wal_sync_ms_per_s": 900.0}
    run = synthetic.make_run(
        tmp_path, synthetic.plans([8], 1), lambda *_: 1000.0,
        sampled={"waits": [{**_WAITING, "processes": 8.0}], "devices": devices, "counters": [counters]},
    )  # fmt: skip
    assert next(f.cause for f in RunAnalysis(reading.read(run)).diagnosis.findings) == "wal-flush"


def test_a_plan_that_became_better_does_not_hide_the_limit(tmp_path: Path) -> None:
    plan = {
        "script": "s.sql", "line": 1.0, "statement": "SELECT 1", "plan": "Seq Scan on t",
        "plan_after": "Index Scan on t", "scan_filters": 0.0, "rows_thrown_away": -1.0, "rows": 1.0,
        "scanned_rows": 1.0, "scanned_table": "t",
    }  # fmt: skip
    run = synthetic.make_run(
        tmp_path, synthetic.plans([8], 1), lambda _, i, __: 1000.0 * (1 + 0.3 * i / 60), intervals=60, drift=0.3,
        sampled={"waits": [{**_WAITING, "processes": 8.0}]}, totals={"plans": [plan]},
    )  # fmt: skip
    found = {f.cause: f for f in RunAnalysis(reading.read(run)).diagnosis.findings}
    assert found["plan-changed"].message.id == "plan-changed-rose" and found["plan-changed"].cost.high <= 0.31
    # A change of a plan takes no more than what throughput moved by.
    assert found["plan-changed"].of == THROUGHPUT and found["plan-changed"].cost.mean <= 0.16


def test_other_sessions_in_the_database_are_no_cost_of_ours(tmp_path: Path) -> None:
    """Their reads and their deadlocks are in the database's counters."""
    reads = {**_RUNNING, "wait_type": "IO", "wait": "DataFileRead", "processes": 0.2}
    other = {**_RUNNING, "ours": 0.0, "kind": "client backend", "state": "active", "processes": 9.0}
    counters = {
        "blocks_read_per_s": 500.0,
        "blocks_hit_per_s": 500.0,
        "read_ms_per_s": 14_000.0,
        "deadlocks_per_s": 1.0,
    }
    run = synthetic.make_run(
        tmp_path, synthetic.plans([4], 1), lambda *_: 1000.0,
        sampled={"waits": [reads, {**_RUNNING, "processes": 3.8}, other], "counters": [counters]},
    )  # fmt: skip
    found = {f.cause: f for f in RunAnalysis(reading.read(run)).diagnosis.findings}
    assert "row-locks" not in found
    assert all(f.cost.high <= 1.0 for f in found.values())
    assert "buffer-misses" not in found or found["buffer-misses"].cost.mean < 0.1


_CPUS = {"cpu_nice": 0.0, "cpu_system": 0.0, "cpu_irq": 0.0, "cpu_softirq": 0.0, "cpu_iowait": 0.0, "cpu_steal": 0.0}


def _busy(folder: Path, cpu: float, clients: int, waits: Any, latency_ns: int = 1_000_000) -> dict[str, Finding]:
    """Return the findings of a run whose server uses `cpu` of two CPUs."""
    machine = {**_CPUS, "cpu_user": cpu, "cpu_idle": 2 - cpu, "cores": 2.0}
    backend = {"kind": "client backend", "processes": float(clients), "cpu": cpu, "waiting_for_cpu": 0.0,
               "read_bytes_per_s": 0.0, "write_bytes_per_s": 0.0, "in_disk_sleep": 0.0, "stopped": 0.0}  # fmt: skip
    run = synthetic.make_run(
        folder, synthetic.plans([clients], 1), lambda *_: 1000.0, latency_ns=latency_ns,
        sampled={"waits": waits, "machine": [machine], "processes": [backend]},
    )  # fmt: skip
    return {f.cause: f for f in RunAnalysis(reading.read(run)).diagnosis.findings}


def test_few_clients_limit_where_cpus_stay_idle(tmp_path: Path) -> None:
    one = [{**_RUNNING, "processes": 0.9}, {**_WAITING, "state": "idle", "wait_type": "Client", "processes": 0.1}]
    found = _busy(tmp_path / "one", 0.95, 1, one)["few-clients"]
    # The kernel counts 0.05 more on a CPU than PostgreSQL reports.
    assert found.cost.mean == pytest.approx(0.95) and found.is_largest
    (action,) = found.actions
    # Two CPUs, half of them used: twice as many.
    assert action.clients == 3 and action.gain.low == 0 and 0.9 < action.gain.high <= 1.8
    # Where all are busy, or the clients wait for something else, it is not the number of clients.
    assert "few-clients" not in _busy(tmp_path / "full", 1.95, 4, [{**_RUNNING, "processes": 4.0}])
    flushing = [{**_RUNNING, "processes": 0.2}, {**_WAITING, "processes": 0.8}]
    assert "few-clients" not in _busy(tmp_path / "flush", 0.4, 1, flushing)


@pytest.mark.parametrize(
    ("latency_ms", "cpu", "ends", "is_named"),
    # Of a query of 40 ms workers spare more than their start costs, if that is little.
    [(2, 1.0, 1.0, True), (900, 1.95, 1.0, True), (900, 1.0, 1.0, False), (40, 1.0, 0.1, False)],
)
def test_parallel_workers_are_named_where_they_do_not_help(
    tmp_path: Path, latency_ms: int, cpu: float, ends: float, is_named: bool
) -> None:
    gather = {**_RUNNING, "wait_type": "IPC", "wait": "ExecuteGather", "processes": 2.0}
    ending = {**_RUNNING, "wait_type": "IPC", "wait": "BgworkerShutdown", "processes": ends}
    running = {**_RUNNING, "processes": 2.0 - ends}
    found = _busy(tmp_path, cpu, 4, [gather, ending, running], latency_ms * 1_000_000)
    assert ("parallel-query" in found) == is_named and ("other-waits" in found) != is_named
    if is_named:
        cost = found["parallel-query"].cost
        assert (cost.low, cost.high) == pytest.approx((0.25, 0.75))
        assert found["parallel-query"].actions[0].settings == {"max_parallel_workers_per_gather": "0"}


def test_a_wait_without_a_rule_is_said_as_such(tmp_path: Path) -> None:
    waits = [
        {**_RUNNING, "wait_type": "LWLock", "wait": "LockManager", "processes": 5.0},
        {**_RUNNING, "processes": 3.0},
    ]
    run = synthetic.make_run(tmp_path, synthetic.plans([8], 1), lambda *_: 1000.0, sampled={"waits": waits})
    (found,) = [f for f in RunAnalysis(reading.read(run)).diagnosis.findings if f.cause == "other-waits"]
    assert found.message.args["wait"] == Name("LWLock LockManager") and found.cost.mean == pytest.approx(5 / 8)
    asleep = [{**_RUNNING, "wait_type": "Timeout", "wait": "PgSleep", "processes": 5.0}]
    # A trigger that sleeps is a trouble; a script that sleeps does so on purpose.
    for name, script, expected in (("trigger", "UPDATE t SET v = 1;", True), ("script", "SELECT PG_SLEEP(1);", False)):
        run = synthetic.make_run(
            tmp_path / name, synthetic.plans([8], 1), lambda *_: 1000.0, sampled={"waits": asleep},
            manifest={"scripts": {"w": [["s", script, 1]]}},
        )  # fmt: skip
        of = [f for f in RunAnalysis(reading.read(run)).diagnosis.findings if f.cause == "other-waits"]
        assert [(f.kind, f.advice.id) for f in of] == [(Kind.TROUBLE, "other-waits-asleep-remedy")] * expected


def test_steal_beside_idle_processors_is_no_answer(tmp_path: Path) -> None:
    backend = {"kind": "client backend", "processes": 4.0, "cpu": 0.3, "waiting_for_cpu": 0.0, "read_bytes_per_s": 0.0,
               "write_bytes_per_s": 0.0}  # fmt: skip
    machine = {**_IDLE_CPU, "cpu_user": 0.4, "cpu_idle": 1.48, "cpu_steal": 0.12}
    run = synthetic.make_run(
        tmp_path, synthetic.plans([4], 1), lambda *_: 1000.0, manifest={"same_machine": True},
        sampled={"machine": [machine], "processes": [backend], "waits": [{**_WAITING, "processes": 4.0}]},
    )  # fmt: skip
    assert next(f.cause for f in RunAnalysis(reading.read(run)).diagnosis.findings) == "wal-flush"


@pytest.mark.parametrize(
    ("table", "is_used", "advice"),
    [
        ("queue", True, "bloat-remedy"),
        ("pg_catalog.pg_attribute", True, "bloat-catalog-remedy"),
        # Another session has deleted all rows of a table of its own.
        ("big", False, ""),
    ],
)
def test_rows_that_are_deleted_leave_dead_ones(tmp_path: Path, table: str, is_used: bool, advice: str) -> None:
    """A queue, and the catalog of a load that creates temporary tables, are hardly updated."""
    row = {
        **dict.fromkeys(("seq_scans", "seq_rows_read", "rows_updated", "rows_hot_updated"), 0.0), "table": table,
        "rows_deleted": 5e4, "rows": 1000.0, "dead_rows": 4e4, "index_scans": 6e4 if is_used else 3.0,
    }  # fmt: skip
    run = synthetic.make_run(
        tmp_path, synthetic.plans([4], 1), lambda _, i, __: 1000.0 * (1 - 0.3 * i / 60), intervals=60, drift=-0.3,
        sampled={"waits": [{**_RUNNING, "processes": 4.0}]}, totals={"tables": [row]},
    )  # fmt: skip
    every = {f.cause: f for f in RunAnalysis(reading.read(run)).diagnosis.findings}
    assert ("bloat" in every) == bool(advice)
    if not advice:
        return
    found = every["bloat"]
    assert (found.message.id, found.advice.id) == ("bloat-dead", advice)
    # Nobody may alter the catalog's tables.
    assert bool(found.actions[0].sql) == (table == "queue")


def test_updates_off_their_pages_are_not_called_dead_rows(tmp_path: Path) -> None:
    table = {
        **dict.fromkeys(("seq_scans", "seq_rows_read"), 0.0),
        "rows": 1e5,
        "rows_updated": 1e5,
        "rows_hot_updated": 1e4,
        "rows_deleted": 0.0,
    }
    run = synthetic.make_run(
        tmp_path, synthetic.plans([4], 1), lambda _, i, __: 1000.0 * (1 - 0.2 * i / 60), intervals=60, drift=-0.2,
        sampled={"waits": [{**_WAITING, "processes": 2.0}]},
        totals={"tables": [{"table": "t", **table, "dead_rows": 0.0}]},
    )  # fmt: skip
    found = RunAnalysis(reading.read(run)).diagnosis.findings
    (bloat,) = [f for f in found if f.cause == "bloat"]
    tiny = {**table, "table": "w", "rows": 8.0, "rows_updated": 1200.0, "rows_hot_updated": 1190.0, "dead_rows": 900.0}
    few = synthetic.make_run(
        tmp_path / "few", synthetic.plans([4], 1), lambda *_: 1000.0, drift=-0.2, totals={"tables": [tiny]},
        sampled={"waits": [{**_WAITING, "processes": 2.0}]},
    )  # fmt: skip
    # A table of a few rows always has more dead ones.
    assert "bloat" not in {f.cause for f in RunAnalysis(reading.read(few)).diagnosis.findings}
    assert bloat.message.id == "bloat-not-hot" and found[0].cause != "bloat"


@pytest.mark.parametrize(("calls", "share"), [(60_000.0, "70%"), (5_000.0, "94%")])
def test_whole_pages_after_a_checkpoint_before_the_measurement(tmp_path: Path, calls: float, share: str) -> None:
    """`between = { checkpoint = true }` and a warm-up: the burst is there, the checkpoint is not.

    The share is of all pages where statements were counted throughout, and of theirs if in the warm-up alone.
    """

    def counters(i: int) -> list[dict[str, Any]]:
        pages = 2.0 if i < 20 else 0.05
        return [
            {
                "commits_per_s": 1000.0,
                "wal_full_pages_per_s": pages * 1000,
                "wal_bytes_per_s": 1000 * (pages * 8192 + 500.0),
            }
        ]

    run = synthetic.make_run(
        tmp_path, synthetic.plans([8], 1), lambda _, i, rng: (600.0 if i < 20 else 1000.0) * (1 + rng.gauss(0, 0.02)),
        intervals=60, sampled={"counters": counters, "waits": [_RUNNING]},
        totals={"statements": [
            {"statement": "update u set v = $1", "wal_full_pages": 2_000.0, "line": 0.0, "calls": 1.0},
            {"statement": "update t set v = $1", "wal_full_pages": 29_400.0, "line": 1.0, "calls": calls},
        ]},
    )  # fmt: skip
    first = RunAnalysis(reading.read(run)).diagnosis.findings[0]
    assert first.cause == "checkpoint-full-pages" and first.message.args["after"] == message("full-pages-earlier")
    assert first.sentence.endswith(f"; {share} of the full-page images by: update t set v = $1).")
    assert first.cost.mean == pytest.approx(0.4 / 3, abs=0.06)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("select 'it''s'  from t where a = 5 and b=$1", "select … from t where a = … and b=$1"),
        (r"update u1 set s = E'a\'b', x = $q$se'cret$q$, y = 1.5e3", "update u1 set s = …, x = …, y = …"),
        ("select 'cut off in the mid", "select …"),
        # A sign is the constant's, a minus between two is the statement's.
        ("update t set a = a + -5 where b = -1.5e3", "update t set a = a + … where b = …"),
        ("select a - 5, (-3), x1 - y2", "select a - …, (…), x1 - y2"),
    ],
)
def test_constants_of_others_are_not_written_down(text: str, shown: str) -> None:
    assert without_literals(text) == shown


def test_tables_are_known_by_the_names_that_plans_have() -> None:
    names = ("t", "public.t", 'public."User"', '"My.Own"."a""b"')
    assert [missing_index._plain(n) for n in names] == ["t", "t", "User", 'a"b']


@pytest.mark.parametrize(
    ("statement", "few"),
    [
        ("SELECT count(*) FROM (SELECT pad FROM t ORDER BY pad, v OFFSET 10) x", False),
        ("SELECT sum(v) FROM t GROUP BY pad", False),
        ("UPDATE t SET v = v + 1", False),
        ("SELECT v FROM t WHERE id = 5", True),
        ("SELECT v FROM t ORDER BY created LIMIT 1", True),
        ("select * from a join t on a.id = t.a", True),
        ("DELETE FROM t USING s WHERE t.id = s.id", True),
        ("SELECT max(created) FROM t", True),
        ("SELECT DISTINCT ON (a) a, b FROM t", True),
        ("MERGE INTO t USING s ON t.k = s.k WHEN MATCHED THEN DO NOTHING", True),
        (f"SELECT a, b, c FROM t {samples.CUT}", True),
    ],
)
def test_an_index_helps_only_who_wants_few_rows(statement: str, few: bool) -> None:
    assert missing_index.may_want_few(without_literals(statement)) is few


def test_time_that_the_hypervisor_takes_is_a_neighbour(tmp_path: Path) -> None:
    backend = {"kind": "client backend", "processes": 4.0, "cpu": 1.2, "waiting_for_cpu": 0.5, "read_bytes_per_s": 0.0,
               "write_bytes_per_s": 0.0}  # fmt: skip
    machine = {**_IDLE_CPU, "cpu_user": 1.3, "cpu_idle": 0.1, "cpu_steal": 0.5}

    def stolen(i: int) -> list[dict[str, Any]]:
        return [{**machine, "cpu_steal": 0.4 if i % 2 else 0.6}]

    run = synthetic.make_run(
        tmp_path, synthetic.plans([4], 1), lambda *_: 1000.0, sampled={"machine": stolen, "processes": [backend]},
        manifest={"same_machine": True},
    )  # fmt: skip
    found = RunAnalysis(reading.read(run)).diagnosis.findings
    (first, *_) = found
    assert first.cause == "noisy-neighbour" and first.message.args["who"].id == "neighbour-hypervisor"
    # As far as its samples lie apart, and no further.
    assert 0.2 < first.cost.low < first.cost.mean < first.cost.high < 0.3


@pytest.mark.parametrize(
    ("snapshots", "words"),
    [
        ({"oldest_seconds": 0.0, "oldest_transactions": 0.0, "slot_transactions": 90_000.0}, "held-snapshot-slot"),
        ({"oldest_seconds": 19.0, "oldest_transactions": 9e4, "slot_transactions": 10.0}, "held-snapshot"),
        # A standby with hot_standby_feedback renews what it holds each 10 s.
        ({"oldest_seconds": 0.0, "oldest_transactions": 0.0, "slot_transactions": 9_000.0}, ""),
        # It is older than what it holds: whoever holds more is named.
        ({"oldest_seconds": 19.0, "oldest_transactions": 2000.0, "slot_transactions": 9e4}, "held-snapshot-slot"),
        ({"oldest_seconds": 0.0, "oldest_transactions": 0.0, "slot_transactions": 20.0}, ""),
    ],
)
def test_whoever_holds_dead_rows_back_is_named(tmp_path: Path, snapshots: dict[str, float], words: str) -> None:
    table = dict.fromkeys(("rows_updated", "rows_hot_updated", "rows", "seq_scans", "seq_rows_read"), 10.0)
    run = synthetic.make_run(
        tmp_path, synthetic.plans([4], 1), lambda *_: 1000.0, sampled={"snapshots": [snapshots]},
        totals={"tables": [{"table": "t", **table, "dead_rows": 50_000.0}]},
    )  # fmt: skip
    found = [f for f in RunAnalysis(reading.read(run)).diagnosis.findings if f.cause == "held-snapshot"]
    assert [f.message.id for f in found] == ([words] if words else [])


def test_a_commit_is_told_beside_its_sync(tmp_path: Path) -> None:
    waiting = {**_RUNNING, "wait_type": "IO", "wait": "WalSync"}
    counters = {"wal_syncs_per_s": 500.0, "wal_sync_ms_per_s": 2000.0}
    for text, named in (("end", True), ("COMMIT;", True), ("SELECT 1", False), ("UPDATE t SET ended = 1", False)):
        run = synthetic.make_run(
            tmp_path / text[:3], synthetic.plans([4], 1), lambda *_: 1000.0, statement=text, latency_ns=5_000_000,
            sampled={"waits": [waiting], "counters": [counters]},
        )  # fmt: skip
        (found,) = [f for f in RunAnalysis(reading.read(run)).diagnosis.findings if f.cause == "wal-flush"]
        assert tells(found.sentence, "wal-flush-sync", sync="4 ms")
        assert ("; COMMIT takes 5" in found.sentence) is named, found.sentence
        assert {"commit" if named else "transaction", "sync"} <= {f.name for f in found.facts}


def test_memory_is_named_where_pages_are_missed(tmp_path: Path) -> None:
    reads = {**_RUNNING, "wait_type": "IO", "wait": "DataFileRead"}
    counters = {"blocks_read_per_s": 500.0, "blocks_hit_per_s": 500.0}
    sampled = {"waits": [reads], "counters": [counters], "machine": [_IDLE_CPU]}
    for seen in (True, False):
        run = synthetic.make_run(
            tmp_path / str(seen), synthetic.plans([4], 1), lambda *_: 1000.0,
            sampled={n: s for n, s in sampled.items() if seen or n != "machine"},
            manifest={"host": {"memory_bytes": 24 << 30}},
        )  # fmt: skip
        remedies = [
            f.remedy
            for f in RunAnalysis(reading.read(run)).diagnosis.findings
            if f.cause in ("buffer-misses", "data-io")
        ]
        assert remedies and all(("24.0 GiB" in r) is seen and ("the memory is" in r) for r in remedies), remedies


def test_a_cause_that_could_not_be_looked_for_is_named(tmp_path: Path) -> None:
    run = synthetic.make_run(
        tmp_path, synthetic.plans([4], 1), lambda *_: 1000.0,
        sampled={"waits": [_RUNNING], "snapshots": [{"of_an_older_version": 1.0}]},
    )  # fmt: skip
    (missing,) = RunAnalysis(reading.read(run)).diagnosis.not_judged
    assert missing.cause == "held-snapshot" and missing.missing and "oldest_seconds" in missing.missing


@pytest.mark.parametrize("error", [KeyError("x"), TypeError("x"), AttributeError("x"), RuntimeError("x")])
def test_a_cause_that_raises_is_no_health(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """A defect of a cause is named in every form of the report; the other causes are judged."""
    run = synthetic.make_run(tmp_path, synthetic.plans([4], 1), lambda *_: 1000.0, sampled={"waits": [_RUNNING]})

    def judge(_: object) -> None:
        raise error

    broken = Cause("broken", Kind.LIMIT, "broken", judge)
    monkeypatch.setattr(explain, "every_cause", lambda: (broken, *every_cause()))
    data = reading.read(run)
    found = as_json.run_as_json(RunAnalysis(data), 0, None)
    (defect,) = found["not_judged"]
    assert defect["cause"] == "broken" and type(error).__name__ in defect["defect"]
    for lang in ("en", "zh"):
        v = view.build(RunAnalysis(data), lang=lang)
        out = io.StringIO()
        terminal.render(v, Console(file=out, width=80))
        for text in (html.render(v), markdown.render(v, {}), out.getvalue()):
            assert ("无法判断 broken" if lang == "zh" else "broken could not be judged") in " ".join(text.split())


@pytest.mark.parametrize(
    ("statement", "shown"),
    [
        ("update t\n  set v = $1", "update t set v = $1"),
        (f"select a, {'b, ' * 40}c from stock where id = $1 for update",
         "select … from stock where id = $1 for update"),
        (f"select f({'x' * 100})", f"select f({'x' * 71}…"),
    ],
)  # fmt: skip
def test_a_statement_in_a_sentence_shows_its_table(statement: str, shown: str) -> None:
    assert shortened(statement) == shown


@pytest.mark.parametrize(
    "auto, level, script, named",
    [
        (0.0, 300.0, "SELECT 1;", True),
        (1.0, 300.0, "SELECT 1;", False),
        (0.0, 990.0, "SELECT 1;", False),
        # The workload's own command is nobody else's.
        (0.0, 300.0, "VACUUM  FULL big;", False),
    ],
)
def test_a_long_command_of_another_session_is_named(
    tmp_path: Path, auto: float, level: float, script: str, named: bool
) -> None:
    """It is named if throughput is lower while it runs; autovacuum has a cause of its own."""

    def vacuum(i: int) -> list[dict[str, Any]]:
        row = {"command": "vacuum full", "phase": "", "relation": "big", "done": 1.0, "total": 2.0, "unit": "blocks"}
        return [{**row, "auto": auto}] if 10 <= i < 16 else []

    run = synthetic.make_run(
        tmp_path, synthetic.plans([4], 1), lambda p, i, r: (level if 10 <= i < 16 else 1000.0) * r.uniform(0.98, 1.02),
        intervals=30, sampled={"counters": [{"wal_bytes_per_s": 0.0}], "progress": vacuum},
        manifest={"scripts": {"w": [["s", script, 1]]}},
    )  # fmt: skip
    findings = RunAnalysis(reading.read(run)).diagnosis.findings
    own = [f for f in findings if f.cause == "foreign-command"]
    assert bool(own) == named
    if named:
        assert own[0].message.args["command"] == Name("VACUUM FULL big") and own[0].cost.mean == pytest.approx(
            0.14, abs=0.02
        )
        # What is explained is no stall.
        assert "stalls" not in {f.cause for f in findings}


@pytest.mark.parametrize("order", ["random", "duet"])
def test_the_other_side_of_a_duet_is_no_neighbour(tmp_path: Path, order: str) -> None:
    """Its server is among the other processes, in turns of its own."""
    backend = {"kind": "client backend", "processes": 4.0, "cpu": 0.9, "waiting_for_cpu": 0.5, "read_bytes_per_s": 0.0,
               "write_bytes_per_s": 0.0}  # fmt: skip
    machine = {**_IDLE_CPU, "cpu_user": 1.9, "cpu_idle": 0.1}
    run = synthetic.make_run(
        tmp_path, synthetic.plans([4], 1), lambda *_: 1000.0,
        sampled={"machine": [machine], "processes": [backend], "waits": [{**_RUNNING, "processes": 4.0}]},
        manifest={"same_machine": True, "run": {"repetitions": 1, "interval_s": 1.0, "order": order}},
    )  # fmt: skip
    causes_found = {f.cause for f in RunAnalysis(reading.read(run)).diagnosis.findings}
    assert ("noisy-neighbour" in causes_found) == (order == "random")


def _in_turns(
    folder: Path, sampled: dict[str, list[dict[str, Any]]], place: str = "", latency_ns: int = 200_000
) -> reading.RunData:
    """A duet of two values under the load of one start, each with every second interval; both in `place`."""
    run = synthetic.make_run(
        folder, synthetic.plans([4], 1, jit=["on", "off"]), lambda *_: 1000.0, sampled=sampled, latency_ns=latency_ns,
        manifest={"same_machine": True, "run": {"repetitions": 1, "interval_s": 1.0, "order": "duet"}},
    )  # fmt: skip
    data = reading.read(run)
    data.trials[:] = [replace(t, start_ns=1, place=place) for t in data.trials]
    for t in data.trials:
        rows = data.series[t.plan.number]
        del rows[1:-1:2]
        # A transition, in no figure of the trial, but in the server's counters.
        rows[1:1] = [replace(rows[0], phase="transition", start_ns=rows[0].end_ns, end_ns=rows[0].end_ns + 1)]
    return data


def test_time_between_statements_is_part_of_a_turn(tmp_path: Path) -> None:
    """Single statements leave no trace between them but "idle", as the other side's turn does."""
    idle = {"ours": 1.0, "kind": "client backend", "state": "idle", "wait_type": "Client", "wait": "ClientRead",
            "processes": 3.9, "looks": 10.0}  # fmt: skip
    waits = [idle, {**idle, "state": "active", "wait_type": "IO", "wait": "DataFileRead", "processes": 0.1}]
    backend = {"kind": "client backend", "cpu": 0.3, "waiting_for_cpu": 0.5, "involuntary_per_s": 0.0}
    # Of four clients two are busy on average: 1000 transactions of 4 ms a second, every second interval.
    data = _in_turns(tmp_path, {"waits": waits, "processes": [backend]}, latency_ns=4_000_000)
    observed = Observed(data, data.trials[:1])
    running, outside = observed.running, observed.outside
    assert running is not None and running.mean == pytest.approx(0.8 / 2.4, rel=0.06)
    assert outside is not None and outside.mean == pytest.approx(1.5 / 2.4, rel=0.06)


def test_clients_of_a_duet_run_when_the_kernel_says_so(tmp_path: Path) -> None:
    """PostgreSQL shows who waits for a CPU to read a statement as waiting for its client; the sums tell them apart."""
    in_transaction = {**_RUNNING, "state": "idle in transaction", "wait_type": "Client", "wait": "ClientRead"}
    waits = [
        {**_RUNNING, "processes": 0.1}, {**in_transaction, "processes": 1.0},
        {**in_transaction, "state": "idle", "processes": 2.9},
    ]  # fmt: skip
    backend = {"kind": "client backend", "processes": 4.0, "cpu": 0.4, "waiting_for_cpu": 0.3, "read_bytes_per_s": 0.0,
               "write_bytes_per_s": 0.0}  # fmt: skip
    data = _in_turns(tmp_path, {"waits": waits, "processes": [backend]})
    observed = RunAnalysis(data).observed(data.trials[:1])
    assert observed.running is not None and observed.outside is not None
    assert observed.running.mean == pytest.approx(0.7 / 1.1, abs=0.01)
    assert observed.outside.mean == pytest.approx(0.4 / 1.1, abs=0.01)


def test_counters_of_a_duet_are_divided_by_the_commits_of_the_same_time(tmp_path: Path) -> None:
    """The server's counters also count the time of the other side's turns."""
    data = _in_turns(tmp_path, {"counters": [{"wal_bytes_per_s": 1e6}]})
    observed = RunAnalysis(data).observed(data.trials[:1])
    assert observed.tps == pytest.approx(1000)
    assert observed.per_transaction("wal_bytes_per_s") == pytest.approx(1e6 / (1000 * 12 / 20), rel=0.01)


def test_one_server_of_both_sides_of_a_duet_is_counted_once(tmp_path: Path) -> None:
    """Its counters have the commits of both sides, and its CPU time is not that of two."""
    backend = {"kind": "client backend", "processes": 4.0, "cpu": 0.9, "waiting_for_cpu": 0.5, "read_bytes_per_s": 0.0,
               "write_bytes_per_s": 0.0}  # fmt: skip
    sampled = {"counters": [{"wal_bytes_per_s": 1e6}], "processes": [backend],
               "machine": [{**_IDLE_CPU, "cpu_user": 1.9, "cpu_idle": 0.1}]}  # fmt: skip
    data = _in_turns(tmp_path, sampled, place="private")
    observed = RunAnalysis(data).observed(data.trials[:1])
    assert observed.per_transaction("wal_bytes_per_s") == pytest.approx(1e6 / (1000 * 24 / 20), rel=0.01)
    assert observed.processors is not None and observed.processors.server == pytest.approx(0.9)


def test_the_cpus_of_a_duet_are_those_of_both_servers(tmp_path: Path) -> None:
    backend = {"kind": "client backend", "processes": 4.0, "cpu": 0.9, "waiting_for_cpu": 0.5, "read_bytes_per_s": 0.0,
               "write_bytes_per_s": 0.0}  # fmt: skip
    machine = {**_IDLE_CPU, "cpu_user": 1.9, "cpu_idle": 0.1}
    sampled = {"machine": [machine], "processes": [backend], "waits": [{**_RUNNING, "processes": 4.0}]}
    data = _in_turns(tmp_path, sampled)
    analysis = RunAnalysis(data)
    p = analysis.observed(data.trials[:1]).processors
    assert p is not None and p.server == pytest.approx(1.8) and p.others == pytest.approx(0.2)
    assert "server-cpu" in {f.cause for f in analysis.diagnosis.findings}


@pytest.mark.parametrize("has_it", [True, False])
def test_an_action_that_the_run_has_tried_is_not_predicted(tmp_path: Path, has_it: bool) -> None:
    sync = {**_RUNNING, "wait_type": "IO", "wait": "WalSync", "processes": 3.0}
    run = synthetic.make_run(
        tmp_path, synthetic.plans([4], 3, synchronous_commit=["on", "off" if has_it else "local"]),
        lambda p, *_: 1000.0 if p.varied["synchronous_commit"] == "on" else 3000.0,
        sampled={"waits": [sync, {**_RUNNING, "processes": 1.0}], "counters": [{"wal_syncs_per_s": 400.0}]},
        manifest={"server": {"settings": {"synchronous_commit": {"value": "on"}}}},
    )  # fmt: skip
    analysis = RunAnalysis(reading.read(run))
    actions = [a for f in analysis.diagnosis_of(analysis.groups[0]).findings for a in f.actions if a.settings]
    (to_off,) = [a for a in actions if a.settings.get("synchronous_commit") == "off"]
    assert to_off.outlook.id == ("action-measured" if has_it else "action-predicted")
    assert ("3,000 TPS" in i18n.text(to_off.outlook)) == has_it


@pytest.mark.parametrize(("waiting", "first"), [(8.0, "sync-standby"), (2.0, "noisy-neighbour")])
def test_a_neighbour_slows_those_who_need_a_processor(tmp_path: Path, waiting: float, first: str) -> None:
    """Other processes come first only where clients need the processors that they take."""
    sampled: dict[str, list[dict[str, Any]]] = {
        "waits": [
            {**_RUNNING, "processes": 10.0 - waiting, "looks": 10.0},
            {**_RUNNING, "wait_type": "IPC", "wait": "SyncRep", "processes": waiting, "looks": 10.0},
        ],
        "machine": [{**_IDLE_CPU, "cpu_user": 1.9, "cpu_idle": 0.1}],
        "processes": [
            {
                "kind": "client backend",
                "processes": 1.0,
                "cpu": 1.2,
                "waiting_for_cpu": 1.0,
                "read_bytes_per_s": 0.0,
                "write_bytes_per_s": 0.0,
            }
        ],
    }
    run = synthetic.make_run(
        tmp_path, synthetic.plans([1], 1), lambda *_: 1000.0, intervals=8, sampled=sampled,
        manifest={"same_machine": True},
    )  # fmt: skip
    found = RunAnalysis(reading.read(run)).diagnosis.findings
    assert {"noisy-neighbour", "sync-standby"} <= {f.cause for f in found}
    assert found[0].cause == first, [(f.cause, f.cost, f.confidence) for f in found]


def test_thresholds_stand_in_one_table() -> None:
    """Other figures of a cause are constants of nature, or sizes that its actions propose."""
    others = {"_PAGE", "_PAGE_NS", "_MISS_NS", "_MAINTENANCE", "_APART_S", "_MOST_WAL", "_OF_MEMORY", "_WORTH", "_STEP",
              "_BUFFERS", "_TRIED", "_NAMED", "_MOVED", "_MOST", "_PROPOSED", "_SWITCH_S", "_IN_MEMORY",
              "_A_CPU"}  # fmt: skip
    folder = ROOT / "python" / "pgdyno" / "diagnosis" / "causes"
    found = set()
    for path in folder.glob("*.py"):
        for line in path.read_text().splitlines():
            match = re.match(r"(_?[A-Z][A-Z_]*(?:, _?[A-Z][A-Z_]*)*) = \(?-?\d", line)
            found |= set(match[1].split(", ")) if match else set()
    assert found == others
    named = {name.replace("_", "") for name in (c.name.replace("-", "") for c in every_cause())}
    groups = {n.lower() for n, x in vars(thresholds).items() if isinstance(x, type)}
    assert groups - named == {"cpus", "samples", "ranking", "dips", "freezes", "contrast", "difference"}


def test_checkpoints_that_follow_each_other_take_waits_for_the_transaction_status(tmp_path: Path) -> None:
    """A checkpoint writes the pages that each commit needs; there is no calm to compare with."""
    wait = {**_RUNNING, "wait_type": "LWLock", "wait": "XactBuffer", "processes": 2.0}
    counters = {"commits_per_s": 1000.0, "wal_full_pages_per_s": 500.0, "wal_bytes_per_s": 500 * 8192.0 + 5e5}
    found = {}
    for name, checkpoints in (("frequent", 4.0), ("none", 0.0)):
        run = synthetic.make_run(
            tmp_path / name, synthetic.plans([8], 1), lambda *_: 1000.0, intervals=20,
            sampled={"counters": [{**counters, "checkpoints_requested_per_s": checkpoints}],
                     "waits": [{**_RUNNING, "processes": 6.0}, wait]},
        )  # fmt: skip
        found[name] = RunAnalysis(reading.read(run)).diagnosis.findings
    first = found["frequent"][0]
    # A quarter of the time in waits, and CPU time that is known as a bound.
    assert first.cause == "checkpoint-full-pages" and first.message.id == "full-pages-frequent"
    assert (
        first.cost.low == pytest.approx(0.25, abs=0.01)
        and first.cost.mean > 0.25
        and "other-waits" not in {f.cause for f in found["frequent"]}
    )
    assert [f.cause for f in found["none"]].count("other-waits") == 1


def test_a_plan_of_very_many_tables_is_named(tmp_path: Path) -> None:
    def named(n: int) -> object:
        plan = f"Append ({'; '.join(f'Index Only Scan on p{k} using p{k}_pkey' for k in range(n))})"
        run = synthetic.make_run(
            tmp_path / str(n), synthetic.plans([8], 1), lambda *_: 1000.0, intervals=20,
            sampled={"waits": [{**_RUNNING, "processes": 8.0}]},
            totals={
                "plans": [{"statement": "select from p where b = :b", "plan": plan, "script": "w.sql", "line": 1.0}],
            },
        )  # fmt: skip
        data = reading.read(run)
        return nested(Observed(data, data.trials))

    assert named(10) is None
    assert named(120) == message("many-tables", statement=Name("select from p where b = :b"), n=120)
