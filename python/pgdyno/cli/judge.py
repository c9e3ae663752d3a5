"""`pgdyno history`, `scaling`: judgements over runs."""

from __future__ import annotations

import math
import sys
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import Any

import vl_convert
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pgdyno.analysis.changepoints import FEWEST, ChangePoint
from pgdyno.cli import as_json, console
from pgdyno.errors import EXIT_OK, EXIT_THRESHOLD, UsageError
from pgdyno.format import count, integer
from pgdyno.judge import history, scaling
from pgdyno.report import curves
from pgdyno.store import rundir

#: The worked example of `pgdyno scaling`.
EXAMPLE = "polardb-2024"


def follow(folder: Path, experiment: str | None, metrics: str | None, fail_if: str | None, json_output: bool) -> int:
    """Show the points where the figures of an experiment changed, and return the exit code."""
    if fail_if not in (None, "change", "worse"):
        raise UsageError(f'--fail-if: there is no "{fail_if}"', "There are change and worse.")
    names = tuple(m.strip() for m in metrics.split(",")) if metrics else ("TPS", "p99")
    found = history.of(folder, experiment, names)
    for what in found.unreadable:
        sys.stderr.write(f"not read: {what}\n")
    news = found.news()
    failed = any(fail_if == "change" or (fail_if == "worse" and not _is_better(s, c)) for s, c in news)
    exit_code = EXIT_THRESHOLD if failed else EXIT_OK
    sentences = _history_answer(found)
    if json_output:
        as_json.write({"exit_code": exit_code, "answer": sentences, **asdict(found)})
        return exit_code
    out = console.output()
    for sentence in sentences:
        out.print(Text(sentence, style="bold"))
    out.print(Text(f"\n{found.name}: {count(len(found.runs), 'run')}, {found.runs[0]} to {found.runs[-1]}\n"))
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("configuration", "figure"):
        table.add_column(name, overflow="fold")
    for name in ("runs", "first", "last"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("over time", no_wrap=True)
    for s in found.series:
        if s.values:
            ends = [s.figure.shown(x) for x in (s.values[0], s.values[-1])]
            table.add_row(Text(s.label), s.metric, str(len(s.values)), *ends, _spark(s.values))
    out.print(table)
    changes = [(s, c) for s in found.series for c in s.changes]
    if not changes:
        return exit_code
    out.print(Text("\nChanges of level", style="bold"))
    for s, c in sorted(changes, key=lambda x: x[0].runs[x[1].index]):
        run = s.runs[c.index]
        out.print(
            Text(
                f"{run}  {s.label}, {s.metric}: {(c.ratio - 1) * 100:+.1f}% (p = {c.p:.1g})",
                style="green" if _is_better(s, c) else "red",
            ),
            soft_wrap=True,
        )
        for name, x, y in found.differences.get(run, []):
            out.print(Text(f"    {name}: {x} | {y}"), soft_wrap=True)
    out.print(
        Text(
            "\np: of such a change anywhere in its series, by chance. All series together show one where there is "
            "none in 5 of 100 tables at most; values are taken to be independent."
        )
    )
    return exit_code


def _is_better(s: history.Series, c: ChangePoint) -> bool:
    return (c.ratio > 1) == s.figure.higher_is_better


def _history_answer(found: history.History) -> list[str]:
    few = max((len(s.values) for s in found.series), default=0)
    if few < 2 * FEWEST:
        return [f"Not yet known: {count(few, 'run')}. A change needs {FEWEST} before it and {FEWEST} after it."]
    changes = [(s, c) for s in found.series for c in s.changes]
    news = found.news()
    out = []
    for s, c in news[:4]:
        way = "better" if _is_better(s, c) else "worse"
        out.append(f"{s.label}: {s.metric} is {(c.ratio - 1) * 100:+.1f}% ({way}) since {s.runs[c.index]}.")
    if len(news) > 4:
        out.append(f"{len(news) - 4} more changed among the newest runs.")
    if not news:
        old = f"; {len(changes)} earlier" if changes else ""
        out.append(f"No change of level among the newest {history.NEWEST} of {few} runs{old}.")
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
) -> int:
    """Show the scaling law, draw it if a file is named, and return the exit code."""
    if figure not in ("tps", "qps"):
        raise UsageError(f'--figure: there is no "{figure}"', "There are tps and qps.")
    if source is None:
        with resources.as_file(resources.files("pgdyno") / "experiments" / f"{EXAMPLE}.csv") as path:
            found = scaling.of_csv(path, "cores", y or "read_only_qps", "hot_rows", until)
        title = f"Worked example: published figures of a cloud vendor ({EXAMPLE}), {y or 'read_only_qps'} by cores"
    elif source.is_dir():
        found, title = scaling.of_run(source, axis, figure, until), f"{source}: {figure} by {axis}"
    else:
        found, title = (
            scaling.of_csv(source, x, y, group, until),
            f"{source}: {y or 'last column'} by {x or 'first column'}",
        )
    if chart is not None:
        _draw(chart, found, axis if source is not None and source.is_dir() else x or "n")
    if json_output:
        as_json.write([asdict(f) for f in found])
        return EXIT_OK
    out = console.output()
    out.print(Text(title, style="bold"))
    for f in found:
        out.print()
        _show_law(out, f)
    out.print(
        Text(
            "\nX(n) = lambda n / (1 + sigma (n - 1) + kappa n (n - 1)). Least squares of relative errors; 95% "
            "intervals by bootstrap of levels, and of repetitions within them. Predictions hold if the law does: "
            "beyond the highest level nothing was measured."
        )
    )
    return EXIT_OK


def _draw(path: Path, found: list[scaling.Fitted], axis: str) -> None:
    points = {f.label: list(zip(f.levels, f.throughputs, strict=True)) for f in found}
    spec = curves.law_chart(points, {f.label: f.scaling for f in found if f.scaling}, axis)
    if spec is None:
        raise UsageError("there is nothing to draw: no curve could be fitted", "It needs at least 4 different levels.")
    text = vl_convert.vegalite_to_html(spec) if path.suffix == ".html" else vl_convert.vegalite_to_svg(spec)
    with rundir.writing(path):
        path.write_text(text, encoding="utf-8")


def _show_law(out: Console, f: scaling.Fitted) -> None:
    out.print(Text(f.label, style="bold"))
    s = f.scaling
    if s is None:
        out.print(Text(f"no fit: {f.reason}"))
        return

    def three(i: Any, form: str = ".3g") -> str:
        return f"{i.value:{form}} ({i.low:{form}} to {i.high:{form}})"

    out.print(
        Text(
            f"lambda {three(s.lambda_, ',.0f')}; sigma {three(s.sigma)}; kappa {three(s.kappa)}; "
            f"error {s.error * 100:.1f}% over {len(f.levels)} points, {s.levels} levels"
        )
    )
    knee = f"{_or_none(s.knee.value)} ({_or_none(s.knee.low)} to {_or_none(s.knee.high)})"
    if s.kappa.value:
        peak = f"highest throughput {three(s.peak, ',.0f')}"
    else:
        # Nothing turns it down: the law has a bound that it never reaches.
        peak = f"no highest throughput; bounded by {s.peak.value:,.0f}" if s.sigma.value else "no bound"
    out.print(Text(f"knee at {knee}; {peak}"))
    for what in s.unknown:
        out.print(Text(f"The data cannot tell {what}."))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("n", "measured", "law", "95% interval of a measurement"):
        table.add_column(name, justify="right")
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
            f"{integer(p.throughput.low)} to {integer(p.throughput.high)}",
            "predicted" if p.predicted else "",
        )
    out.print(table)


def _or_none(n: float) -> str:
    """Format a number of clients; an infinite number means that there is none."""
    return "none" if math.isinf(n) else f"{n:,.0f}"


def _spark(values: list[float]) -> str:
    low, high = min(values), max(values)
    shown = values[-30:]
    return "".join("▁▂▃▄▅▆▇█"[min(7, int((v - low) / (high - low) * 8)) if high > low else 3] for v in shown)
