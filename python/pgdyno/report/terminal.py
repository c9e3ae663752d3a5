"""The report on a terminal, made for 80 columns."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from pgdyno.report.view import Table, View

#: Columns of free text: they give way to the figures.
_SQUEEZED = ("statement", "outcomes")


def render(view: View, console: Console) -> None:
    """Prints what matters; the rest is in report.html."""
    if view.error:
        console.print(Text(f"This run went wrong: {view.error}", style="bold red"))
        console.print()
    # Where no trial was finished, what the interrupted one measured is all there is.
    last = () if view.main.cells else (view.trials,)
    for table in (view.main, view.detail, view.statements, view.outcomes, *last):
        if table.cells:
            _print(table, console)
    if view.caveats:
        console.print(Text("To bear in mind", style="bold"))
        for text, remedy, where in view.caveats:
            console.print(Text(f"- {text} ({where}); {remedy}"), soft_wrap=False)
        console.print()


def _print(table: Table, console: Console) -> None:
    t = RichTable(
        title=table.title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 1, 0, 0)
    )
    # Units go under the name, so that columns stay narrow.
    headers = [n.replace(" ms", "\nms") if i >= table.text_columns else n for i, n in enumerate(table.columns)]
    widths = [
        max(len(line) for line in [*header.split("\n"), *(row[i] for row in table.cells)])
        for i, header in enumerate(headers)
    ]
    for i, header in enumerate(headers):
        squeezed = table.columns[i] in _SQUEEZED
        # What the other columns and their gaps leave.
        room = console.width - sum(w + 1 for n, w in enumerate(widths) if n != i) - 1
        t.add_column(
            header,
            justify="left" if i < table.text_columns else "right",
            no_wrap=table.columns[i] != "outcomes",
            overflow="ellipsis" if squeezed else "fold",
            max_width=max(12, min(widths[i], room)) if squeezed else None,
            min_width=None if squeezed else widths[i],
        )
    previous: list[str] = []
    for row in table.cells:
        # What stands above need not be repeated.
        same = table.title == "Latency by statement" and previous and previous[0] == row[0]
        t.add_row(*[Text("" if same and i == 0 else cell) for i, cell in enumerate(row)])
        previous = row
    console.print(t)
    console.print()
