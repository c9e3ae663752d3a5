"""Pages of comparisons, histories and runs: their first screen, in both languages."""

from __future__ import annotations

import html as htmllib
import os
import re
import subprocess
from pathlib import Path

import pytest
from pgdyno import i18n
from pgdyno.diagnosis.finding import Confidence, Finding, Kind
from pgdyno.judge import history
from pgdyno.load.dataset import Dataset
from pgdyno.load.result import Loaded, Progress
from pgdyno.message import Message, Name, listed, message
from pgdyno.plot.model import Bar, Line, Piece, Rule, Span, Square
from pgdyno.report import charts, findings, history_page, html, lead, load_page, view
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store import reading
from pgdyno.units import Quantity, Share

from tests.support import reports, synthetic
from tests.support.cli import PGDYNO, environment, pgdyno
from tests.support.tells import tells


def tiles(page: str) -> list[list[str]]:
    """The label, value and note of each tile of a page, with its tone."""
    found = re.findall(r'<a class="tile([^"]*)" href="#([^"]*)">(.*?)</a>', page)
    ids = set(re.findall(r'id="([^"]*)"', page))
    assert {target for _, target, _ in found} <= ids
    return [[tone.strip(), *re.findall(r">([^<]+)</span>", body)] for tone, _, body in found]


def made(folder: Path, name: str, factor: float, day: int = 1) -> Path:
    run = synthetic.make_run(
        folder / name, synthetic.plans([4, 16], 3), lambda p, i, r: factor * 1000 * p.clients * r.uniform(0.98, 1.02),
        manifest={"started_at": f"2026-01-{day:02}T00:00:00.000Z"},
    )  # fmt: skip
    return run.rename(folder / f"{name}-run")


def test_a_run_begins_with_two_sentences_and_four_tiles(tmp_path: Path) -> None:
    run = made(tmp_path, "a", 1.0)
    v = view.build(RunAnalysis(reading.read(run)))
    assert len(v.short) <= 2 and v.lead is not None and v.lead.name == "tps"
    assert [t.label.id for t in v.tiles if hasattr(t.label, "id")] == [
        "tile-throughput", "tile-p99", "tile-limit", "heading-caveats",
    ]  # fmt: skip
    # The fastest configuration is in all of them.
    assert all("16 clients" in i18n.text(t.note) for t in v.tiles[:3])
    assert re.fullmatch(r"1[56],\d{3} TPS", i18n.text(v.tiles[0].value))


def test_no_alarm_is_folded_away(tmp_path: Path) -> None:
    """Whatever makes the figures useless stands on the first screen, however many sentences that are."""
    plans = synthetic.plans([4, 16, 64], 2)
    falls = synthetic.make_run(tmp_path, plans, lambda p, i, r: 1000.0 if i < 10 else 100.0, intervals=20)
    v = view.build(RunAnalysis(reading.read(falls)))
    alarms = [x for x in v.answer if getattr(x, "id", "") == "answer-no-one-level"]
    assert len(alarms) == 3 and v.short[:3] == alarms and len(v.short) <= 5
    assert lead.sentences([Name("a"), Name("b")], [], [], [Name("a")]) == [Name("a"), Name("b")]


def test_what_a_run_was_made_for_stands_before_its_levels() -> None:
    """TPC-C is measured in new orders; two workloads are named together, each by its fastest level."""

    def level(workload: str, tps: float) -> Message:
        return message("level", workload=Name(workload), tps=Quantity(tps, "count"))

    orders, reason = Name("9,000 new orders per minute"), Name("CPU")
    assert lead.sentences([], [orders, level("tpcc", 1.0)], [reason]) == [listed([orders], "semicolon"), reason]
    slow, fast, other = level("r", 1.0), level("r", 2.0), level("w", 1.0)
    assert lead.sentences([], [slow, fast, other], [reason]) == [listed([fast, other], "semicolon"), reason]


def test_many_variants_are_a_heat_map_with_figures(tmp_path: Path) -> None:
    plans = synthetic.plans([1, 2, 4], 1, work_mem=[f"{n}MB" for n in range(1, 13)])
    run = synthetic.make_run(tmp_path, plans, lambda p, i, r: 1000.0 * p.clients)
    (chart,) = [c for c in charts.all_charts(RunAnalysis(reading.read(run))) if c.name == "tps"]
    squares = [m for p in chart.figure.panels for m in p.marks if isinstance(m, Square)]
    assert len(squares) == 36 and {s.text for s in squares} == {"1k", "2k", "4k"}
    assert max(s.share for s in squares) == 1 and len({s.row for s in squares}) == 12


def test_a_wide_interval_does_not_make_the_bars_small(tmp_path: Path) -> None:
    """Two trials that lie far apart have an interval of many times their mean."""
    run = synthetic.make_run(tmp_path, synthetic.plans([4], 2), lambda p, i, r: 1000.0 * p.repetition)
    (chart,) = [c for c in charts.all_charts(RunAnalysis(reading.read(run))) if c.name == "tps"]
    (bar,) = [m for m in chart.figure.panels[0].marks if isinstance(m, Bar)]
    assert bar.high == pytest.approx(2 * bar.value) and " – " in bar.hint


def test_a_cause_is_a_card_with_its_remedy_and_what_it_means(tmp_path: Path) -> None:
    wait = {"ours": 1.0, "kind": "client backend", "state": "active", "wait_type": "IO", "wait": "WalSync",
            "processes": 3.0, "looks": 10.0}  # fmt: skip
    running = {**wait, "wait_type": "", "wait": "", "processes": 1.0}
    run = synthetic.make_run(
        tmp_path, synthetic.plans([4], 2), lambda p, i, r: 1000.0, sampled={"waits": [wait, running]}
    )
    v = view.build(RunAnalysis(reading.read(run)))
    page = html.render(v)
    cards = re.findall(r'<article class="card">(.*?)</article>', page, re.DOTALL)
    (own,) = [c for c in cards if "WAL sync at commit" in c]
    (remedy,) = re.findall(r'<p class="try" id="([^"]*)">', own)
    assert f'data-copy-of="{remedy}"' in own and "width: 75%" in own
    about = i18n.catalogue("en")["about-wal-flush"]
    assert about in htmllib.unescape(own)
    # The clients' time is one bar before the cards.
    (bar,) = [c for c in v.charts if c.name == "client-time"]
    pieces = [m for m in bar.figure.panels[0].marks if isinstance(m, Piece)]
    assert [(p.text, round(p.low), round(p.high)) for p in pieces] == [("75%", 0, 75), ("25%", 75, 100)]
    assert page.index("IO: WalSync") < page.index('<article class="card">')


def test_findings_beyond_three_are_folded() -> None:
    m = message("cause-bloat")
    share = Share(0.1, 0.1, 0.1)
    own = [Finding(f"c{n}", Kind.TROUBLE, m, share, "throughput", Confidence.HIGH, m) for n in range(5)]
    told = [findings.FindingText(f) for f in own]
    e = findings.Explained(Name("x"), told)
    assert (len(e.first), len(e.others), i18n.text(e.more)) == (3, 2, "2 more findings")


def test_files_are_written_although_nobody_reads_the_output(tmp_path: Path) -> None:
    """`pgdyno report RUN | head` ends as if all had been read."""
    run = synthetic.make_run(tmp_path, synthetic.plans([1, 2], 2), lambda *_: 1000.0)
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([PGDYNO, "report", run], stdout=writer, stderr=subprocess.PIPE, text=True, env=environment())
    os.close(writer)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    assert (run / "report.html").exists() and tells(done.stderr, "report-written", path=run / "report.html")


@pytest.mark.parametrize("pairs", [[1], [1, 4]])
def test_a_view_in_another_language_is_what_it_would_be_anew(tmp_path: Path, pairs: list[int]) -> None:
    """Only the charts are drawn again: what is computed of a run is computed once, whatever the language."""
    plans = synthetic.plans(pairs, 2, jit=["on", "off"])
    run = synthetic.make_run(tmp_path, plans, lambda p, *_: 900.0 if p.varied["jit"] == "on" else 1200.0)
    analysis = RunAnalysis(reading.read(run))
    english = view.build(analysis)
    anew = view.build(RunAnalysis(reading.read(run)), lang="zh")
    assert html.render(view.localized(english, analysis, "zh")) == html.render(anew)
    assert html.render(view.localized(view.localized(english, analysis, "zh"), analysis, "en")) == html.render(english)


@pytest.mark.parametrize("lang", ["en", pytest.param("zh", marks=pytest.mark.slow)])
def test_the_page_of_a_comparison(tmp_path: Path, lang: str) -> None:
    sides = [[made(tmp_path, f"{side}{n}", factor) for n in range(3)] for side, factor in (("a", 1.0), ("b", 1.2))]
    words = [x for run in sides[1] for x in ("--side-b", run)]
    done = pgdyno("--lang", lang, "compare", *sides[0], *words, "--page", tmp_path / "page.html")
    assert done.code == 0 and str(tmp_path / "page.html") in done.err
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    (verdict, compared, differ, caveats) = tiles(page)
    assert verdict[2] == "+20%" and compared[2] in ("3 and 3", "3 与 3") and differ[2] == "0" and caveats[2] == "1"
    assert 'id="chart-ratios"' in page and (lang == "en" or reports.english(page) == [])
    refused = pgdyno("compare", "--live", "host=a", "host=b", "--page", tmp_path / "x.html")
    assert refused.code == 2 and "--live" in refused.err


@pytest.mark.parametrize("lang", ["en", pytest.param("zh", marks=pytest.mark.slow)])
def test_the_page_of_a_history(tmp_path: Path, lang: str) -> None:
    for n in range(12):
        made(tmp_path, f"{n:02}", 1.0 if n < 8 else 0.8, n + 1)
    done = pgdyno("--lang", lang, "history", tmp_path, "--page", tmp_path / "page.html", "--fail-if", "worse")
    assert done.code == 6 and str(tmp_path / "page.html") in done.err
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    (news, changes, runs) = tiles(page)
    assert news[0] == "tile-bad" and news[2].startswith("-20") and changes[2] == "2" and runs[2] == "12"
    assert lang == "en" or reports.english(page) == []
    figure = history_page.chart(history.of(tmp_path, None), i18n.writer(lang)).figure
    rules = [m.x for p in figure.panels for m in p.marks if isinstance(m, Rule)]
    # The change begins with the ninth run, in both numbers of clients.
    assert rules == [8.5, 8.5] and figure.panels[1].y.title == "p99 (ms)"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("lang", i18n.LANGUAGES)
def test_a_whitepaper_has_numbered_figures_and_tables(tmp_path: Path, lang: str) -> None:
    """Figures and tables of two runs have their own numbers, in order, and each chapter has what both contribute."""
    paths = [made(tmp_path, "a", 1.0), made(tmp_path, "b", 1.2, day=2)]
    out = tmp_path / f"paper-{lang}.html"
    done = pgdyno("--lang", lang, "report", *paths, "--whitepaper", out, "--title", "My <disks>")
    assert done.code == 0, done.err
    page = out.read_text(encoding="utf-8")
    assert (
        "<h1>My &lt;disks&gt;</h1>" in page
        and "<script" not in page
        and "http" not in page.replace("http://www.w3", "")
    )
    numbers = [int(n) for n in re.findall(r'<figure id="figure-(\d+)"', page)]
    assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) >= 6
    word = "Table" if lang == "en" else "表"
    captions = [int(n) for n in re.findall(rf'<caption class="shown">{word} (\d+)', page)]
    assert captions == list(range(1, len(captions) + 1)) and len(captions) >= 4
    ids = re.findall(r' id="([^"]*)"', page)
    assert len(ids) == len(set(ids)) and set(re.findall(r'href="#([^"]*)"', page)) <= set(ids)
    assert page.index('id="summary"') < page.index('id="results"') < page.index('id="method"')
    if lang == "zh":
        assert reports.english(page.replace("Made up", "")) == []


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "options, id_",
    [
        (["--whitepaper", "x.pdf"], "error-whitepaper-html"),
        (["--whitepaper", "x.html", "--json"], "error-whitepaper-alone"),
        (["--title", "x"], "error-title-whitepaper"),
        (["another"], "error-report-several"),
    ],
)
def test_what_does_not_go_with_a_whitepaper(tmp_path: Path, options: list[str], id_: str) -> None:
    refused = pgdyno("report", tmp_path, *options, cwd=tmp_path)
    assert refused.code == 2 and tells(refused.err, id_) and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("lang", i18n.LANGUAGES)
def test_the_page_of_a_load(lang: str) -> None:
    """Its tiles, the speed over time with the phases behind it, phases and tables."""
    dataset = Dataset("tpcb", 2)
    done = Loaded("copy", dataset.rows, 30_000_000, 30_000_000, connections=2, phases_s={"generate": 2.0, "check": 1.0})
    steps = [Progress(n / 4, "generate", n * 3_750_000) for n in range(9)]
    progress = [*steps, Progress(2.1, "vacuum", 0), Progress(3.0, "vacuum", 0)]
    page = load_page.written(dataset, done, 30e6, progress, Name("host=db1"), lang)
    shown = tiles(page)
    assert shown[0][2] == "15 MB/s" and "30 MB/s" in shown[0][3] and "200,022" in shown[3][2]
    found = load_page.chart(progress, done.phases_s, i18n.writer(lang))
    assert found is not None
    marks = found.figure.panels[0].marks
    assert [(m.start, m.end) for m in marks if isinstance(m, Span)] == [(0.0, 2.0), (2.0, 3.0)]
    # Each point is the speed of its own stretch.
    (line,) = [m for m in marks if isinstance(m, Line)]
    assert {round(y) for _, y in line.points} == {15} and len(line.points) == 8
    assert load_page.chart(progress[:1], done.phases_s, i18n.writer(lang)) is None
    if lang == "zh":
        assert reports.english(page) == []
