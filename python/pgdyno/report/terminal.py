"""The details of a report on a terminal of 80 columns: all tables that fit, findings with remedies, caveats."""

from __future__ import annotations

import textwrap

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from pgdyno import i18n
from pgdyno.message import Message, listed, message
from pgdyno.report.cells import Table
from pgdyno.report.view import View

#: What is shown, in this order; the rest is in report.html.
SHOWN = (
    "capacity",
    "tpcc",
    "tpcc-limits",
    "comparisons",
    "replication",
    "standby-reads",
    "qps",
    "rows",
    "detail",
    "scripts",
    "fidelity",
    "statements",
    "server",
    "sizes",
    "storage",
    "tpcc-ranges",
    "checks",
    "outcomes",
)
#: Columns of free text that give way to the figures, down to so many characters, and end in dots; the page has all.
_CUT = {
    "statements": {"statement": 28},
    "scripts": {"script": 16},
    "sizes": {"relation": 12},
    "fidelity": {"script": 10},
}
#: Those that go on in the next line: without them the row would be about nothing. So do long names of variants.
_FOLDED = {"outcomes": (2,), "checks": (1, 3)}
_LONG = 24
#: Of a figure's heading.
_HEADING = 14
#: Tables that say what a row is about only where it is not what the row above is about.
_GROUPED = ("statements", "scripts")
#: Rows of a table; who wants more looks at the page.
MOST = 40


def render(view: View, console: Console) -> None:
    """Print the most important parts of the report."""
    say = view.say
    print_head(view, console)
    for sentence in view.answer:
        console.print(Text(say(sentence), style="bold"))
    if view.answer:
        console.print()
    _why(view, console)
    # Where no trial was finished, what the interrupted one measured is all there is.
    last = () if view.table("qps") else ("trials",)
    for name in (*SHOWN, *last):
        if table := view.table(name):
            print_table(table, console, view.lang)
    if view.caveats:
        console.print(Text(say("heading-caveats"), style="bold"))
        for c in view.caveats:
            console.print(Text(f"- {say(c.sentence)}"), soft_wrap=False)
        console.print()


def print_head(view: View, console: Console, *, details: bool = True) -> None:
    """Print what a reader must know before everything else: an error, and what --shrink changed.

    Without `details`, more than a few changes are only counted.
    """
    say = view.say
    if view.error:
        console.print(Text(f"{say('heading-error')} {say(view.error)}", style="bold red"))
        console.print()
    if view.shrunk:
        changes = f"{say('heading-shrunk')} {say(listed(view.shrunk, 'semicolon'))}"
        if not details and len(view.shrunk) > _CHANGES:
            changes = say(message("shrunk-count", n=len(view.shrunk)))
        console.print(Text(changes, style="yellow"))
        console.print()


#: Changes of --shrink that are listed without --details.
_CHANGES = 3
#: Findings of a configuration that a terminal shows.
_FINDINGS = 2


def _why(view: View, console: Console) -> None:
    """Print the findings of the first configurations; pgdyno explain shows all of them."""
    say = view.say
    told = [e for e in view.why if e.findings][:2]
    if not told and not view.not_judged:
        return
    in_answer = [a.args["sentence"] for a in view.answer if isinstance(a, Message) and "sentence" in a.args]
    for e in told:
        console.print(Text(say(message("heading-why-of", what=e.title)), style="bold"))
        for n, f in enumerate(e.findings[:_FINDINGS], 1):
            # The answer has the sentences of some findings; their remedies stand here.
            line = f.role if f.sentence in in_answer else message("labelled", label=f.role, text=f.sentence)
            console.print(Padding(Text(f"{n}. {say(line)}"), (0, 0, 0, 2)))
            console.print(Padding(Text(say(message("heading-try", remedy=f.remedy)), style="dim"), (0, 0, 0, 5)))
    for sentence in view.not_judged:
        console.print(Text(say(sentence)))
    console.print()


def print_table(table: Table, console: Console, lang: str = "en") -> None:
    """Print a table; columns that do not fit are left out, least important first."""
    t = RichTable(
        title=i18n.text(table.title, lang), title_justify="left", title_style="bold", box=None, pad_edge=False,
        padding=(0, 1, 0, 0),
    )  # fmt: skip
    cells = _brief(table, lang)
    keys = table.keys
    headers = [_heading(n) if i >= table.labels else n for i, n in enumerate(table.headings(lang))]
    widths = [
        max(cell_len(line) for line in [*header.split("\n"), *(row[i] for row in cells)])
        for i, header in enumerate(headers)
    ]
    cut = {keys.index(n): least for n, least in _CUT.get(table.name, {}).items() if n in keys}
    long = [i for i in range(table.labels) if widths[i] > _LONG and i not in cut]
    free: tuple[int, ...] = _FOLDED.get(table.name, ())
    if table.name == "comparisons":
        # What is compared, where there is a column for it, and the verdict.
        free = (*range(table.labels - 1), len(table.columns) - 1)
    folded = {*free, *long}
    # How narrow what gives way may become.
    squeezed = {i: min(widths[i], cut.get(i, max(12, cell_len(headers[i])))) for i in (*cut, *free)}
    squeezed |= {i: _LONG for i in long if i not in squeezed}
    kept = _fitting(table, cells, widths, squeezed, console.width)
    for i in kept:
        if i in squeezed:
            # What the other columns and their gaps leave, shared out by what each would like.
            left = console.width - sum(squeezed.get(n, widths[n]) + 1 for n in kept) + 1
            wanted = sum(widths[n] - squeezed[n] for n in squeezed)
            room = squeezed[i] + max(0, left) * (widths[i] - squeezed[i]) // max(1, wanted)
            t.add_column(
                headers[i],
                no_wrap=i not in folded,
                overflow="fold" if i in folded else "ellipsis",
                max_width=min(widths[i], room),
            )
            continue
        t.add_column(
            headers[i],
            justify="left" if i < table.labels else "right",
            no_wrap=True,
            overflow="ellipsis" if i < table.labels else "fold",
        )
    previous: list[str] = []
    for row in cells:
        # What stands above need not be repeated.
        lead = table.labels - 1 if table.name in ("comparisons", *_GROUPED) else 0
        same = bool(previous) and previous[:lead] == row[:lead]
        t.add_row(*[Text("" if same and i < lead else row[i]) for i in kept])
        previous = row
    console.print(t)
    if table.name == "capacity":
        console.print(Text(table.notes(lang)))
    if table.name == "comparisons":
        # How to read it, in short; the page says it all.
        console.print(Text(i18n.text(table.note[0], lang), style="dim"))
    if len(table.cells) > len(cells):
        more = message("more-rows", n=len(table.cells) - len(cells))
        console.print(i18n.text(more, lang), markup=False)
    console.print()


def _brief(table: Table, lang: str) -> list[list[str]]:
    """Return the rows that a terminal shows."""
    shown = range(len(table.cells)) if table.brief is None else table.brief
    return [table.row(i, lang) for i in shown[:MOST]]


def _heading(name: str) -> str:
    """Units go under the name, and long names into several lines, so that columns stay narrow."""
    if cell_len(name) <= _HEADING:
        return name.replace(" ms", "\nms")
    if name.isascii():
        # Not within a word: a setting has one name.
        return "\n".join(textwrap.wrap(name, _HEADING, break_long_words=False))
    return "\n".join(textwrap.wrap(name, _HEADING // 2))


def _fitting(
    table: Table, cells: list[list[str]], widths: list[int], squeezed: dict[int, int], width: int
) -> list[int]:
    """Return the columns that fit into the width."""
    kept = list(range(len(table.columns)))

    def needed() -> int:
        return sum(squeezed.get(i, widths[i]) + 1 for i in kept) - 1

    keys = table.keys
    same = {n for i, n in enumerate(keys) if len(cells) > 1 and len({row[i] for row in cells}) == 1}
    # First those that say the same in each row. Last those that tell rows apart.
    labels = keys[: table.labels]
    for name in sorted(table.optional, key=lambda n: (n not in same, n in labels)):
        # All of that name: there may be one for each workload.
        if needed() > width:
            kept = [i for i in kept if keys[i] != name]
    return kept
