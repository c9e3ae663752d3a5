"""The report on one screen of 80 columns: the answer, one table, and what limits the run."""

from __future__ import annotations

import textwrap

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from pgdyno.message import Message, listed, message
from pgdyno.message import Text as Sentence
from pgdyno.report import terminal
from pgdyno.report.cells import DASH, Table
from pgdyno.report.view import View
from pgdyno.wide import wrapped

#: The table that answers most: the first of these that the report has.
TABLES = ("capacity", "tpcc", "drivers", "comparisons", "replication", "rows", "detail", "trials")
#: Characters that end a clause; of these a comma in a number does not.
_ENDS_CLAUSE = frozenset(",;:；：，")
#: Lines of the answer; reasons, and lines of each; lines of caveats.
ANSWER_LINES, REASONS, REASON_LINES, CAVEAT_LINES = 4, 3, 2, 3


def render(view: View, console: Console) -> None:
    """Print the answer in at most four lines, one table, at most three reasons, and the caveats."""
    say = view.say
    terminal.print_head(view, console, details=False)
    for c in view.wrong:
        for line in _cut(say(message("heading-problem", problem=c.sentence)), console.width, REASON_LINES):
            console.print(Text(line, style="bold red"))
    if view.wrong:
        console.print()
    answer = view.headline or view.answer
    # The reasons stand below the table.
    told = [say(x) for x in answer if not _is_risk(x) and x not in view.reasons]
    for line in _lines(told, console.width, ANSWER_LINES):
        console.print(Text(line, style="bold"))
    console.print()
    _table(view, console)
    for reason in [*view.reasons, *view.not_judged][:REASONS]:
        for line in _cut(say(reason), console.width, REASON_LINES):
            console.print(Text(line))
    if view.reasons or view.not_judged:
        console.print()
    # A risk stands first, so that no other caveat crowds it out.
    if rest := [*map(_caveat_of_risk, filter(_is_risk, answer)), *(c.brief for c in view.caveats if not c.is_wrong)]:
        caveats = message("heading-caveats-of", caveats=listed(rest, "semicolon"))
        for line in _cut(say(caveats), console.width, CAVEAT_LINES):
            console.print(Text(line, style="yellow"))
        console.print()
    console.print(Text(say("more-details"), style="dim"))


def _is_risk(text: Sentence) -> bool:
    """Return True for the sentence that says what a faster setting risks."""
    return isinstance(text, Message) and text.id == "answer-risk"


def _caveat_of_risk(risk: Sentence) -> Message:
    assert isinstance(risk, Message)
    return message("caveat-risk", **risk.args)


def _table(view: View, console: Console) -> None:
    table = next((t for name in TABLES if (t := view.table(name)) is not None), None)
    if table is None:
        return
    if table.name == "detail" and len(table.cells) == 1:
        for line in _wrapped(" · ".join(_figures(table, view.lang)), console.width):
            console.print(Text(line))
        console.print()
    else:
        terminal.print_table(table, console, view.lang)


def _figures(table: Table, lang: str) -> list[str]:
    """Return the figures of the only row of a table, each with its interval."""
    found: dict[str, str] = {}
    last = ""
    for i, (column, heading, text) in enumerate(
        zip(table.columns, table.headings(lang), table.row(0, lang), strict=True)
    ):
        if i < table.labels or table.cells[0][i].value == DASH:
            continue
        if column.key.endswith("±"):
            base = column.key.removesuffix("±").strip()
            at = f"{base} ms" if f"{base} ms" in found else last
            found[at] += f" ±{text}"
            continue
        last = column.key
        # The unit stands behind the figure.
        name, _, unit = heading.rpartition(" ") if last.endswith(" ms") else (heading, "", "")
        found[last] = " ".join(filter(None, [name, text, unit]))
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
    # The end is cut between clauses where the last line has one, else between words.
    last = _wrapped(lines[most - 1], width - 2)[0]
    before = "".join(lines[: most - 1])
    ends = [n for n in range(len(last)) if _ends_clause(last, n) and _is_outside(before + last[: n + 1])]
    if ends and ends[-1] >= len(last) / 2:
        last = last[: ends[-1]]
    return [*lines[: most - 1], f"{last.rstrip(' ,;:')} …"]


def _ends_clause(text: str, n: int) -> bool:
    return text[n] in _ENDS_CLAUSE and (not text[n].isascii() or text[n + 1 : n + 2] in ("", " "))


def _is_outside(text: str) -> bool:
    """Return True if no bracket is open at the end of a text."""
    return text.count("(") + text.count("（") == text.count(")") + text.count("）")


def _wrapped(text: str, width: int) -> list[str]:
    if text.isascii() or cell_len(text) == len(text):
        return textwrap.wrap(text, width, break_on_hyphens=False) or [""]
    return wrapped(text, width) or [""]
