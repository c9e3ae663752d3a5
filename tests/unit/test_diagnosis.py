"""Findings: their parts, dips, and that each cause is complete."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pgdyno.diagnosis import difference, dips
from pgdyno.diagnosis.causes import every_cause
from pgdyno.diagnosis.evidence import ratio
from pgdyno.diagnosis.finding import Confidence, Fact, Finding, Kind, Part
from pgdyno.model import IntervalRow
from pgdyno.report import findings, words_zh

from tests.support import causes

ROOT = Path(__file__).parent.parent.parent


def test_every_cause_has_its_formula_and_its_injection() -> None:
    named = [c.name for c in every_cause()]
    assert len(named) == len(set(named)) >= 18
    text = (ROOT / "docs" / "math.md").read_text()
    assert [n for n in named if f"`{n}`" not in text] == []
    injected = {i.cause for i in causes.EVERY}
    # What cannot be made by itself stands in docs/math.md: these come with others.
    assert set(named) - injected == {"bloat", "checkpoint-writes", "data-io", "wal-insert"}
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
    assert few == Part(0.375, 0.0, 1.0)


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


@pytest.mark.parametrize("slow", [0, 40])
def test_dips_are_found_and_noise_is_none(slow: int) -> None:
    rng = np.random.default_rng(5)
    tps = rng.normal(100, 5, 200).astype(int)
    assert dips.dips_of(_Recorded(tps.tolist())) == []  # type: ignore[arg-type]
    tps[80:95] = slow
    (dip,) = dips.dips_of(_Recorded(tps.tolist()))  # type: ignore[arg-type]
    assert dip.seconds == pytest.approx(1.5, abs=0.11) and dip.loss == pytest.approx(1 - slow / 100, abs=0.05)
    assert dips.dips_of(_Recorded([1, 2, 3])) == []  # type: ignore[arg-type]


def test_a_finding_is_written_and_read() -> None:
    f = Finding(
        "wal-flush", Kind.LIMIT, "Commits wait.", Part(0.3, 0.2, 0.4), "the clients' time", Confidence.HIGH, "Try.",
        [Fact("sync", 2e6, "ns")], "w", 1.0, 8, {"synchronous_commit": "on"}, [1, 2],
    )  # fmt: skip
    assert Finding.from_json(json.loads(json.dumps(f.as_json()))) == f
    told = findings.in_words(f)
    assert told.cost == "30% (20 to 40%) of the clients' time; confidence high" and told.facts == "sync 2.00 ms"
    assert findings.title_of(f) == "w, synchronous_commit = on, 8 clients"


def test_every_cause_has_a_chinese_name() -> None:
    assert {c.name for c in every_cause()} == set(words_zh.CAUSES)


class _Told:
    """Parts of the clients' time, and what a transaction uses."""

    def __init__(self, latency_ms: float, parts: dict[str, float], wal: float) -> None:
        self.latency_ns = latency_ms * 1e6
        self.parts = parts
        self.wal = wal
        self.waits = [n for n in parts if ":" in n]

    def waiting(self, name: str) -> Part:
        mean = self.parts.get(name, 0.0)
        return Part(mean, max(0.0, mean - 0.01), mean + 0.01)

    @property
    def running(self) -> Part:
        return self.waiting("running")

    @property
    def outside(self) -> Part:
        return self.waiting("outside")

    def per_transaction(self, column: str) -> float | None:
        return self.wal if column == "wal_bytes_per_s" else None


def test_a_difference_is_explained_by_where_the_time_went() -> None:
    a: Any = _Told(1.0, {"running": 0.3, "outside": 0.2, "IO:WalSync": 0.5}, 1000.0)
    b: Any = _Told(0.5, {"running": 0.6, "outside": 0.36, "IO:WalSync": 0.04}, 700.0)
    (first, *rest) = difference.moved(a, b)
    assert first.state == "IO:WalSync" and first.a_ns == 5e5 and first.b_ns == 2e4 and not rest
    assert findings.why_they_differ(a, b) == (
        "Why: 0.480 ms less in IO WalSync (0.500 to 0.0200 ms), of 1.00 to 0.500 ms a transaction; "
        "WAL 1,000 B to 700 B."
    )
    assert findings.why_they_differ(a, a) == ""
