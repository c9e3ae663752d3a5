"""The report as Markdown, ready to be pasted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pgdyno.report import words
from pgdyno.report.cells import Table
from pgdyno.report.view import View

#: Rows of a table; nobody reads more in a text.
MOST = 300


def render(view: View, chart_files: dict[str, str]) -> str:
    """Tables, and pictures where `chart_files` names them by chart."""
    say = partial(words.said, lang=view.lang)
    out = [f"# {view.title}", "", view.subtitle, ""]
    if view.error:
        out += [f"> **{say('This run went wrong:')}** {_flat(view.error)}", ""]
    if view.shrunk:
        out += [f"> **{say('Made smaller by --shrink:')}** {'; '.join(view.shrunk)}", ""]
    if view.caveats:
        out += [f"**{say('To bear in mind')}**", ""]
        out += [f"- {text} ({where}); {remedy}" for text, remedy, where in view.caveats]
        out.append("")
    for table in view.tables:
        out += _table(table, say)
    for chart in view.charts:
        if chart.name in chart_files:
            out += [f"## {chart.title}", "", f"![{chart.title}]({chart_files[chart.name]})", "", chart.note, ""]
    out += [f"## {say('Environment')}", "", "| | |", "|---|---|"]
    out += [f"| {name} | {_cell(value)} |" for name, value in view.environment]
    return "\n".join(out) + "\n"


def _table(table: Table, say: Callable[[str], str]) -> list[str]:
    out = [f"## {table.title}", ""]
    out.append("| " + " | ".join(table.columns) + " |")
    out.append("|" + "|".join("---" if i < table.text_columns else "---:" for i in range(len(table.columns))) + "|")
    shown = table.texts()[:MOST]
    # A row of trials leads to their folders.
    for i, row in enumerate(shown):
        if table.folders:
            row[0] = f"[{row[0]}]({table.folders[i]}/)"
        out.append("| " + " | ".join(_cell(c) for c in row) + " |")
    if len(table.cells) > MOST:
        out += ["", f"{say('The rest is in')} report-{table.name}.csv ({len(table.cells)})."]
    return [*out, "", table.note, ""] if table.note else [*out, ""]


def _flat(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str) -> str:
    return _flat(text).replace("|", "\\|")
