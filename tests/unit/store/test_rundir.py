"""The run directory: what was written is read, also after a kill at any byte."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pgdyno import i18n
from pgdyno._core import Histogram
from pgdyno.errors import LocalError, RefusedError, UsageError
from pgdyno.figures import FIGURES
from pgdyno.judge import history, runs
from pgdyno.load.result import CHECK, Loaded
from pgdyno.message import Message, Name, listed, message
from pgdyno.model import Caveat, EventKind, IntervalRow, Latency, StatementLatency, TrialPlan, TrialSummary
from pgdyno.report import html, markdown, view
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store import hlog, layout, query, reading, rundir, texts
from pgdyno.store.manifest import LoadedDataset
from pgdyno.store.writing import now_text, replace_file

from tests.support import reports, synthetic
from tests.support.cli import pgdyno
from tests.support.tells import telling, tells

PLAN = TrialPlan(1, "read-only", 0.1, 4, 1)


def row(index: int, phase: str = "measure", committed: int = 10) -> IntervalRow:
    s = 1_000_000_000
    return IntervalRow(
        index, phase, index * s, (index + 1) * s, committed, committed, 0, 0, 0, 0, 0, committed, 0, 0, 0, 1, 5e6,
        5_000_000, 6_000_000, 7_000_000, 8_000_000, 9_000_000, 0, "",
    )  # fmt: skip


def histogram(*values_ms: float) -> Histogram:
    h = Histogram()
    for v in values_ms:
        h.record(int(v * 1e6))
    return h


def summary() -> TrialSummary:
    latency = Latency(20, 5e6, 1e6, 9_000_000, 5_000_000, 6_000_000, 7_000_000, 8_000_000)
    statements = [StatementLatency("ro.sql", 2, "SELECT | 1", latency)]
    return TrialSummary(10, 10, 2, 20, 20, {}, 0, 0, 0, 0, 0, 0.1, 0.01, latency, statements)


def make(tmp_path: Path) -> tuple[rundir.RunDirectory, rundir.TrialWriter]:
    run = rundir.RunDirectory.create(tmp_path, "t", "name = 't'\n")
    run.update_manifest(
        title="T", workloads={"read-only": "read-only QPS"}, rows=1000, run={"repetitions": 1}, trials=1
    )
    writer = run.begin_trial(PLAN, {"scale": "1"})
    writer.start(1_700_000_000_000_000_000)
    writer.interval(row(0, "warmup"), {hlog.TRANSACTION: histogram(100.0)})
    for i in (1, 2):
        tags = {hlog.TRANSACTION: histogram(*[1.0] * 9, 2.0), hlog.statement(0): histogram(0.5)}
        writer.interval(row(i), tags)
    return run, writer


def test_what_was_written_is_read(tmp_path: Path) -> None:
    run, writer = make(tmp_path)
    writer.event(5, "connection_lost", Name("gone"), client=3)
    writer.finish("finished", summary(), [Caveat.SHORT])
    data = reading.read(run.path)
    (trial,) = data.trials
    assert trial.plan == PLAN and trial.summary == summary() and trial.caveats == [Caveat.SHORT]
    assert [r.index for r in data.series[1]] == [0, 1, 2]
    h = data.histogram(hlog.TRANSACTION, PLAN.key)
    assert h.count == 20, "the warm-up is not counted"
    assert h.percentile(50) == pytest.approx(1e6, rel=1e-3) and h.max == pytest.approx(2e6, rel=1e-3)
    assert data.histogram(hlog.statement(0), PLAN.key).count == 2
    # A single repetition speaks for itself.
    assert data.pooled[PLAN.key] == summary().latency
    assert [s.latency for s in data.pooled_statements[PLAN.key]] == [s.latency for s in summary().statements]
    text = markdown.render(view.build(RunAnalysis(data)), {})
    assert "SELECT \\| 1" in text and "read-only QPS" in text


def test_every_cut_of_a_running_trial_is_readable(tmp_path: Path) -> None:
    run, _ = make(tmp_path)
    folder = next((run.path / "trials").iterdir())
    for name in ("intervals.jsonl", "latency.hlog"):
        whole = (folder / name).read_bytes()
        for cut in range(0, len(whole), 7):
            (folder / name).write_bytes(whole[:cut])
            data = reading.read(run.path)
            assert data.trials[0].state == "interrupted"
            assert len(data.series[1]) <= 3
        (folder / name).write_bytes(whole)
    (folder / "trial.json").write_text('{"plan": {"numb')
    assert reading.read(run.path).trials == []


def test_logs_are_in_the_standard_format(tmp_path: Path) -> None:
    lines = (
        hlog.header(1_700_000_000_000_000_000) + hlog.line("transaction", 0, 10**9, histogram(1.0, 3.0))
    ).splitlines()
    assert lines[0] == "#[Histogram log format version 1.3]"
    assert lines[2].startswith("#[StartTime: 1700000000.000 (seconds since epoch), Tue Nov 14")
    tag, start, length, peak, data = lines[-1].split(",")
    assert (tag, float(start), float(length)) == ("Tag=transaction", 0.0, 1.0)
    assert float(peak) == pytest.approx(3.0, rel=1e-3)
    assert data.startswith("HISTFAAA"), "the cookie of the compressed V2 encoding, in base64"


def test_two_runs_in_one_second_have_two_folders(tmp_path: Path) -> None:
    paths = {rundir.RunDirectory.create(tmp_path, "t", "").path for _ in range(3)}
    assert len(paths) == 3


def test_what_is_no_run_directory_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a run directory"):
        reading.read(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(UsageError, match="cannot be read"):
        reading.read(tmp_path)
    with pytest.raises(LocalError, match="cannot write"):
        rundir.RunDirectory.create(Path("/proc/nowhere"), "t", "")


def test_replacing_a_file_leaves_no_half_of_it(tmp_path: Path) -> None:
    replace_file(tmp_path / "f", "one")
    replace_file(tmp_path / "f", "two")
    assert (tmp_path / "f").read_text() == "two" and [p.name for p in tmp_path.iterdir()] == ["f"]
    assert json.dumps(now_text())


def test_no_file_is_written_through_a_link(tmp_path: Path) -> None:
    """A run directory may come from a stranger: links of any name that pgdyno writes lead nowhere."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    run = rundir.RunDirectory.create(tmp_path, "t", "")
    for name in (".f.new", "f", ".manifest.json.new", "manifest.json"):
        (run.path / name).symlink_to(victim)
    run.write_text("f", "report")
    run.update_manifest(title="T")
    assert victim.read_text() == "precious" and (run.path / "f").read_text() == "report"
    del run
    path = next(p for p in tmp_path.iterdir() if p.is_dir())
    (path / ".lock").unlink()
    (path / ".lock").symlink_to(victim)
    with pytest.raises(LocalError, match="symbolic links"):
        rundir.RunDirectory.resume(path)
    (path / ".lock").unlink()
    (path / "trials").rmdir()
    (path / "trials").symlink_to(tmp_path)
    with telling(RefusedError, "error-link-nothing-written-through"):
        rundir.RunDirectory.resume(path)
    assert victim.read_text() == "precious" and sorted(p.name for p in tmp_path.iterdir()) == [path.name, "victim"]


def test_a_warm_up_that_was_left_out_is_in_no_table(tmp_path: Path) -> None:
    """The intervals that turned out to be warm-up count neither in percentiles nor in the series of the measurement."""
    run = rundir.RunDirectory.create(tmp_path, "x", "")
    run.update_manifest(name="x")
    writer = run.begin_trial(PLAN, {})
    writer.start(0)
    slow, fast = Histogram(), Histogram()
    slow.record(50_000_000)
    fast.record(1_000_000)
    writer.interval(synthetic.row(0, 1.0, 10, 50_000_000), {hlog.TRANSACTION: slow})
    writer.interval(synthetic.row(1, 1.0, 100, 1_000_000), {hlog.TRANSACTION: fast})
    made = synthetic.make_run(tmp_path, [PLAN], lambda *_: 1.0, intervals=1)
    summary = reading.read(made).trials[0].summary
    writer.finish("finished", summary, [], dropped_until_ns=1_000_000_000, merged={hlog.TRANSACTION: fast})
    data = reading.read(run.path)
    assert [r.phase for r in data.series[PLAN.number]] == ["dropped", "measure"]
    latency = data.histogram(hlog.TRANSACTION, PLAN.key)
    assert latency.count == 1 and latency.max < 2_000_000


# ---------------------------------------------------------------- the run record


def made(tmp_path: Path, **more: Any) -> Path:
    return synthetic.make_run(tmp_path, synthetic.plans([2, 8], 2), lambda p, i, rng: 100.0 * p.clients, **more)


def test_files_of_the_version_before_the_schema_are_read(tmp_path: Path) -> None:
    """tests/data/schema-0 was written before manifest.json had a schema."""
    data = reading.read(Path(__file__).parents[2] / "data" / "schema-0")
    assert data.unreadable == []
    m = data.manifest
    assert m.schema_version == 1 and m.name == "quick" and m.dataset is not None and m.dataset.name == "tpcb scale=1"
    assert m.places and m.server.setting("shared_buffers") and m.experiment is not None
    assert [t.state for t in data.trials] == ["finished", "finished"]
    summary = data.trials[0].summary
    assert summary is not None and summary.tps > 0 and summary.latency.p99_ns > 0
    # What it did not record is not made up.
    assert summary.driver == "" and data.trials[0].start_ns == 0
    assert data.series[1][0].committed > 0 and data.series[1][0].wakeup_p99_ns == 0
    v = view.build(RunAnalysis(data))
    assert v.error is None and v.table("detail") is not None


def test_what_is_written_now_has_a_schema(tmp_path: Path) -> None:
    run = made(tmp_path)
    for file in [run / "manifest.json", *run.glob("trials/*/trial.json")]:
        assert json.loads(file.read_text())["schema"] == 1
    newer = json.loads((run / "manifest.json").read_text()) | {"schema": 2}
    (run / "manifest.json").write_text(json.dumps(newer))
    with telling(UsageError, "why-newer-schema", schema="2", known="1"):
        reading.read(run)


@pytest.mark.parametrize(
    ("file", "damage", "why"),
    [
        ("trial.json", '{"plan": 1}', "plan"),
        ("trial.json", '{"plan": {"number": "x"', "Expecting"),
        ("trial.json", "[" * 100_000, "nested"),
        ("trial.json", "\udcff", "UTF-8"),
        ("intervals.parquet", "PAR1 and nothing else", "Parquet"),
        ("latency.merged", "transaction,!!!!", ""),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, file: str, damage: str, why: str) -> None:
    run = made(tmp_path)
    folder = sorted((run / "trials").iterdir())[0]
    (folder / file).write_bytes(damage.encode("utf-8", "surrogateescape"))
    data = reading.read(run)
    v = view.build(RunAnalysis(data))
    named = f"trials/{folder.name}/{file}"
    assert v.error is not None and f"{named} cannot be read" in i18n.text(v.error), "at the top of the report"
    assert [name for name, _ in data.unreadable] == [named] and why in i18n.text(data.unreadable[0][1])
    assert v.table("detail") is not None, "the rest is still worth reading"
    assert named in markdown.render(v, {})


def test_a_damaged_manifest_is_said_with_its_key(tmp_path: Path) -> None:
    run = made(tmp_path)
    path = run / "manifest.json"
    whole = json.loads(path.read_text())
    for key in whole:
        if key == "schema":
            continue
        # Another type than it can be; what has no shape of its own takes anything that fits.
        for wrong in ([[]], {"x": [{}]}, -1.5e300, True, "\x00", None):
            path.write_text(json.dumps({**whole, key: wrong}))
            try:
                view.build(RunAnalysis(reading.read(run)))
            except UsageError as e:
                assert key in e.message and "manifest.json" in e.message
    for text in ("", "null", "[]", "[" * 100_000, '{"schema": "x"}', '{"places": {"p": {"dataset": 1}}}'):
        path.write_text(text)
        with pytest.raises(UsageError, match="cannot be read"):
            reading.read(run)
    path.unlink()
    path.mkdir()
    with pytest.raises(UsageError, match="cannot be read"):
        reading.read(run)
    with telling(UsageError, "error-not-run-directory-file"):
        reading.read(run / "experiment.toml")


def test_sql_reads_intervals_where_they_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path, name="a")
    made(tmp_path, name="b")
    # They do not pass through Python.
    monkeypatch.setattr(reading, "read_intervals", lambda *_: pytest.fail("read by Python"))
    columns, rows, unreadable = query.run(
        """select run, clients, count(*) n, sum(committed) done, min(at_ns) from intervals
           where phase = 'measure' group by all order by 1, 2""",
        tmp_path,
    )
    assert columns[:3] == ["run", "clients", "n"] and unreadable == []
    assert [(r[1], r[2], r[3]) for r in rows] == [(2, 40, 8000), (8, 40, 32000)] * 2
    assert all(r[4] > 1_600_000_000 * 10**9 for r in rows), "absolute times"
    names, facts, _ = query.run("select * from trials limit 1", tmp_path)
    have = dict(zip(names, facts[0], strict=True))
    assert {"server_version", "scale", "duration_s", "target", "loop", "settings", "start_ns"} <= set(have)
    assert have["loop"] == "closed" and have["p99_ns"] > 0


def test_sql_only_asks(tmp_path: Path) -> None:
    run = made(tmp_path)
    file = next(run.glob("trials/*/intervals.parquet"))
    before = file.read_bytes()
    for text in (
        f"copy (select * from intervals) to '{file}' (use_tmp_file false)",
        "select * from read_csv('/etc/passwd')",
        f"attach '{tmp_path}/x.db'",
        f"copy (select 1) to '{run}/x.csv'",
        f"copy trials from '{tmp_path}/y.csv'",
        f"explain analyze copy (select 1) to '{file}' (format parquet, use_tmp_file false) -- intervals",
        f"prepare x as copy (select 1) to '{file}' (use_tmp_file false); execute x",
    ):
        with pytest.raises(UsageError):
            query.run(text, run)
    assert file.read_bytes() == before and not (tmp_path / "x.db").exists() and not (run / "x.csv").exists()


def test_sql_copies_into_a_file_that_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path)
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "out")
    for _ in range(2):
        query.run("copy (select run, tps from trials) to 'tps.csv'", tmp_path)
        assert [p.name for p in Path().iterdir()] == ["tps.csv"]


def test_sql_gives_its_rows_to_files(tmp_path: Path) -> None:
    run = made(tmp_path)
    out = tmp_path / "out.csv"
    query.run(f"copy (select clients, tps from trials order by 1, 2 limit 2) to '{out}' (header)", run)
    assert out.read_text().startswith("clients,tps\n2,")
    found = query.run("select clients, repetition, tps, settings from trials order by 1, 2", run)
    for name in ("x.csv", "x.parquet", "x.json"):
        query.write(found, tmp_path / name)
    assert len((tmp_path / "x.csv").read_text().splitlines()) == 1 + len(found.rows)
    assert pq.read_table(tmp_path / "x.parquet").column("tps").to_pylist() == [r[2] for r in found.rows]
    assert json.loads((tmp_path / "x.json").read_text())[0]["clients"] == 2


def test_sql_does_not_mix_loops_unasked(tmp_path: Path) -> None:
    more = {"capacity": {"objective": "p99 < 5 ms", "rate": 90.0, "low": 80.0, "high": 100.0, "closed_tps": 200.0}}
    plans = [TrialPlan(n, "w", 1.0, 2, 1, {"rate": rate}) for n, rate in enumerate(("closed", 50.0, 90.0), 1)]
    run = synthetic.make_run(tmp_path, plans, lambda *_: 100.0, intervals=5, manifest=more)
    with telling(UsageError, "error-this-would-make-one-figure"):
        query.run("select avg(tps) from trials", run)
    assert query.run("select count(*) from closed", run).rows == [(1,)]
    assert query.run("select count(*), max(rate) from open", run).rows == [(2, 90.0)]
    assert query.run("select loop, avg(tps) from trials group by 1", run).rows != []
    assert query.run("select rate, low, high from capacity", run).rows == [(90.0, 80.0, 100.0)]


def test_intervals_say_by_themselves_which_and_when(tmp_path: Path) -> None:
    run = made(tmp_path)
    table = pq.read_table(next(run.glob("trials/*/intervals.parquet")))
    assert len(set(table.column("trial").to_pylist())) == 1
    times = table.column("time").to_pylist()
    assert times == sorted(times) and times[0].year >= 2020


def test_sql_tells_trials_apart_by_what_they_were_run_with(tmp_path: Path) -> None:
    run = rundir.RunDirectory.create(tmp_path, "x", "")
    run.update_manifest(name="x", scale=1, run={"duration_s": 5.0}, dataset={"name": "tpcb scale=1"})
    for number, scale in enumerate(("1", "10"), 1):
        writer = run.begin_trial(
            TrialPlan(number, "w", 1.0, 2, 1, {"scale": int(scale)}),
            {"scale": scale, "rate": 500.0, "settings": {"work_mem": f"{number}MB"}},
        )
        writer.start(0)
        writer.interval(row(0), {})
        writer.finish("finished", summary(), [])
    _, rows, _ = query.run("select scale, loop, rate, settings['work_mem'] from trials order by trial", tmp_path)
    assert rows == [(1.0, "open", 500.0, "1MB"), (10.0, "open", 500.0, "2MB")]


def test_sql_names_intervals_that_cannot_be_read(tmp_path: Path) -> None:
    whole, broken = made(tmp_path, name="whole"), made(tmp_path, name="broken")
    file = next(broken.glob("trials/*/intervals.parquet"))
    file.write_bytes(file.read_bytes()[:100])
    _, rows, unreadable = query.run("select run, count(*) from intervals group by 1 order by 1", tmp_path)
    assert dict(rows) == {broken.name: 60, whole.name: 80}
    assert [i18n.text(u).startswith(f"{broken.name}/trials/") for u in unreadable] == [True]


def test_a_repetition_that_is_missing_from_its_file_is_named(tmp_path: Path) -> None:
    run = made(tmp_path)
    file = sorted(run.glob("trials/*/latency.merged"))[0]
    file.write_text("")
    data = reading.read(run)
    assert data.pooled["w", 1.0, 2].count == 2000, "the log has it as well"
    assert [name for name, _ in data.unreadable] == [str(file.relative_to(run))]


def test_one_damaged_run_does_not_fail_the_others(tmp_path: Path) -> None:
    made(tmp_path, name="whole")
    broken = made(tmp_path, name="broken")
    (broken / "manifest.json").write_text('{"rows": "many"}')
    half = made(tmp_path, name="half")
    next(half.glob("trials/*/trial.json")).write_text("{")
    _, rows, unreadable = query.run("select count(*) from trials", tmp_path)
    assert rows == [(7,)] and len(unreadable) == 2
    assert any("rows" in u and broken.name in u for u in map(i18n.text, unreadable))
    found = history.of(tmp_path, "whole")
    assert found.runs and any("rows" in i18n.text(u) for u in found.unreadable)
    shown = pgdyno("--lang", "zh", "history", tmp_path, "--experiment", "whole", "--json")
    assert [type(u) for u in shown.json["unreadable"]] == [str] and tells(shown.json["unreadable"][0], "unreadable")
    assert "未读取" in shown.err


def test_figures_stand_in_one_table() -> None:
    names = [f.name for f in FIGURES]
    columns = [f.column for f in FIGURES]
    assert len(set(names)) == len(names) and len(set(columns)) == len(columns)
    for f in FIGURES:
        # It is there.
        f.of(summary())
        assert not f.compared or f.higher_is_better is not None
        assert (f.unit == "ns") == f.column.endswith("_ns"), f"{f.column} ends in its unit"


def test_histograms_that_are_missing_are_counted(tmp_path: Path) -> None:
    """The log stands in for the merged file; where it has fewer values than the summary, that is said."""
    for name, cut in (("gone", 0), ("short", 6)):
        run = made(tmp_path, name=name)
        folder = sorted((run / "trials").iterdir())[0]
        (folder / layout.MERGED).unlink()
        log = folder / layout.LOG
        lines = log.read_text().splitlines(keepends=True)
        log.write_text("".join(x if n < len(lines) - cut else x[:40] + "\n" for n, x in enumerate(lines)))
        if not cut:
            log.unlink()
        data = reading.read(run)
        assert data.pooled["w", 1.0, 2].count < 2000
        ((file, why),) = data.unreadable
        assert isinstance(why, Message) and (why.id, why.args["of"]) == ("why-values-missing", 1000), file


@pytest.mark.parametrize(
    ("change", "why"),
    [({"schema": 99}, "schema is 99"), ({"plan": {"varied": {"x": [1]}}}, "plan.varied.x")],
)
def test_trials_of_another_form_are_named(tmp_path: Path, change: dict[str, Any], why: str) -> None:
    run = made(tmp_path)
    file = sorted(run.glob("trials/*/trial.json"))[0]
    found = json.loads(file.read_text())
    for key, value in change.items():
        found[key] = {**found[key], **value} if isinstance(value, dict) else value
    file.write_text(json.dumps(found))
    data = reading.read(run)
    assert len(data.trials) == 3 and why in i18n.text(data.unreadable[0][1])
    # Comparisons stand on fewer repetitions then, and say why.
    warnings = runs.compare_runs([reading.read(made(tmp_path, name="whole"))], [data]).warnings
    assert any(tells(w, "warn-unreadable") and file.name in w and why in w for w in reports.words(warnings))


def test_the_time_of_loading_is_without_checks() -> None:
    phases = {"generate": 1.0, "vacuum": 0.5, CHECK: 20.0}
    assert LoadedDataset(phases_s=phases).loading_s == Loaded("direct", 1, 1, phases_s=phases).total_s == 1.5


def test_texts_of_a_record_are_written_in_each_language(tmp_path: Path) -> None:
    """Errors and events keep id and arguments; damaged ones, and those of earlier versions, their English text."""
    run, writer = make(tmp_path)
    gap = message("gap-given-up", what=Name("waits"), n=5)
    writer.event(5, EventKind.NOT_RECORDED, gap)
    failed = listed([message("error-nothing-due"), Name("words of a server")], "line")
    writer.finish("failed", None, [], failed)
    old = message("gap-old-server")
    run.update_manifest(
        not_recorded=[i18n.text(old), "of an older version"], not_recorded_messages=[texts.data_of(old)]
    )
    data = reading.read(run.path)
    (trial,), (event,) = data.trials, data.events[1]
    assert trial.error == failed and event.text == gap
    assert data.manifest.gaps == [old, Name("of an older version")]
    page = html.render(view.build(RunAnalysis(data), lang="zh"))
    assert "没有到期的事务" in page and "words of a server" in page and "未经测试" in page
    assert texts.restored("words", {"id": "of-another-version", "args": {}}) == Name("words")
    assert texts.restored("words", {"id": "gap-given-up", "args": {}}) == Name("words")
    assert texts.restored("words", [1]) == Name("words") and texts.restored("") is None


_KEYS = ("id", "args", "items", "mark", "value", "unit", "mean")
_PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "x", "gap-given-up", "line", "ms"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.fixed_dictionaries(
            {}, optional=dict.fromkeys(("id", "args", "items", "mark", "value", "unit", "mean"), inner)
        )
    ),
    max_leaves=8,
)


@given(_PLAIN)
def test_damaged_texts_are_read_in_english(data: Any) -> None:
    """Whatever a record holds in place of a message, its English text is there, and any language can be written."""
    found = texts.restored("words", data)
    assert found is not None and all(isinstance(i18n.text(found, lang), str) for lang in i18n.LANGUAGES)


def test_a_message_without_arguments_is_damage() -> None:
    for args in ([1], 5, "x", None, {"what": {"value": float("inf"), "unit": "count", "digits": None}}):
        assert i18n.text(texts.restored("words", {"id": "gap-of", "args": args}) or Name("")) == "words"


def test_trials_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    """Numbers of five digits follow those of four."""
    run = made(tmp_path)
    (first,) = list(run.glob("trials/*"))[:1]
    for number in (10_000, 9_999, 10_001):
        folder = run / "trials" / f"{number:04d}-again"
        shutil.copytree(first, folder)
        record = json.loads((folder / "trial.json").read_text())
        record["plan"]["number"] = number
        (folder / "trial.json").write_text(json.dumps(record))
    assert [t.plan.number for t in reading.read(run).trials][-3:] == [9_999, 10_000, 10_001]


def test_a_trial_of_a_newer_version_is_named(tmp_path: Path) -> None:
    run = made(tmp_path)
    file = next(run.glob("trials/*/trial.json"))
    file.write_text(json.dumps(json.loads(file.read_text()) | {"schema": 2}))
    ((named, why),) = reading.read(run).unreadable
    assert named.endswith("trial.json") and tells(i18n.text(why), "why-newer-schema", schema=2, known=1)
