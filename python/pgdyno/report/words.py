"""The report's words in other languages. English is the key; what has no translation stays as it is."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pgdyno.report.words_zh import PATTERNS, ZH, configuration
from pgdyno.store.reading import RunData

if TYPE_CHECKING:
    from pgdyno.report.cells import Cell, Table
    from pgdyno.report.view import View

LANGUAGES = ("en", "zh")


def said(text: str, lang: str = "en") -> str:
    """Translate a text: as a whole, by its sentences, or by a pattern with figures in it."""
    if lang == "en" or not text:
        return text
    return full_width(_said(text))


_CHINESE = re.compile("[\u3000-\u303f\u4e00-\u9fff]")
#: What keeps its marks: numbers, times, options, SQL.
_KEPT = r"EXPLAIN \([^)]*\)|-- name: [a-z ]+|\d[,:](?=\d)"
_MARKS = re.compile(rf"({_KEPT})|([,:;]) ?")
_BRACKETS = re.compile(rf"({_KEPT})|\(([^()]*)\)")
_WIDE = {",": "\uff0c", ":": "\uff1a", ";": "\uff1b"}


def full_width(text: str) -> str:
    """Replace the punctuation of a Chinese text with full-width marks.

    Marks within numbers and SQL stay unchanged.
    """
    if not _CHINESE.search(text):
        return text
    text = _BRACKETS.sub(lambda m: m[1] or f"\uff08{m[2]}\uff09", text)
    return _MARKS.sub(lambda m: m[1] or _WIDE[m[2]], text)


def _said(text: str, lang: str = "zh") -> str:
    if text in ZH:
        return ZH[text]
    for pattern, to in PATTERNS:
        if re.fullmatch(pattern, text):
            return re.sub(pattern, to, text)
    sentences = re.split(r"(?<=[.]) (?=[A-Z±0-9]|p50 ±)|(?<=:) (?=[A-Z±])", text)
    return "".join(_beside(_said(s, lang)) for s in sentences).rstrip() if len(sentences) > 1 else text


def _beside(sentence: str) -> str:
    """Return a sentence with a space behind it, unless it ends in a full-width mark."""
    return sentence if sentence.endswith(("。", "：", "；")) else f"{sentence} "


def translated(view: View, data: RunData, lang: str) -> View:
    """Translate the view into another language.

    Text that the user wrote stays: titles and notes of experiments have translations of their own.
    """
    m = data.manifest
    workloads = {v: m.workloads_zh.get(k, v) for k, v in m.workloads.items()}
    note, note_zh = m.note, m.note_zh or m.note

    def words(text: str) -> str:
        return workloads.get(text) or said(text, lang)

    def of(table: Table) -> Table:
        own, theirs = (
            (table.note.replace(note, "").strip(), note_zh) if note and note in table.note else (table.note, "")
        )
        return replace(
            table,
            title=words(table.title),
            keys=table.columns,
            columns=[words(c) for c in table.columns],
            optional=[words(c) for c in table.optional],
            note=" ".join(p for p in (words(own), theirs) if p),
            cells=[[_cell(c, lang) for c in row] for row in table.cells],
        )

    why = [replace(e, title=place(e.title)) for e in view.why]
    return replace(
        view,
        lang=lang,
        why=why,
        title=m.title_zh or view.title,
        subtitle=said(view.subtitle, lang),
        answer=[said(a, lang) for a in view.answer],
        reasons=[said(a, lang) for a in view.reasons],
        error=said(view.error, lang),
        shrunk=[said(x, lang) for x in view.shrunk],
        wrong=[said(x, lang) for x in view.wrong],
        caveats=[(said(a, lang), said(b, lang), said(c, lang)) for a, b, c in view.caveats],
        tables=[of(t) for t in view.tables],
        method=[said(x, lang) for x in view.method],
        environment=[(said(name, lang), said(value, lang)) for name, value in view.environment],
        charts=[
            replace(c, title=said(c.title, lang), note=said(c.note, lang), spec=_spec(c.spec, lang))
            for c in view.charts
        ],
    )


def place(title: str) -> str:
    """Translate the title of a configuration."""
    return full_width(configuration(re.sub(r"(\S+%) hot", r"热数据 \1", title)))


def _cell(c: str | Cell, lang: str) -> str | Cell:
    return said(c, lang) if isinstance(c, str) else replace(c, text=said(c.text, lang))


def _spec(value: Any, lang: str) -> Any:
    """Translate the titles in the description of a chart."""
    if isinstance(value, dict):
        return {k: said(v, lang) if k == "title" and isinstance(v, str) else _spec(v, lang) for k, v in value.items()}
    return [_spec(v, lang) for v in value] if isinstance(value, list) else value
