"""`pgdyno drill`."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import psycopg
from rich import box
from rich.text import Text

from pgdyno import i18n
from pgdyno.cli import console, streams
from pgdyno.cli.console import command_line
from pgdyno.cli.options import language
from pgdyno.cli.requests import DrillRequest
from pgdyno.cli.stopping import stoppable
from pgdyno.cli.tables import Table
from pgdyno.drill import description, foreign, modes, page, words
from pgdyno.drill import drill as drills
from pgdyno.drill.beside import Beside
from pgdyno.drill.drill import Drill
from pgdyno.drill.faults import FAULTS
from pgdyno.drill.members import Members
from pgdyno.drill.modes import Mode
from pgdyno.drill.own import OwnTarget
from pgdyno.drill.records import Options
from pgdyno.drill.target import DrillTarget
from pgdyno.drill.verdict import Verdict
from pgdyno.errors import PgdynoError, RefusedError, UsageError, msg
from pgdyno.format import one_line
from pgdyno.interrupt import Terminated
from pgdyno.message import Message, Name, counted, listed, message
from pgdyno.replication import following, record, roles
from pgdyno.replication.cluster import ReplicatedCluster
from pgdyno.report.cells import column
from pgdyno.report.charts import Say
from pgdyno.stream.events import RoundProgress, RunEvent
from pgdyno.stream.stream import RunStream
from pgdyno.units import Quantity

_out = console.output()
#: What happens in a round, by its name in the stream; faults and programs have their own names.
_STEPS = {
    "load": message("progress-round-load"),
    "recovery": message("progress-round-recovery"),
    "consistency": message("progress-round-consistency"),
}
#: In a drill's folder.
REPORT = "report.html"


def list_faults() -> int:
    """Each with what must come of it."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column(streams.written(Message("column-fault")), no_wrap=True)
    for name in ("heading-fault-done", "heading-fault-expected"):
        table.add_column(streams.written(Message(name)))
    for f in FAULTS.values():
        done, expected = Message(f"fault-done-{f.name}"), Message(f"fault-expected-{f.name}")
        table.add_row(f.name, streams.written(done), streams.written(expected))
    _out.print(table)
    return 0


def main(request: DrillRequest, folder: Path) -> int:
    """Run the drill of a request on the cluster in a folder, or that a file describes, and return the exit code.

    Exit code 1 means that commits were lost or that something is wrong.
    """
    r, lang = request, language(request.lang)
    options = Options(clients=r.clients, before_s=r.before, after_s=r.after, answer_timeout_s=r.answer_timeout)
    found = _foreign(folder, r, replace(options, fence=False)) if folder.is_file() else _own(folder, r, options)
    return _end(found, json_output=r.json_output, lang=lang)


def _own(folder: Path, r: DrillRequest, options: Options) -> Drill:
    """Run a drill on a cluster of pgdyno's."""
    _refuse_unknown(r.fault)
    cluster = ReplicatedCluster(folder)
    names = _faults(r.fault, cluster, r.modes)
    workload = Beside(r.workload, r.workload_clients, r.scale) if r.workload else None
    if workload is not None:
        workload.refuse_unknown()
    options = replace(options, fence=not r.no_fence, pooled=r.through_pooler, beside=workload)
    if r.through_pooler and (cluster.pooler is None or cluster.pooler.process_id is None):
        raise RefusedError(msg("error-no-pooler-runs", folder=folder), msg("remedy-make-cluster-pooler-pgdyno-cluster"))
    with stoppable(), record.locked(folder):
        # Another pgdyno may have changed the cluster before it gave up the lock.
        target = OwnTarget(ReplicatedCluster(folder))
        return _run(target, names, r, options, modes.MODES if r.modes else (), lambda: _mend(folder))


def _run(
    target: DrillTarget,
    names: Sequence[str],
    r: DrillRequest,
    options: Options,
    all_modes: Sequence[Mode],
    on_stop: Callable[[], object],
) -> Drill:
    """Run a drill; call `on_stop` and show the rounds that there are if it is interrupted."""
    place, stream = drills.folder_for(r.runs, target.name), _stream(quiet=r.quiet)
    try:
        return drills.run(target, names, r.rounds, options, place, stream, all_modes, command=command_line())
    except (KeyboardInterrupt, Terminated):
        stream.close()
        on_stop()
        _report_what_there_is(place)
        raise
    finally:
        stream.close()


def _mend(folder: Path) -> None:
    """Bring a cluster whose drill was stopped to an order, or say what does."""
    err = console.errors()
    command = f"pgdyno cluster repair {folder}"
    err.print(streams.written(msg("drill-mending")), markup=False, soft_wrap=True)
    try:
        cluster = ReplicatedCluster(folder)
        roles.repair(cluster)
        following.wait_receiving(cluster)
    except (PgdynoError, psycopg.Error) as e:
        err.print(
            streams.written(msg("drill-not-mended", reason=one_line(e), command=command)), markup=False, soft_wrap=True
        )
    except BaseException:
        err.print(streams.written(msg("drill-left", command=command)), markup=False, soft_wrap=True)
        raise
    else:
        primary = ReplicatedCluster(folder).primary.name
        err.print(streams.written(msg("drill-whole", primary=primary)), markup=False, soft_wrap=True)


def _report_what_there_is(place: Path) -> None:
    """Show the rounds of a drill that was stopped, and write its page."""
    if not drills.is_drill(place):
        return
    found = drills.read(place)
    if any(r.audit is not None for _, _, rounds in found.rounds for r in rounds):
        _end(found, json_output=False)
    else:
        console.errors().print(streams.written(msg("drill-none-ended", place=place)), markup=False, soft_wrap=True)


def report(folder: Path, *, json_output: bool, lang: str = "en") -> int:
    """Show a drill from its folder, and write its page again; the exit code is 0."""
    found = drills.read(folder)
    if not found.rounds:
        raise UsageError(msg("error-no-round-there-nothing-report", folder=folder))
    _end(found, json_output=json_output, lang=lang)
    return 0


def _foreign(file: Path, r: DrillRequest, options: Options) -> Drill:
    """Run a drill on a cluster that another tool manages."""
    if r.workload or r.through_pooler:
        raise UsageError(msg("error-workload-through-pooler-go-clusters"), msg("remedy-leave-them-out"))
    about = description.read(file)
    # A file with one fault means that one.
    only = next(iter(about.faults)) if len(about.faults) == 1 else "kill-primary"
    names = list(about.faults) if r.fault == "all" else [n.strip() for n in (r.fault or only).split(",")]
    foreign.refuse_unknown(about, names)
    if r.modes:
        raise UsageError(msg("error-modes-sets-cluster-s-settings"), msg("remedy-leave-out"))
    if not r.i_know_this_breaks_it:
        raise RefusedError(
            msg(
                "error-describes-cluster-not-pgdyno-s",
                file=file,
                names=", ".join(names),
                members=", ".join(about.members),
            ),
            msg("remedy-where-meant-i-know-this"),
        )
    with stoppable(), Members(about) as members:

        def show_roles() -> None:
            shown = ", ".join(f"{m.name}: {m.seen.role}" for m in members.members)
            console.errors().print(streams.written(msg("drill-members-now", shown=shown)), markup=False, soft_wrap=True)

        return _run(foreign.ForeignTarget(members), names, r, options, (), show_roles)


def _end(found: Drill, *, json_output: bool, lang: str = "en") -> int:
    """Show a drill, write its page, and return the exit code."""
    name = REPORT if lang == "en" else f"report.{lang}.html"
    (found.folder / name).write_text(page.written(found, lang), encoding="utf-8")
    if json_output:
        sys.stdout.write(json.dumps(found.as_json(), indent=2) + "\n")
    else:
        show(found, lang)
    # A mode that promises nothing may lose.
    good = all(v.is_as_expected or (m.name and not m.keeps(v.fault) and v.is_sound) for m, v in found.verdicts)
    return 0 if good and not found.defects and not found.stopped else 1


def show(found: Drill, lang: str = "en") -> None:
    """Print the verdict of a drill first, then the figures behind it."""
    say = i18n.writer(lang)
    modes_found = words.verdicts_by_mode(found)
    all_modes = any(mode.name for mode in modes_found)
    for mode, verdicts in modes_found.items():
        if all_modes:
            colour = "green" if all(v.is_good for v in verdicts) else "red"
            answer = say(words.mode_sentence(verdicts))
            _out.print(Text.assemble((mode.name, "bold"), f" ({mode.settings}): ", (answer, colour)))
        else:
            _show_verdicts(verdicts, found.options, say)
    for defect in found.defects:
        _out.print(Text(say(defect), style="red"))
    if found.stopped:
        _out.print(Text(say(message("drill-stopped", why=found.stopped)), style="red"))
    if all_modes:
        _out.print("", _table_of_modes(modes_found, say), "", sep="\n")
        for mode, verdicts in modes_found.items():
            for note in dict.fromkeys(say(n) for v in verdicts for n in words.notes(v)):
                _out.print(f"{mode.name}: {note}")
    else:
        _out.print("", _table([v for verdicts in modes_found.values() for v in verdicts], say), "", sep="\n")
    _out.print(say(message("drill-how", clients=counted("n-clients", found.options.clients))))
    if any(m.falls_back for m in modes_found):
        _out.print(say(message("drill-falls-back")))
    name = REPORT if lang == "en" else f"report.{lang}.html"
    _out.print(say(message("drill-files", file=Name(str(found.folder / name)))), soft_wrap=True)


def _show_verdicts(verdicts: list[Verdict], options: Options, say: Say) -> None:
    for v in verdicts:
        colour = "green" if v.is_good else "yellow" if v.is_as_expected else "red"
        named = Text.assemble((v.fault, "bold"), f" ({say(words.waited_for(v))}): ", (say(v.sentence), colour))
        _out.print(named)
        for line in [*words.notes(v), *words.timing(v, options)]:
            _out.print(f"  {say(line)}")


def _table_of_modes(grouped: dict[Mode, list[Verdict]], say: Say) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column(say(message("column-protection-mode")), no_wrap=True)
    table.add_column(say(message("column-commits-s")), justify="right", no_wrap=True)
    faults = list(dict.fromkeys(v.fault for verdicts in grouped.values() for v in verdicts))
    for fault in faults:
        # Broken where words end, so that four of them fit.
        parts = [*fault.replace("-", "- ").split(), say(message("column-lost")), say(message("column-outage"))]
        table.add_column("\n".join(parts), justify="right", no_wrap=True)
    for mode, verdicts in grouped.items():
        row = [mode.name, f"{statistics.median(v.tps for v in verdicts):,.0f}"]
        for fault in faults:
            v = next((v for v in verdicts if v.fault == fault), None)
            row.append("–" if v is None else f"{v.lost:,}\n{words.seconds(v.outage_p50_s)} s")
        table.add_row(*row)
    return table


def _table(verdicts: list[Verdict], say: Say) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column(say(message("column-fault")), no_wrap=True)
    for name in ("rounds", "commits/s", "p99 ms", "acked", "lost", "outage s"):
        table.add_column(say(column(name).title), justify="right", no_wrap=True)
    for v in verdicts:
        table.add_row(
            v.fault,
            str(v.rounds - len(v.errors)),
            f"{v.tps:,.0f}",
            words.milliseconds(v.p99_s),
            f"{v.acknowledged:,}",
            f"{v.lost:,}",
            words.seconds(v.outage_p50_s),
        )
    return table


def _faults(text: str | None, cluster: ReplicatedCluster, all_modes: bool) -> list[str]:
    if text is None and all_modes:
        # Those that tell modes apart.
        return [n for n in modes.FAULTS if cluster.network is not None or not FAULTS[n].needs_network]
    text = text or "kill-primary"
    if text == "all":
        return [
            n
            for n, f in FAULTS.items()
            if (cluster.network is not None or not f.needs_network)
            and (cluster.record.disk_bytes or not f.needs_disk)
            and f.standbys < len(cluster.members)
        ]
    return [n.strip() for n in text.split(",")]


def _refuse_unknown(text: str | None) -> None:
    """Raise UsageError for a fault that does not exist."""
    for name in (text or "kill-primary").split(","):
        if name.strip() not in (*FAULTS, "all"):
            raise UsageError(
                msg("error-fault-unknown", name=repr(name.strip())), msg("remedy-choices", choices=", ".join(FAULTS))
            )


class _Rounds:
    """Viewer with a line for each round, and the time that is left."""

    def __init__(self) -> None:
        self._err = console.errors()
        self._began = time.monotonic()
        self._last = -1

    def handle(self, event: RunEvent) -> None:
        """Receive an event of the drill."""
        if isinstance(event.body, RoundProgress):
            self._show(event.body)

    def _show(self, p: RoundProgress) -> None:
        what = _STEPS.get(p.what, Name(p.what))
        fault = Name(p.fault) if p.fault else Message("progress-round-check")
        texts = [message("progress-round", n=min(p.done + 1, p.of), of=p.of, fault=fault, step=what)]
        if p.done:
            seconds = (time.monotonic() - self._began) / p.done * (p.of - p.done)
            texts.append(message("progress-left", seconds=Quantity(seconds, "whole")))
        line = streams.written(listed(texts))
        if self._err.is_terminal:
            self._err.print(f"\r\x1b[K{line}", end="", soft_wrap=True, markup=False)
        elif p.done != self._last:
            self._err.print(line, soft_wrap=True)
        self._last = p.done

    def close(self) -> None:
        """Close the progress line."""
        if self._err.is_terminal:
            self._err.print("")


def _stream(*, quiet: bool) -> RunStream:
    stream = RunStream()
    if not quiet:
        stream.subscribe(_Rounds())
    return stream
