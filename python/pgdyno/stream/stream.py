"""The stream of a run: one order of events, and subscribers that never hold the run up unless they must.

A recorder receives each event within `emit`, and its errors end the run. A viewer has a thread of its own and a bounded
queue: it loses events rather than time.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from typing import Protocol

from pgdyno.message import Name
from pgdyno.stream.events import Body, EventsDropped, LoadStarted, Noted, RunEvent, Stamp

#: Events that wait for a viewer. A trial of 8 hours has 28,800 intervals; a terminal reads thousands a second.
CAPACITY = 1024
#: Seconds that closing the stream waits for a viewer that still has events.
DRAIN_S = 5.0


class Subscriber(Protocol):
    """Receives the events of a run, one after the other."""

    def handle(self, event: RunEvent) -> None:
        """Receive an event."""


class Viewer(Subscriber, Protocol):
    """Subscriber with an end of its own: a display that is taken down."""

    def close(self) -> None:
        """Show nothing more."""


class Subscription:
    """Events on their way to one viewer."""

    def __init__(self, subscriber: Viewer, capacity: int) -> None:
        self._subscriber = subscriber
        self._capacity = capacity
        self._events: deque[RunEvent] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._missed = 0
        #: Events that this viewer did not receive.
        self.dropped = 0
        #: Why it receives nothing any more.
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="pgdyno-viewer", daemon=True)
        self._thread.start()

    def put(self, event: RunEvent) -> None:
        """Append an event. If the viewer is too slow, drop what it has not received yet."""
        with self._changed:
            if self.error is not None:
                self.dropped += 1
                return
            if len(self._events) >= self._capacity:
                self._missed += len(self._events)
                self.dropped += len(self._events)
                self._events.clear()
            self._events.append(event)
            self._changed.notify()

    def close(self, patience_s: float) -> None:
        """Deliver what is left, for at most `patience_s` seconds."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if threading.current_thread() is not self._thread:
            self._thread.join(patience_s)
        with contextlib.suppress(Exception):
            # What it shows now is its own.
            self._subscriber.close()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._events and not self._is_closed:
                    self._changed.wait()
                if not self._events:
                    return
                event = self._events.popleft()
                missed, self._missed = self._missed, 0
            try:
                if missed:
                    self._subscriber.handle(RunEvent(event.stamp, EventsDropped(missed)))
                self._subscriber.handle(event)
            except Exception as e:
                # A viewer that fails is its own trouble: the run goes on without it.
                with self._changed:
                    self.error = e
                    self.dropped += 1 + len(self._events)
                    self._events.clear()
                return


class RunStream:
    """Events of a run. Any thread may emit."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seq = 0
        self._recorders: list[Subscriber] = []
        self._viewers: list[Subscription] = []
        self._is_closed = False
        #: Events after the end of the stream.
        self.late = 0

    def emit(
        self, body: Body, *, trial: int | None = None, origin: str = "session", at_ns: int | None = None
    ) -> RunEvent | None:
        """Give an event to all subscribers. Return None after the end of the stream, where it is only counted.

        Raise what a recorder raises: a disk that is full ends the run.
        """
        with self._lock:
            if self._is_closed:
                self.late += 1
                return None
            stamp = Stamp(self._seq, time.time_ns() if at_ns is None else at_ns, trial, origin)
            event = RunEvent(stamp, body)
            for recorder in self._recorders:
                recorder.handle(event)
            self._seq += 1
            for viewer in self._viewers:
                viewer.put(event)
            return event

    def note(self, text: str) -> None:
        """Emit a line of text for the user."""
        self.emit(Noted(Name(text)))

    def subscribe(self, viewer: Viewer, *, capacity: int = CAPACITY) -> Subscription:
        """Add a viewer of all events from now on, which loses events rather than holding up the run."""
        with self._lock:
            found = Subscription(viewer, capacity)
            self._viewers.append(found)
            return found

    def record(self, recorder: Subscriber) -> None:
        """Add a recorder: it receives each event within `emit`, and its errors end the run."""
        with self._lock:
            self._recorders.append(recorder)

    def remove(self, recorder: Subscriber) -> None:
        """Give no more events to a recorder."""
        with self._lock:
            self._recorders.remove(recorder)

    def close(self) -> None:
        """End the stream: viewers receive what is left. It may be called again."""
        with self._lock:
            self._is_closed = True
            viewers = list(self._viewers)
        deadline = time.monotonic() + DRAIN_S
        for viewer in viewers:
            viewer.close(max(0.0, deadline - time.monotonic()))


class TrialStream:
    """The stream of a run, for one trial. After `close` its events are dropped: they are no longer the trial's."""

    def __init__(self, stream: RunStream, trial: int) -> None:
        self.stream = stream
        self.trial = trial
        self._lock = threading.Lock()
        self._is_closed = False
        #: Nanoseconds since 1970 at which the load began; 0: it has not.
        self.start_ns = 0

    def emit(self, body: Body, *, origin: str = "session") -> None:
        """Emit an event of the trial."""
        with self._lock:
            if not self._is_closed:
                if isinstance(body, LoadStarted):
                    self.start_ns = body.start_ns
                self.stream.emit(body, trial=self.trial, origin=origin)

    def close(self) -> None:
        """Drop all later events. An event that is just passed on is waited for."""
        with self._lock:
            self._is_closed = True
