"""Page of an observation: how busy the server is and with what, what limits it, what is ruled out, over time."""

from __future__ import annotations

from dataclasses import replace

from pgdyno import i18n
from pgdyno.diagnosis.recorded import Recorded
from pgdyno.message import Message, Name, Text, counted, listed, message
from pgdyno.report import client_time, heading, resources, timeline
from pgdyno.report.cells import PERCENT, Table, cells, column
from pgdyno.report.charts import Chart
from pgdyno.report.lead import Tile
from pgdyno.report.observed import ObservedAnswer
from pgdyno.report.page import Answer, Page, render
from pgdyno.results.analysis import RunAnalysis
from pgdyno.units import Quantity, Unit

#: Characters of a statement that a table shows.
_STATEMENT = 200


def file_name(lang: str) -> str:
    """Return the name of the page's file in the run directory, as the reports of runs are named."""
    return "report.html" if lang == "en" else f"report.{lang}.html"


def written(run: RunAnalysis, found: ObservedAnswer, lang: str) -> str:
    """Return the page as HTML."""
    first = [listed(found.sentences, "sentence"), *_limits(found)]
    tables = [statement_table(found), parts_table(found)]
    details = [resources.statements(run), resources.devices(run), resources.processes(run), resources.locks(run)]
    return render(
        Page(
            title=message("title-observed"),
            subtitle=heading.subtitle(run.data),
            answers=[Answer(message("title-observed"), x) for x in first] + _why(found),
            tables=[t for t in tables if t.cells],
            charts=_charts(run, lang),
            details=_without_trials(details),
            method=[*method(), *found.gaps, *found.not_judged],
            tiles=_tiles(run, found),
            error=run.data.manifest.error_text,
            lang=lang,
        )
    )


def method() -> list[Text]:
    """Return how an observation is made, in sentences."""
    return [message("method-observed"), message("method-observed-load"), message("method-observed-session")]


def _without_trials(tables: list[Table]) -> list[Table]:
    """Return the tables that have rows. An observation has no table of trials to which figures could lead."""
    return [replace(t, cells=[[replace(c, trials=()) for c in row] for row in t.cells]) for t in tables if t.cells]


def _limits(found: ObservedAnswer) -> list[Text]:
    return [message("labelled", label=f.role, text=f.sentence) for f in found.why.findings[:1]]


def _why(found: ObservedAnswer) -> list[Answer]:
    whys = [
        Answer(
            message("labelled", label=f.role, text=f.title), f.sentence,
            [x for x in (message("labelled", label=message("explain-cost"), text=f.cost),
                         message("heading-try", remedy=f.remedy)) if x],
        )
        for f in found.why.findings
    ]  # fmt: skip
    if found.ruled_out:
        whys.append(Answer(message("heading-ruled-out"), message("observed-ruled-out"), list(found.ruled_out)))
    # The sentence of the first one stands in the answer already.
    return [Answer(a.title, message("nothing"), [a.sentence, *a.notes]) for a in whys]


def _tiles(run: RunAnalysis, found: ObservedAnswer) -> list[Tile]:
    g = run.groups[0]
    e = run.observed(g.trials)
    sessions = message("tile-of-sessions", n=e.clients)
    tiles = [
        Tile(message("tile-busy"), _figure(e.busy_clients, "two"), sessions, section="busy-parts"),
        Tile(message("tile-commits"), _figure(e.tps, "rate4"), message("tile-per-s"), section="busy-parts"),
    ]
    largest: Text = found.why.findings[0].title if found.why.findings else message("tile-none")
    note = counted("n-findings", len(found.why.findings))
    tiles.append(Tile(message("tile-limited-by"), largest, note, section="busy-parts"))
    ruled = Name(str(len(found.ruled_out)))
    tiles.append(Tile(message("heading-ruled-out"), ruled, message("tile-ruled-out"), section="busy-parts"))
    return tiles


def _figure(value: float, unit: Unit) -> Message:
    return message("figure", figure=Quantity(value, unit))


def _charts(run: RunAnalysis, lang: str) -> list[Chart]:
    say = i18n.writer(lang)
    found = []
    if time := client_time.chart(run, run.groups[:1], say):
        found.append(time)
    trial = run.groups[0].trials[0]
    if figure := timeline.chart(Recorded(run.data, trial), say):
        title = message("chart-observed-time")
        found.append(Chart("timeline-1", title, message("chart-timeline-note"), figure))
    return found


def statement_table(found: ObservedAnswer) -> Table:
    """Return the table of the statements that take most of the busy time."""
    rows = []
    for s in found.statements:
        wait = message("on-a-cpu") if not s.wait else Name(s.wait)
        mostly = message("observed-mostly", wait=wait, share=Quantity(s.wait_share, "share"))
        rows.append(cells([s.share, mostly, s.statement[:_STATEMENT]]))
    columns = [
        column("share", PERCENT, id="busy-share"),
        column("mostly", id="mostly"),
        column("statement", is_long=True),
    ]
    return Table("busy-statements", message("table-busy-statements"), columns, rows, [message("note-busy")], 1)


def parts_table(found: ObservedAnswer) -> Table:
    """Return the table of all parts of the busy time, with their bounds."""
    rows = [
        cells([message(f"part-{p.name}"), p.share.mean, p.share.low, p.share.high,
               message("yes") if p.is_ruled_out else None])
        for p in found.parts
    ]  # fmt: skip
    columns = [
        column("part", id="part"), column("share", PERCENT, id="busy-share"), column("low", PERCENT, id="low"),
        column("high", PERCENT, id="high"), column("ruled out", id="ruled-out"),
    ]  # fmt: skip
    return Table("busy-parts", message("table-busy-parts"), columns, rows, [message("note-busy-parts")], 1)
