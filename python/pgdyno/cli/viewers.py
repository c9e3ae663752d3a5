"""Viewers of a run: a live display on a terminal, lines elsewhere."""

from __future__ import annotations

import sys

from rich.console import Console

from pgdyno import i18n
from pgdyno.cli.live_progress import LiveProgress
from pgdyno.cli.progress import PlainProgress, Viewer
from pgdyno.cluster import waiting
from pgdyno.stream.events import Noted
from pgdyno.stream.stream import RunStream


def stream_for(console: Console, *, quiet: bool, lang: str | None = None) -> RunStream:
    """Return a stream with the viewer that suits the destination of the messages: a terminal, a log, or none.

    Without a language it is that of the locale.
    """
    stream = RunStream()
    if not quiet:
        viewed(stream, viewer_for(console, lang))
    return stream


def viewer_for(console: Console, lang: str | None = None) -> Viewer:
    """Return the viewer that suits the destination of the messages: a terminal or a log."""
    viewer = LiveProgress(console) if console.is_terminal else PlainProgress(sys.stderr)
    viewer.say = i18n.writer(i18n.chosen(lang))
    return viewer


def viewed(stream: RunStream, viewer: Viewer) -> None:
    """Show the events of a stream. What a preparation waits for is shown as well."""
    stream.subscribe(viewer)
    waiting.report = lambda text: stream.emit(Noted(text))
