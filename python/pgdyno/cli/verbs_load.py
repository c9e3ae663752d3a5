"""`pgdyno load` and `storage`: their options. What is heavy is imported inside them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pgdyno.cli import options
from pgdyno.cli.requests import LoadRequest
from pgdyno.cli.takes import takes


@takes(LoadRequest)
def load(request: LoadRequest) -> None:
    """Load a dataset at disk speed: over connections into a running server, or as files into a stopped one."""
    from pgdyno.cli import load as verb

    raise typer.Exit(verb.main(request))


def storage(
    path: Annotated[Path, typer.Argument(help="Folder on the storage to measure.", metavar="FOLDER")],
    seconds: Annotated[
        float, typer.Option(help="Duration of each job.", metavar="SECONDS", min=1.0, rich_help_panel=options.MEASURING)
    ] = 10.0,
    size: Annotated[
        str | None,
        typer.Option(
            help="Size of the file that fio works on, e.g. 10g. Default: 10g, at most a quarter of the free space.",
            metavar="SIZE",
            rich_help_panel=options.MEASURING,
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            help="Threads of fio. Default: 16 per core, at most 64.",
            metavar="N",
            min=1,
            rich_help_panel=options.MEASURING,
        ),
    ] = None,
    lang: options.Lang = None,
    json_output: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Measure storage with pg_test_fsync and fio.

    fio runs random and sequential, direct and buffered, in pages of 8 kB, 65% reads. Its file is removed afterwards.
    """
    from pgdyno.cli import storage as verb

    raise typer.Exit(
        verb.main(
            path,
            seconds=seconds,
            size=size,
            threads=threads,
            json_output=json_output,
            quiet=quiet,
            lang=options.language(lang),
        )
    )
