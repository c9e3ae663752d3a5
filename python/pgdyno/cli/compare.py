"""`pgdyno compare`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from pgdyno.analysis.compare import Verdict
from pgdyno.cli import as_json, console
from pgdyno.errors import EXIT_OK, EXIT_THRESHOLD, UsageError
from pgdyno.judge import runs
from pgdyno.judge.compared import Row
from pgdyno.judge.siblings import siblings
from pgdyno.report import answer, findings, verdicts
from pgdyno.report.comparisons import note
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store import reading
from pgdyno.store.reading import RunData

_STYLES = {Verdict.FASTER: "green", Verdict.SLOWER: "red", Verdict.SAME: "", Verdict.UNKNOWN: "yellow"}
#: How to read a comparison of searches.
_SEARCHES = (
    "Change: 99% interval of the ratio of the rates that half of the trials hold; of single searches from their own "
    "intervals, of several from how far they lie apart."
)
#: What --fail-if may name, and the verdicts that it stands for. A difference within the margin is none.
FAILING = {
    "slower": {Verdict.SLOWER},
    "faster": {Verdict.FASTER},
    "different": {Verdict.FASTER, Verdict.SLOWER},
    "unknown": {Verdict.UNKNOWN},
}


def main(
    a: Sequence[Path],
    b: Sequence[Path],
    figures: str | None,
    margin_percent: float,
    fail_if: str | None,
    json_output: bool,
) -> int:
    """Show the comparison of B with A and return the exit code."""
    failing = failing_verdicts(fail_if)
    names = tuple(m.strip() for m in figures.split(",")) if figures else runs.DEFAULT
    left, right = ([reading.read(path) for path in dict.fromkeys(side)] for side in (a, b))
    if shared := {p.resolve() for p in a} & {p.resolve() for p in b}:
        raise UsageError(f"{min(shared)} stands on both sides", "Compare it with another run.")
    found = runs.compare_runs(left, right, names, margin=margin_percent / 100, others=siblings(left, right))
    failed = is_among(found.rows, failing)
    if fail_if and not failed and found.is_of_single_starts:
        console.errors().print(
            f"pgdyno: --fail-if {fail_if} could not be judged: one start of a server on a side", markup=False,
            soft_wrap=True,
        )  # fmt: skip
    exit_code = EXIT_THRESHOLD if failed else EXIT_OK
    sentences = [*_answer(found), *_why(found, left, right)]
    if json_output:
        as_json.write(
            {
                "exit_code": exit_code,
                "answer": sentences,
                "rows": [as_json.row(r) for r in found.rows],
                "unit": found.unit,
                "starts_a": found.starts_a,
                "starts_b": found.starts_b,
                "other_runs": found.others,
                "differences": [{"name": n, "a": x, "b": y} for n, x, y in found.differences],
                "warnings": found.warnings,
                "only_a": found.only_a,
                "only_b": found.only_b,
            }
        )
        return exit_code
    out = console.output()
    for sentence in sentences:
        out.print(Text(sentence, style="bold"))
    out.print()
    for name, side in (("A", a), ("B", b)):
        out.print(Text(f"{name}: {', '.join(map(str, side))}"), soft_wrap=True)
    out.print()
    _table(out, found.rows)
    if found.rows:
        out.print()
        how = note(found.rows[0].comparison, unit=f"{found.unit}s") if not found.is_of_searches else _SEARCHES
        out.print(Text(f"{_method(found)} {how}"))
    if found.differences:
        out.print(Text("\nThe environments differ", style="bold"))
        for name, x, y in found.differences:
            out.print(Text(f"- {name}: {x} | {y}"), soft_wrap=True)
    if found.warnings:
        out.print(Text("\nCaveats", style="bold"))
        for w in found.warnings:
            out.print(Text(f"- {w}"))
    for name, labels in (("A", found.only_a), ("B", found.only_b)):
        if labels:
            out.print(Text(f"\nOnly in {name}: {', '.join(labels)}"), soft_wrap=True)
    if failed:
        console.errors().print(f"pgdyno: --fail-if {fail_if}: it has come to pass", markup=False, soft_wrap=True)
    return exit_code


def failing_verdicts(fail_if: str | None) -> set[Verdict]:
    """Return the verdicts that a value of --fail-if names.

    Raise UsageError if the value is unknown.
    """
    if fail_if is None:
        return set()
    if fail_if not in FAILING:
        raise UsageError(f'--fail-if: there is no "{fail_if}"', f"There are {', '.join(FAILING)}.")
    return FAILING[fail_if]


def is_among(rows: Sequence[Row], failing: set[Verdict]) -> bool:
    """Return True if throughput or latency reached one of the verdicts by more than the margin.

    The cost of a transaction is shown but not judged.
    """
    judged = [r.comparison for r in rows if not r.figure.is_cost and r.figure is not runs.LOAD]
    return any(c.verdict in failing and not c.is_negligible for c in judged)


#: Pairs whose difference is explained.
_EXPLAINED = 3


def _why(found: runs.RunComparison, left: Sequence[RunData], right: Sequence[RunData]) -> list[str]:
    """Return sentences that tell where the time of a transaction went, for a comparison of single runs.

    The trials of a single run are found by their numbers.
    """
    if found.is_of_searches or len(left) != 1 or len(right) != 1:
        return []
    rows = [r for r in found.rows if r.figure is not runs.LOAD]
    explained = findings.of_comparisons(RunAnalysis(left[0]), RunAnalysis(right[0]), rows, _EXPLAINED)
    return [f"{r.pair.label}: {words}" for r, words in explained]


def _answer(found: runs.RunComparison) -> list[str]:
    if found.is_of_searches:
        (row,) = found.rows
        change = verdicts.change(row.comparison)
        if found.is_of_single_starts:
            return [
                f"Not yet known whether B bears more than A ({row.pair.label}): by these searches {change}; how far "
                "two searches on one server lie apart is not known.",
                "What would tell: several searches of each "
                "(pgdyno compare A1 A2 A3 --side-b B1 --side-b B2 --side-b B3).",
            ]
        words = {
            Verdict.FASTER: "bears more than",
            Verdict.SLOWER: "bears less than",
            Verdict.SAME: "bears about as much as",
        }
        verb = words.get(row.comparison.verdict)
        said = f"B {verb} A" if verb else "Not yet known whether B bears more than A"
        return [f"{said} ({row.pair.label}): {change}."]
    if not found.is_of_single_starts:
        names = ("A in these starts", "B") if found.are_single_runs else ("A", "B")
        return answer.of_rows(found.rows, lambda _: names)
    if not found.rows:
        return ["None of these figures is on both sides, or all are nothing: there is nothing to compare."]
    first = [r for r in found.rows if r.figure is found.rows[0].figure]
    shown = [f"{verdicts.change(r.comparison)} ({r.pair.label})" for r in first[:4]]
    more = f" and {len(first) - 4} more" if len(first) > 4 else ""
    return [
        f"Not yet known whether B is faster than A: each is one start of a server. These two lie apart by "
        f"{first[0].figure.name} {', '.join(shown)}{more}; how far two starts of one server do is not known.",
        "What would tell: runs with --restarts 5, or several of each (pgdyno compare A1 A2 A3 --side-b B1 --side-b B2 "
        "--side-b B3).",
    ]


def _method(found: runs.RunComparison) -> str:
    if found.is_of_searches:
        return f"Searches: {found.starts_a} and {found.starts_b}."
    if found.is_of_single_starts:
        return "The intervals are of these two starts alone, by their repetitions."
    of = "starts of the server" if found.are_single_runs else "runs"
    learned = f" How far two lie apart is learned from {found.others} other runs of this experiment as well."
    learned = learned if found.others else ""
    if found.are_single_runs:
        return (
            f"Compared by starts of the server, {found.starts_a} and {found.starts_b}: what the hour and the loading "
            f"of a run add is not known; half of what starts differ by (a quarter of the variance) is allowed for it, "
            f"and more than that may be in it.{learned}"
        )
    return f"Compared by {of}: {found.starts_a} and {found.starts_b}.{learned}"


def _table(out: Console, rows: list[Row]) -> None:
    columns = ["figure", "A", "B", "change", "n", "verdict for B"]
    lines: list[tuple[str, list[Text]]] = []
    for r in rows:
        c = r.comparison
        cells = [r.figure.name, *(r.figure.shown(x) for x in (c.mean_a, c.mean_b)), verdicts.change(c)]
        cells.append(str(min(c.n_a, c.n_b)))
        lines.append((r.pair.label, [*map(Text, cells), Text(verdicts.verdict(r), style=_STYLES[c.verdict])]))
    widths = [max(cell_len(n), *(cell_len(row[i].plain) for _, row in lines)) for i, n in enumerate(columns)]
    previous = ""
    for label, row in [("", [Text(n, style="bold") for n in columns]), *lines]:
        if label != previous:
            # On a line of its own: labels are long, and figures need the width.
            out.print(Text(label, style="bold"), soft_wrap=True)
            previous = label
        line = Text(" ")
        for i, cell in enumerate(row):
            pad = " " * (widths[i] - cell_len(cell.plain))
            left = i in (0, len(row) - 1)
            line.append_text(Text.assemble(" ", *((cell, pad) if left else (pad, cell))))
        line.rstrip()
        out.print(line, soft_wrap=True)
