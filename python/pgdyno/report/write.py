"""Writes the reports of a run beside its data."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import vl_convert

from pgdyno.report import html, markdown
from pgdyno.report.view import View


def write(v: View, write_text: Callable[[str, str], Path]) -> list[Path]:
    """Write report.html, report.md with its pictures, and each table as CSV.

    Return the paths of the first two.
    """
    files = {}
    # Another language is written beside the English one, not over it.
    stem = "report" if v.lang == "en" else f"report.{v.lang}"
    # To draw them takes seconds of processor time; who makes many runs may want the page alone.
    for chart in v.charts if os.environ.get("PGDYNO_CHARTS") != "html" else []:
        name = f"{stem}-{chart.name}.svg"
        write_text(name, vl_convert.vegalite_to_svg(chart.spec))
        files[chart.name] = name
    for table in v.tables if v.lang == "en" else []:
        write_text(f"report-{table.name}.csv", table.as_csv())
    page = write_text(f"{stem}.html", html.render(v))
    return [page, write_text(f"{stem}.md", markdown.render(v, files))]
