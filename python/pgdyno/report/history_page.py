"""Page of a history: each figure over the runs with its levels, and where a level changed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from pgdyno import i18n
from pgdyno.analysis.changepoints import ChangePoint
from pgdyno.format import change
from pgdyno.judge.history import History, Series
from pgdyno.message import Name, Text, counted, listed, message
from pgdyno.plot.model import COLOURS, GREY, Axis, Figure, Key, Line, Mark, Panel, Rule
from pgdyno.report import lead
from pgdyno.report.cells import COUNT, Table, cells, column
from pgdyno.report.charts import Chart, Say
from pgdyno.report.lead import Tile
from pgdyno.report.page import Answer, Page, render

#: Factors and names of the units in which an axis shows a figure.
_UNITS = {"latency": (1e-6, " (ms)"), "ns": (1e-6, " (ms)"), "ms": (1e-6, " (ms)"), "bytes": (1e-3, " (kB)")}
#: Series that are drawn; the table has all.
_MOST = 24


def written(found: History, answer: Sequence[Text], lang: str) -> str:
    """Return the page as HTML."""
    runs = counted("n-runs", len(found.runs))
    head = message("history-runs", name=Name(found.name), n=runs, first=Name(found.runs[0]), last=Name(found.runs[-1]))
    changes = [(s, c) for s in found.series for c in s.changes]
    return render(
        Page(
            title=message("title-history", name=Name(found.name)),
            subtitle=head,
            answers=[Answer(head, x) for x in answer[: lead.SENTENCES]],
            tables=[_changes(found, changes)] if changes else [],
            charts=[chart(found, i18n.writer(lang))] if found.series else [],
            details=[_series(found)],
            method=[*answer[lead.SENTENCES :], *found.unreadable, message("note-history")],
            tiles=_tiles(found, changes),
            lang=lang,
        )
    )


def is_better(s: Series, c: ChangePoint) -> bool:
    """Return True if a change of level is for the better."""
    return (c.ratio > 1) == s.figure.higher_is_better


def _tiles(found: History, changes: Sequence[tuple[Series, ChangePoint]]) -> list[Tile]:
    news = found.news()
    worse = [x for x in news if not is_better(*x)]
    where = "changes" if changes else "series"
    newest: Text = message("tile-none")
    note: Text = message("tile-newest")
    if news:
        s, c = (worse or news)[0]
        newest, note = Name(change(c.ratio, 1)), listed([Name(s.label), Name(s.metric), Name(s.runs[c.index])])
    every = message("tile-series", n=len(found.series))
    return [
        Tile(message("tile-news"), newest, note, "bad" if worse else "", where),
        Tile(message("tile-changes"), Name(str(len(changes))), every, section=where),
        Tile(message("tile-runs"), Name(str(len(found.runs))), Name(found.name), section="series"),
    ]


def chart(found: History, say: Say) -> Chart:
    """Return a chart with a panel for each series: its values, the level between changes, and the changes."""
    panels = []
    for s in [s for s in found.series if s.values][:_MOST]:
        factor, unit = _UNITS.get(s.figure.quantity(0.0).unit, (1.0, ""))
        bounds = [0, *(c.index for c in s.changes), len(s.values)]
        marks: list[Mark] = [
            Line([(n, x * factor) for n, x in enumerate(s.values, 1)], s.metric, GREY, width=1.0, has_dots=True)
        ]
        levels = [s.changes[0].before, *(c.after for c in s.changes)] if s.changes else [sum(s.values) / len(s.values)]
        for (low, high), level in zip(pairwise(bounds), levels, strict=True):
            marks.append(Line([(low + 1, level * factor), (high, level * factor)], colour=COLOURS[0], width=2.0))
        for c in s.changes:
            colour = COLOURS[2] if is_better(s, c) else COLOURS[3]
            marks.append(Rule(x=c.index + 0.5, colour=colour, hint=f"{s.runs[c.index]}: {change(c.ratio, 1)}"))
        x = Axis(say(message("axis-runs")), domain=(0.5, len(s.values) + 0.5), is_whole=True)
        panels.append(Panel(x, Axis(f"{s.metric}{unit}", has_zero=False, form="si"), marks, s.label, 400, 120))
    keys = [
        Key(say(message("level-of-figure")), COLOURS[0], shape="line"),
        Key(say(message("change-better")), COLOURS[2], "4 3", "line"),
        Key(say(message("change-worse")), COLOURS[3], "4 3", "line"),
    ]
    return Chart("history", message("chart-history"), message("chart-history-note"), Figure(panels, 2, keys))


def _changes(found: History, changes: Sequence[tuple[Series, ChangePoint]]) -> Table:
    rows = []
    for s, c in sorted(changes, key=lambda x: x[0].runs[x[1].index]):
        run = s.runs[c.index]
        besides = "; ".join(f"{name}: {x} → {y}" for name, x, y in found.differences.get(run, []))
        rows.append(cells([run, s.label, s.metric, change(c.ratio, 1), f"{c.p:.1g}", besides or None]))
    columns = [column(x) for x in ("run", "configuration", "figure", "change")]
    last = column("differs", is_long=True)
    return Table("changes", message("heading-changes"), [*columns, column("p"), last], rows, [], 3)


def _series(found: History) -> Table:
    rows = []
    for s in found.series:
        ends = [s.figure.quantity(x) for x in (s.values[0], s.values[-1])] if s.values else [None, None]
        rows.append(cells([s.label, s.metric, len(s.values), *ends]))
    columns = [column("configuration"), column("figure"), column("runs", COUNT), column("first"), column("last")]
    return Table("series", message("table-series"), columns, rows, [], 2)
