"""Model of a chart: panels with axes and marks. Texts are in the language of the chart; nothing here is drawn yet."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

#: Colour-blind safe (Okabe and Ito), ordered so that neighbours differ in lightness too.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#7A5C00", "#5B4B9A")
#: Colour of what is not one of the things compared: others, unknown.
GREY = "#9ca3af"
#: Strokes of lines that have one colour and differ in something else.
DASHES = ("", "6 3", "2 2", "8 3 2 3", "1 3", "12 4")


def colours(n: int) -> list[str]:
    """Return that many colours, none of them twice."""
    if n <= len(COLOURS):
        return list(COLOURS[:n])
    hues = (colorsys.hls_to_rgb(i / n, 0.34 + 0.22 * (i % 2), 0.75) for i in range(n))
    return ["#" + "".join(f"{round(x * 255):02x}" for x in rgb) for rgb in hues]


@dataclass(frozen=True)
class Axis:
    """A scale with a title. `bands` are the names of a scale without numbers, in order.

    `form` is how its figures are written: "si" is 12k, "plain" is 0.25.
    """

    title: str = ""
    kind: Literal["linear", "log", "band"] = "linear"
    domain: tuple[float, float] | None = None
    bands: tuple[str, ...] = ()
    form: Literal["si", "plain"] = "plain"
    has_zero: bool = True
    #: Values between whole numbers do not exist: numbers of clients, runs.
    is_whole: bool = False
    #: An axis of time: a reader may look at a part of it.
    is_time: bool = False


@dataclass(frozen=True)
class Line:
    """Points joined by a line. `is_stepped`: each value holds until the next."""

    points: Sequence[tuple[float, float]]
    name: str = ""
    colour: str = COLOURS[0]
    dash: str = ""
    width: float = 1.5
    opacity: float = 0.9
    has_dots: bool = False
    is_stepped: bool = False


@dataclass(frozen=True)
class Dots:
    """Points by themselves."""

    points: Sequence[tuple[float, float]]
    name: str = ""
    colour: str = COLOURS[0]
    radius: float = 2.5
    shape: Literal["circle", "ring", "triangle"] = "circle"


@dataclass(frozen=True)
class Band:
    """Area between a low and a high value: an interval along a curve."""

    points: Sequence[tuple[float, float, float]]
    colour: str = COLOURS[0]
    opacity: float = 0.15


@dataclass(frozen=True)
class Areas:
    """Values stacked on each other. A row is x and a value of each name."""

    names: Sequence[str]
    rows: Sequence[tuple[float, Sequence[float]]]
    colours: Sequence[str]


@dataclass(frozen=True)
class Bar:
    """A bar in a band of the x axis, with its interval. `slot` of `slots` is its place among those of the band."""

    band: str
    value: float
    low: float
    high: float
    hint: str
    colour: str = COLOURS[0]
    slot: int = 0
    slots: int = 1


@dataclass(frozen=True)
class Cell:
    """A rectangle of a heat map. `share` is how dark it is, 0 to 1."""

    x: tuple[float, float]
    y: tuple[float, float]
    share: float
    hint: str


@dataclass(frozen=True)
class Square:
    """A figure in a band of each axis, written in it. `share` is how dark it is, 0 to 1."""

    column: str
    row: str
    share: float
    text: str
    hint: str


@dataclass(frozen=True)
class Span:
    """A time in which something happened, over the whole height."""

    start: float
    end: float
    name: str
    hint: str
    colour: str


@dataclass(frozen=True)
class Interval:
    """A figure with its interval in a band of the y axis."""

    band: str
    low: float
    value: float
    high: float
    hint: str
    colour: str


@dataclass(frozen=True)
class Piece:
    """Part of a bar in a band of the y axis, from `low` to `high`, with a text in it."""

    band: str
    low: float
    high: float
    text: str
    hint: str
    colour: str


@dataclass(frozen=True)
class Rule:
    """A line across the panel, at an x or at a y."""

    x: float | None = None
    y: float | None = None
    colour: str = "#6b7280"
    dash: str = "4 3"
    hint: str = ""


Mark = Line | Dots | Band | Areas | Bar | Cell | Square | Span | Interval | Piece | Rule


@dataclass(frozen=True)
class Key:
    """An entry of the legend."""

    name: str
    colour: str = "currentColor"
    dash: str = ""
    shape: Literal["box", "line", "circle", "ring", "triangle", "span"] = "box"


@dataclass(frozen=True)
class Panel:
    """A pair of axes with marks, drawn in this order. `width` and `height` are pixels of the area between the axes."""

    x: Axis
    y: Axis
    marks: Sequence[Mark]
    title: str = ""
    width: int = 300
    height: int = 200
    #: Legend of this panel alone.
    keys: Sequence[Key] = ()


@dataclass(frozen=True)
class Figure:
    """Panels in rows of `columns`, with a common legend. Panels with equal axes of time share the crosshair."""

    panels: Sequence[Panel]
    columns: int = 1
    keys: Sequence[Key] = field(default_factory=tuple)
    legend: str = ""
