"""The report as Markdown, ready to be pasted."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

from pgdyno.format import printable
from pgdyno.message import Name, Text, listed, message
from pgdyno.report.cells import Table
from pgdyno.report.charts import Chart
from pgdyno.report.sections import sections
from pgdyno.report.view import View

#: Rows of a table; nobody reads more in a text. And those from which on it is folded.
MOST, LONG = 300, 20


def render(view: View, chart_files: dict[str, str]) -> str:
    """Return the report as Markdown, in the order of the page. `chart_files` holds the pictures' files by chart."""
    return "\n".join([*_beginning(view, chart_files), *_sections(view, chart_files), *_end(view)]) + "\n"


def _beginning(view: View, chart_files: dict[str, str]) -> list[str]:
    """Title, what went wrong, the answer, and the chart of the first screen."""
    say = _sayer(view)
    out = [f"# {say(view.title)}", "", say(view.subtitle), ""]
    if view.error:
        out += [f"> **{say('heading-error')}** {say(view.error)}", ""]
    if view.shrunk:
        out += [f"> **{say('heading-shrunk')}** {say(listed(view.shrunk, 'semicolon'))}", ""]
    for sentence in view.answer:
        out += [f"**{say(sentence)}**", ""]
    if view.lead is not None:
        out += _chart(view.lead, view, chart_files)
    if view.caveats:
        out += [f"**{say('heading-caveats')}**", ""]
        out += [f"- {say(c.sentence)}" for c in view.caveats]
        out.append("")
    return out


def _sections(view: View, chart_files: dict[str, str]) -> list[str]:
    say = _sayer(view)
    out: list[str] = []
    for section in sections(view):
        out += [f"## {say(section.title)}", ""]
        if section.name == "why":
            out += _why(view)
        for chart in section.charts:
            out += _chart(chart, view, chart_files)
        for table in [*section.tables, *section.folded]:
            out += _table(table, view, folded=table in section.folded)
    trials = view.table("trials")
    return [*out, *_table(trials, view, folded=True)] if trials is not None else out


def _why(view: View) -> list[str]:
    say = _sayer(view)
    out: list[str] = []
    for e in view.why:
        out += [f"### {say(e.title)}", ""]
        for n, f in enumerate(e.findings, 1):
            out.append(f"{n}. {say(message('label', label=f.role))} **{say(f.sentence)}** ({say(f.cost)})")
            out += [f"   - {say(x)}" for x in (f.facts, message("heading-try", remedy=f.remedy)) if x]
            out += [f"   - `{' '.join(view.say(line) for line in a.lines)}` ({say(a.outlook)})" for a in f.actions]
        out += [""] if e.findings else [say("nothing-stands-out"), ""]
    return [*out, *(line for text in view.not_judged for line in (say(text), ""))]


def _end(view: View) -> list[str]:
    out = [f"## {_flat(view.say('heading-environment'))}", "", "| | |", "|---|---|"]
    return [*out, *(f"| {_cell(view.say(name))} | {_cell(view.say(value))} |" for name, value in view.environment)]


def _chart(chart: Chart, view: View, chart_files: dict[str, str]) -> list[str]:
    if chart.name not in chart_files:
        return []
    title = _flat(view.say(chart.title))
    return [f"### {title}", "", f"![{title}]({chart_files[chart.name]})", "", _flat(view.say(chart.note)), ""]


def _sayer(view: View) -> Callable[[Text | str], str]:
    return lambda text: _flat(view.say(text))


def _table(table: Table, view: View, *, folded: bool = False) -> list[str]:
    """Return a table; one of many rows, or of details, is folded where Markdown is shown as a page."""
    title = _flat(view.say(table.title))
    folded = folded or len(table.cells) > LONG
    out = ["<details>", f"<summary>{title}</summary>", ""] if folded else [f"### {title}", ""]
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
    if table.note:
        out += ["", _flat(table.notes(view.lang))]
    return [*out, "", "</details>", ""] if folded else [*out, ""]


def _flat(text: str) -> str:
    """Return a text in one line that Markdown shows literally.

    Nothing in a statement, a title or a server message acts as HTML, a link or a terminal control sequence.
    """
    plain = html.escape(printable(" ".join(text.split())), quote=False)
    # A link, or a picture, begins with a bracket; a scheme by itself is a link where viewers look for them.
    return re.sub(r"[\[\]]", lambda m: f"\\{m[0]}", plain).replace("://", ":\\//")


def _cell(text: str) -> str:
    return _flat(text).replace("|", "\\|")
