"""Observers of a run in progress: the terminal, a test, or none."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.load.listener import LoadListener
from pgdyno.model import IntervalRow, TrialPlan, TrialRecord
from pgdyno.store.hlog import Latencies


class Listener(LoadListener):
    """Hears everything; does nothing. The terminal's progress is a subclass."""

    def planned(self, trials: Sequence[TrialPlan], seconds_each: float) -> None:
        """Receive the trials that will run."""

    def trial_started(self, plan: TrialPlan, statements: Sequence[str]) -> None:
        """Receive the start of a trial.

        `statements` holds the SQL of its scripts, in the order of hlog's tags `statement-N`.
        """

    def interval(self, plan: TrialPlan, row: IntervalRow, latencies: Latencies) -> None:
        """Receive an interval of a trial after it has ended.

        `latencies` holds the latencies by hlog's tags. It is empty while the run waits for steady throughput.
        """

    def trial_ended(self, record: TrialRecord) -> None:
        """Receive the record of a trial after it has ended."""

    def close(self) -> None:
        """Nothing more will come."""
