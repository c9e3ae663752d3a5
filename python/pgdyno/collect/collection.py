"""Sampling of sources in a separate thread while a trial runs.

It never stalls the load. A sample that is late or fails is a gap, and the gap is reported.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from pgdyno.collect.sources.base import Row, Source
from pgdyno.collect.sources.waits import Waits
from pgdyno.errors import PgdynoError
from pgdyno.format import one_line
from pgdyno.message import Name, Text, message
from pgdyno.model import EventKind
from pgdyno.stream.events import Body, Happened, SamplesTaken
from pgdyno.units import Quantity

#: A sample that is late by more of its period than this is told.
_LATE = 2.0
#: A source that failed so often in a row is left alone.
_PATIENCE = 5
#: Between two looks at the waits, so many times what one takes.
_REST = 9.0
#: How long the thread may take to end: it may wait for a server that is gone.
_END_S = 3.0
_T = TypeVar("_T")


class Emitter(Protocol):
    """Receiver of samples and events: the stream of a trial."""

    def emit(self, body: Body, *, origin: str = "session") -> None:
        """Emit an event."""


class Asked(Protocol):
    """Sources that ask a server over one connection."""

    sources: list[Source]
    #: One of them, if it is wanted.
    waits: Waits | None

    @property
    def is_lost(self) -> bool:
        """The connection is closed."""

    def renew(self) -> None:
        """Connect again; the sources start anew.

        The call may raise any error that connecting raises.
        """


class Collection:
    """`start` it, `stop` it."""

    def __init__(
        self,
        sources: Sequence[Source],
        server: Asked | None,
        emitter: Emitter,
        *,
        period_s: float = 1.0,
        wait_period_s: float = 0.1,
        start_ns: Callable[[], int] = lambda: 0,
    ) -> None:
        """Set up the collection without starting it.

        `sources` are those of the machine. `asked` holds those of the server, which are created again after a lost
        connection. `emitter` receives samples, gaps and events. Wait events are read every `wait_period_s` seconds.
        `start_ns` returns the time at which the load began, 0 before that. Samples end at whole periods since that
        time.
        """
        self._local = list(sources)
        self._asked = server
        self._emitter = emitter
        self._period_s = period_s
        self._wait_period_s = min(wait_period_s, period_s)
        self._start_ns = start_ns
        self._stop = threading.Event()
        self._last: dict[str, float] = {}
        #: When a source that has failed is asked again.
        self._retry: dict[str, float] = {}
        self._failures: dict[str, int] = {}
        self._noted: set[str] = set()
        #: Nothing is passed on any more: whoever takes samples and events may be closed by now.
        self._is_closed = False
        #: Held while something is passed on, and while it is closed.
        self._passing = threading.Lock()
        #: The connection is known to be lost; and when it is tried again.
        self._is_lost = False
        self._again_s = 0.0
        self._thread = threading.Thread(target=self._run, name="pgdyno-collection", daemon=True)

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def stop(self) -> None:
        """End sampling and take the last sample if the sources respond.

        If they do not respond, the thread is abandoned, and anything that it reports later is discarded.
        """
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(_END_S)
        if self._thread.is_alive():
            self._tell("collection", message("gap-no-answer"))
        with self._passing:
            self._is_closed = True

    @property
    def _sources(self) -> list[Source]:
        """Sources that can be sampled now."""
        return self._local + (self._asked.sources if self._asked is not None and not self._is_lost else [])

    @property
    def _waits(self) -> Waits | None:
        return self._asked.waits if self._asked is not None and not self._is_lost else None

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
                self._tell("late", message("gap-late", time=Quantity(late, "seconds")))
            for source in self._sources:
                self._sample(source)
            if self._is_lost and time.time() >= self._again_s:
                self._renew()

    def _renew(self) -> None:
        """Asks whether the server is back."""
        assert self._asked is not None
        began = time.time()
        try:
            self._asked.renew()
        except Exception:
            # One that does not answer at all takes long to say so: the machine is sampled meanwhile.
            self._again_s = time.time() + _REST * (time.time() - began)
            return
        for source in self._asked.sources:
            # What they counted is from nothing: a gap, and then samples of their own.
            self._failures.pop(source.name, None)
            self._last.pop(source.name, None)
        self._is_lost = False
        self._happened(EventKind.OWN_CONNECTION_BACK, message("event-own-connection-back"))

    def _look_until(self, due: float) -> None:
        """Read wait events as often as they are due, until the time `due` or the end of sampling."""
        step = self._wait_period_s if self._waits is not None else self._period_s
        while (left := due - time.time()) > 0 and not self._stop.is_set():
            if left < step / 2:
                self._stop.wait(left)
                return
            began = time.time()
            if (waits := self._waits) is not None and self._failures.get("waits", 0) < _PATIENCE:
                self._carefully("waits", waits.look)
            took = time.time() - began
            # Of a server with thousands of sessions it takes long: then it is looked at less often.
            pause = max(step - took, _REST * took)
            self._stop.wait(max(0.0, min(pause, due - time.time())))

    def _sample(self, source: Source) -> None:
        if self._failures.get(source.name, 0) >= _PATIENCE or source not in self._sources:
            return
        now = time.time()
        if now < self._retry.get(source.name, 0.0) and not self._stop.is_set():
            return
        before = self._last.get(source.name)
        if before is not None and now - before < max(source.period_s, self._period_s) * 0.9 and not self._stop.is_set():
            return
        seconds = max(1e-3, now - before) if before is not None else 1.0
        if (waits := self._waits) is not None and source is waits and before is None:
            self._carefully("waits", waits.look)
        rows = self._carefully(source.name, lambda: source.rows(seconds))
        if rows is None:
            # A gap: the next sample is of all the time since the last one.
            return
        self._last[source.name] = now
        if before is not None and rows:
            self._carefully(source.name, lambda: self._pass_on(source.name, int(before * 1e9), int(now * 1e9), rows))

    def _carefully(self, name: str, act: Callable[[], _T]) -> _T | None:
        began = time.time()
        try:
            found = act()
        except Exception as e:
            text = one_line(e) or type(e).__name__
            if self._asked is not None and self._asked.is_lost:
                self._lose(text)
                return None
            # Whatever a server or a kernel of another kind answers: the others go on.
            self._failures[name] = self._failures.get(name, 0) + 1
            # One that takes long to fail holds up the others: it gets no larger a part of the time than others.
            self._retry[name] = time.time() + max(self._period_s * 0.5, _REST * (time.time() - began))
            self._tell(name, message("gap-of", what=Name(name), reason=Name(text)))
            if self._failures[name] == _PATIENCE:
                self._tell(f"{name} no more", message("gap-given-up", what=Name(name), n=_PATIENCE))
            return None
        self._failures[name] = 0
        return found

    def _lose(self, text: str) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._happened(EventKind.OWN_CONNECTION_LOST, message("event-own-connection", reason=Name(text)))

    def _happened(self, kind: EventKind, text: Text) -> None:
        start_ns = self._start_ns()
        at_ns = time.time_ns() - start_ns if start_ns else 0
        with self._passing:
            if not self._is_closed:
                self._emit(Happened(kind, text, at_ns), "sources")

    def _pass_on(self, name: str, start_ns: int, end_ns: int, rows: list[Row]) -> None:
        with self._passing:
            if not self._is_closed:
                self._emit(SamplesTaken(name, start_ns, end_ns, rows), f"source:{name}")

    def _emit(self, body: Body, origin: str) -> None:
        with contextlib.suppress(PgdynoError):
            # A full disk ends the trial where its intervals are written.
            self._emitter.emit(body, origin=origin)

    def _tell(self, what: str, text: Text) -> None:
        with self._passing:
            if what not in self._noted and not self._is_closed:
                self._noted.add(what)
                self._emit(Happened(EventKind.NOT_RECORDED, text), "sources")
