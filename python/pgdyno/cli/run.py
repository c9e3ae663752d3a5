"""`pgdyno run`."""

from __future__ import annotations

import io
import sys
from dataclasses import replace

from pgdyno import i18n
from pgdyno.cli import as_json, console, thresholds
from pgdyno.cli.console import command_line
from pgdyno.cli.options import language
from pgdyno.cli.overrides import run_overrides, say_what_is_too_short
from pgdyno.cli.report import refuse_unknown
from pgdyno.cli.requests import RunRequest
from pgdyno.cli.sysbench import SysbenchLines
from pgdyno.cli.viewers import stream_for, viewed
from pgdyno.errors import EXIT_OK, EXIT_THRESHOLD, EXIT_WITH_CAVEATS, UsageError, msg
from pgdyno.message import Name, listed, message
from pgdyno.report import sysbench, view, write
from pgdyno.report.view import View
from pgdyno.run.planning.plan import plan_run
from pgdyno.run.planning.prepared import prepare
from pgdyno.run.recorder import Outcome
from pgdyno.run.session import run_experiment
from pgdyno.store import rundir


def localized(outcome: Outcome, lang: str) -> tuple[Outcome, View]:
    """Return the report in a language; write its files beside the English ones, which every run has."""
    assert outcome.analysis is not None
    if outcome.view is not None and lang == outcome.view.lang:
        return outcome, outcome.view
    built = outcome.view
    v = view.build(outcome.analysis, lang=lang) if built is None else view.localized(built, outcome.analysis, lang)
    if outcome.path is not None and outcome.reports:
        outcome = replace(outcome, reports=write.write(v, rundir.RunDirectory(outcome.path).write_text))
    return outcome, v


def main(request: RunRequest) -> int:
    """Run an experiment, show its report and return the exit code."""
    servers = request.server.options()
    report_format, json_output, quiet = request.report_format, request.output.json_output, request.output.quiet
    lang = language(request.output.lang)
    refuse_unknown(report_format, json_output=json_output)
    # A mistake in a bound is said before anything runs.
    bounds = [thresholds.threshold(text) for text in request.fail_if or []]
    if servers.templates not in ("use", "keep", "off"):
        raise UsageError(msg("error-templates-there-no", templates=servers.templates), msg("remedy-there-use-keep-off"))
    prepared = prepare(request.experiment, run_overrides(request).apply, request.runs, servers.target)
    plan = plan_run(
        replace(prepared, command=command_line(), tags=request.tag or [], remark=request.note or ""), servers
    )
    say_what_is_too_short(plan)
    errors = console.errors()
    # The sides of a duet would be mixed line by line: they come one after the other when it is over.
    live = report_format == "sysbench" and not plan.experiment.run.is_duet
    lines = SysbenchLines(sys.stdout, io.StringIO() if quiet else sys.stderr) if live else None
    stream = stream_for(errors, quiet=quiet or lines is not None, lang=lang)
    if lines is not None:
        viewed(stream, lines)
    outcome = run_experiment(plan, stream)
    beyond = thresholds.met(outcome.analysis, bounds) if outcome.analysis is not None else []
    if beyond and outcome.exit_code in (EXIT_OK, EXIT_WITH_CAVEATS):
        outcome = replace(outcome, exit_code=EXIT_THRESHOLD, error=listed(beyond, "semicolon"))
    if json_output:
        as_json.write(as_json.run_as_json(outcome.analysis, outcome.exit_code, outcome.error))
    elif outcome.data is not None and report_format == "sysbench":
        if lines is not None and lines.error is not None:
            raise lines.error
        if lines is None:
            sys.stdout.write(sysbench.text(outcome.data))
    elif outcome.analysis is not None and any(t.summary for t in outcome.analysis.data.trials):
        out = console.output()
        out.print()
        outcome, shown = localized(outcome, lang)
        console.show(shown, out, details=request.output.details)
    if outcome.error is not None:
        style = "red" if errors.is_terminal else ""
        errors.print(f"pgdyno: {i18n.text(outcome.error, lang)}", markup=False, style=style, soft_wrap=True)
    if outcome.path is not None and not quiet:
        for path in outcome.reports or [outcome.path]:
            id = "report-written" if outcome.reports else "run-directory-written"
            errors.print(i18n.text(message(id, path=Name(str(path))), lang), soft_wrap=True)
    return outcome.exit_code
