"""`pgdyno experiments`."""

from __future__ import annotations

from pgdyno import i18n
from pgdyno.cli import console
from pgdyno.cli.tables import Table
from pgdyno.message import Name
from pgdyno.spec import load as specs


def listing(lang: str = "en") -> int:
    """Show the built-in experiments."""
    out = console.output()
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for name in specs.names():
        experiment, _, _ = specs.read(name)
        table.add_row(name, i18n.text(Name(experiment.title, experiment.title_zh), lang))
    out.print(table)
    return 0
