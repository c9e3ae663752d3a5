"""The page in Chromium: no script errors, figures lead to trials, the filter filters; also with 10,000 trials."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest
from pgdyno.report import html, view
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store import reading

from tests.support import synthetic
from tests.support.page import CHROMIUM, measured, opened

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")


@pytest.mark.slow
@pytest.mark.parametrize("lang", ["en", "zh"])
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
