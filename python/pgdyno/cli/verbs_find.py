"""Verbs that find runs: those in a folder, and one that another process runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pgdyno.cli import options


def runs(
    folder: Annotated[Path, typer.Argument(help="Folder of run directories.", metavar="FOLDER")] = Path("runs"),
    experiment: Annotated[
        str | None,
        typer.Option(help="Experiment of the runs.", metavar="NAME", rich_help_panel=options.WHAT),
    ] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option(
            help="Tag of the runs (pgdyno run --tag NAME). Repeatable.",
            metavar="NAME",
            rich_help_panel=options.WHAT,
        ),
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(
            help="State of the runs: running, finished, interrupted, failed or killed.",
            metavar="NAME",
            rich_help_panel=options.WHAT,
        ),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(
            help="Text in the version or the host of the (first) server, e.g. 18.4.",
            metavar="TEXT",
            rich_help_panel=options.WHAT,
        ),
    ] = None,
    sort: Annotated[
        str,
        typer.Option(
            help="Order: date (the newest first), experiment or state.", metavar="NAME", rich_help_panel=options.OUTPUT
        ),
    ] = "date",
    lang: options.Lang = None,
    json_output: options.Json = False,
) -> None:
    """List the runs in a folder: state, number of trials, tags, and what came of each."""
    from pgdyno.cli import runs as verb

    raise typer.Exit(
        verb.main(
            verb.RunsRequest(
                folder=folder,
                experiment=experiment,
                tags=tag or [],
                state=state,
                server=server,
                sort=sort,
                lang=options.language(lang),
                json_output=json_output,
            )
        )
    )


def watch(
    run: Annotated[
        Path | None,
        typer.Argument(help="Run directory. Default: the one that is under way in --runs.", metavar="RUN"),
    ] = None,
    runs: Annotated[
        Path,
        typer.Option(help="Folder of run directories.", metavar="FOLDER", rich_help_panel=options.WHAT),
    ] = Path("runs"),
    lang: options.Lang = None,
) -> None:
    """Watch a run that was started elsewhere on this machine: its past at once, then its progress until it ends.

    Ctrl-C ends the watching, not the run. The exit code is that of the run (without --fail-if); 1 if it died.
    """
    from pgdyno.cli import watch as verb

    raise typer.Exit(verb.main(run, runs, options.language(lang)))
