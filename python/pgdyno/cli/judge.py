"""`pgdyno history`, `scaling`: judgements over runs."""

from __future__ import annotations

import html
import math
import sys
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from pgdyno import i18n
from pgdyno.analysis.changepoints import FEWEST
from pgdyno.analysis.scaling import Scaling
from pgdyno.cli import as_json, console, streams
from pgdyno.cli.tables import Table
from pgdyno.errors import EXIT_OK, EXIT_THRESHOLD, UsageError, msg
from pgdyno.format import change, integer
from pgdyno.judge import history, scaling
from pgdyno.message import Message, Name, counted, message
from pgdyno.message import Text as Line
from pgdyno.plot import svg
from pgdyno.report import curves, history_page
from pgdyno.report.charts import Say
from pgdyno.report.history_page import is_better
from pgdyno.store.writing import writing
from pgdyno.units import Quantity, Unit

#: The worked example of `pgdyno scaling`.
EXAMPLE = "polardb-2024"


def follow(
    folder: Path,
    experiment: str | None,
    metrics: str | None,
    fail_if: str | None,
    json_output: bool,
    lang: str = "en",
    page: Path | None = None,
) -> int:
    """Show where the figures of an experiment changed, write their page if asked to, and return the exit code."""
    if fail_if not in (None, "change", "worse"):
        raise UsageError(msg("error-fail-if-there-no", fail_if=fail_if), msg("remedy-there-change-worse"))
    names = tuple(m.strip() for m in metrics.split(",")) if metrics else ("TPS", "p99")
    found = history.of(folder, experiment, names)
    for what in found.unreadable:
        streams.say(streams.written(msg("not-read", what=what)))
    news = found.news()
    failed = any(fail_if == "change" or (fail_if == "worse" and not is_better(s, c)) for s, c in news)
    exit_code = EXIT_THRESHOLD if failed else EXIT_OK
    answer = _history_answer(found)
    if page is not None:
        with writing(page):
            page.write_text(history_page.written(found, answer, lang), encoding="utf-8")
        sys.stderr.write(i18n.text(message("page-written", path=Name(str(page))), lang) + "\n")
    if json_output:
        as_json.write(
            {
                "exit_code": exit_code,
                "answer": [i18n.text(x) for x in answer],
                **asdict(found) | {"unreadable": [i18n.text(x) for x in found.unreadable]},
            }
        )
        return exit_code
    _show_history(found, answer, i18n.writer(lang))
    return exit_code


def _show_history(found: history.History, answer: list[Line], say: Say) -> None:
    """Print the answer, the series, and the changes of level."""
    out = console.output()
    for sentence in answer:
        out.print(Text(say(sentence), style="bold"))
    head = message(
        "history-runs", name=Name(found.name), n=counted("n-runs", len(found.runs)), first=Name(found.runs[0]),
        last=Name(found.runs[-1]),
    )  # fmt: skip
    out.print(Text(f"\n{say(head)}\n"))
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for title in (message("column-configuration"), message("column-figure")):
        table.add_column(say(title), overflow="fold")
    for title in (message("column-runs"), message("column-first"), message("column-last")):
        table.add_column(say(title), justify="right", no_wrap=True)
    table.add_column(say(message("column-over-time")), no_wrap=True)
    for s in found.series:
        if s.values:
            ends = [i18n.quantity(s.figure.quantity(x)) for x in (s.values[0], s.values[-1])]
            table.add_row(Text(s.label), s.metric, str(len(s.values)), *ends, _spark(s.values))
    out.print(table)
    changes = [(s, c) for s in found.series for c in s.changes]
    if not changes:
        return
    out.print(Text(f"\n{say(message('heading-changes'))}", style="bold"))
    for s, c in sorted(changes, key=lambda x: x[0].runs[x[1].index]):
        run = s.runs[c.index]
        line = f"{run}  {s.label}, {s.metric}: {change(c.ratio, 1)} (p = {c.p:.1g})"
        out.print(Text(line, style="green" if is_better(s, c) else "red"), soft_wrap=True)
        for name, x, y in found.differences.get(run, []):
            out.print(Text(f"    {name}: {x} | {y}"), soft_wrap=True)
    out.print(Text(f"\n{say(message('note-history'))}"))


def _history_answer(found: history.History) -> list[Line]:
    few = max((len(s.values) for s in found.series), default=0)
    if few < 2 * FEWEST:
        return [message("history-not-known", runs=counted("n-runs", few), fewest=FEWEST)]
    changes = [(s, c) for s in found.series for c in s.changes]
    news = found.news()
    out: list[Line] = []
    for s, c in news[:4]:
        way = message("change-better") if is_better(s, c) else message("change-worse")
        out.append(
            message(
                "history-changed", configuration=Name(s.label), figure=Name(s.metric),
                change=Quantity(c.ratio, "change", 1), way=way, run=Name(s.runs[c.index]),
            )
        )  # fmt: skip
    if len(news) > 4:
        out.append(message("history-more", n=len(news) - 4))
    if not news:
        old = message("history-earlier", n=len(changes)) if changes else None
        out.append(message("history-no-change", newest=history.NEWEST, runs=few, earlier=old))
    return out


def scale(
    source: Path | None,
    axis: str,
    figure: str,
    x: str | None,
    y: str | None,
    group: str | None,
    until: float | None,
    chart: Path | None,
    json_output: bool,
    lang: str = "en",
) -> int:
    """Show the scaling law, draw it if a file is named, and return the exit code."""
    if figure not in ("tps", "qps"):
        raise UsageError(msg("error-figure-there-no", figure=figure), msg("remedy-there-tps-qps"))
    if source is None:
        with resources.as_file(resources.files("pgdyno") / "experiments" / f"{EXAMPLE}.csv") as path:
            found = scaling.fit_csv(path, "cores", y or "read_only_qps", "hot_rows", until)
        title: Line = message("scaling-example", name=Name(EXAMPLE), figure=Name(y or "read_only_qps"))
    elif source.is_dir():
        found = scaling.fit_run(source, axis, figure, until)
        title = message("scaling-of", source=Name(str(source)), y=Name(figure), x=Name(axis))
    else:
        found = scaling.fit_csv(source, x, y, group, until)
        last, first = (Name(n) if n else message(id) for n, id in ((y, "last-column"), (x, "first-column")))
        title = message("scaling-of", source=Name(str(source)), y=last, x=first)
    say = i18n.writer(lang)
    if chart is not None:
        _draw(chart, found, axis if source is not None and source.is_dir() else x or "n", say)
    if json_output:
        none = i18n.text(message("scaling-no-fit"))
        as_json.write([{**asdict(f), "reason": "" if f.scaling else none} for f in found])
        return EXIT_OK
    out = console.output()
    out.print(Text(say(title), style="bold"))
    for f in found:
        out.print()
        _show_law(out, f, say)
    out.print(Text(f"\n{say(message('note-scaling'))}"))
    return EXIT_OK


def _draw(path: Path, found: list[scaling.Fitted], axis: str, say: Say) -> None:
    points = {f.label: list(zip(f.levels, f.throughputs, strict=True)) for f in found}
    figure = curves.law_chart(
        points, {f.label: f.scaling for f in found if f.scaling}, axis, say(message("axis-throughput"))
    )
    if figure is None:
        raise UsageError(msg("error-there-nothing-draw-no-curve"), msg("remedy-needs-at-least-4-different"))
    text = svg.document(figure)
    if path.suffix == ".html":
        head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(path.stem)}</title>'
        text = f"{head}<body>{text}</body></html>\n"
    with writing(path):
        path.write_text(text, encoding="utf-8")


def _three(i: Any, unit: Unit) -> Message:
    """Return a value with its interval."""
    value, low, high = (Quantity(x, unit) for x in (i.value, i.low, i.high))
    return message("with-interval", value=value, low=low, high=high)


def _show_law(out: Console, f: scaling.Fitted, say: Say) -> None:
    out.print(Text(f.label, style="bold"))
    s = f.scaling
    if s is None:
        out.print(Text(say(message("scaling-no-fit"))))
        return
    law = message(
        "scaling-law", lambda_=_three(s.lambda_, "whole"), sigma=_three(s.sigma, "factor"),
        kappa=_three(s.kappa, "factor"), error=Quantity(s.error, "percent"), points=len(f.levels), levels=s.levels,
    )  # fmt: skip
    out.print(Text(say(law)))
    value, low, high = (_or_none(x) for x in (s.knee.value, s.knee.low, s.knee.high))
    knee = message("with-interval", value=value, low=low, high=high)
    # Nothing turns it down: the law has a bound that it never reaches.
    peak = message("scaling-bounded", most=Quantity(s.peak.value, "whole"))
    if s.kappa.value:
        peak = message("scaling-peak", peak=_three(s.peak, "whole"))
    elif not s.sigma.value:
        peak = message("scaling-no-bound")
    out.print(Text(say(message("scaling-knee", knee=knee, peak=peak))))
    for what in s.unknown:
        out.print(Text(say(_cannot_tell(s, what))))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in (message("column-n"), message("column-measured"), message("column-law"), message("column-interval")):
        table.add_column(say(title), justify="right")
    table.add_column("")
    last = s.curve[-1]
    shown = [p for p in s.curve if p.n in f.levels] + [p for p in s.curve if p.predicted][7::8]
    if last not in shown:
        shown.append(last)
    for p in shown:
        measured = [x for n, x in zip(f.levels, f.throughputs, strict=True) if n == p.n]
        table.add_row(
            f"{p.n:,.0f}",
            integer(sum(measured) / len(measured)) if measured else "–",
            integer(p.throughput.value),
            say(message("from-to", low=Quantity(p.throughput.low, "count"), high=Quantity(p.throughput.high, "count"))),
            say(message("predicted")) if p.predicted else "",
        )
    out.print(table)


def _or_none(n: float) -> Quantity | Message:
    """Return a number of clients; an infinite number means that there is none."""
    return message("none") if math.isinf(n) else Quantity(n, "whole")


def _spark(values: list[float]) -> str:
    low, high = min(values), max(values)
    shown = values[-30:]
    return "".join("▁▂▃▄▅▆▇█"[min(7, int((v - low) / (high - low) * 8)) if high > low else 3] for v in shown)


def _cannot_tell(s: Scaling, what: str) -> Message:
    """Return what the data leave open about sigma, kappa or the knee."""
    low, high = f"{s.knee.low:.0f}", f"{s.knee.high:.0f}"
    match what:
        case "sigma":
            return msg("scaling-unknown-sigma", high=f"{s.sigma.high:.3g}")
        case "kappa":
            return msg("scaling-unknown-kappa")
        case _ if math.isinf(s.knee.high):
            return msg("scaling-knee-from", low=low)
    return msg("scaling-knee-between", low=low, high=high)
