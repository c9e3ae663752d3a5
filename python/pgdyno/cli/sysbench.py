"""`--report-format sysbench` of a run: its lines while it goes on, each trial's summary when that has ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from pgdyno.cli.progress import PlainProgress
from pgdyno.model import UNCOUNTED, IntervalRow, TrialPlan, TrialRecord
from pgdyno.report import sysbench
from pgdyno.store import hlog


class SysbenchLines(PlainProgress):
    """Viewer for sysbench's report format.

    It prints the sysbench lines to `out`. All other messages go to the progress stream as plain lines, because
    sysbench lines would break a progress bar. When a trial ends, some of its intervals may turn out to be warm-up.
    Their lines are already printed by then, but they are not part of the trial's summary.
    """

    def __init__(self, out: TextIO, progress: TextIO) -> None:
        super().__init__(progress)
        self._out = out
        #: Why nothing is printed any more: a reader has gone, a disk is full. The run goes on.
        self.error: OSError | None = None
        self._several = False
        self._summaries = 0
        self._begin([])

    def _begin(self, statements: Sequence[str]) -> None:
        self._kinds = sysbench.kinds_of(statements)
        self._zero_ns: int | None = None
        #: Of each interval: its start, its shortest transaction (0: none), transactions that were tried again.
        self._counted: list[tuple[int, int, int]] = []

    def _print(self, *lines: str) -> None:
        if self.error is not None:
            return
        try:
            self._out.write("".join(f"{line}\n" for line in lines))
            self._out.flush()
        except OSError as e:
            self.error = e

    def planned(self, trials: Sequence[TrialPlan], seconds_each: float) -> None:
        super().planned(trials, seconds_each)
        self._several = len(trials) > 1

    def trial_started(self, plan: TrialPlan, statements: Sequence[str]) -> None:
        super().trial_started(plan, statements)
        self._begin(statements)
        names = [sysbench.title(plan.slug)] if self._several else []
        self._print(*([""] if self._summaries else []), *names, *sysbench.heading(plan.clients))

    def interval(self, plan: TrialPlan, row: IntervalRow, latencies: Mapping[str, Any]) -> None:
        super().interval(plan, row, latencies)
        if not latencies or row.phase in UNCOUNTED:
            return
        h = latencies[hlog.TRANSACTION]
        self._counted.append((row.start_ns, h.buckets()[0][0] if h.count else 0, row.retried))
        if sysbench.has_line(row) and row.end_ns > row.start_ns:
            self._zero_ns = row.start_ns if self._zero_ns is None else self._zero_ns
            counts = {tag: h.count for tag, h in latencies.items()}
            self._print(sysbench.interval(plan.clients, row, self._zero_ns, counts, self._kinds))

    def trial_ended(self, record: TrialRecord) -> None:
        super().trial_ended(record)
        if record.summary is not None:
            counted = [c for c in self._counted if c[0] >= record.dropped_until_ns]
            least = min((c[1] for c in counted if c[1]), default=0)
            self._print(*sysbench.summary(record, least, sum(c[2] for c in counted)))
            self._summaries += 1
