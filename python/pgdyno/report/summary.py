"""The report on one screen of 80 columns: the answer, one table, and what limits the run."""

from __future__ import annotations

import textwrap
from functools import partial

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from pgdyno.report import terminal, words
from pgdyno.report.cells import Table
from pgdyno.report.view import View

#: The table that answers most: the first of these that the report has.
TABLES = ("capacity", "tpcc", "comparisons", "replication", "rows", "detail", "trials")
#: Lines of the answer; reasons, and lines of each; lines of caveats.
ANSWER_LINES, REASONS, REASON_LINES, CAVEAT_LINES = 4, 3, 2, 3


def render(view: View, console: Console) -> None:
    """Print the answer in at most four lines, one table, at most three reasons, and the caveats."""
    say = partial(words.said, lang=view.lang)
    if view.error:
        console.print(Text(f"{say('This run went wrong:')} {view.error}", style="bold red"))
        console.print()
    if view.shrunk:
        console.print(Text(f"{say('Made smaller by --shrink:')} {'; '.join(view.shrunk)}", style="yellow"))
        console.print()
    for text, remedy, where in view.caveats:
        if text in view.wrong:
            mark = "：" if view.lang == "zh" else ": "
            for line in _cut(f"{say('Problem')}{mark}{text} ({where}); {remedy}", console.width, REASON_LINES):
                console.print(Text(line, style="bold red"))
    if view.wrong:
        console.print()
    for line in _lines(view.headline or view.answer, console.width, ANSWER_LINES):
        console.print(Text(line, style="bold"))
    console.print()
    _table(view, console)
    for sentence in [*view.reasons, *view.not_judged][:REASONS]:
        for line in _cut(sentence, console.width, REASON_LINES):
            console.print(Text(line))
    if view.reasons or view.not_judged:
        console.print()
    if len(view.caveats) > len(view.wrong):
        texts = [text for text, _, _ in view.caveats if text not in view.wrong]
        told = f"注意事项：{'；'.join(texts)}。" if view.lang == "zh" else f"Caveats: {'; '.join(texts)}."
        for line in _cut(told, console.width, CAVEAT_LINES):
            console.print(Text(line, style="yellow"))
        console.print()
    console.print(Text(say("More: --details, or the report."), style="dim"))


def _table(view: View, console: Console) -> None:
    table = next((t for name in TABLES if (t := view.table(name)) is not None), None)
    if table is None:
        return
    if table.name == "detail" and len(table.cells) == 1:
        for line in _wrapped(" · ".join(_figures(table)), console.width):
            console.print(Text(line))
        console.print()
    else:
        terminal.print_table(table, console)


def _figures(table: Table) -> list[str]:
    """Return the figures of the only row of a table, each with its interval."""
    keys = table.keys or table.columns
    found: dict[str, str] = {}
    last = ""
    for i, value in enumerate(table.texts()[0]):
        if i < table.text_columns or value in ("–", ""):
            continue
        name = keys[i]
        if name.endswith("±"):
            base = name.removesuffix("±").strip()
            at = next((known for known in found if known.split()[0] == base), last) if base else last
            found[at] += f" ±{value}"
            continue
        unit = " ms" if name.endswith(" ms") else ""
        last = name
        found[last] = f"{name.removesuffix(' ms')} {value}{unit}"
    return list(found.values())


def _lines(sentences: list[str], width: int, most: int) -> list[str]:
    """Return whole sentences in at most `most` lines; the first one in any case."""
    out: list[str] = []
    for sentence in sentences:
        lines = _wrapped(sentence, width)
        if out and len(out) + len(lines) > most:
            break
        out += lines if out or len(lines) <= most else _cut(sentence, width, most)
    return out


def _cut(sentence: str, width: int, most: int) -> list[str]:
    lines = _wrapped(sentence, width)
    if len(lines) <= most:
        return lines
    last = lines[most - 1]
    while cell_len(last) > width - 2:
        last = last[:-1]
    return [*lines[: most - 1], f"{last.rstrip(' ,;:')} …"]


def _wrapped(text: str, width: int) -> list[str]:
    if text.isascii() or cell_len(text) == len(text):
        return textwrap.wrap(text, width, break_on_hyphens=False) or [""]
    # Characters of two columns have no blanks between them.
    lines, line = [], ""
    for character in text:
        if cell_len(line + character) > width:
            lines.append(line)
            line = ""
        line += character
    return [*lines, line]
