"""Run directories of earlier versions, kept in tests/data: read, analysed, reported in both languages, replayed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pgdyno import i18n
from pgdyno.report import html, markdown, view
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store import reading, replay
from pgdyno.stream.events import TrialFinished

from tests.support import reports

OLDER = sorted(p for p in (Path(__file__).parents[2] / "data").iterdir() if p.is_dir())


@pytest.mark.parametrize("lang", i18n.LANGUAGES)
@pytest.mark.parametrize("folder", OLDER, ids=lambda p: p.name)
def test_an_earlier_run_has_its_report(folder: Path, lang: str) -> None:
    data = reading.read(folder)
    assert data.unreadable == [] and {t.state for t in data.trials} == {"finished"}
    analysis = RunAnalysis(data)
    v = view.build(analysis, lang=lang)
    page = html.render(v)
    assert v.error is None and v.charts
    assert v.headline and v.table("detail") is not None
    if lang == "zh":
        named = {s.name for t in data.trials if t.summary for s in t.summary.statements}
        assert [x for x in reports.english(page) if x not in named] == []
        assert [
            x for c in v.charts for x in reports.titles(c.figure) if re.search(r"[a-z]{2,} [a-z]{2,} [a-z]{2,}", x)
        ] == []
    text = markdown.render(v, {})
    # No figure is lost on the way: each trial's throughput is in the tables.
    for t in data.trials:
        assert t.summary is not None
        assert f"{t.summary.tps:,.0f}" in text


@pytest.mark.parametrize("folder", OLDER, ids=lambda p: p.name)
def test_an_earlier_run_is_replayed(folder: Path) -> None:
    data = reading.read(folder)
    finished = [e.body for e in replay.replay(folder) if isinstance(e.body, TrialFinished)]
    assert len(finished) == len(data.trials)


def test_there_are_versions_before() -> None:
    assert len(OLDER) >= 3
