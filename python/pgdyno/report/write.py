"""Writes the reports of a run beside its data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import vl_convert

from pgdyno.model import RunData
from pgdyno.report import html, markdown, view


def write(data: RunData, write_text: Callable[[str, str], Path]) -> list[Path]:
    """report.html, report.md and the pictures that the latter shows. Returns the paths, the page first."""
    v = view.build(data)
    files = {}
    for chart in v.charts:
        name = f"report-{chart.name}.svg"
        write_text(name, vl_convert.vegalite_to_svg(chart.spec))
        files[chart.name] = name
    page = write_text("report.html", html.render(v))
    return [page, write_text("report.md", markdown.render(v, files))]
