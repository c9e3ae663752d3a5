"""`pgdyno compare`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text as Line

from pgdyno import i18n
from pgdyno.analysis.compare import Verdict
from pgdyno.cli import as_json, console
from pgdyno.errors import EXIT_OK, EXIT_THRESHOLD, UsageError, msg
from pgdyno.judge import runs
from pgdyno.judge.compared import Row
from pgdyno.judge.siblings import siblings
from pgdyno.message import Argument, Message, Name, Text, listed, message
from pgdyno.report import answer, compared_page, findings, verdicts
from pgdyno.report.charts import Say
from pgdyno.report.comparisons import figure_name, note
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store import reading
from pgdyno.store.reading import RunData
from pgdyno.store.writing import writing

_STYLES = {Verdict.FASTER: "green", Verdict.SLOWER: "red", Verdict.SAME: "", Verdict.UNKNOWN: "yellow"}
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
    lang: str = "en",
    page: Path | None = None,
) -> int:
    """Show the comparison of B with A, write its page if asked to, and return the exit code."""
    failing = failing_verdicts(fail_if)
    names = tuple(m.strip() for m in figures.split(",")) if figures else runs.DEFAULT
    left, right = ([reading.read(path) for path in dict.fromkeys(side)] for side in (a, b))
    if shared := {p.resolve() for p in a} & {p.resolve() for p in b}:
        raise UsageError(msg("error-stands-on-both-sides", min=min(shared)), msg("remedy-compare-another-run"))
    found = runs.compare_runs(left, right, names, margin=margin_percent / 100, others=siblings(left, right))
    failed = is_among(found.rows, failing)
    if fail_if and not failed and found.is_of_single_starts:
        note = message("compare-not-judged", verdict=Name(fail_if))
        console.errors().print(f"pgdyno: {i18n.text(note, lang)}", markup=False, soft_wrap=True)
    exit_code = EXIT_THRESHOLD if failed else EXIT_OK
    answers = [*_answer(found), *_why(found, left, right)]
    if page is not None:
        with writing(page):
            page.write_text(compared_page.written(found, answers, _how(found), a, b, lang), encoding="utf-8")
        note = message("page-written", path=Name(str(page)))
        console.errors().print(i18n.text(note, lang), markup=False, soft_wrap=True)
    if json_output:
        as_json.write(
            {
                "exit_code": exit_code,
                "answer": [i18n.text(x) for x in answers],
                "rows": [as_json.row(r) for r in found.rows],
                "unit": found.unit,
                "starts_a": found.starts_a,
                "starts_b": found.starts_b,
                "other_runs": found.others,
                "differences": [{"name": n, "a": x, "b": y} for n, x, y in found.differences],
                "warnings": [i18n.text(x) for x in found.warnings],
                "only_a": found.only_a,
                "only_b": found.only_b,
            }
        )
        return exit_code
    _show(found, answers, a, b, i18n.writer(lang))
    if failed:
        note = message("error-verdict-reached", verdict=Name(str(fail_if)))
        console.errors().print(f"pgdyno: {i18n.text(note, lang)}", markup=False, soft_wrap=True)
    return exit_code


def _show(found: runs.RunComparison, answers: list[Text], a: Sequence[Path], b: Sequence[Path], say: Say) -> None:
    """Print a comparison: the answer, the table, how it was compared, and what to beware of."""
    out = console.output()
    for sentence in answers:
        out.print(Line(say(sentence), style="bold"))
    out.print()
    for name, side in (("A", a), ("B", b)):
        out.print(Line(f"{name}: {', '.join(map(str, side))}"), soft_wrap=True)
    out.print()
    _table(out, found.rows, say)
    if found.rows:
        out.print()
        out.print(Line(say(listed(_how(found), "sentence"))))
    if found.differences:
        out.print(Line(f"\n{say(message('heading-differ'))}", style="bold"))
        for name, x, y in found.differences:
            out.print(Line(f"- {name}: {x} | {y}"), soft_wrap=True)
    if found.warnings:
        out.print(Line(f"\n{say(message('heading-caveats'))}", style="bold"))
        for w in found.warnings:
            out.print(Line(f"- {say(w)}"))
    for name, labels in (("A", found.only_a), ("B", found.only_b)):
        if labels:
            only = message("only-in", side=Name(name), labels=listed(map(Name, labels)))
            out.print(Line(f"\n{say(only)}"), soft_wrap=True)


def _how(found: runs.RunComparison) -> list[Text]:
    """Return the sentences on how the sides were compared."""
    if not found.rows:
        return []
    if found.is_of_searches:
        return [*_method(found), message("note-searches")]
    return [*_method(found), *note(found.rows[0].comparison, unit=message(f"unit-{found.unit}s"))]


def failing_verdicts(fail_if: str | None) -> set[Verdict]:
    """Return the verdicts that a value of --fail-if names.

    Raise UsageError if the value is unknown.
    """
    if fail_if is None:
        return set()
    if fail_if not in FAILING:
        raise UsageError(
            msg("error-fail-if-there-no", fail_if=fail_if), msg("remedy-choices", choices=", ".join(FAILING))
        )
    return FAILING[fail_if]


def is_among(rows: Sequence[Row], failing: set[Verdict]) -> bool:
    """Return True if throughput or latency reached one of the verdicts by more than the margin.

    The cost of a transaction is shown but not judged.
    """
    judged = [r.comparison for r in rows if not r.figure.is_cost and r.figure is not runs.LOAD]
    return any(c.verdict in failing and not c.is_negligible for c in judged)


#: Pairs whose difference is explained.
_EXPLAINED = 3


def _why(found: runs.RunComparison, left: Sequence[RunData], right: Sequence[RunData]) -> list[Text]:
    """Return sentences that tell where the time of a transaction went, for a comparison of single runs.

    The trials of a single run are found by their numbers.
    """
    if found.is_of_searches or len(left) != 1 or len(right) != 1:
        return []
    rows = [r for r in found.rows if r.figure is not runs.LOAD]
    explained = findings.comparison_reasons(RunAnalysis(left[0]), RunAnalysis(right[0]), rows, _EXPLAINED)
    return [why for _, why in explained]


_BEARS = {
    Verdict.FASTER: "bears-more", Verdict.SLOWER: "bears-less", Verdict.SAME: "bears-the-same",
    Verdict.UNKNOWN: "bears-unknown",
}  # fmt: skip


def _answer(found: runs.RunComparison) -> list[Text]:
    if found.is_of_searches:
        (row,) = found.rows
        args: dict[str, Argument] = {"where": Name(row.pair.label), "change": verdicts.change(row.comparison)}
        if found.is_of_single_starts:
            return [message("bears-single", **args), message("bears-single-advice")]
        return [Message(_BEARS[row.comparison.verdict], args)]
    if not found.is_of_single_starts:
        a = message("a-in-these-starts") if found.are_single_runs else Name("A")
        return answer.comparison_sentences(found.rows, lambda _: (a, Name("B")))
    if not found.rows:
        return [message("nothing-to-compare")]
    first = [r for r in found.rows if r.figure is found.rows[0].figure]
    shown: list[Text] = [
        message("change-of", change=verdicts.change(r.comparison), where=Name(r.pair.label)) for r in first[:4]
    ]
    if len(first) > 4:
        shown.append(message("and-more", n=len(first) - 4))
    figure = Name(first[0].figure.name)
    return [message("single-starts", figure=figure, changes=listed(shown)), message("single-starts-advice")]


def _method(found: runs.RunComparison) -> list[Text]:
    args = {"a": found.starts_a, "b": found.starts_b}
    if found.is_of_searches:
        return [message("compared-searches", **args)]
    if found.is_of_single_starts:
        return [message("compared-single-starts")]
    learned = [message("compared-learned", n=found.others)] if found.others else []
    if found.are_single_runs:
        return [message("compared-starts", **args), *learned]
    return [message("compared-runs", **args), *learned]


def _table(out: Console, rows: list[Row], say: Say) -> None:
    columns = [say(message("column-figure")), "A", "B"]
    columns += [say(message(x)) for x in ("column-change", "column-n", "column-verdict-for-b")]
    lines: list[tuple[str, list[Line]]] = []
    for r in rows:
        c = r.comparison
        means = [i18n.quantity(r.figure.quantity(x)) for x in (c.mean_a, c.mean_b)]
        cells = [say(figure_name(r)), *means, say(verdicts.change(c)), str(min(c.n_a, c.n_b))]
        lines.append((r.pair.label, [*map(Line, cells), Line(say(verdicts.verdict(r)), style=_STYLES[c.verdict])]))
    widths = [max(cell_len(n), *(cell_len(row[i].plain) for _, row in lines)) for i, n in enumerate(columns)]
    previous = ""
    for label, row in [("", [Line(n, style="bold") for n in columns]), *lines]:
        if label != previous:
            # On a line of its own: labels are long, and figures need the width.
            out.print(Line(label, style="bold"), soft_wrap=True)
            previous = label
        line = Line(" ")
        for i, cell in enumerate(row):
            pad = " " * (widths[i] - cell_len(cell.plain))
            left = i in (0, len(row) - 1)
            line.append_text(Line.assemble(" ", *((cell, pad) if left else (pad, cell))))
        line.rstrip()
        out.print(line, soft_wrap=True)
