"""Who looks on while a run goes: the terminal, a test, nobody."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.load.listener import LoadListener
from pgdyno.model import IntervalRow, TrialPlan, TrialRecord
from pgdyno.store.hlog import Latencies


class Listener(LoadListener):
    """Hears everything; does nothing. The terminal's progress is a subclass."""

    def planned(self, trials: Sequence[TrialPlan], seconds_each: float) -> None:
        """The trials that will be run."""

    def trial_started(self, plan: TrialPlan, statements: Sequence[str]) -> None:
        """A trial begins; `statements`: the SQL of its scripts, in the order of hlog's tags `statement-N`."""

    def interval(self, plan: TrialPlan, row: IntervalRow, latencies: Latencies) -> None:
        """An interval of it is over; `latencies` by hlog's tags, none while it is waited for that it is steady."""

    def trial_ended(self, record: TrialRecord) -> None:
        """It has ended."""

    def close(self) -> None:
        """Nothing more will come."""
