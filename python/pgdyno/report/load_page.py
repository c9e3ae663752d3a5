"""Page of a load: how large, how long, how fast over time, and each phase and table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pgdyno import i18n
from pgdyno.load.dataset import Dataset
from pgdyno.load.result import CHECK, Loaded, Progress
from pgdyno.load.units import pg_size
from pgdyno.message import Name, Text, counted, listed, message
from pgdyno.plot.model import Axis, Figure, Key, Line, Mark, Panel, Span, colours
from pgdyno.report.cells import NUMBER, PERCENT, SECONDS, SIZE, Table, cells, column
from pgdyno.report.charts import Chart, Say
from pgdyno.report.lead import Tile
from pgdyno.report.page import Answer, Page, render
from pgdyno.units import Quantity

#: Points of the chart, and the shortest time that one covers.
_POINTS, _LEAST_S = 200, 0.2


def written(
    dataset: Dataset, done: Loaded, disk: float | None, progress: Sequence[Progress], place: Text, lang: str = "en"
) -> str:
    """Return the page as HTML. `disk` is what the disk takes, in bytes per second; None: not measured."""
    sentence = message(
        "load-page-answer",
        name=Name(dataset.name),
        seconds=Quantity(done.total_s, "duration"),
        speed=Quantity(_rate(done), "bytes/s"),
        method=Name(done.method),
    )
    drawn = chart(progress, done.phases_s, i18n.writer(lang))
    return render(
        Page(
            title=message("load-page-title", name=Name(dataset.name)),
            subtitle=place,
            answers=[Answer(message("heading-method"), sentence)],
            tables=[_phases(done), _tables(dataset)],
            charts=[drawn] if drawn else [],
            details=[],
            method=[message("load-page-method")],
            tiles=_tiles(dataset, done, disk),
            lang=lang,
        )
    )


def _rate(done: Loaded) -> float:
    return done.dataset_bytes / done.total_s if done.total_s else 0.0


def _tiles(dataset: Dataset, done: Loaded, disk: float | None) -> list[Tile]:
    writing = done.phases_s.get("generate", 0.0)
    of_disk: Text = message("load-page-no-disk")
    if disk and writing:
        of_disk = message("load-page-disk", disk=Quantity(disk, "bytes/s"))
    used = None
    if done.connections:
        used = counted("load-page-connections", done.connections)
    elif done.threads:
        used = counted("load-page-threads", done.threads)
    return [
        Tile(message("load-page-speed"), _value(Quantity(_rate(done), "bytes/s")), of_disk, section="phases"),
        Tile(
            message("load-page-time"), _value(Quantity(done.total_s, "duration")), listed([Name(done.method), used]),
            section="phases",
        ),
        Tile(message("load-page-size"), Name(pg_size(done.dataset_bytes)), message("load-page-with-indexes"),
             section="tables"),
        Tile(message("load-page-rows"), Name(f"{done.rows:,}"), Name(dataset.name), section="tables"),
    ]  # fmt: skip


def _value(quantity: Quantity) -> Text:
    return message("load-page-value", value=quantity)


def chart(progress: Sequence[Progress], phases_s: Mapping[str, float], say: Say) -> Chart | None:
    """Return MB/s over time with the phases behind it, or None for a load too short to see.

    `phases_s` holds the seconds of each phase, one after the other.
    """
    rates = _rates(progress)
    if len(rates) < 2:
        return None
    marks: list[Mark] = []
    keys = []
    end = 0.0
    for (name, seconds), colour in zip(phases_s.items(), colours(len(phases_s) + 1)[1:], strict=True):
        start, end = end, end + seconds
        title = say(message(f"phase-{name}"))
        marks.append(Span(start, end, title, f"{start:.1f} – {end:.1f} s", colour))
        keys.append(Key(title, colour, shape="span"))
    x = Axis(say(message("axis-seconds")), domain=(0.0, max(end, progress[-1].at_s)), is_time=True)
    line = Line(rates, "MB/s", is_stepped=False)
    panel = Panel(x, Axis("MB/s"), [*marks, line], width=860, height=260)
    note = message("load-page-chart-note")
    return Chart("speed", message("load-page-chart"), note, Figure([panel], keys=keys))


def _rates(progress: Sequence[Progress]) -> list[tuple[float, float]]:
    """Return MB/s by time: each point is the mean since the one before."""
    if not progress:
        return []
    least = max(_LEAST_S, progress[-1].at_s / _POINTS)
    last: dict[str, Progress] = {}
    found = []
    for p in progress:
        before = last.setdefault(p.phase, Progress(p.at_s, p.phase, p.done_bytes))
        if p.at_s - before.at_s >= least and p.done_bytes > before.done_bytes:
            found.append((round(p.at_s, 3), (p.done_bytes - before.done_bytes) / (p.at_s - before.at_s) / 1e6))
            last[p.phase] = p
    return found


def _phases(done: Loaded) -> Table:
    whole = sum(done.phases_s.values())
    rows = [
        cells([message(f"phase-{name}"), seconds, seconds / whole if whole else None])
        for name, seconds in done.phases_s.items()
    ]
    note: list[Text] = [message("load-page-check")] if CHECK in done.phases_s else []
    columns = [column("phase"), column("s", SECONDS), column("share", PERCENT)]
    return Table("phases", message("load-page-phases"), columns, rows, note)


def _tables(dataset: Dataset) -> Table:
    rows = [
        cells([Name(t.name), t.end - t.first, t.heap_bytes, t.key_bytes or None, t.index_bytes or None])
        for t in dataset.tables
    ]
    columns = [
        column("table"), column("rows", NUMBER), column("heap", SIZE), column("key", SIZE), column("indexes", SIZE),
    ]  # fmt: skip
    return Table("tables", message("load-page-tables"), columns, rows, [message("load-page-tables-note")])
