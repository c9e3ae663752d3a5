"""How the process ends."""

from __future__ import annotations

import atexit
import os
import sys
from typing import NoReturn

_skipping = False


def skip_exit_handlers() -> None:
    """Have the process end without the exit handlers of C libraries: a thread that cannot be stopped works in one, and
    would crash where OpenSSL takes its tables away.
    """
    global _skipping
    _skipping = True


def leave(code: int) -> NoReturn:
    """End the process."""
    if _skipping:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
