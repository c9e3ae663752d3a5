"""`pgdyno judge`: series with known truth, written as other tools print them, are read and judged as they are."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pgdyno.cli import measured as verb
from pgdyno.errors import UsageError
from pgdyno.judge import logs, measured
from pgdyno.judge.logs import Measured

from tests.support.cli import pgdyno
from tests.support.tells import telling, tells

Rates = list[float]


def _progress(rates: Rates) -> str:
    lines = [f"progress: {n}.0 s, {x:.1f} tps, lat 1.200 ms stddev 0.300, 0 failed" for n, x in enumerate(rates, 1)]
    return "pgbench (18.0)\nstarting vacuum...end.\n" + "\n".join(lines) + "\ntransaction type: <builtin>\ntps = 1.0\n"


def _old_progress(rates: Rates) -> str:
    return "\n".join(f"progress: {n}.0 s, {x:.1f} tps, lat 1.200 ms stddev 0.300" for n, x in enumerate(rates, 1))


def _sysbench(rates: Rates) -> str:
    lines = [
        f"[ {n}s ] thds: 16 tps: {x:.2f} qps: {20 * x:.2f} (r/w/o: 1/2/3) lat (ms,95%): 33.72 err/s: 0.00 "
        "reconn/s: 0.00"
        for n, x in enumerate(rates, 1)
    ]
    return (
        "sysbench 1.0.20\n\nThreads started!\n\n"
        + "\n".join(lines)
        + "\nSQL statistics:\n    ignored errors:   7 (0.1)\n"
    )


def _aggregated(rates: Rates) -> str:
    # The last interval is cut off.
    return "\n".join(f"{1_764_000_000 + n} {x:.0f} 123456 7890 100 4000" for n, x in enumerate([*rates, 3.0]))


def _transactions(rates: Rates) -> str:
    lines, start = [], 1_764_000_000
    for second, x in enumerate([5.0, *rates, 5.0]):
        for k in range(round(x)):
            lines.append(f"{k % 4} {k} 1234 0 {start + second} {k % 1_000_000}")
    return "\n".join(lines)


def _hammerdb(rates: Rates) -> str:
    return "Hammerdb Log\n" + "\n".join(f"{x:.0f} PostgreSQL tpm" for x in rates)


def _go_tpc(rates: Rates) -> str:
    return "\n".join(
        f"[Current] DELIVERY - Takes(s): 10.0, Count: 3, TPM: 18.0\n"
        f"[Current] NEW_ORDER - Takes(s): 10.0, Count: 900, TPM: {x:.1f}, Sum(ms): 1.0, Avg(ms): 1.0" for x in rates
    )  # fmt: skip


def _benchbase(rates: Rates) -> str:
    head = "Time (seconds),Throughput (requests/second),Average Latency (millisecond)\n"
    return head + "\n".join(f"{5 * n},{x},1.5" for n, x in enumerate(rates))


def _k6(rates: Rates) -> str:
    lines = [json.dumps({"type": "Metric", "metric": "iterations", "data": {}})]
    for n, x in enumerate([1.0, *rates, 1.0]):
        at = f"2026-11-27T10:{n // 60:02}:{n % 60:02}.123Z"
        lines.append(json.dumps({"type": "Point", "metric": "iterations", "data": {"time": at, "value": round(x)}}))
        lines.append(json.dumps({"type": "Point", "metric": "vus", "data": {"time": at, "value": 3}}))
    return "\n".join(lines)


def _plain(rates: Rates) -> str:
    return "\n".join(map(str, rates))


_WRITERS: list[tuple[Callable[[Rates], str], str, float]] = [
    (_progress, "TPS", 1.0), (_old_progress, "TPS", 1.0), (_sysbench, "TPS", 1.0), (_aggregated, "TPS", 1.0),
    (_transactions, "TPS", 1.0), (_hammerdb, "tpm", 10.0), (_go_tpc, "tpmC", 10.0), (_benchbase, "TPS", 5.0),
    (_k6, "iterations/s", 1.0), (_plain, "TPS", 1.0),
]  # fmt: skip


@pytest.mark.parametrize(("write", "unit", "period"), _WRITERS)
@pytest.mark.parametrize("seed", range(3))
def test_what_a_tool_prints_is_read_back(
    tmp_path: Path, write: Callable[[Rates], str], unit: str, period: float, seed: int
) -> None:
    r = random.Random(seed)
    rates = [float(r.randint(50, 200)) for _ in range(r.randint(10, 60))]
    file = tmp_path / "x"
    file.write_text(write(rates))
    found = logs.read(file)
    assert (found.unit, found.period_s) == (unit, period)
    assert list(found.values) == pytest.approx(rates)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello world\n",
        "progress: nothing",
        "a,b\n1,2\n",
        "-1 -2 -3",
        "tps\n",
        "{}",
        "nan nan",
        "0 1 1234 0 1764000000 5\n0 2 1234 0 1764000000 9\n",
    ],
)
def test_what_is_no_series_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x"
    file.write_text(text)
    with telling(UsageError, "error-judge-unknown"):
        logs.read(file)


def test_random_bytes_are_refused_or_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    whole = [w(list(map(float, range(100, 140)))) for w, *_ in _WRITERS]
    for n in range(120):
        text = bytearray(whole[n % len(whole)].encode())
        for at in rng.integers(0, len(text), 8):
            text[at] = int(rng.integers(0, 256))
        file = tmp_path / "x"
        file.write_bytes(bytes(text[: int(rng.integers(0, len(text)))]))
        with contextlib.suppress(UsageError):
            assert measured.judge(logs.read(file)).measured.values


def test_stalls_are_not_left_out(tmp_path: Path) -> None:
    """pgbench has no latency where nothing was committed; k6 has no point."""
    file = tmp_path / "x"
    lines = _progress([100.0] * 10 + [0.0] * 5 + [100.0] * 10).replace("0.0 tps, lat 1.200", "0.0 tps, lat -nan")
    file.write_text(lines.replace("100.0 tps, lat -nan", "100.0 tps, lat 1.200").replace("stddev 0.300", "stddev -nan"))
    assert logs.read(file).values.count(0.0) == 5
    points = _k6([10.0] * 20).splitlines()
    file.write_text("\n".join(x for x in points if not any(f"10:00:{n:02}" in x for n in (7, 8, 9))))
    assert logs.read(file).values.count(0.0) == 3


@pytest.mark.parametrize("write", [_transactions, _k6])
def test_a_damaged_time_takes_no_memory(tmp_path: Path, write: Callable[[Rates], str]) -> None:
    file = tmp_path / "x"
    text = write([20.0] * 30)
    file.write_text(
        f"{text}\n{text.splitlines()[-2]}".replace("1764000031", "9764000031", 1).replace("2026", "9026", 1)
    )
    with telling(UsageError, "error-judge-unknown"):
        logs.read(file)


def test_sides_with_two_levels_are_not_compared() -> None:
    rng = np.random.default_rng(8)
    calm = [_judged(rng.normal(1000, 20, 200)) for _ in range(3)]
    step = [_judged(np.concatenate([rng.normal(1000, 20, 100), rng.normal(500, 20, 100)])) for _ in range(3)]
    assert measured.against(calm, calm) is not None and measured.against(calm, step) is None


def _judged(values: object) -> measured.Judged:
    return measured.judge(Measured("x", "numbers", "TPS", 1.0, tuple(map(float, values))))  # type: ignore[call-overload]


def test_series_with_known_truth_are_judged() -> None:
    rng = np.random.default_rng(3)
    calm = _judged(rng.normal(1000, 20, 300))
    assert calm.is_one_figure and calm.is_enough and calm.relative is not None and calm.enough_s is not None
    assert calm.enough_s < 300 and abs(calm.mean.mean - 1000) < 5
    noisy = _judged(rng.normal(1000, 200, 60))
    assert not noisy.is_enough and noisy.enough_s is not None and noisy.enough_s > 60
    step = _judged(np.concatenate([rng.normal(1000, 20, 150), rng.normal(600, 20, 150)]))
    assert step.change is not None and abs(step.change.index - 150) < 3 and step.relative is None
    drift = _judged(rng.normal(1000, 10, 300) + np.linspace(0, 400, 300))
    assert not drift.is_one_figure and drift.enough_s is None
    assert _judged([1000, 1001, 1002]).relative is None


def test_sides_are_compared_within_and_between_runs() -> None:
    rng = np.random.default_rng(4)

    def runs(level: float, n: int, apart: float) -> list[measured.Judged]:
        return [_judged(rng.normal(level * (1 + rng.normal(0, apart)), 20, 200)) for _ in range(n)]

    one = measured.against(runs(1000, 1, 0), runs(900, 1, 0))
    assert one is not None and not one.is_between_runs and one.low < 0.9 < one.high < 0.95
    many = measured.against(runs(1000, 5, 0.02), runs(1000, 5, 0.02))
    assert many is not None and many.is_between_runs and many.high - many.low > 0.02
    assert measured.against(runs(1000, 1, 0), [_judged([1, 2])]) is None
    assert measured.rises([_judged([x] * 30) for x in (100, 104, 110)]) == pytest.approx(0.1)
    assert measured.rises([_judged([x] * 30) for x in (100, 110, 104)]) is None


def test_the_interval_holds_for_equal_sides() -> None:
    rng = np.random.default_rng(6)
    held = 0
    for _ in range(200):
        a, b = ([_judged(rng.normal(1000, 50, 60))] for _ in range(2))
        found = measured.against(a, b)
        held += found is not None and found.low <= 1 <= found.high
    assert held / 200 > 0.92


def test_the_verb_answers_in_both_languages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(7)
    a, b = tmp_path / "a.txt", tmp_path / "b.txt"
    for file, level in ((a, 1000), (b, 850)):
        file.write_text(_progress(list(rng.normal(level, 10, 120))))

    def answered(files: list[Path], lang: str = "en", json_output: bool = False) -> str:
        assert verb.main(files, [], 0.01, lang, json_output) == 0
        return " ".join(capsys.readouterr().out.split())

    text = answered([a, b])
    assert tells(text, "judge-good", n=2, of=2) and "against A: -15" in text
    assert tells(text, "judge-within") and "pgbench -P" in text
    assert "平稳" in answered([a], "zh")
    found = json.loads(answered([a, b], json_output=True))
    assert found["b_by_a"]["ratio"] == pytest.approx(0.85, abs=0.01) and found["files"][0]["steady"] is True
    wrong = pgdyno("judge", tmp_path / "nothing")
    assert wrong.code == 2 and tells(wrong.err, "error-cannot-be-read")
