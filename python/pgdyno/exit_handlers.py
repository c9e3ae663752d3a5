"""Choice to run or skip exit handlers of C libraries at the end of the process."""

from __future__ import annotations


class _State:
    skipped = False


def skip() -> None:
    """End the process without the exit handlers of C libraries.

    A thread that cannot be stopped works in libpq, and would crash where OpenSSL frees its tables.
    """
    _State.skipped = True


def are_skipped() -> bool:
    """Return True if the process has to end without them."""
    return _State.skipped
