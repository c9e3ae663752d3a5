"""Charts drawn as SVG: each panel for a page that lays them out, or a whole figure as a file of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from unicodedata import east_asian_width

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
    Piece,
    Rule,
    Span,
    Square,
)
from pgdyno.plot.scales import Scale, bands, extent, scale, written

#: Pixels of a character of the axes' numbers.
_CHARACTER = 6.4
_GAP, _TOP, _RIGHT = 6, 12, 14
Bands = dict[str, tuple[float, float]]
#: Share of a square's colour from which on its figure is white.
_LIGHT_FROM = 0.55
#: Pixels from which on a panel is drawn smaller on a phone, and its texts larger.
_WIDE = 420
#: Most characters of a band's name.
_LONGEST = 38
#: Style of a picture that stands alone; a page has its own.
STYLE = """text{font:11px system-ui,-apple-system,"Segoe UI",sans-serif;fill:#374151}
.title{font-weight:600;font-size:12px}.grid{stroke:#e5e7eb}.axis{stroke:#9ca3af;fill:none}
.heading{font-weight:600;font-size:15px;fill:#111827}.soft{fill:#5b6472}
.heat{fill:#0072B2}.in{pointer-events:none}.light{fill:#ffffff}.black{fill:#000000}
.part *{vector-effect:non-scaling-stroke}"""


def text_width(text: str) -> float:
    """Return the pixels that a text takes, nearly."""
    return sum(11.0 if east_asian_width(c) in "WF" else _CHARACTER for c in text)


def panel(p: Panel, label: str = "") -> str:
    """Return a panel as an SVG element for a page whose style has its colours.

    `data-plot` holds the axes: a script finds the values under the pointer from them and from the lines' places.
    """
    width, height, body = _panel(p)
    name = escape(label or p.title or p.y.title, quote=True)
    kind = "plot wide" if width > _WIDE else "plot"
    return (
        f'<svg class="{kind}" role="img" aria-label="{name}" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}">{body}</svg>'
    )


def key(k: Key) -> str:
    """Return the sign of a legend's entry as an SVG element."""
    return f'<svg class="key" viewBox="0 0 16 10" width="16" height="10" aria-hidden="true">{_sign(k)}</svg>'


def document(f: Figure, title: str = "", notes: Sequence[str] = ()) -> str:
    """Return a figure as an SVG file on a white background. `notes` are lines below it: machine, version."""
    drawn = [_with_legend(p) for p in f.panels]
    columns = max(1, min(f.columns, len(drawn)))
    rows = [drawn[i : i + columns] for i in range(0, len(drawn), columns)]
    widths = [max((row[i][0] for row in rows if i < len(row)), default=0.0) for i in range(columns)]
    whole = max(sum(widths) + 20 * (columns - 1), 420.0)
    out, y = [], 10.0
    if title:
        out.append(f'<text class="heading" x="0" y="{y + 12:.0f}">{escape(title)}</text>')
        y += 26
    legend, used = _legend(f.keys, f.legend, whole)
    if used:
        out.append(f'<g transform="translate(0,{y:.0f})">{legend}</g>')
        y += used
    for row in rows:
        x = 0.0
        for width, (_, _, body) in zip(widths, row, strict=False):
            out.append(f'<g transform="translate({x:.0f},{y:.0f})">{body}</g>')
            x += width + 20
        y += max(h for _, h, _ in row) + 8
    for note in notes:
        out.append(f'<text class="soft" x="0" y="{y + 10:.0f}">{escape(note)}</text>')
        y += 15
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-12 0 {whole + 24:.0f} {y + 10:.0f}" '
        f'width="{whole + 24:.0f}" height="{y + 10:.0f}"><style>{STYLE}</style>'
        f'<rect x="-12" width="{whole + 24:.0f}" height="{y + 10:.0f}" fill="#ffffff"/>{"".join(out)}</svg>\n'
    )


def _with_legend(p: Panel) -> tuple[float, float, str]:
    """Return a panel with its own legend above it."""
    width, height, body = _panel(p)
    legend, used = _legend(p.keys, "", width)
    return width, height + used, f'{legend}<g transform="translate(0,{used:.0f})">{body}</g>' if used else body


def _legend(keys: Sequence[Key], title: str, whole: float) -> tuple[str, float]:
    """Return a legend in lines of at most `whole` pixels, and its height."""
    entries = list(dict.fromkeys(keys))
    if not entries:
        return "", 0.0
    out, x, y = [], 0.0, 10.0
    if title:
        out.append(f'<text class="soft" x="0" y="{y:.0f}">{escape(title)}</text>')
        x = text_width(title) + 12
    for k in entries:
        taken = 22 + text_width(k.name) + 14
        if x + taken > whole and x > 0:
            x, y = 0.0, y + 17
        out.append(f'<g transform="translate({x:.0f},{y - 9:.0f})">{_sign(k)}</g>')
        out.append(f'<text x="{x + 21:.0f}" y="{y:.0f}">{escape(k.name)}</text>')
        x += taken
    return "".join(out), y + 12


def _sign(k: Key) -> str:
    colour = k.colour
    match k.shape:
        case "line":
            return f'<path d="M0 5H16" stroke="{colour}" stroke-width="2" stroke-dasharray="{k.dash}" fill="none"/>'
        case "circle":
            return f'<circle cx="8" cy="5" r="3.5" fill="{colour}"/>'
        case "ring":
            return f'<circle cx="8" cy="5" r="3.5" fill="none" stroke="{colour}" stroke-width="1.5"/>'
        case "triangle":
            return f'<path d="M4 1H12L8 9Z" fill="none" stroke="{colour}" stroke-width="1.5"/>'
        case "span":
            return f'<rect x="2" width="12" height="10" fill="{colour}" opacity=".3"/>'
        case _:
            return f'<rect x="2" width="12" height="10" rx="1.5" fill="{colour}"/>'


@dataclass(frozen=True)
class _Frame:
    """Area of a panel in pixels, and its scales; a side has either a scale or bands."""

    left: float
    top: float
    width: int
    height: int
    x: Scale | None
    y: Scale | None
    x_bands: Bands
    y_bands: Bands


def _panel(p: Panel) -> tuple[float, float, str]:
    """Return the width and height of a panel in pixels, and its content."""
    has_title_of_y = bool(p.y.title) and p.y.kind != "band"
    top = _TOP + (18 if p.title else 0) + (16 if has_title_of_y else 0)
    y = None if p.y.kind == "band" else scale(p.y, extent(p.marks, "y"), top + p.height, top)
    names = [written(v, p.y.form) for v in y.ticks("y")] if y else [_short(b) for b in p.y.bands]
    left = max([22.0, *map(text_width, names)]) + _GAP + 4
    f = _Frame(
        left, top, p.width, p.height,
        None if p.x.kind == "band" else scale(p.x, extent(p.marks, "x"), left, left + p.width), y,
        bands(p.x.bands, left, left + p.width), bands(p.y.bands, top, top + p.height),
    )  # fmt: skip
    out = []
    if p.title:
        out.append(f'<text class="title" x="{left:.0f}" y="14">{escape(p.title)}</text>')
    if has_title_of_y:
        out.append(f'<text class="soft" x="0" y="{top - 8:.0f}">{escape(p.y.title)}</text>')
    out += _grid(f)
    out += _y_labels(f, names)
    marks = "".join(_drawn(m, f) for m in p.marks)
    out.append(_part(f, marks) if p.x.is_time else marks)
    out.append(f'<path class="axis" d="M{left:.0f} {top + p.height:.0f}h{p.width}"/>')
    labels: list[str] = []
    below = _x_labels(p, f, labels)
    out.append(f'<g class="labels">{"".join(labels)}</g>')
    if p.x.title:
        below += 16
        middle = left + p.width / 2
        out.append(
            f'<text class="soft" x="{middle:.0f}" y="{below:.0f}" text-anchor="middle">{escape(p.x.title)}</text>'
        )
    if f.x is not None and y is not None:
        out.append(_place(p, f.x, y))
    return left + p.width + _RIGHT, below + 6, "".join(out)


def _part(f: _Frame, marks: str) -> str:
    """Return the marks of an axis of time in a picture of their own: a script shows a part of it by its view box."""
    box = f"{f.left:.1f} 0 {f.width} {f.top + f.height:.1f}"
    return (
        f'<svg class="part" x="{f.left:.1f}" y="0" width="{f.width}" height="{f.top + f.height:.1f}" '
        f'viewBox="{box}" preserveAspectRatio="none">{marks}</svg>'
    )


def _grid(f: _Frame) -> Iterator[str]:
    yield '<g class="grid">'
    if f.y is not None:
        yield from (f'<path d="M{f.left:.0f} {f.y.at(v):.1f}h{f.width}"/>' for v in f.y.ticks("y"))
    elif f.x is not None:
        yield from (f'<path d="M{f.x.at(v):.1f} {f.top}v{f.height}"/>' for v in f.x.ticks("x"))
    yield "</g>"


def _y_labels(f: _Frame, names: Sequence[str]) -> Iterator[str]:
    """Write the figures or names of the y axis."""
    places = [f.y.at(v) for v in f.y.ticks("y")] if f.y is not None else [middle for middle, _ in f.y_bands.values()]
    for place, name in zip(places, names, strict=True):
        yield f'<text x="{f.left - _GAP:.0f}" y="{place + 4:.1f}" text-anchor="end">{escape(name)}</text>'


def _x_labels(p: Panel, f: _Frame, out: list[str]) -> float:
    """Write the figures or names of the x axis to `out`, and return the place of their lowest line."""
    below = f.top + f.height + 15
    if f.x is not None:
        for v in f.x.ticks("x"):
            word = written(v, p.x.form)
            out.append(f'<text x="{f.x.at(v):.1f}" y="{below:.0f}" text-anchor="middle">{word}</text>')
        return below
    words = [_short(b) for b in p.x.bands]
    longest = max(map(text_width, words), default=0.0)
    if longest <= p.width / max(1, len(words)) - 4:
        for (middle, _), word in zip(f.x_bands.values(), words, strict=True):
            out.append(f'<text x="{middle:.1f}" y="{below:.0f}" text-anchor="middle">{escape(word)}</text>')
        return below
    # Of very many some say where one is.
    step = -(-len(words) // max(1, p.width // 16))
    for (middle, _), word in list(zip(f.x_bands.values(), words, strict=True))[::step]:
        turned = f'transform="rotate(-35 {middle:.0f} {below:.0f})"'
        out.append(f'<text x="{middle:.1f}" y="{below:.0f}" text-anchor="end" {turned}>{escape(word)}</text>')
    return below + min(110.0, 0.6 * longest)


def _place(p: Panel, x: Scale, y: Scale) -> str:
    """Return an invisible rectangle over the panel, which holds its axes for a script."""
    axes = {
        "x": [x.low, x.high, round(x.start, 1), round(x.end, 1), int(x.is_log)],
        "y": [y.low, y.high, round(y.start, 1), round(y.end, 1), int(y.is_log)],
        "title": [p.x.title, p.y.title],
        **({"time": 1} if p.x.is_time else {}),
    }
    data = escape(json.dumps(axes, ensure_ascii=False, separators=(",", ":")), quote=True)
    return (
        f'<rect class="place" data-plot="{data}" x="{x.start:.1f}" y="{y.end:.1f}" width="{p.width}" '
        f'height="{p.height}" fill="none" pointer-events="all"/>'
    )


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _drawn(m: Mark, f: _Frame) -> str:
    match m:
        case Bar() if f.y is not None:
            return _bar(m, f.y, f.x_bands)
        case Interval() if f.x is not None:
            return _interval(m, f.x, f.y_bands)
        case Piece() if f.x is not None:
            return _piece(m, f.x, f.y_bands)
        case Rule():
            return _rule(m, f)
        case Square():
            return _square(m, f)
    if f.x is None or f.y is None:
        return ""
    x, y = f.x, f.y
    match m:
        case Line():
            return _line(m, x, y)
        case Dots():
            return _dots(m, x, y)
        case Band():
            forth = [f"{x.at(a):.1f} {y.at(high):.1f}" for a, _, high in m.points]
            back = [f"{x.at(a):.1f} {y.at(low):.1f}" for a, low, _ in reversed(m.points)]
            return f'<path d="M{"L".join([*forth, *back])}Z" fill="{m.colour}" opacity="{m.opacity}"/>'
        case Areas():
            return "".join(_areas(m, x, y))
        case Cell():
            (x0, x1), (y0, y1) = (tuple(map(x.at, m.x)), tuple(map(y.at, m.y)))
            shape = f'<rect x="{x0:.1f}" y="{y1:.1f}" width="{max(x1 - x0, 0.5):.1f}" height="{max(y0 - y1, 0.5):.1f}"'
            return _titled(f'{shape} class="heat" fill-opacity="{m.share:.2f}"', m.hint, "rect")
        case Span():
            x0, x1 = x.at(m.start), x.at(m.end)
            shape = f'<rect x="{x0:.1f}" y="{f.top}" width="{max(x1 - x0, 1.5):.1f}" height="{f.height}"'
            return _titled(f'{shape} fill="{m.colour}" opacity=".25"', f"{m.name}: {m.hint}", "rect")
    return ""


def _square(m: Square, f: _Frame) -> str:
    (x, width), (y, height) = f.x_bands[m.column], f.y_bands[m.row]
    shape = f'<rect x="{x - width / 2 + 1:.1f}" y="{y - height / 2 + 1:.1f}" width="{width - 2:.1f}" '
    shape += f'height="{height - 2:.1f}" rx="2" class="heat" fill-opacity="{m.share:.2f}"'
    kind = "in light" if m.share > _LIGHT_FROM else "in"
    text = f'<text class="{kind}" x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{escape(m.text)}</text>'
    return _titled(shape, m.hint, "rect") + text


def _rule(m: Rule, f: _Frame) -> str:
    at = ""
    if m.x is not None and f.x is not None:
        at = f"M{f.x.at(m.x):.1f} {f.top}v{f.height}"
    elif m.y is not None and f.y is not None:
        at = f"M{f.left:.1f} {f.y.at(m.y):.1f}h{f.width}"
    return _titled(f'<path d="{at}" stroke="{m.colour}" stroke-dasharray="{m.dash}" fill="none"', m.hint, "path")


def _titled(opened: str, hint: str, tag: str) -> str:
    return f"{opened}><title>{escape(hint)}</title></{tag}>" if hint else f"{opened}/>"


def _line(m: Line, x: Scale, y: Scale) -> str:
    places = [(x.at(a), y.at(b)) for a, b in m.points]
    if m.is_stepped:
        places = [q for n, p in enumerate(places) for q in ([p] if n == 0 else [(p[0], places[n - 1][1]), p])]
    points = " ".join(f"{a:.1f},{b:.2f}" for a, b in places)
    dash = f' stroke-dasharray="{m.dash}"' if m.dash else ""
    name = f' data-name="{escape(m.name, quote=True)}"' if m.name else ""
    out = (
        f'<polyline points="{points}" fill="none" stroke="{m.colour}" stroke-width="{m.width}" '
        f'opacity="{m.opacity}" stroke-linejoin="round"{dash}{name}/>'
    )
    if m.has_dots:
        out += "".join(f'<circle cx="{a:.1f}" cy="{b:.2f}" r="1.8" fill="{m.colour}"/>' for a, b in places)
    return out


def _dots(m: Dots, x: Scale, y: Scale) -> str:
    name = f' data-name="{escape(m.name, quote=True)}"' if m.name else ""
    shapes = []
    for a, b in ((x.at(v), y.at(w)) for v, w in m.points):
        if m.shape == "triangle":
            r = m.radius
            shapes.append(f'<path d="M{a - r:.1f} {b - r:.1f}h{2 * r:.1f}L{a:.1f} {b + r:.1f}Z" fill="none"/>')
        else:
            shapes.append(f'<circle cx="{a:.1f}" cy="{b:.2f}" r="{m.radius}"/>')
    fill = (
        f'fill="{m.colour}" opacity=".75"'
        if m.shape == "circle"
        else f'fill="none" stroke="{m.colour}" stroke-width="1.6"'
    )
    return f'<g class="dots" {fill}{name}>{"".join(shapes)}</g>'


def _areas(m: Areas, x: Scale, y: Scale) -> Iterator[str]:
    below = [0.0] * len(m.rows)
    for n, (name, colour) in enumerate(zip(m.names, m.colours, strict=True)):
        above = [b + values[n] for b, (_, values) in zip(below, m.rows, strict=True)]
        places = [x.at(a) for a, _ in m.rows]
        forth = [f"{a:.1f} {y.at(v):.1f}" for a, v in zip(places, above, strict=True)]
        back = [f"{a:.1f} {y.at(v):.1f}" for a, v in zip(reversed(places), reversed(below), strict=True)]
        values = ",".join(f"{v[n]:.4g}" for _, v in m.rows)
        at = ",".join(f"{a:.1f}" for a in places)
        yield (
            f'<path d="M{"L".join([*forth, *back])}Z" fill="{colour}" opacity=".85" '
            f'data-name="{escape(name, quote=True)}" data-at="{at}" data-values="{values}"/>'
        )
        below = above


def _bar(m: Bar, y: Scale, xs: Bands) -> str:
    middle, width = xs[m.band]
    each = width * 0.8 / m.slots
    left = middle - width * 0.4 + each * m.slot
    at, zero = y.at(m.value), y.at(0.0)
    thick = max(each * 0.92, 1.0)
    out = _titled(
        f'<rect x="{left:.1f}" y="{at:.1f}" width="{thick:.1f}" height="{max(zero - at, 0):.1f}" fill="{m.colour}"',
        m.hint, "rect",
    )  # fmt: skip
    if m.high > m.low:
        centre, low, high = left + thick / 2, y.at(max(m.low, 0.0)), y.at(m.high)
        out += f'<path class="whisker" d="M{centre:.1f} {low:.1f}V{high:.1f}" stroke="#6b7280" stroke-width="1.5"/>'
    return out


def _interval(m: Interval, x: Scale, ys: Bands) -> str:
    middle, _ = ys[m.band]
    opened = f'<g fill="{m.colour}" stroke="{m.colour}" stroke-width="3"'
    body = f'<path d="M{x.at(m.low):.1f} {middle:.1f}H{x.at(m.high):.1f}"/>'
    body += f'<circle cx="{x.at(m.value):.1f}" cy="{middle:.1f}" r="4" stroke="none"/>'
    return f"{opened}><title>{escape(m.hint)}</title>{body}</g>"


def _piece(m: Piece, x: Scale, ys: Bands) -> str:
    middle, height = ys[m.band]
    left, right, thick = x.at(m.low), x.at(m.high), height * 0.7
    shape = f'<rect x="{left:.1f}" y="{middle - thick / 2:.1f}" width="{max(right - left, 0.5):.1f}" '
    out = _titled(f'{shape}height="{thick:.1f}" fill="{m.colour}"', m.hint, "rect")
    if m.text:
        kind = "in light" if _is_dark(m.colour) else "in black"
        out += f'<text class="{kind}" x="{(left + right) / 2:.1f}" y="{middle + 4:.1f}" text-anchor="middle">'
        out += f"{escape(m.text)}</text>"
    return out


def _is_dark(colour: str) -> bool:
    """Return True if white has more contrast on it than black (relative luminance of WCAG 2 below 0.179)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.179


def axis_of(values: Sequence[str], title: str = "") -> Axis:
    """Return an axis of names."""
    return Axis(title, "band", bands=tuple(values))
