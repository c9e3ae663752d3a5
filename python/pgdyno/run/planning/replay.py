"""Schedules: transactions that sessions begin at their times, as a log has them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pgdyno.engine import Sample
from pgdyno.errors import ReasonError, SpecError, msg
from pgdyno.spec.experiment import Experiment, SampleOf

#: By client its transactions: the number of the script, nanoseconds from the begin, the row of scheduled samples.
Schedule = list[list[tuple[int, int, int]]]
#: Transactions of a schedule, at most.
MOST = 1_000_000
_LINE = "A line: client, milliseconds from the begin, script, sample (or -) and its values as JSON, parted by tabs."


@dataclass(frozen=True)
class Replay:
    """Which session begins which script when, and with which values."""

    schedule: Schedule
    #: Rows of scheduled samples.
    rows: Mapping[str, list[list[str | None]]]

    def with_rows(self, samples: Sequence[Sample]) -> list[Sample]:
        """Return the samples; the scheduled ones get their rows."""
        return [s._replace(rows=self.rows.get(s.name, s.rows)) if s.is_scheduled else s for s in samples]


def parsed(text: str, scripts: Sequence[tuple[str, str, int]], samples: Mapping[str, SampleOf], where: str) -> Replay:
    """Parse a schedule, which has one transaction per line.

    The transactions of each client are sorted by time. Raise SpecError, with the line, if the schedule is not valid.
    """
    numbers = {name: n for n, (name, _, _) in enumerate(scripts)}
    found: dict[int, list[tuple[int, int, int]]] = {}
    rows: dict[str, list[list[str | None]]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        try:
            client, due, name, sample, values = line.split("\t")
            if name not in numbers:
                raise ReasonError(msg("why-no-script", name=name))
            if not 0 <= int(client) < 100_000 or not 0 <= float(due) < 1e12:
                raise ReasonError(msg("why-out-of-range"))
            row = 0
            if sample != "-":
                of = samples.get(sample)
                given = json.loads(values)
                if of is None or not of.scheduled or not isinstance(given, list) or len(given) != len(of.columns):
                    raise ReasonError(msg("why-sample-differs", sample=sample))
                row = len(rows.setdefault(sample, []))
                rows[sample].append([None if v is None else str(v) for v in given])
        except (ValueError, OverflowError, RecursionError) as e:
            raise SpecError(msg("error-at-line", place=f"{where}:{number}", reason=e), _LINE) from e
        found.setdefault(int(client), []).append((numbers[name], round(float(due) * 1e6), row))
        if number > MOST:
            raise SpecError(
                msg("error-more-than-transactions", where=where, most=f"{MOST:,}"), msg("remedy-replay-shorter-piece")
            )
    if not found:
        raise SpecError(msg("error-no-transaction", where=where))
    schedule = [sorted(found.get(c, []), key=lambda one: one[1]) for c in range(max(found) + 1)]
    return Replay(schedule, rows)


def check(experiment: Experiment, name: str, schedule: Schedule) -> None:
    """Raise SpecError where an experiment asks for what a replay has not."""
    run = experiment.run
    if experiment.workloads[name].tpcc is not None:
        raise SpecError(msg("error-workloads-replay-goes-scripts-not", name=name))
    for axes in experiment.matrices:
        if axes.workload and name not in axes.workload:
            continue
        if axes.rate or run.rate is not None:
            raise SpecError(msg("error-workloads-replay-own-times", name=name), msg("remedy-leave-rate-out-rate-0"))
        if axes.clients != [len(schedule)]:
            raise SpecError(
                msg("error-workloads-replay-sessions", name=name, n_schedule=len(schedule)),
                msg("remedy-axes-clients", n_schedule=len(schedule)),
            )
    if run.is_duet:
        raise SpecError(msg("error-duet-no-replay-slices-shorter"), msg("remedy-use-order-interleaved"))
    if run.warmup_s != 0:
        raise SpecError(msg("error-replay-no-warm-up-begins"), msg("remedy-run-warmup-s-0-warmup"))
