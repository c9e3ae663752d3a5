"""`pgdyno compare --live A B`: a duet of two servers that run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from pgdyno import i18n
from pgdyno.cli import as_json, console
from pgdyno.cli.compare import failing_verdicts, is_among
from pgdyno.cli.console import command_line
from pgdyno.cli.viewers import stream_for
from pgdyno.collect import host
from pgdyno.conninfo import holds_secret
from pgdyno.errors import EXIT_OK, EXIT_THRESHOLD, EXIT_WITH_CAVEATS, SpecError, UsageError, msg
from pgdyno.message import Name, message
from pgdyno.report import view
from pgdyno.results.analysis import RunAnalysis
from pgdyno.run.planning.options import Options
from pgdyno.run.planning.plan import plan_run
from pgdyno.run.planning.prepared import prepare
from pgdyno.run.session import run_experiment
from pgdyno.spec.experiment import Experiment
from pgdyno.spec.load import mistakes, wording
from pgdyno.store.manifest import Change

#: Where nothing is said: enough to keep a server busy, and not more than its processors bear.
_CLIENTS_A_CORE = 4


def main(
    conninfos: Sequence[str],
    experiment: str,
    duration_s: float,
    clients: int | None,
    scale: int | None,
    order: str,
    force: bool,
    runs: Path,
    margin: float,
    fail_if: str | None,
    json_output: bool,
    *,
    details: bool = False,
    lang: str = "en",
) -> int:
    """Run the duet, show the result, and return the exit code."""
    failing = failing_verdicts(fail_if)
    if any(holds_secret(c) for c in conninfos):
        raise UsageError(
            msg("error-password-on-command-line-everybody"), msg("remedy-use-pgpass-pgpassword-or-service")
        )

    def adjust(found: Experiment) -> tuple[Experiment, list[Change]]:
        if found.targets:
            raise SpecError(msg("error-compare-live-names-targets-experiment"), msg("remedy-use-pgdyno-run"))
        data = found.model_dump()
        data["targets"] = {name: {"conninfo": c} for name, c in zip(("a", "b"), conninfos, strict=True)}
        data["axes"] = {"target": ["a", "b"], "clients": [clients or _CLIENTS_A_CORE * host.cores()]}
        data["run"] |= {"order": order, "duration_s": duration_s, "repetitions": 1, "restarts": 1, "rate": None}
        data["run"]["duration_limit_s"] = None
        if data["run"]["warmup_s"] != "steady":
            data["run"]["warmup_s"] = max(1.0, data["run"]["warmup_s"])
        if scale is not None:
            data["dataset"] = {**(data["dataset"] or {}), "scale": scale, "rows": None}
        try:
            return Experiment.model_validate(data), []
        except ValidationError as e:
            raise SpecError(wording(mistakes(e)[0])) from e

    options = Options(force=force)
    plan = plan_run(replace(prepare(experiment, adjust, runs), command=command_line()), options)
    errors = console.errors()
    outcome = run_experiment(plan, stream_for(errors, quiet=False, lang=lang))
    exit_code, reason = outcome.exit_code, outcome.error
    # With the margin of the command line; the report on disk has the default one.
    analysis = RunAnalysis(outcome.data, margin=margin / 100) if outcome.data is not None else None
    is_over = exit_code in (EXIT_OK, EXIT_WITH_CAVEATS)
    if analysis is not None and is_over and is_among(analysis.comparisons.rows, failing):
        exit_code, reason = EXIT_THRESHOLD, message("error-verdict-reached", verdict=Name(str(fail_if)))
    if json_output:
        as_json.write(as_json.run_as_json(analysis, exit_code, reason))
    elif analysis is not None and any(t.summary for t in analysis.data.trials):
        out = console.output()
        out.print()
        console.show(view.build(analysis, with_charts=False, lang=lang), out, details=details)
    if reason is not None:
        errors.print(f"pgdyno: {i18n.text(reason, lang)}", markup=False, soft_wrap=True)
    for path in outcome.reports:
        errors.print(i18n.text(message("report-written", path=Name(str(path))), lang), soft_wrap=True)
    return exit_code
