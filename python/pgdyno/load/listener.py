"""Who looks on while a dataset is made: the terminal, a test, nobody."""

from __future__ import annotations


class LoadListener:
    """Hears everything; does nothing."""

    def note(self, text: str) -> None:
        """Receive a line of text for the user."""

    def loading(self, phase: str, rows: int, total_rows: int, done_bytes: int, total_bytes: int) -> None:
        """How far a phase is. A total of 0: it cannot be told."""

    def checking(self, what: str, number: int, of: int) -> None:
        """Check `number` (from 0) of `of` begins."""

    def loaded(self) -> None:
        """Receive the end of loading, whether the dataset exists then or not."""
