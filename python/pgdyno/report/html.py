"""The report as one HTML file that needs no network: styles, charts and data are inside."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import jinja2
from markupsafe import Markup

from pgdyno.message import listed, message
from pgdyno.plot import svg
from pgdyno.report.cells import DASH, Table
from pgdyno.report.sections import sections
from pgdyno.report.view import View

#: Tables of more rows are drawn in pages, with a filter; so is the one of trials, to which the figures lead.
LARGE = 100


def render(view: View) -> str:
    """Return the report as an HTML page."""
    shown = sections(view)
    return template("report.html.j2").render(
        view=view,
        targets={s.name for s in shown} | ({"caveats"} if view.caveats else set()),
        lang=view.lang,
        say=view.say,
        label=lambda role: message("label", label=role),
        remedy=lambda text: message("heading-try", remedy=text),
        shrunk=listed(view.shrunk, "semicolon"),
        shrunk_count=message("shrunk-count", n=len(view.shrunk)),
        sections=shown,
        **tables_for(view.tables, view.lang),
    )


def tables_for(tables: Sequence[Table], lang: str) -> dict[str, Any]:
    """Return what tables.html.j2 and tables.js need of a page's tables."""
    texts = {t.name: t.texts(lang) for t in tables}
    return {
        "large": {t.name for t in tables if len(t.cells) > LARGE or t.name == "trials"},
        "headings": {t.name: t.headings(lang) for t in tables},
        "texts": texts,
        "tables": embedded({t.name: _table_data(t, texts[t.name], lang) for t in tables}),
    }


def template(name: str) -> jinja2.Template:
    """One of the pages; what it includes lies beside it."""
    env = jinja2.Environment(
        loader=jinja2.PackageLoader("pgdyno.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Their texts are escaped where they are drawn.
    env.globals |= {"plot_style": Markup(svg.STYLE)}
    env.globals |= {"panel": lambda p, name: Markup(svg.panel(p, name)), "key": lambda k: Markup(svg.key(k))}
    return env.get_template(name)


def _table_data(t: Table, texts: list[list[str]], lang: str) -> dict[str, object]:
    """Return the data that the page's script needs of a table.

    A cell is its text, or its text and its trials. `values` holds the cells as numbers, by which rows are sorted and
    saved as CSV. `plain` has the texts of cells whose text in a CSV file differs from the one on the page, by row and
    column.
    """
    rows = [
        [[text, c.trials] if c.trials else text for c, text in zip(row, line, strict=True)]
        for row, line in zip(t.cells, texts, strict=True)
    ]
    data: dict[str, object] = {
        "columns": t.headings(lang),
        "numeric": [t.is_number(i) for i in range(len(t.columns))],
        "rows": rows,
        "values": t.numbers,
        "folders": t.folders,
        "headings": t.machine_headings,
        "plain": {} if lang == "en" else _plain(t, texts),
    }
    if t.name == "trials":
        data["numbers"] = [int(line[0].split("-")[0]) for line in texts]
    return data


def _plain(t: Table, texts: list[list[str]]) -> dict[str, str]:
    found = {}
    for i, (row, line) in enumerate(zip(t.cells, texts, strict=True)):
        for k, (cell, text) in enumerate(zip(row, line, strict=True)):
            if isinstance(cell.value, float) or cell.value == DASH:
                continue
            if (plain := t.machine_text(i, k)) != text:
                found[f"{i},{k}"] = plain
    return found


def embedded(data: Any) -> str:
    """JSON that a page's script reads."""
    # Nothing in it may end the script element early, or begin what hides its end ("<!--<script>").
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
