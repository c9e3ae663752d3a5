"""Observer of the creation of a dataset: the terminal, a test, or none."""

from __future__ import annotations


class LoadListener:
    """Hears everything; does nothing."""

    def note(self, text: str) -> None:
        """Receive a line of text for the user."""

    def loading(self, phase: str, rows: int, total_rows: int, done_bytes: int, total_bytes: int) -> None:
        """Receive the progress of a phase.

        A total of 0 means that it is unknown.
        """

    def checking(self, what: str, number: int, of: int) -> None:
        """Check `number` (from 0) of `of` begins."""

    def loaded(self) -> None:
        """Receive the end of loading, whether the dataset exists then or not."""
