"""Samples sources in a thread of its own while a trial runs. It never stalls the load: what is late, or fails, is a gap
that is told.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from pgdyno.collect.sources.base import Row, Source
from pgdyno.collect.sources.waits import Waits

#: A sample that is late by more of its period than this is told.
_LATE = 2.0
#: A source that failed so often in a row is left alone.
_PATIENCE = 5
#: Between two looks at the waits, so many times what one takes.
_REST = 9.0
#: How long the thread may take to end: it may wait for a server that is gone.
_END_S = 3.0
#: Takes the rows of a source, of the time between two moments (nanoseconds since 1970).
_T = TypeVar("_T")
Sink = Callable[[str, int, int, list[Row]], None]


class Collection:
    """`start` it, `stop` it."""

    def __init__(
        self,
        sources: Sequence[Source],
        sink: Sink,
        note: Callable[[str], None],
        *,
        period_s: float = 1.0,
        waits: Waits | None = None,
        wait_period_s: float = 0.1,
        start_ns: Callable[[], int] = lambda: 0,
    ) -> None:
        """`note` is told of gaps. `waits` is looked at each `wait_period_s`, and is one of the sources. `start_ns`:
        when the load began (nanoseconds since 1970), 0 before; samples end at whole periods since.
        """
        self._sources = list(sources)
        self._sink = sink
        self._note = note
        self._period_s = period_s
        self._waits = waits
        self._wait_period_s = min(wait_period_s, period_s)
        self._start_ns = start_ns
        self._stop = threading.Event()
        self._last: dict[str, float] = {}
        self._failures: dict[str, int] = {}
        self._noted: set[str] = set()
        self._thread = threading.Thread(target=self._run, name="pgdyno-collection", daemon=True)

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def stop(self) -> None:
        """Ends: the last sample is taken, if the sources answer; else the thread is left to its end."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(_END_S)
        if self._thread.is_alive():
            self._tell("collection", "a source did not answer any more")

    def _run(self) -> None:
        # What happened before the load began is nobody's.
        while not self._start_ns() and not self._stop.is_set():
            self._stop.wait(0.002)
        origin = self._start_ns() / 1e9
        for source in self._sources:
            self._sample(source)
        while not self._stop.is_set():
            due = origin + (int((time.time() - origin) / self._period_s) + 1) * self._period_s
            self._look_until(due)
            late = time.time() - due
            if late > _LATE * self._period_s:
                self._tell("late", f"a sample was {late:.1f} s late: there may be gaps")
            for source in self._sources:
                self._sample(source)

    def _look_until(self, due: float) -> None:
        """Looks at waits as often as is due, until a moment or the end."""
        step = self._wait_period_s if self._waits is not None else self._period_s
        while (left := due - time.time()) > 0 and not self._stop.is_set():
            if left < step / 2:
                self._stop.wait(left)
                return
            began = time.time()
            if self._waits is not None and self._failures.get("waits", 0) < _PATIENCE:
                self._carefully("waits", self._waits.look)
            took = time.time() - began
            # Of a server with thousands of sessions it takes long: then it is looked at less often.
            pause = max(step - took, _REST * took)
            self._stop.wait(max(0.0, min(pause, due - time.time())))

    def _sample(self, source: Source) -> None:
        if self._failures.get(source.name, 0) >= _PATIENCE:
            return
        now = time.time()
        before = self._last.get(source.name)
        if before is not None and now - before < max(source.period_s, self._period_s) * 0.9 and not self._stop.is_set():
            return
        seconds = max(1e-3, now - before) if before is not None else 1.0
        if source is self._waits and before is None:
            self._carefully("waits", self._waits.look)
        rows = self._carefully(source.name, lambda: source.rows(seconds))
        if rows is None:
            # A gap: the next sample is of all the time since the last one.
            return
        self._last[source.name] = now
        if before is not None and rows:
            self._carefully(source.name, lambda: self._sink(source.name, int(before * 1e9), int(now * 1e9), rows))

    def _carefully(self, name: str, act: Callable[[], _T]) -> _T | None:
        try:
            found = act()
        except Exception as e:
            # Whatever a server or a kernel of another kind answers: the others go on.
            self._failures[name] = self._failures.get(name, 0) + 1
            self._tell(name, f"{name}: {' '.join(str(e).split()) or type(e).__name__}")
            return None
        self._failures[name] = 0
        return found

    def _tell(self, what: str, words: str) -> None:
        if what not in self._noted:
            self._noted.add(what)
            self._note(words)
