"""`pgdyno observe`: a running server at its own work."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from pgdyno import i18n
from pgdyno.cli import as_json, console
from pgdyno.cli.console import command_line
from pgdyno.cli.tables import Table
from pgdyno.cli.viewers import stream_for
from pgdyno.cluster import target as targets
from pgdyno.errors import EXIT_OK, PgdynoError, UsageError, msg
from pgdyno.interrupt import signals_raise
from pgdyno.message import Message, Name, listed, message
from pgdyno.report import observed, observed_page
from pgdyno.report.observed import ObservedAnswer
from pgdyno.results.analysis import RunAnalysis
from pgdyno.run.observe import SHORTEST_S, Observation, Observer
from pgdyno.store import rundir
from pgdyno.units import Quantity

#: Findings, statements and gaps that the terminal shows; the page has all.
_FINDINGS, _STATEMENTS, _GAPS = 4, 5, 4
#: Characters of a wait with its share.
_MOSTLY = 26


@dataclass(frozen=True)
class ObserveRequest:
    """Which server is observed, for how long, and how often."""

    target: str
    seconds: float
    #: Seconds from the beginning of one observation to that of the next; None: one observation.
    every_s: float | None
    #: Observations; None: until it is stopped.
    times: int | None
    runs: Path
    lang: str
    json_output: bool
    quiet: bool


def main(request: ObserveRequest) -> int:
    """Observe, show what was seen, and return the exit code."""
    if request.seconds < SHORTEST_S:
        raise UsageError(msg("error-observe-short", least=f"{SHORTEST_S:g}"))
    if request.every_s is not None and request.every_s < request.seconds:
        raise UsageError(msg("error-observe-every"), msg("remedy-observe-every"))
    done, out = 0, console.output()
    while True:
        began = time.monotonic()
        try:
            exit_code = _once(request, out)
        except PgdynoError as e:
            if not done or request.every_s is None:
                raise
            # One that cannot be reached now may be there again the next time.
            console.errors().print(f"pgdyno: {i18n.text(e.whole, request.lang)}", markup=False, soft_wrap=True)
            exit_code = e.exit_code
        done += 1
        if request.every_s is None or exit_code > 128 or done == request.times or out.quiet:
            # Nobody reads any more (| head): nothing is observed for nobody.
            return exit_code
        with signals_raise():
            time.sleep(max(0.0, request.every_s - (time.monotonic() - began)))


def _once(request: ObserveRequest, out: Console) -> int:
    errors, lang = console.errors(), request.lang
    target = targets.resolve(request.target)
    is_one = request.every_s is None
    stream = stream_for(errors, quiet=request.quiet or request.json_output or not is_one, lang=lang)
    observation = Observer(target, request.seconds, request.runs, stream, command_line()).run()
    analysis = observation.analysis
    found = observed.answer(analysis) if analysis is not None else None
    if analysis is not None and found is not None:
        # English, which every record has, and the language that is asked for.
        for each in dict.fromkeys(("en", lang)):
            _write_page(analysis, found, each)
    if request.json_output:
        as_json.write(_as_json(observation, found))
    elif found is not None:
        if is_one:
            show(found, out, lang)
        else:
            _print_line(found, out, lang)
    if observation.error is not None:
        errors.print(f"pgdyno: {i18n.text(observation.error, lang)}", markup=False, soft_wrap=True)
    if is_one and not request.quiet:
        path = observation.path / observed_page.file_name(lang) if found is not None else observation.path
        id = "report-written" if found is not None else "run-directory-written"
        errors.print(i18n.text(message(id, path=Name(str(path))), lang), soft_wrap=True)
    return observation.exit_code


def report(analysis: RunAnalysis, lang: str) -> int:
    """Show a recorded observation, and write its page again."""
    found = observed.answer(analysis)
    if found is None:
        raise UsageError(msg("error-no-finished-trial-there-nothing-2", path=analysis.data.path))
    show(found, console.output(), lang)
    path = _write_page(analysis, found, lang)
    console.errors().print(i18n.text(message("report-written", path=Name(str(path))), lang), soft_wrap=True)
    return EXIT_OK


def _write_page(analysis: RunAnalysis, found: ObservedAnswer, lang: str) -> Path:
    directory = rundir.RunDirectory(Path(analysis.data.path))
    return directory.write_text(observed_page.file_name(lang), observed_page.written(analysis, found, lang))


def show(found: ObservedAnswer, out: Console, lang: str) -> None:
    """Print an observation on the terminal."""
    say = i18n.writer(lang)
    for sentence in found.sentences:
        out.print(Text(say(sentence), style="bold"))
    out.print()
    for n, f in enumerate(found.why.findings[:_FINDINGS], 1):
        line = f"{n}. {say(message('labelled', label=f.role, text=f.sentence))}"
        out.print(Text(line, style="bold" if n == 1 else ""))
        for label, text in (("cost", f.cost), ("seen", f.facts), ("try", f.remedy)):
            if text:
                title = say(message(f"explain-{label}"))
                out.print(Padding(Text.assemble((f"{title}  ".ljust(6), "dim"), say(text)), (0, 0, 0, 3)))
    if not found.why.findings:
        out.print(say(message("observed-nothing")))
    if found.ruled_out:
        out.print()
        ruled = message("labelled", label=message("observed-ruled-out"), text=listed(found.ruled_out, "list"))
        out.print(say(ruled))
    if found.statements:
        out.print()
        out.print(_statements(found, lang))
    for gap in [*found.not_judged, *found.gaps][:_GAPS]:
        out.print(Text(say(message("observed-gap", gap=gap)), style="dim"))
    out.print()


def _statements(found: ObservedAnswer, lang: str) -> Table:
    say = i18n.writer(lang)
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(say(message("column-busy-share")), justify="right", no_wrap=True, min_width=9)
    table.add_column(say(message("column-mostly")), no_wrap=True, min_width=_MOSTLY)
    table.add_column(say(message("column-statement")), overflow="ellipsis", no_wrap=True)
    for s in found.statements[:_STATEMENTS]:
        wait: Message | Name = message("on-a-cpu") if not s.wait else Name(s.wait)
        mostly = message("observed-mostly", wait=wait, share=Quantity(s.wait_share, "share"))
        share = message("figure", figure=Quantity(s.share, "share"))
        table.add_row(Text(say(share)), Text(say(mostly)), Text(s.statement))
    return table


def _print_line(found: ObservedAnswer, out: Console, lang: str) -> None:
    """Print an observation of many as one line."""
    say = i18n.writer(lang)
    first = found.why.findings[0] if found.why.findings else None
    text = message(
        "observed-line", time=Name(time.strftime("%H:%M:%S")), busy=found.sentences[0],
        cause=first.title if first else message("tile-none"),
    )  # fmt: skip
    out.print(say(text), soft_wrap=True, markup=False)


def _as_json(observation: Observation, found: ObservedAnswer | None) -> dict[str, object]:
    analysis = observation.analysis
    error = i18n.text(observation.error) if observation.error is not None else None
    common: dict[str, object] = {
        "path": str(observation.path),
        "exit_code": observation.exit_code,
        "error": error,
    }
    if analysis is None or found is None:
        return common
    e = analysis.observed(analysis.groups[0].trials)
    return {
        **common,
        "seconds": sum(r.seconds for r in e.trials),
        "sessions": e.clients,
        "busy_sessions": e.busy_clients,
        "tps": e.tps,
        "answer": [i18n.text(x) for x in found.sentences],
        "parts": [{"part": p.name, "share": asdict(p.share), "ruled_out": p.is_ruled_out} for p in found.parts],
        "findings": [f.as_json() for f in analysis.diagnosis_of(analysis.groups[0]).findings],
        "statements": [asdict(s) for s in found.statements],
        "not_judged": [i18n.text(x) for x in found.not_judged],
        "gaps": [i18n.text(x) for x in found.gaps],
    }
