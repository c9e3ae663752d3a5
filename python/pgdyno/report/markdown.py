"""The report as Markdown, ready to be pasted."""

from __future__ import annotations

from pgdyno.report.view import Table, View


def render(view: View, chart_files: dict[str, str]) -> str:
    """Tables, and pictures where `chart_files` names them by chart."""
    out = [f"# {view.title}", "", view.subtitle, ""]
    if view.error:
        out += [f"> **This run went wrong:** {_flat(view.error)}", ""]
    if view.caveats:
        out += ["**To bear in mind**", ""]
        out += [f"- {text} ({where}); {remedy}" for text, remedy, where in view.caveats]
        out.append("")
    for table in view.tables:
        out += _table(table)
    for chart in view.charts:
        if chart.name in chart_files:
            out += [f"## {chart.title}", "", f"![{chart.title}]({chart_files[chart.name]})", "", chart.note, ""]
    out += ["## Environment", "", "| | |", "|---|---|"]
    out += [f"| {name} | {_cell(value)} |" for name, value in view.environment]
    return "\n".join(out) + "\n"


def _table(table: Table) -> list[str]:
    out = [f"## {table.title}", ""]
    out.append("| " + " | ".join(table.columns) + " |")
    out.append("|" + "|".join("---" if i < table.text_columns else "---:" for i in range(len(table.columns))) + "|")
    out += ["| " + " | ".join(_cell(c) for c in row) + " |" for row in table.cells]
    return [*out, "", table.note, ""] if table.note else [*out, ""]


def _flat(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str) -> str:
    return _flat(text).replace("|", "\\|")
