"""`pgdyno run --fail-if 'p99 > 10ms'`: bounds that a run must keep, for CI."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.errors import UsageError, msg
from pgdyno.figures import BY_NAME, Figure
from pgdyno.judge.runs import label_of
from pgdyno.message import Name, Text, message
from pgdyno.results.analysis import RunAnalysis

_FORM = re.compile(r"\s*(?P<name>[A-Za-z0-9.]+)\s*(?P<way>[<>])\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>us|µs|ms|s|)\s*")
#: Nanoseconds.
_UNITS = {"us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
_NAMES = ("TPS", "QPS", "mean", "p50", "p95", "p99", "p99.9", "max", "failed")


@dataclass(frozen=True)
class Threshold:
    """Limit that a figure must not cross."""

    text: str
    figure: Figure
    above: bool
    #: In the figure's own unit.
    bound: float

    def is_met_by(self, value: float) -> bool:
        """Return True if the value is beyond the bound."""
        return value > self.bound if self.above else value < self.bound


def threshold(text: str) -> Threshold:
    """Parse a bound such as `p99 > 10ms` or `TPS < 1000`.

    Raise UsageError if the text is not a valid bound.
    """
    how = msg("remedy-fail-if")
    found = _FORM.fullmatch(text)
    if found is None:
        raise UsageError(msg("error-fail-if-not-bound", text=text), how)
    if found["name"] not in _NAMES:
        raise UsageError(
            msg("error-fail-if-there-no-figure", found=found["name"]), msg("remedy-choices", choices=", ".join(_NAMES))
        )
    figure = BY_NAME[found["name"]]
    if (figure.unit == "ns") != bool(found["unit"]):
        wrong = "error-fail-if-needs-unit" if figure.unit == "ns" else "error-fail-if-no-unit"
        raise UsageError(msg(wrong, text=text, name=figure.name), how)
    return Threshold(text.strip(), figure, found["way"] == ">", float(found["number"]) * _UNITS.get(found["unit"], 1.0))


def met(run: RunAnalysis, thresholds: Sequence[Threshold]) -> list[Text]:
    """Return a message for each bound that a configuration exceeds.

    For each configuration, the mean of its repetitions is compared with the bounds.
    """
    out: list[Text] = []
    for t in thresholds:
        for g in run.groups:
            values = [float(t.figure.of(x.summary)) for x in g.trials if x.summary]
            value = statistics.fmean(values) if values else 0.0
            if values and t.is_met_by(value):
                out.append(
                    message(
                        "error-bound-exceeded",
                        bound=Name(t.text),
                        configuration=Name(label_of(g)),
                        figure=Name(t.figure.name),
                        value=t.figure.quantity(value),
                    )
                )
    return out
