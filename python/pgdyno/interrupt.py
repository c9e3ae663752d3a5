"""Ctrl-C, SIGTERM and SIGHUP as exceptions, and blocks of work that delay them.

Exceptions let pgdyno clean up everything on exit. Delays let pgdyno create or remove a cluster as a whole.

Masking signals would not suffice, because a mask belongs to one thread. If any other thread is alive, the kernel
delivers the signal to that thread.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: The logging module's, around every fork: an exception in one of them leaves its lock held (Python before 3.13).
_WHOLE = ("_acquireLock", "_releaseLock")
#: When a signal that could not raise is tried again.
_AGAIN_S = 0.01


class Terminated(BaseException):
    """SIGTERM or SIGHUP arrived."""


class _State:
    held = 0
    waiting: type[BaseException] | None = None
    #: The last that arrived, whether it has raised or not.
    arrived: type[BaseException] | None = None
    number = int(signal.SIGINT)
    #: What sends one again that could not raise.
    again: threading.Timer | None = None
    #: What is told of exceptions that nobody can catch.
    hook = staticmethod(sys.__unraisablehook__)


def _on_signal(number: int, frame: FrameType | None) -> None:
    exception = KeyboardInterrupt if number == signal.SIGINT else Terminated
    _State.arrived, _State.number = exception, number
    if _State.held:
        _State.waiting = exception
    elif frame is not None and frame.f_code.co_name in _WHOLE:
        _send_again()
    else:
        raise exception


def _send_again() -> None:
    _State.again = threading.Timer(_AGAIN_S, os.kill, (os.getpid(), _State.number))
    _State.again.daemon = True
    _State.again.start()


def _on_lost(lost: sys.UnraisableHookArgs) -> None:
    """Python drops what is raised in destructors and in callbacks of forks, and goes on: a signal's comes again."""
    if lost.exc_type in (KeyboardInterrupt, Terminated) and _State.arrived is lost.exc_type:
        _send_again()
    else:
        _State.hook(lost)


@contextmanager
def signals_raise() -> Iterator[None]:
    """Raise Terminated on SIGTERM and SIGHUP within the block, as SIGINT raises KeyboardInterrupt.

    Ignored signals (nohup) stay ignored.
    """
    mine = [n for n in _SIGNALS if signal.getsignal(n) != signal.SIG_IGN]
    earlier, _State.arrived = _State.arrived, None
    before = {n: signal.signal(n, _on_signal) for n in mine}
    hook = sys.unraisablehook
    if hook is not _on_lost:
        _State.hook = staticmethod(hook)
    sys.unraisablehook = _on_lost
    try:
        yield
        if _State.again is not None and _State.again.is_alive():
            raise_if_signalled()
    finally:
        try:
            if _State.again is not None:
                # One that is being sent arrives while the handlers are still ours.
                _State.again.cancel()
                _State.again.join()
                _State.again = None
        finally:
            sys.unraisablehook = hook
            _State.arrived = earlier
            for n, handler in before.items():
                signal.signal(n, handler)


@contextmanager
def signals_held() -> Iterator[None]:
    """Delay signals within the block and raise them when it ends.

    A delayed signal raises its exception after a normal end of the block. If the block ends with an exception, the
    signal's exception replaces it. A caller could otherwise catch that exception and continue.
    """
    if threading.current_thread() is not threading.main_thread():
        # Python's handlers run in the main thread only: here nothing can arrive, and the state is the other's.
        yield
        return
    _State.held += 1
    try:
        yield
    except BaseException as e:
        if (waiting := _released()) is not None and isinstance(e, Exception):
            raise waiting from e
        raise
    if (waiting := _released()) is not None:
        raise waiting


def raise_if_signalled() -> None:
    """Raise the exception of a signal that has arrived.

    Call this between two steps of long work. The signal's exception may have been lost in a callback, or in code that
    turns every exception into its own.
    """
    if _State.arrived is not None:
        raise _State.arrived


def _released() -> type[BaseException] | None:
    """End one delaying block; return the delayed exception if the block was the outermost."""
    _State.held -= 1
    if _State.held:
        return None
    waiting, _State.waiting = _State.waiting, None
    return waiting
