"""The terminal, safe from what is shown: titles, statements and a server's words may hold what would steer it."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from pgdyno.conninfo import holds_secret
from pgdyno.format import printable

if TYPE_CHECKING:
    from pgdyno.report.view import View


class SafeConsole(Console):
    """Prints texts without their control characters; its own colours are no part of them."""

    def on_broken_pipe(self) -> None:
        """Go on in silence where whoever reads the output has closed it (| head): files are still to be written."""
        self.quiet = True
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, self.file.fileno())
        os.close(devnull)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


def show(view: View, console: Console, *, details: bool = False) -> None:
    """Print a report: on one screen, or with `details` all of it that fits a terminal."""
    from pgdyno.report import summary, terminal

    (terminal if details else summary).render(view, console)


def command_line() -> str:
    """Return the typed command line for the record, without arguments that hold a password."""
    words = [x if not holds_secret(x) else "..." for x in sys.argv[1:]]
    return shlex.join(["pgdyno", *words])


def output() -> Console:
    """Return the console of standard output."""
    return SafeConsole(highlight=False, markup=False)


def errors() -> Console:
    """Return the console of standard error, for progress and notes."""
    return SafeConsole(stderr=True, highlight=False, markup=False)
