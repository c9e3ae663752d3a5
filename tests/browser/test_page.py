"""The page in Chromium: no script errors, figures lead to trials, the filter filters; also with 10,000 trials."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest
from pgdyno.report import html, view
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store import reading

from tests.support import synthetic
from tests.support.cli import pgdyno
from tests.support.page import CHROMIUM, measured, opened, used

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")


@pytest.mark.parametrize("lang", ["en", pytest.param("zh", marks=pytest.mark.slow)])
def test_a_page_is_drawn_filtered_and_leads_to_trials(tmp_path: Path, lang: str) -> None:
    plans = synthetic.plans([1, 2, 4, 8], 3, workload="read </script> only", settings=[True, False])
    run = synthetic.make_run(tmp_path, plans, lambda p, i, r: 1000 * p.clients * r.uniform(0.9, 1.1))
    page = opened(html.render(view.build(RunAnalysis(reading.read(run)), lang=lang)), tmp_path)
    assert page["wrong"] == []
    assert page["charts"] == page["wanted"] == 7
    assert page["before"] == 24
    assert len(page["filtered"]) == 2 and all("c8-r2" in name for name in page["filtered"])
    assert page["folder"].startswith("trials/")
    assert page["led_to"] == [f"trial-{n}" for n in page["figure_of"].split(",")] and len(page["led_to"]) == 3
    lines = page["csv"].splitlines()
    assert len(lines) == 9 and "," in lines[0] and lines[1].startswith("read </script> only,on,1,1,")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_saved_table_is_the_table_of_programs(tmp_path: Path, lang: str) -> None:
    plans = synthetic.plans([1, 2, 4, 8], 3, workload='read "all", <i>', settings=[True, False])
    run = synthetic.make_run(tmp_path, plans, lambda p, i, r: 1000 * p.clients * r.uniform(0.9, 1.1))
    shown = view.build(RunAnalysis(reading.read(run)), lang=lang)
    saved = used(html.render(shown), tmp_path)["tables"]
    assert set(saved) == {t.name for t in shown.tables}
    for table in shown.tables:
        assert programs_values(saved[table.name]["csv"]) == programs_values(table.as_csv), table.name


def programs_values(text: str) -> list[list[str | float]]:
    """Return the cells of a CSV file; numbers as numbers, which scripts write differently."""

    def value(cell: str) -> str | float:
        try:
            return float(cell)
        except ValueError:
            return cell

    return [[value(cell) for cell in row] for row in csv.reader(io.StringIO(text))]


@pytest.mark.slow
def test_ten_thousand_trials_stay_usable(tmp_path: Path) -> None:
    plans = synthetic.plans(list(range(1, 1001)), 10)
    made = synthetic.make_run(tmp_path, plans[:30], lambda p, i, r: 1000 * r.uniform(0.9, 1.1), intervals=3)
    data = reading.read(made)
    # All the others as the first ones: making their folders would take longer than all of this.
    copies = [
        data.trials[i % 30].__class__(p, *list(vars(data.trials[i % 30]).values())[1:]) for i, p in enumerate(plans)
    ]
    series = {p.number: data.series[i % 30 + 1] for i, p in enumerate(plans)}
    buckets = {p.number: data.buckets[i % 30 + 1] for i, p in enumerate(plans)}
    some = data.pooled[plans[0].key]
    nothing = {p.key: [] for p in plans}
    many = replace(
        data, trials=copies, series=series, buckets=buckets, pooled={p.key: some for p in plans},
        pooled_statements=nothing, pooled_scripts=nothing, samples=defaultdict(list), over_time=defaultdict(list),
        events=defaultdict(list),
    )  # fmt: skip
    page = opened(html.render(view.build(RunAnalysis(many))), tmp_path)
    assert page["wrong"] == []
    assert page["before"] == 100, "drawn in pages"
    assert page["filtered"] and all("c8-r2" in name for name in page["filtered"])
    assert len(page["led_to"]) == 10


@pytest.mark.slow
def test_a_page_fits_a_phone_and_paper(tmp_path: Path) -> None:
    """390 pixels without sideways scrolling of the page; on paper no button, and nothing cut on the right."""
    plans = synthetic.plans([1, 2, 4, 8], 3, settings=[True, False])
    run = synthetic.make_run(tmp_path, plans, lambda p, i, r: 1000 * p.clients * r.uniform(0.9, 1.1))
    page = html.render(view.build(RunAnalysis(reading.read(run))))
    phone = measured(page, tmp_path, 390)
    assert phone["page"] <= 390 and phone["violations"] == [], phone
    # An A4 sheet within its margins, at 96 pixels an inch.
    paper = measured(page, tmp_path, 703, printed=True)
    assert paper["widest"] <= 703 and paper["buttons"] == 0 and paper["folded"] == 0, paper
    dark = measured(page, tmp_path, 1280, dark=True)
    assert dark["paper"] == "rgb(20, 23, 28)" and dark["grid"] == "rgb(44, 50, 59)" and dark["violations"] == [], dark
    assert measured(page, tmp_path, 1280)["violations"] == []


@pytest.mark.slow
def test_pages_of_comparisons_and_histories_are_usable(tmp_path: Path) -> None:
    """Every control is used, and nothing keeps a reader out, at two widths, light and dark."""
    runs = []
    for n in range(8):
        factor = 1.0 if n < 4 else 1.2
        run = synthetic.make_run(
            tmp_path / f"{n}", synthetic.plans([4, 16], 3), lambda p, i, r, f=factor: f * 1000 * r.uniform(0.98, 1.02)
        )
        runs.append(run.rename(tmp_path / f"{n}-run"))
    sides = [x for run in runs[4:] for x in ("--side-b", run)]
    assert pgdyno("compare", *runs[:4], *sides, "--page", tmp_path / "compared.html").code == 0
    assert pgdyno("history", tmp_path, "--page", tmp_path / "history.html").code == 0
    for name in ("compared", "history"):
        page = (tmp_path / f"{name}.html").read_text(encoding="utf-8")
        found = used(page, tmp_path)
        assert (found["wrong"], found["broken"], found["twice"], found["nowhere"]) == ([], [], [], [])
        for width, dark in ((390, False), (1280, True)):
            seen = measured(page, tmp_path, width, dark=dark)
            assert seen["violations"] == [] and seen["page"] <= width
