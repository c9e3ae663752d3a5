"""The report as one HTML file that needs no network: styles, data and the chart library are inside."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jinja2
import vl_convert

from pgdyno import home
from pgdyno.message import listed, message
from pgdyno.report.cells import Table
from pgdyno.report.sections import sections
from pgdyno.report.view import View

#: Tables of more rows are drawn in pages, with a filter; so is the one of trials, to which the figures lead.
LARGE = 100
#: What prepare() has begun.
_begun: list[subprocess.Popen[bytes]] = []


def render(view: View) -> str:
    """Return the report as an HTML page."""
    specs = {c.name: c.spec for c in view.charts}
    return template("report.html.j2").render(
        view=view,
        lang=view.lang,
        say=view.say,
        label=lambda role: message("label", label=role),
        remedy=lambda text: message("heading-try", remedy=text),
        shrunk=listed(view.shrunk, "semicolon"),
        sections=sections(view),
        **tables_for(view.tables, view.lang),
        specs=embedded(specs),
        library=library() if specs else "",
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
    return env.get_template(name)


def _table_data(t: Table, texts: list[list[str]], lang: str) -> dict[str, object]:
    """Return the data that the page's script needs of a table.

    A cell is its text, or its text and its trials. `values` holds the sort keys of cells that are not text.
    """
    rows = [
        [[text, c.trials] if c.trials else text for c, text in zip(row, line, strict=True)]
        for row, line in zip(t.cells, texts, strict=True)
    ]
    data: dict[str, object] = {
        "columns": t.headings(lang),
        "numeric": [t.is_number(i) for i in range(len(t.columns))],
        "rows": rows,
        "values": t.numbers(),
        "folders": t.folders,
        "csv": t.as_csv(),
    }
    if t.name == "trials":
        data["numbers"] = [int(line[0].split("-")[0]) for line in texts]
    return data


def embedded(data: Any) -> str:
    """JSON that a page's script reads."""
    # Nothing in it may end the script element early, or begin what hides its end ("<!--<script>").
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def prepare() -> None:
    """Start to bundle the chart library in a separate process unless it is cached.

    Bundling takes a second, during which this process could do nothing else.
    """
    if not _kept().exists():
        # -P: not what lies where the user is.
        program = [sys.executable, "-P", "-c", "from pgdyno.report.html import library; library()"]
        _begun.append(subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))


def library() -> str:
    """Return the chart library, which is bundled once and kept in the user's cache."""
    while _begun:
        _begun.pop().wait()
    kept = _kept()
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return kept.read_text(encoding="utf-8")
    text = _bundle()
    with contextlib.suppress(OSError):
        kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=kept.parent, delete=False) as f:
            f.write(text)
        Path(f.name).rename(kept)
    return text


def _kept() -> Path:
    return home.cache() / f"vega-{version('vl-convert-python')}.js"


def _bundle() -> str:
    # The type stub claims that a snippet is required; without one, the bundle puts its functions into `window`.
    bundle: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]
    return bundle.replace("</script", "<\\/script")
