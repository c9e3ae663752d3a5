"""`--report-format sysbench` of a run: its lines while it goes on, each trial's summary when that has ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from pgdyno.cli.progress import PlainProgress
from pgdyno.model import UNCOUNTED, IntervalRow, TrialPlan, TrialRecord
from pgdyno.report import sysbench
from pgdyno.store import hlog
from pgdyno.store.hlog import Latencies


class SysbenchLines(PlainProgress):
    """To `out`; everything else goes where progress goes, in plain lines: a bar would be torn by them."""

    def __init__(self, out: TextIO, progress: TextIO) -> None:
        super().__init__(progress)
        self._out = out
        self._several = False
        self._summaries = 0
        self._begin([])

    def _begin(self, statements: Sequence[str]) -> None:
        self._kinds = sysbench.kinds_of(statements)
        self._zero_ns: int | None = None
        self._least_ns = 0
        self._retried = 0

    def _print(self, *lines: str) -> None:
        self._out.write("".join(f"{line}\n" for line in lines))
        self._out.flush()

    def planned(self, trials: Sequence[TrialPlan], seconds_each: float) -> None:
        super().planned(trials, seconds_each)
        self._several = len(trials) > 1

    def trial_started(self, plan: TrialPlan, statements: Sequence[str]) -> None:
        super().trial_started(plan, statements)
        self._begin(statements)
        names = [sysbench.title(plan.slug)] if self._several else []
        self._print(*([""] if self._summaries else []), *names, *sysbench.heading(plan.clients))

    def interval(self, plan: TrialPlan, row: IntervalRow, latencies: Latencies) -> None:
        super().interval(plan, row, latencies)
        if not latencies or row.phase in UNCOUNTED:
            return
        self._retried += row.retried
        if (h := latencies[hlog.TRANSACTION]).count:
            self._least_ns = min(self._least_ns or h.min, h.min)
        if sysbench.has_line(row) and row.end_ns > row.start_ns:
            self._zero_ns = row.start_ns if self._zero_ns is None else self._zero_ns
            counts = {tag: h.count for tag, h in latencies.items()}
            self._print(sysbench.interval(plan.clients, row, self._zero_ns, counts, self._kinds))

    def trial_ended(self, record: TrialRecord) -> None:
        super().trial_ended(record)
        if record.summary is not None:
            self._print(*sysbench.summary(record, self._least_ns, self._retried))
            self._summaries += 1
