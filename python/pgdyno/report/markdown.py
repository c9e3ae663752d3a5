"""The report as Markdown, ready to be pasted."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from functools import partial

from pgdyno.format import printable
from pgdyno.report import words
from pgdyno.report.cells import Table
from pgdyno.report.view import View

#: Rows of a table; nobody reads more in a text.
MOST = 300


def render(view: View, chart_files: dict[str, str]) -> str:
    """Tables, and pictures where `chart_files` names them by chart."""
    say = partial(words.said, lang=view.lang)
    out = [f"# {_flat(view.title)}", "", _flat(view.subtitle), ""]
    if view.error:
        out += [f"> **{say('This run went wrong:')}** {_flat(view.error)}", ""]
    if view.shrunk:
        out += [f"> **{say('Made smaller by --shrink:')}** {_flat('; '.join(view.shrunk))}", ""]
    for sentence in view.answer:
        out += [f"**{_flat(sentence)}**", ""]
    if view.caveats:
        out += [f"**{say('Caveats')}**", ""]
        out += [f"- {_flat(f'{text} ({where}); {remedy}')}" for text, remedy, where in view.caveats]
        out.append("")
    for e in view.why:
        out += [f"## {say('Why')}: {_flat(e.title)}", ""]
        for n, f in enumerate(e.findings, 1):
            out.append(f"{n}. {_flat(say(f.role))}: **{_flat(f.sentence)}** ({_flat(f.cost)})")
            out += [f"   - {_flat(x)}" for x in (f.facts, f"{say('Try:')} {f.remedy}") if x]
        out += [""] if e.findings else [say("Nothing stands out."), ""]
    out += [line for words in view.not_judged for line in (_flat(words), "")]
    for table in view.tables:
        out += _table(table, say)
    for chart in view.charts:
        if chart.name in chart_files:
            title = _flat(chart.title)
            out += [f"## {title}", "", f"![{title}]({chart_files[chart.name]})", "", _flat(chart.note), ""]
    out += [f"## {say('Environment')}", "", "| | |", "|---|---|"]
    out += [f"| {name} | {_cell(value)} |" for name, value in view.environment]
    return "\n".join(out) + "\n"


def _table(table: Table, say: Callable[[str], str]) -> list[str]:
    out = [f"## {_flat(table.title)}", ""]
    out.append("| " + " | ".join(map(_cell, table.columns)) + " |")
    out.append("|" + "|".join("---" if i < table.text_columns else "---:" for i in range(len(table.columns))) + "|")
    shown = table.texts()[:MOST]
    for i, row in enumerate(shown):
        cells = [_cell(c) for c in row]
        # A row of trials leads to their folders.
        if table.folders:
            cells[0] = f"[{cells[0]}]({table.folders[i]}/)"
        out.append("| " + " | ".join(cells) + " |")
    if len(table.cells) > MOST:
        out += ["", f"{say('The rest is in')} report-{table.name}.csv ({len(table.cells)})."]
    return [*out, "", _flat(table.note), ""] if table.note else [*out, ""]


def _flat(text: str) -> str:
    """Return a text in one line that Markdown shows literally.

    Nothing in a statement, a title or a server message acts as HTML, a link or a terminal control sequence.
    """
    plain = html.escape(printable(" ".join(text.split())), quote=False)
    # A link, or a picture, begins with a bracket; a scheme by itself is a link where viewers look for them.
    return re.sub(r"[\[\]]", lambda m: f"\\{m[0]}", plain).replace("://", ":\\//")


def _cell(text: str) -> str:
    return _flat(text).replace("|", "\\|")
