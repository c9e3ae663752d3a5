"""A page of sentences, tables and charts, of what is no run: a drill."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pgdyno.report import html
from pgdyno.report.cells import Table


@dataclass(frozen=True)
class Answer:
    """Answer at the beginning of a page, and the reasons below it."""

    title: str
    sentence: str
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Chart:
    """Vega-Lite."""

    name: str
    title: str
    note: str
    spec: dict[str, Any]


@dataclass(frozen=True)
class Page:
    """See the module."""

    title: str
    subtitle: str
    answers: list[Answer]
    tables: list[Table]
    charts: list[Chart]
    #: Tables behind the charts.
    details: list[Table]
    method: list[str]
    error: str = ""


def render(page: Page) -> str:
    """Return the page as HTML; it needs no network."""
    specs = {c.name: c.spec for c in page.charts}
    return html.template("page.html.j2").render(
        page=page,
        say=str,
        **html.tables_for([*page.tables, *page.details]),
        specs=html.embedded(specs),
        library=html.library() if specs else "",
    )
