"""The report's tables, words and forms, from run directories that no server made."""

from __future__ import annotations

import csv
import io
import itertools
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pgdyno import i18n
from pgdyno.format import plus_minus
from pgdyno.judge.compared import Pair
from pgdyno.message import Message, Name, message
from pgdyno.model import Caveat, TrialPlan
from pgdyno.plot.model import Line
from pgdyno.report import findings, html, markdown, names, resources, summary, tables, terminal, view, write
from pgdyno.report.cells import COUNT, DASH, HALF_WIDTH, MS, PERCENT, SIZE, Column, Table, cells, column
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store import reading, rundir
from pgdyno.store.reading import RunData
from rich.console import Console

from tests.support import reports, synthetic
from tests.support.cli import pgdyno
from tests.support.tells import tells

#: Of a device, as iostat -x has it, and of a kind of process.
DEVICE = {
    "reads_per_s": 10.0, "writes_per_s": 500.0, "read_bytes_per_s": 8e4, "write_bytes_per_s": 4e6,
    "read_request_bytes": 8192.0, "write_request_bytes": 8192.0, "read_await_ns": 2e5, "write_await_ns": 3e5,
    "flushes_per_s": 5.0, "flush_await_ns": 1e6, "queue": 0.5, "utilisation": 0.25,
}  # fmt: skip
PROCESS = {"processes": 8.0, "cpu": 0.5, "waiting_for_cpu": 0.1, "read_bytes_per_s": 1e6, "write_bytes_per_s": 2e6}
SAMPLED = {
    "devices": [{"device": "xvda", "holds": "data", **DEVICE}],
    "processes": [{"kind": "client backend", **PROCESS}, {"kind": "walwriter", **PROCESS}],
    "locks": [
        {
            "kind": "relation",
            "mode": "RowExclusiveLock",
            "relation": "",
            "granted": 4.0,
            "fast_path": 3.0,
            "waiting": 0.0,
        },
        {"kind": "relation", "mode": "ShareLock", "relation": "a", "granted": 0.0, "fast_path": 0.0, "waiting": 1.5},
    ],
    "sizes": lambda i: [
        {"database_bytes": (8 << 30) + i * 2e6, "wal_bytes": (16 << 20) * (1 + i % 2), "wal_files": 1.0}
    ],
}
COUNTED = {
    "calls": 100.0, "ms": 50.0, "rows": 100.0, "blocks_hit": 400.0, "blocks_read": 10.0, "blocks_dirtied": 50.0,
    "temp_blocks_read": 0.0, "temp_blocks_written": 1.0, "wal_bytes": 25_000.0, "wal_full_pages": 2.0, "jit_ms": 0.0,
}  # fmt: skip
TOTALS = {
    "statements": [
        {"id": "1", "statement": "SELECT $1", "script": "s.sql", "line": 1.0, **COUNTED},
        {"id": "2", "statement": "select of somebody else", "script": "", "line": 0.0, **{**COUNTED, "ms": 10.0}},
    ],
    "buffers": [
        {"relation": "a", "buffers": 100.0, "main": 98.0, "dirty": 5.0, "usage": 3.5, "pages": 200.0},
        {"relation": "unused", "buffers": 300.0, "main": 0.0, "dirty": 0.0, "usage": 0.0, "pages": 0.0},
    ],
}
PLACE = {
    "target": "t", "cpus": 2.0, "memory_bytes": 4 << 30, "rows": 500, "server": {"version": "PostgreSQL 18"},
    "dataset": {
        "name": "tpcb scale=1", "loaded": True, "method": "direct", "rows": 100, "bytes": {"a": 10_000_000},
        "phases_s": {"generate": 0.5, "keys": 0.25, "vacuum": 0.25},
        "devices": [{"phase": "vacuum", "seconds": 0.25, "device": "xvda", **DEVICE}],
        "relations": [
            {"name": "a", "table": "a", "kind": "table", "method": "heap", "rows": 100, "bytes": 8192},
            {"name": "a_pkey", "table": "a", "kind": "index", "method": "btree", "rows": 100, "bytes": 8192, "level": 4, "buffers": 6},
        ],
    },
}  # fmt: skip
STREAM = {
    "operations": 1000, "iops": 1000.0, "bytes_per_s": 8e6, "mean_ns": 2e5, "stddev_ns": 1e5, "p50_ns": 100_000,
    "p95_ns": 500_000, "p99_ns": 1_000_000, "p999_ns": 2_000_000, "max_ns": 10_000_000,
}  # fmt: skip
SMALL = "the file is smaller than twice the memory: the buffered jobs tell of the page cache more than of the storage (--size sets a larger one)"
PROBE = {
    "path": "/x", "file_system": "ext4", "device": "/dev/x", "threads": 2, "seconds": 1.0, "file_bytes": 1 << 20, "caveats": [SMALL],
    "jobs": [{"name": "rd", "title": "random direct", "read": STREAM, "write": STREAM}],
    "syncs": [{"group": "Compare file sync methods using one 8kB write", "method": "fdatasync", "operations_per_s": 5000.0}],
}  # fmt: skip
CAPACITY = {
    "objective": "p99 < 5 ms", "below_ns": 5e6, "rate": 100.0, "above": 103.0, "bracketed": True, "closed_tps": 200.0,
    "probes": [{"rate": 100.0, "done": 100.0, "latency_ns": 1e6, "holds": True}],
}  # fmt: skip


def full(tmp_path: Path, **more: Any) -> RunData:
    """A run that has something for every table."""
    manifest: dict[str, Any] = {
        "places": {"t, dataset": PLACE, "u, dataset": {**PLACE, "target": "u"}}, "storage_probes": {"t": PROBE},
        "capacity": CAPACITY, "shrunk": ["rows 10 to 1"], "source": "a paper", "not_recorded": ["x: y"],
        "workloads": {"w": "write QPS"}, "workloads_zh": {"w": "写 QPS"}, "title_zh": "题目", "note": "A note.",
        "note_zh": "说明。", **more,
    }  # fmt: skip
    plans = synthetic.plans([1, 2, 4, 8], 3, target=["t", "u"])
    run = synthetic.make_run(
        tmp_path, plans, lambda p, i, r: 100 * p.clients * r.uniform(0.9, 1.1), manifest=manifest, sampled=SAMPLED,
        totals=TOTALS,
    )  # fmt: skip
    data = reading.read(run)
    data.trials[0] = type(data.trials[0])(
        data.trials[0].plan, "failed", "2026", Name("it broke"), data.trials[0].summary, list(Caveat), {}, 7
    )
    data.trials[1] = replace(data.trials[1], rows_per_transaction=1000)
    return data


def test_every_table_is_there_and_figures_lead_to_trials(tmp_path: Path) -> None:
    v = view.build(RunAnalysis(full(tmp_path)))
    names = [t.name for t in v.tables]
    # The rates of a search are not compared with each other.
    assert names == [
        "findings", "capacity", "qps", "rows", "detail", "time", "statements", "server", "devices", "processes",
        "server-statements", "buffers", "locks", "growth", "loading", "sizes", "storage", "syncs", "outcomes", "trials",
    ]  # fmt: skip
    for name in ("capacity", "qps", "detail", "time", "server"):
        table = v.table(name)
        assert table is not None
        for row in table.cells:
            assert any(c.trials for c in row), f"{name}: {row}"
    by_statement = v.table("statements")
    assert by_statement is not None
    figures, widths = by_statement.keys.index("mean ms"), by_statement.keys.index("mean ±")
    for row in by_statement.cells:
        assert all(c.trials for c in row[figures:widths])
        # An interval that so few values do not give leads nowhere.
        assert all(c.trials or c.value == DASH for c in row[widths:])
        assert row[widths].value != DASH
    sizes = v.table("sizes")
    assert sizes is not None and "4" in sizes.texts()[1] and sizes.texts()[0][0] == "t"
    assert v.shrunk == [Name("rows 10 to 1")]


def test_what_the_server_counted_stands_by_the_names_of_scripts(tmp_path: Path) -> None:
    v = view.build(RunAnalysis(full(tmp_path)))
    by_server = v.table("server-statements")
    assert by_server is not None
    first, second = by_server.texts()[:2]
    # Of two repetitions together (one has failed); each call took 0.5 ms.
    assert first[1:4] == ["SELECT 1", "200", "0.5"] and second[1] == "select of somebody else"
    assert first[by_server.keys.index("WAL B")] == "250"
    locks = v.table("locks")
    assert locks is not None and [row[1:] for row in locks.texts()[:2]] == [
        ["relation", "ShareLock", "a", "1.50", "0.00", "0.00"], ["relation", "RowExclusiveLock", "–", "0.00", "4.00", "3.00"]
    ]  # fmt: skip
    growth = v.table("growth")
    assert growth is not None and growth.texts()[0][1:] == ["8.0 GiB", "2.00", "16.0 MiB", "32.0 MiB"]
    buffers = v.table("buffers")
    assert buffers is not None and buffers.texts()[0][1:5] == ["unused", "300", "75.0%", "–"]
    assert buffers.texts()[1][3:5] == ["25.0%", "49%"]


def test_devices_are_shown_while_loading_and_side_by_side(tmp_path: Path) -> None:
    v = view.build(RunAnalysis(full(tmp_path)))
    devices = v.table("devices")
    assert devices is not None
    assert devices.texts()[0][:4] == ["loading tpcb scale=1 (t)", "vacuum (0.2 s)", "xvda", "10"]
    # What a search for the capacity shows is another picture.
    run = synthetic.make_run(
        tmp_path / "two", synthetic.plans([4], 3, target=["t", "u"]), lambda *_: 100.0, sampled=SAMPLED
    )
    v = view.build(RunAnalysis(reading.read(run)))
    (beside,) = [c for c in v.charts if c.name == "sides"]
    panels = beside.figure.panels
    titles = [p.y.title for p in panels[::2]]
    assert titles == ["TPS", "written (MB/s)", "a write (ms)", "read (MB/s)", "utilisation (%)"]
    assert [p.title for p in panels[:2]] == ["target = t", "target = u"]
    # Both sides have one scale.
    assert all(a.y == b.y and a.x == b.x for a, b in zip(panels[::2], panels[1::2], strict=True))


def test_tables_are_csv_that_programs_read(tmp_path: Path) -> None:
    v = view.build(RunAnalysis(full(tmp_path)))
    table = v.table("detail")
    assert table is not None
    rows = list(csv.reader(io.StringIO(table.as_csv)))
    assert [c.removesuffix(" s") for c in rows[0]] == [c.removesuffix(" ms") for c in table.keys]
    assert len(rows) == len(table.cells) + 1
    tps = rows[0].index("TPS")
    assert all(float(r[tps]) > 0 for r in rows[1:])
    written = write.write(v, rundir.RunDirectory(tmp_path).write_text)
    assert [p.name for p in written] == ["report.html", "report.md"]
    assert {f"report-{t.name}.csv" for t in v.tables} <= {p.name for p in tmp_path.glob("*.csv")}


def test_markdown_has_charts(tmp_path: Path) -> None:
    v = view.build(RunAnalysis(full(tmp_path)))
    text = write.write(v, rundir.RunDirectory(tmp_path).write_text)[1].read_text(encoding="utf-8")
    named = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", text)
    drawn = {p.name for p in tmp_path.glob("*.svg")}
    assert set(named) == drawn == {f"report-{c.name}.svg" for c in v.charts}


def test_one_chart_is_written_as_a_figure(tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path, synthetic.plans([1, 2], 3), lambda p, i, r: 100.0 * p.clients)
    done = pgdyno("report", run, "--figure", tmp_path / "tps.svg")
    assert (done.code, done.out) == (0, "") and done.err == f"figure: {tmp_path / 'tps.svg'}\n"
    text = (tmp_path / "tps.svg").read_text()
    ET.fromstring(text)
    # It says what it shows, and where it was measured.
    assert tells(text, "chart-tps") and "Made up" in text and "6 of 6 trials" in text
    assert not (run / "report.html").exists()
    for name, *more in (("tps.png",), ("tps.svg", "--json")):
        refused = pgdyno("report", run, "--figure", tmp_path / "x" / name, *more)
        assert refused.code == 2 and (more or "tps.svg" in refused.err)


def test_the_chinese_report_has_no_english_sentence(tmp_path: Path) -> None:
    v = view.build(RunAnalysis(full(tmp_path)), lang="zh")
    assert reports.english(html.render(v)) == []
    assert "容量" in html.render(v) and "写 QPS" in html.render(v)
    drawn = [x for c in v.charts for x in reports.titles(c.figure)]
    assert [x for x in drawn if re.search(r"[a-z]+ [a-z]+ [a-z]+", x)] == []


@pytest.mark.sampled(1)
@pytest.mark.parametrize("lang", i18n.LANGUAGES)
def test_80_columns_hold_everything(tmp_path: Path, lang: str) -> None:
    out = io.StringIO()
    console = Console(file=out, width=80, highlight=False)
    terminal.render(view.build(RunAnalysis(full(tmp_path)), with_charts=False, lang=lang), console)
    from rich.cells import cell_len

    assert max(cell_len(line.rstrip()) for line in out.getvalue().splitlines()) <= 80
    assert "100" in out.getvalue()


def test_text_from_outside_stays_text(tmp_path: Path) -> None:
    bad = "<img src=x onerror=alert(1)>|`"
    data = full(tmp_path, title=bad, error=bad, source=bad, shrunk=[bad])
    page = html.render(view.build(RunAnalysis(data)))
    assert "<img src=x" not in page
    text = markdown.render(view.build(RunAnalysis(data), with_charts=False), {})
    assert "\\|" in text


@pytest.mark.slow
def test_markdown_leads_to_folders_and_ends_early(tmp_path: Path) -> None:
    plans = synthetic.plans(list(range(1, 351)), 1)
    run = synthetic.make_run(tmp_path, plans, lambda *_: 5.0, intervals=1)
    text = markdown.render(view.build(RunAnalysis(reading.read(run)), with_charts=False), {})
    assert f"(trials/{plans[0].folder}/)" in text
    assert "report-trials.csv" in text and "350" in text


def test_variants_are_in_the_order_of_the_experiment(tmp_path: Path) -> None:
    plans = synthetic.plans([1], 3, full_page_writes=[True, False])
    run = synthetic.make_run(tmp_path, plans, lambda p, i, r: r.uniform(99, 101))
    v = view.build(RunAnalysis(reading.read(run)), with_charts=False)
    table = v.table("comparisons")
    assert table is not None and table.title == message("table-compared-one", what=Name("full_page_writes: off vs on"))


def test_a_long_series_is_thinned_and_keeps_its_dips(tmp_path: Path) -> None:
    run = synthetic.make_run(
        tmp_path, [TrialPlan(1, "w", 1.0, 1, 1)], lambda p, i, r: 1.0 if i == 4321 else 1000.0, intervals=5000
    )
    v = view.build(RunAnalysis(reading.read(run)))
    chart = next(c for c in v.charts if c.name == "throughput")
    (line,) = chart.figure.panels[0].marks
    assert isinstance(line, Line) and len(line.points) <= 900 and min(y for _, y in line.points) == 1
    table = v.table("time")
    assert table is not None and table.texts()[0][table.keys.index("lowest")] == "1"


def test_eighty_columns_say_what_each_row_is_about(tmp_path: Path) -> None:
    """Several axes with long names: rows are told apart, and latencies keep their intervals."""
    plans = [
        TrialPlan(n, "read-only", 1.0, 2, r, {"full_page_writes": f, "work_mem": w})
        for n, (r, f, w) in enumerate(itertools.product((1, 2, 3), (True, False), ("4MB", "64MB")), 1)
    ]
    run = synthetic.make_run(tmp_path, plans, lambda p, i, r: 1000 * r.uniform(0.9, 1.1))
    out = io.StringIO()
    console = Console(file=out, width=80, highlight=False)
    terminal.render(view.build(RunAnalysis(reading.read(run))), console)
    text = out.getvalue()
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    compared = text[text.index("Compared") : text.index("Queries per second")]
    assert "…" not in compared and "verdict" in compared
    flat = "".join(compared.split())
    assert "work_mem=64MB" in flat and "work_mem=4MB" in flat and "c=2" not in flat
    figures = text[text.index("Throughput and latency") : text.index("Latency by statement")]
    assert "p99 ±" in figures and "full_page_writes=off" in figures


def test_columns_that_tell_rows_apart_go_last(tmp_path: Path) -> None:
    plans = [
        TrialPlan(n, "a-workload-whose-name-is-rather-long", hot, 2, r, {"protocol": p})
        for n, (r, hot, p) in enumerate(itertools.product((1, 2), (0.05, 1.0), ("simple", "prepared")), 1)
    ]
    title = "throughput of a workload whose title is rather long"
    facts = {"workloads": {"a-workload-whose-name-is-rather-long": title}}
    run = synthetic.make_run(tmp_path, plans, lambda p, i, r: 1000 * r.uniform(0.9, 1.1), manifest=facts)
    out = io.StringIO()
    terminal.render(view.build(RunAnalysis(reading.read(run))), Console(file=out, width=80, highlight=False))
    for name in ("Queries per second", "Throughput and latency"):
        table = out.getvalue().split(name)[1].split("\n\n")[0]
        assert "…" not in table and all(x in table for x in ("protocol", "simple", "prepared", "5%", "100%")), table


def test_an_interval_that_reaches_below_zero_is_not_symmetric() -> None:
    assert [plus_minus(x) for x in (None, 0.034, 1.0, 14.456)] == ["–", "3.4%", "100.0%", ">100%"]


def test_the_answer_has_the_tables_figures(tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path, synthetic.plans([4, 8], 3), lambda p, i, r: 100.0 * p.clients)
    v = view.build(RunAnalysis(reading.read(run)), with_charts=False)
    detail = v.table("detail")
    assert detail is not None and len(v.answer) == 1
    (row,) = [dict(zip(detail.keys, r, strict=True)) for r in detail.texts() if "8" in r[:4]]
    (text,) = reports.words(v.answer)
    assert f"{row['TPS']} TPS" in text and f"p99 {row['p99 ms']} ms with 8 clients" in text


def test_a_slope_over_repetitions_is_said(tmp_path: Path) -> None:
    """2,297 to 895 TPS over the repetitions, each as level as can be, was a drift of +0.0%."""
    for n, levels, wanted in (
        (3, [2297, 1400, 895], True),
        (3, [1000, 960, 920], False),
        (8, [1000 - 30 * i for i in range(8)], True),
        (8, [1000, 1200, 900, 1100, 1000, 1150, 950, 1050], False),
    ):
        plans = synthetic.plans([4], n)
        run = synthetic.make_run(
            tmp_path, plans, lambda p, i, r, of=levels: of[p.repetition - 1], name=f"n{sum(levels)}"
        )
        v = view.build(RunAnalysis(reading.read(run)), with_charts=False)
        assert (Caveat.DRIFT.message in [c.text for c in v.caveats]) == wanted, levels


def test_rows_of_the_planner_are_about(tmp_path: Path) -> None:
    sizes = view.build(RunAnalysis(full(tmp_path)), with_charts=False).table("sizes")
    assert sizes is not None and all(row[sizes.keys.index("rows")].startswith("~") for row in sizes.texts())


@pytest.mark.parametrize(
    ("text", "last"),
    [
        (
            "The CPUs are 94% busy (PostgreSQL 59%, others 1%): backends waited for a CPU",
            "(PostgreSQL 59%, others 1%) …",
        ),
        ("one two three four five six seven eight nine ten eleven twelve thirteen", "seven eight nine ten eleven …"),
        ("short", "short"),
    ],
)
def test_a_reason_ends_with_a_clause(text: str, last: str) -> None:
    """Neither within brackets nor within a clause, where it has several."""
    assert summary._cut(text, 32, 2)[-1] == last


def test_a_name_is_not_cut_within_a_word() -> None:
    assert terminal._heading("synchronous_commit") == "synchronous_commit"
    assert terminal._heading("rows a transaction") == "rows a\ntransaction"


@pytest.mark.parametrize(
    ("restart", "reached", "phase"),
    [
        ("if_possible", {}, "phase-cold"),
        (True, {}, "phase-cold"),
        (False, {}, "phase-warmup"),
        ("if_possible", {"host": "h"}, "phase-warmup"),
    ],
)
def test_processes_are_told_cold_where_the_server_was_restarted(
    tmp_path: Path, restart: object, reached: dict[str, Any], phase: str
) -> None:
    run = synthetic.make_run(
        tmp_path, synthetic.plans([4], 1), lambda *_: 1000.0, warmup=5,
        sampled={"processes": [{"kind": "client backend", **PROCESS}]},
        manifest={"run": {"repetitions": 1, "between": {"restart": restart}}, "places": {"": {"reached": reached}}},
    )  # fmt: skip
    data = reading.read(run)
    found = [row[1].value for row in resources.processes(RunAnalysis(data)).cells]
    assert found == [Message(phase), message("phase-measured")]


def test_csv_has_values_with_their_units() -> None:
    """Nothing is read back from a text: what is no figure stays as it is, and a bound keeps its figure."""
    columns = [Column("what", Name("what")), column("n", COUNT), column("±", HALF_WIDTH), column("p99 ms", MS)]
    columns += [column("size", SIZE), column("share", PERCENT)]
    rows = [cells(["64 kB", 3, 1.5, 2_500_000, 65536.0, None]), cells(["a", 2, 0.034, 1e5, 1.0, 0.16])]
    table = Table("t", Name("T"), columns, rows)
    assert table.texts()[0] == ["64 kB", "3", ">100%", "2.50", "64.0 KiB", "–"]
    assert table.as_csv.splitlines() == [
        "what,n,±,p99 s,size,share", "64 kB,3,1.5,0.0025,65536,", "a,2,0.034,0.0001,1,0.16"
    ]  # fmt: skip
    assert table.numbers[0] == [None, 3, 1.5, 0.0025, 65536.0, None]


@pytest.mark.parametrize("lang", i18n.LANGUAGES)
def test_what_the_user_typed_is_not_changed(tmp_path: Path, lang: str) -> None:
    """Names, notes and settings stay letter by letter, also where they are words of the catalogues."""
    plans = [
        TrialPlan(n, "orders-read-only-v2", 1.0, 8, n, {"statement_timeout": value})
        for n, value in enumerate(("5 min", "QPS"), 1)
    ]
    facts = {"note": "QPS, clients: see (above).", "title": "rows; by script"}
    run = synthetic.make_run(tmp_path, plans, lambda *_: 1000.0, manifest=facts)
    page = html.render(view.build(RunAnalysis(reading.read(run)), lang=lang))
    for own in ("orders-read-only-v2", "statement_timeout = 5 min", "QPS, clients: see (above).", "rows; by script"):
        assert own in page, own
    (group, _) = RunAnalysis(reading.read(run)).groups
    assert i18n.text(names.configuration(group), lang).startswith("orders-read-only-v2")


def test_markdown_shows_hostile_words_as_they_are(tmp_path: Path) -> None:
    title = "[click](javascript:alert(1)) \x1b]0;owned\x07 <script> https://example.org"
    run = synthetic.make_run(tmp_path, synthetic.plans([4], 1), lambda *_: 1000.0, manifest={"title": title})
    text = markdown.render(view.build(RunAnalysis(reading.read(run))), {})
    assert "[click]" not in text and r"\[click\](javascript" in text
    assert "\x1b" not in text and "<script>" not in text and "https://example" not in text


def shown(tmp_path: Path, lang: str = "en", **made: Any) -> list[str]:
    """The lines of the summary of a run, at 80 columns."""
    plans = made.pop("plans")
    run = synthetic.make_run(tmp_path, plans, made.pop("tps", lambda p, i, r: 1000.0 * p.clients), **made)
    out = io.StringIO()
    v = view.build(RunAnalysis(reading.read(run)), with_charts=False, lang=lang)
    summary.render(v, Console(file=out, width=80, highlight=False))
    return [line.rstrip() for line in out.getvalue().splitlines()]


WAIT = {"ours": 1.0, "kind": "client backend", "state": "active", "wait_type": "IO", "wait": "WalSync", "processes": 4.0,
        "looks": 10.0}  # fmt: skip


@pytest.mark.parametrize("lang", i18n.LANGUAGES)
def test_the_summary_fits_one_screen(tmp_path: Path, lang: str) -> None:
    """At most four lines of answer, one table, three reasons in two lines each, and the caveats."""
    from rich.cells import cell_len

    lines = shown(tmp_path, lang, plans=synthetic.plans([2, 4, 8], 2), sampled={"waits": [WAIT]})
    assert max(cell_len(line) for line in lines) <= 80
    answer, table, reasons, *_ = "\n".join(lines).split("\n\n")
    begin = "w: 8,000 TPS (95% CI ±0.0%, n=2), p99 " if lang == "en" else "w：8,000 TPS（95% 区间 ±0.0%，n=2），p99 "
    assert answer.startswith(begin) and len(answer.split("\n")) <= 4
    assert len(table.split("\n")) <= 3 + 3 and len(reasons.split("\n")) <= 3 * 2
    assert ("WAL" in reasons) and ("--details" in lines[-1])
    assert any(line.startswith(("Caveats: ", "注意事项：")) for line in lines)


def test_one_configuration_is_no_matrix_of_one_row(tmp_path: Path) -> None:
    lines = shown(tmp_path, plans=synthetic.plans([8], 3), tps=lambda p, i, r: 1000 * r.uniform(0.98, 1.02))
    figures = " ".join(lines[2:4])
    assert re.match(r"clients 8 · TPS [\d,]+ ±[\d.]+% .*· n 3 · p50 .* · p99\.9 0\.\d+ ms$", figures), figures
    assert not any(line.startswith("workload") for line in lines)


@pytest.mark.parametrize("lang", i18n.LANGUAGES)
def test_what_went_wrong_in_trials_stands_above_the_answer(tmp_path: Path, lang: str) -> None:
    """A caveat that ends a run with exit code 1 is not one of many below the table."""
    run = synthetic.make_run(tmp_path, synthetic.plans([8], 3), lambda *_: 1000.0)
    data = reading.read(run)
    data.trials[:] = [replace(t, caveats=[Caveat.SHORT, Caveat.FAILURES]) for t in data.trials]
    out = io.StringIO()
    v = view.build(RunAnalysis(data), with_charts=False, lang=lang)
    summary.render(v, Console(file=out, width=80, highlight=False))
    first = out.getvalue().splitlines()[0]
    assert first.startswith("问题：" if lang == "zh" else "Problem: "), first
    assert i18n.text(Caveat.FAILURES.message, lang)[:12] in out.getvalue()
    assert v.caveats[0] == v.wrong[0]


def _run_of_commits(tmp_path: Path, pages: float) -> RunAnalysis:
    """A run of two values of synchronous_commit; `pages` full-page images a second are in its WAL."""
    fast = {"on": 1000.0, "off": 1500.0}
    counters = {"wal_bytes_per_s": 900_000.0, "wal_full_pages_per_s": pages, "commits_per_s": 1000.0}
    plans = synthetic.plans([8], 6, synchronous_commit=["on", "off"])
    run = synthetic.make_run(
        tmp_path, plans, lambda p, i, r: fast[p.varied["synchronous_commit"]] * r.uniform(0.98, 1.02),
        sampled={"counters": [counters]},
    )  # fmt: skip
    data = reading.read(run)
    wal = {"on": 9e6, "off": 6e6}
    data.trials[:] = [
        replace(
            t, caveats=[Caveat.NOT_STEADY] if t.plan.number < 3 else [],
            activity={"wal_bytes": wal[t.plan.varied["synchronous_commit"]], "transactions": 10_000.0},
        )
        for t in data.trials
    ]  # fmt: skip
    return RunAnalysis(data)


@pytest.mark.parametrize(("pages", "is_most"), [(80.0, True), (20.0, False)])
def test_wal_that_is_mostly_full_page_images_is_said_to_be(tmp_path: Path, pages: float, is_most: bool) -> None:
    """A transaction writes less of them where more transactions fit between two checkpoints."""
    said = " ".join(reports.words(view.build(_run_of_commits(tmp_path, pages), with_charts=False).answer))
    assert "WAL/tx falls by 33% to 33% (900 B to 600 B" in said
    assert (", mostly full-page images)" in said) is is_most


def test_the_terminal_says_what_the_faster_side_risks_and_how_many_trials_a_caveat_has(tmp_path: Path) -> None:
    out = io.StringIO()
    v = view.build(_run_of_commits(tmp_path, 80.0), with_charts=False)
    summary.render(v, Console(file=out, width=80, highlight=False))
    said = " ".join(out.getvalue().split())
    assert "Caveats: with synchronous_commit = off a crash can lose the last commits (not measured here); " in said
    assert "(2 of 12 trials)" in said
    assert said.count("Why: ") == 1


def test_names_beside_each_other_have_only_what_differs(tmp_path: Path) -> None:
    groups = _run_of_commits(tmp_path, 80.0).groups
    assert [i18n.text(x) for x in names.apart(groups)] == ["synchronous_commit = on", "synchronous_commit = off"]
    assert i18n.text(names.apart(groups[:1])[0]) == "w, synchronous_commit = on, 8 clients"


def test_several_reasons_name_what_tells_their_pairs_apart() -> None:
    one, other = (Pair(None, None, "w c=8", d) for d in ("x: 2 vs 1", "x: 3 vs 1"))  # type: ignore[arg-type]
    elsewhere = replace(one, label="w c=16")
    assert i18n.text(findings.label(one, [one, other])) == "x: 2 vs 1"
    assert i18n.text(findings.label(one, [one, elsewhere])) == "w c=8"
    assert i18n.text(findings.label(one, [one, other, elsewhere])) == "w c=8, x: 2 vs 1"


def test_a_run_that_went_wrong_says_so_first(tmp_path: Path) -> None:
    lines = shown(tmp_path, plans=synthetic.plans([8], 1), manifest={"error": "the disk is full"})
    assert tells(lines[0], "heading-error") and lines[0].endswith(" the disk is full")


def test_work_per_row_does_not_grow_with_the_number_of_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand trials have thousands of configurations: what is one fact of a run is looked for once a table."""
    calls = []
    counted = tables.variant_column
    monkeypatch.setattr(tables, "variant_column", lambda groups: calls.append(len(groups)) or counted(groups))
    asked = []
    for n in (3, 30):
        plans = synthetic.plans(list(range(1, n + 1)), 1)
        run = synthetic.make_run(tmp_path, plans, lambda *_: 100.0, intervals=3, name=f"r{n}")
        calls.clear()
        view.build(RunAnalysis(reading.read(run)))
        asked.append(len(calls))
    assert asked[0] == asked[1], asked


def test_a_table_of_very_many_statements_says_that_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = synthetic.make_run(tmp_path, synthetic.plans([1, 2, 4, 8], 1), lambda *_: 100.0, intervals=3)
    whole = tables.statements(RunAnalysis(reading.read(made)))
    assert len(whole.cells) == 4 and not tells(whole.notes(), "note-statements-cut")
    monkeypatch.setattr(tables, "MOST_STATEMENTS", 2)
    cut = tables.statements(RunAnalysis(reading.read(made)))
    assert len(cut.cells) == 2 and tells(cut.notes(), "note-statements-cut", n=2, of=4)
