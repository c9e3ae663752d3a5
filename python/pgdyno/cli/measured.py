"""`pgdyno judge`: what other tools measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.text import Text

from pgdyno import i18n
from pgdyno.cli import as_json, console
from pgdyno.cli.tables import Table
from pgdyno.errors import EXIT_OK
from pgdyno.judge import logs, measured
from pgdyno.judge.measured import Judged, Sides
from pgdyno.message import Message, Name, counted, message
from pgdyno.units import Quantity, Unit


def main(files: Sequence[Path], side_b: Sequence[Path], precision: float, lang: str, json_output: bool) -> int:
    """Judge each file, then side B against side A."""
    a = [measured.judge(logs.read(path), precision) for path in files if path not in side_b]
    b = [measured.judge(logs.read(path), precision) for path in side_b]
    if not b and len(a) == 2:
        # Two files are before and after.
        a, b = a[:1], a[1:]
    sides = measured.against(a, b) if a and b else None
    answer = [*_answer([*a, *b], sides), *_runs(a, b, sides)]
    if json_output:
        as_json.write(
            {"answer": [i18n.text(x) for x in answer], "files": [*(_as_json(j, "A") for j in a),
             *(_as_json(j, "B") for j in b)], "b_by_a": vars(sides) if sides else None}
        )  # fmt: skip
        return EXIT_OK
    out, say = console.output(), i18n.writer(lang)
    for sentence in answer:
        out.print(Text(say(sentence), style="bold"))
    out.print()
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(say(message("column-file")), overflow="fold")
    table.add_column(say(message("column-kind")), overflow="fold")
    for title in (message("column-length"), message("column-mean"), message("column-half")):
        table.add_column(say(title), justify="right")
    table.add_column(say(message("column-judgement")), overflow="fold")
    for j in (*a, *b):
        table.add_row(*map(Text, (Path(j.measured.path).name, j.measured.format, *(say(x) for x in _row(j)))))
    out.print(table)
    return EXIT_OK


def _row(j: Judged) -> tuple[Message, ...]:
    figure = message("judge-figure", value=Quantity(j.mean.mean, "count"), unit=Name(j.measured.unit))
    half = j.relative
    interval = message("judge-half", half=Quantity(half, "percent")) if half is not None else message("judge-no-half")
    return _duration(j.seconds), figure, interval, _judgement(j)


def _judgement(j: Judged) -> Message:
    """Return what is wrong with a series, the worst first, or that nothing is."""
    if j.change is not None:
        at = (j.steadiness.drop + j.change.index) * j.measured.period_s
        before, after = Quantity(j.change.before, "count"), Quantity(j.change.after, "count")
        return message("judge-two-levels", at=_duration(at), before=before, after=after)
    if j.steadiness.steady is False:
        return message("judge-drifts", drift=Quantity(1 + j.steadiness.drift, "change"))
    if j.relative is None:
        return message("judge-too-few", n=len(j.measured.values))
    warmup = message("judge-warmup", time=_duration(j.warmup_s)) if j.warmup_s else None
    if not j.is_enough:
        wanted, needed = Quantity(j.precision, "percent"), _duration(j.enough_s or 0.0)
        return message("judge-short", warmup=warmup, precision=wanted, time=needed)
    return message("judge-steady", warmup=warmup)


def _duration(seconds: float) -> Message:
    unit: Unit = "duration"
    return message("judge-duration", time=Quantity(seconds, unit))


def _answer(judged: Sequence[Judged], sides: Sides | None) -> list[Message]:
    """Return how many files can stand for their run, and what B is against A."""
    good = sum(j.is_one_figure and j.relative is not None for j in judged)
    out = [message("judge-good", n=good, of=len(judged))]
    if sides is not None:
        ratio, low, high = (Quantity(x, "change", 1) for x in (sides.ratio, sides.low, sides.high))
        if sides.low <= 1 <= sides.high:
            out.append(message("judge-equal", low=low, high=high))
        else:
            out.append(message("judge-differ", ratio=ratio, low=low, high=high))
    return out


def _runs(a: Sequence[Judged], b: Sequence[Judged], sides: Sides | None) -> list[Message]:
    """Return what the order and the number of runs say."""
    out = []
    for name, runs in (("A", a), ("B", b)):
        if (rise := measured.rises(runs)) is not None:
            out.append(message("judge-rises", side=Name(name), rise=Quantity(rise, "percent"), n=len(runs)))
    if sides is not None and not sides.is_between_runs:
        out.append(message("judge-within", n=measured.RUNS))
    elif sides is None and b:
        out.append(message("judge-not-comparable"))
    elif not b and len(a) == 1:
        out.append(counted("judge-one-run", 1))
    return out


def _as_json(j: Judged, side: str) -> dict[str, Any]:
    change = j.change
    return {
        "file": j.measured.path, "side": side, "format": j.measured.format, "unit": j.measured.unit,
        "values": len(j.measured.values), "period_s": j.measured.period_s, "failed": j.measured.failed,
        "warmup_s": j.warmup_s, "mean": j.mean.mean, "half_width": j.mean.half_width if j.is_one_figure else None,
        "steady": j.steadiness.steady, "drift": j.steadiness.drift,
        "level_change": None if change is None else {
            "at_s": (j.steadiness.drop + change.index) * j.measured.period_s, "before": change.before,
            "after": change.after,
        },
        "enough_s": j.enough_s, "judgement": i18n.text(_judgement(j)),
    }  # fmt: skip
