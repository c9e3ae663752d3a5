"""`pgdyno capacity`."""

from __future__ import annotations

from dataclasses import replace

from pgdyno import i18n
from pgdyno.analysis.capacity import objective
from pgdyno.cli import as_json, console
from pgdyno.cli.console import command_line
from pgdyno.cli.options import language
from pgdyno.cli.overrides import search_overrides
from pgdyno.cli.requests import CapacityRequest
from pgdyno.cli.run import localized
from pgdyno.cli.viewers import stream_for
from pgdyno.errors import EXIT_WITH_CAVEATS, UsageError, msg
from pgdyno.message import Name, message
from pgdyno.model import Caveat
from pgdyno.run.capacity import search
from pgdyno.run.planning.options import Options
from pgdyno.run.planning.plan import plan_run
from pgdyno.run.planning.prepared import prepare

#: What a rate that is too high looks like: found, not wrong.
_EXPECTED = {Caveat.SKIPPED, Caveat.UNFINISHED}


def main(request: CapacityRequest) -> int:
    """Run the search, show the result, and return the exit code."""
    r = request
    servers = Options(r.target, r.embedded, False, r.force, r.replace, r.pg_bin)
    json_output, quiet, lang = request.output.json_output, request.output.quiet, language(request.output.lang)
    try:
        wanted = objective(request.slo)
    except ValueError as e:
        raise UsageError(msg("error-no-objective", text=request.slo), msg("remedy-objective")) from e
    prepared = prepare(r.experiment, lambda e: search_overrides(r, e).apply(e), r.runs, servers.target)
    if prepared.resumed is not None:
        raise UsageError(msg("error-search-cannot-be-continued"), msg("remedy-start-anew-experiment-s-name"))
    plan = plan_run(replace(prepared, command=command_line()), servers)
    errors = console.errors()
    outcome, found = search(plan, wanted, stream_for(errors, quiet=quiet, lang=lang), shortest_s=request.duration)
    if outcome.data is not None and outcome.exit_code == EXIT_WITH_CAVEATS:
        caveats = {c for t in outcome.data.trials for c in t.caveats if c not in _EXPECTED}
        bad = caveats & {Caveat.FAILURES, Caveat.OUTAGE, Caveat.UNKNOWN, Caveat.TRIAL_FAILED, Caveat.INTERRUPTED}
        outcome = replace(outcome, exit_code=EXIT_WITH_CAVEATS if bad or found.threshold is None else 0)
    if json_output:
        as_json.write(as_json.run_as_json(outcome.analysis, outcome.exit_code, outcome.error))
    elif outcome.analysis is not None and any(t.summary for t in outcome.analysis.data.trials):
        out = console.output()
        out.print()
        outcome, v = localized(outcome, lang)
        v = replace(v, tables=[t for t in v.tables if t.name in ("capacity", "outcomes")])
        console.show(v, out, details=request.output.details)
    if outcome.error is not None:
        errors.print(f"pgdyno: {i18n.text(outcome.error, lang)}", markup=False, soft_wrap=True)
    if outcome.path is not None and not quiet:
        for path in outcome.reports or [outcome.path]:
            errors.print(i18n.text(message("report-written", path=Name(str(path))), lang), soft_wrap=True)
    return outcome.exit_code
