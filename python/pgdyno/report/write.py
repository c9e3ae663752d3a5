"""Writes the reports of a run beside its data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pgdyno.plot import svg
from pgdyno.report import html, markdown
from pgdyno.report.charts import Chart
from pgdyno.report.view import View


def picture(chart: Chart, v: View) -> str:
    """Return a chart as an SVG file that says what it shows and where it was measured, wherever it is pasted."""
    return svg.document(chart.figure, v.say(chart.title), [v.say(v.title), v.say(v.subtitle)])


def write(v: View, write_text: Callable[[str, str], Path]) -> list[Path]:
    """Write report.html, report.md with its pictures, and each table as CSV.

    Return the paths of the first two.
    """
    files = {}
    # Another language is written beside the English one, not over it.
    stem = "report" if v.lang == "en" else f"report.{v.lang}"
    for chart in v.charts:
        name = f"{stem}-{chart.name}.svg"
        write_text(name, picture(chart, v))
        files[chart.name] = name
    for table in v.tables if v.lang == "en" else []:
        write_text(f"report-{table.name}.csv", table.as_csv)
    page = write_text(f"{stem}.html", html.render(v))
    return [page, write_text(f"{stem}.md", markdown.render(v, files))]
