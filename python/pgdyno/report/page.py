"""A page of sentences, tables and charts, of what is no run: a drill."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pgdyno import i18n
from pgdyno.format import printable
from pgdyno.message import Message, Text
from pgdyno.report import html
from pgdyno.report.cells import Table
from pgdyno.report.charts import Chart
from pgdyno.report.lead import Tile


@dataclass(frozen=True)
class Answer:
    """Answer at the beginning of a page, and the reasons below it."""

    title: Text
    sentence: Text
    notes: list[Text] = field(default_factory=list)


@dataclass(frozen=True)
class Page:
    """Content of a page in one language."""

    title: Text
    subtitle: Text
    answers: list[Answer]
    tables: list[Table]
    charts: list[Chart]
    #: Tables behind the charts.
    details: list[Table]
    method: list[Text]
    error: Text | None = None
    #: Figures of the first screen; each leads to a table.
    tiles: list[Tile] = field(default_factory=list)
    lang: str = "en"

    @property
    def say(self) -> Callable[[Text | str], str]:
        """Function that writes a text in the page's language, or a message by its id."""
        return lambda text: printable(i18n.text(Message(text) if isinstance(text, str) else text, self.lang))


def render(page: Page) -> str:
    """Return the page as HTML; it needs no network."""
    return html.template("page.html.j2").render(
        page=page,
        lang=page.lang,
        say=page.say,
        **html.tables_for([*page.tables, *page.details], page.lang),
    )
