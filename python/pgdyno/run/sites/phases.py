"""Device activity while a dataset is created, phase by phase."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from pgdyno.collect.sources.devices import Devices, places_of
from pgdyno.stream.events import CheckStarted, DatasetDone, DatasetProgress, RunEvent

#: A phase that is shorter says nothing of a device.
_SHORTEST_S = 0.05


class PhasesOnDevices:
    """Subscriber that reads the device counters at every change of phase of a load.

    `rows` has one entry per phase and device: the name of the phase, its seconds, and the means of iostat -x (see
    Devices). `rows` is empty if the devices cannot be seen.
    """

    def __init__(self, data: Path) -> None:
        """Prepare to read the devices below `data`, the server's data directory."""
        self._devices = Devices(places_of(data))
        self._phase = ""
        self._began = 0.0
        self.rows: list[dict[str, Any]] = []

    def handle(self, event: RunEvent) -> None:
        """Receive an event of the run."""
        match event.body:
            case DatasetProgress(phase=phase):
                self._turn(phase)
            case CheckStarted():
                self._turn("check")
            case DatasetDone():
                self._turn("")

    def finish(self) -> list[dict[str, Any]]:
        """No phase goes on; returns `rows`."""
        self._turn("")
        return self.rows

    def _turn(self, phase: str) -> None:
        if phase == self._phase:
            return
        now = time.monotonic()
        seconds = now - self._began
        try:
            found = self._devices.rows(max(seconds, 1e-3)) if self._devices.holds else []
        except (OSError, ValueError):
            # A kernel of another kind: nothing is known of its devices.
            found = []
        if self._phase and seconds >= _SHORTEST_S:
            self.rows += [{"phase": self._phase, "seconds": seconds, **row} for row in found]
        self._phase, self._began = phase, now
