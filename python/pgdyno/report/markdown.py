"""The report as Markdown, ready to be pasted."""

from __future__ import annotations

import html
import re

from pgdyno.format import printable
from pgdyno.message import Name, Text, listed, message
from pgdyno.report.cells import Table
from pgdyno.report.view import View

#: Rows of a table; nobody reads more in a text.
MOST = 300


def render(view: View, chart_files: dict[str, str]) -> str:
    """Tables, and pictures where `chart_files` names them by chart."""

    def say(text: Text | str) -> str:
        return _flat(view.say(text))

    out = [f"# {say(view.title)}", "", say(view.subtitle), ""]
    if view.error:
        out += [f"> **{say('heading-error')}** {say(view.error)}", ""]
    if view.shrunk:
        out += [f"> **{say('heading-shrunk')}** {say(listed(view.shrunk, 'semicolon'))}", ""]
    for sentence in view.answer:
        out += [f"**{say(sentence)}**", ""]
    if view.caveats:
        out += [f"**{say('heading-caveats')}**", ""]
        out += [f"- {say(c.sentence)}" for c in view.caveats]
        out.append("")
    for e in view.why:
        out += [f"## {say(message('heading-why-of', what=e.title))}", ""]
        for n, f in enumerate(e.findings, 1):
            out.append(f"{n}. {say(message('label', label=f.role))} **{say(f.sentence)}** ({say(f.cost)})")
            out += [f"   - {say(x)}" for x in (f.facts, message("heading-try", remedy=f.remedy)) if x]
        out += [""] if e.findings else [say("nothing-stands-out"), ""]
    out += [line for text in view.not_judged for line in (say(text), "")]
    for table in view.tables:
        out += _table(table, view)
    for chart in view.charts:
        if chart.name in chart_files:
            title = say(chart.title)
            out += [f"## {title}", "", f"![{title}]({chart_files[chart.name]})", "", say(chart.note), ""]
    out += [f"## {say('heading-environment')}", "", "| | |", "|---|---|"]
    out += [f"| {_cell(view.say(name))} | {_cell(view.say(value))} |" for name, value in view.environment]
    return "\n".join(out) + "\n"


def _table(table: Table, view: View) -> list[str]:
    out = [f"## {_flat(view.say(table.title))}", ""]
    out.append("| " + " | ".join(map(_cell, table.headings(view.lang))) + " |")
    out.append("|" + "|".join("---:" if table.is_number(i) else "---" for i in range(len(table.columns))) + "|")
    for i, row in enumerate(table.texts(view.lang)[:MOST]):
        cells = [_cell(c) for c in row]
        # A row of trials leads to their folders.
        if table.folders:
            cells[0] = f"[{cells[0]}]({table.folders[i]}/)"
        out.append("| " + " | ".join(cells) + " |")
    if len(table.cells) > MOST:
        rest = message("rest-in-csv", file=Name(f"report-{table.name}.csv"), n=len(table.cells))
        out += ["", _flat(view.say(rest))]
    return [*out, "", _flat(table.notes(view.lang)), ""] if table.note else [*out, ""]


def _flat(text: str) -> str:
    """Return a text in one line that Markdown shows literally.

    Nothing in a statement, a title or a server message acts as HTML, a link or a terminal control sequence.
    """
    plain = html.escape(printable(" ".join(text.split())), quote=False)
    # A link, or a picture, begins with a bracket; a scheme by itself is a link where viewers look for them.
    return re.sub(r"[\[\]]", lambda m: f"\\{m[0]}", plain).replace("://", ":\\//")


def _cell(text: str) -> str:
    return _flat(text).replace("|", "\\|")
