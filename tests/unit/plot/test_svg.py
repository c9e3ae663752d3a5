"""Charts: scales hold what they show, marks stay inside, whatever the values; texts cannot leave their place."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pgdyno.plot import scales, svg
from pgdyno.plot.model import (
    Areas,
    Axis,
    Band,
    Bar,
    Cell,
    Dots,
    Figure,
    Interval,
    Key,
    Line,
    Mark,
    Panel,
    Rule,
    Span,
    colours,
)  # fmt: skip

VALUES = st.floats(1e-9, 1e12)
ANY = st.floats(-1e12, 1e12)
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30)
POINTS = st.lists(st.tuples(ANY, ANY), max_size=6)
MARKS: st.SearchStrategy[Mark] = st.one_of(
    st.builds(Line, POINTS, TEXT, has_dots=st.booleans(), is_stepped=st.booleans()),
    st.builds(Dots, POINTS, TEXT, shape=st.sampled_from(["circle", "ring", "triangle"])),
    st.builds(Band, st.lists(st.tuples(ANY, ANY, ANY), min_size=1, max_size=5)),
    st.builds(
        Areas, st.just(["a", "b"]),
        st.lists(st.tuples(ANY, st.tuples(st.floats(0, 1e9), st.floats(0, 1e9))), min_size=1, max_size=5),
        st.just(colours(2)),
    ),
    st.builds(Cell, st.tuples(ANY, ANY), st.tuples(ANY, ANY), st.floats(0, 1), TEXT),
    st.builds(Span, ANY, ANY, TEXT, TEXT, st.just("#000000")),
    st.builds(Rule, x=ANY) | st.builds(Rule, y=ANY, hint=TEXT),
)  # fmt: skip
AXES = st.builds(Axis, TEXT, st.sampled_from(["linear", "log"]), form=st.sampled_from(["si", "plain"]))


def numbers(text: str) -> list[float]:
    return [float(x) for x in re.findall(r"-?\d+(?:\.\d+)?", text)]


@settings(max_examples=150)
@given(AXES, AXES, st.lists(MARKS, max_size=5), TEXT)
def test_any_panel_is_a_picture_with_its_marks_inside(x: Axis, y: Axis, marks: list[Mark], title: str) -> None:
    text = svg.panel(Panel(x, y, marks, title))
    root = ET.fromstring(text)
    _, _, width, height = numbers(root.attrib["viewBox"])
    (place,) = [e for e in root if e.get("class") == "place"]
    left, top, wide, high = (float(place.attrib[k]) for k in ("x", "y", "width", "height"))
    assert left + wide <= width and top + high <= height
    axes = json.loads(place.attrib["data-plot"])
    assert all(low < high and math.isfinite(low) and math.isfinite(high) for low, high, *_ in (axes["x"], axes["y"]))
    for line in root.iter("polyline"):
        for point in line.attrib["points"].split():
            a, b = numbers(point)
            assert left - 0.2 <= a <= left + wide + 0.2 and top - 0.2 <= b <= top + high + 0.2
    ET.fromstring(svg.document(Figure([Panel(x, y, marks, title)] * 3, 2, [Key(title)], title), title, [title]))


@given(st.lists(VALUES, min_size=1, max_size=20), st.sampled_from(["linear", "log"]), st.integers(60, 800))
def test_a_scale_holds_its_values_and_names_some(values: list[float], kind: str, pixels: int) -> None:
    s = scales.scale(Axis(kind=kind), values, 0, pixels)  # type: ignore[arg-type]
    assert s.low <= min(values) * 1.001 and s.high >= max(values) * 0.999
    ticks = s.ticks("x")
    assert ticks == sorted(set(ticks)) and all(s.low * 0.999 - 1e-12 <= t <= s.high * 1.001 for t in ticks)
    # Numbers do not run into each other.
    assert len(ticks) <= max(3, pixels / 40)
    for value in values:
        at = s.at(value)
        part = at / pixels
        back = s.low * (s.high / s.low) ** part if s.is_log else s.low + part * (s.high - s.low)
        assert back == pytest.approx(value, rel=1e-6, abs=1e-6 * (s.high - s.low))


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (12_000, "si", "12k"), (1_500_000, "si", "1.5M"), (0, "si", "0"), (999.99, "si", "999.99"),
        (0.25, "si", "0.25"), (0.25, "plain", "0.25"), (12_000, "plain", "12,000"), (1e-7, "plain", "0.0000001"),
        (-3, "plain", "-3"),
        (2e15, "plain", "2,000,000,000,000,000"), (1e12, "si", "1T"),
    ],
)  # fmt: skip
def test_figures_beside_an_axis_have_no_exponent(value: float, form: str, text: str) -> None:
    assert scales.written(value, form) == text


@pytest.mark.parametrize("n", [1, 3, 8, 9, 24, 60])
def test_no_colour_is_used_twice(n: int) -> None:
    assert len(set(colours(n))) == n


def test_bars_and_intervals_stand_in_their_bands() -> None:
    bars = [Bar(str(n), n * 10.0, n * 9.0, n * 11.0, f"{n}", slot=n % 2, slots=2) for n in range(1, 5)]
    panel = Panel(Axis("clients", "band", bands=("1", "2", "3", "4")), Axis("TPS", form="si"), bars)
    root = ET.fromstring(svg.panel(panel))
    drawn = [e for e in root.iter("rect") if e.find("title") is not None]
    heights = [float(e.attrib["height"]) for e in drawn]
    assert [h / heights[0] for h in heights] == pytest.approx([1, 2, 3, 4], rel=0.01)
    lefts = [float(e.attrib["x"]) for e in drawn]
    assert lefts == sorted(lefts) and [t.text for e in drawn for t in e.iter("title")] == ["1", "2", "3", "4"]
    rows = [Interval("p99", 0.9, 1.0, 1.2, "hint", "#000000")]
    text = svg.panel(Panel(Axis(kind="log"), Axis(kind="band", bands=("p99",)), [Rule(x=1.0), *rows]))
    assert "hint" in text and "p99" in text and "data-plot" not in text


def test_texts_stay_texts() -> None:
    bad = '"><script>alert(1)</script>'
    panel = Panel(Axis(bad), Axis(bad), [Line([(0, 1), (1, 2)], bad), Span(0, 1, bad, bad, "#000000")], bad)
    for text in (svg.panel(panel, bad), svg.document(Figure([panel], keys=[Key(bad)], legend=bad), bad, [bad])):
        ET.fromstring(text)
        assert "<script" not in text
