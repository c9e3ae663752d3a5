"""`pgdyno explain`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from pgdyno.cli import as_json, console
from pgdyno.diagnosis import dips
from pgdyno.diagnosis.causes import every_cause
from pgdyno.diagnosis.explain import Diagnosis
from pgdyno.errors import UsageError
from pgdyno.judge.groups import Group
from pgdyno.report import findings
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store import reading

#: Dips that are told of a configuration.
_DIPS = 8


def main(path: Path, workload: str | None, clients: int | None, every: bool, json_output: bool) -> int:
    """Explain why each configuration is as fast as it is."""
    run = RunAnalysis(reading.read(path))
    data, groups = run.data, run.groups
    if not groups:
        raise UsageError(f"{path} has no finished trial: there is nothing to explain")
    chosen = [
        g for g in groups if (workload is None or g.workload == workload) and clients in (None, g.clients)
    ]  # fmt: skip
    if not chosen:
        known = ", ".join(dict.fromkeys(f"{g.workload} with {g.clients}" for g in groups))
        raise UsageError("no configuration is of that workload and number of clients", f"There are: {known}.")
    diagnosis = Diagnosis.of_all([run.diagnosis_of(g) for g in chosen])
    found, not_judged = diagnosis.findings, diagnosis.not_judged
    if json_output:
        d = {"path": data.path, "findings": [f.as_json() for f in found], "dips": _all_dips(run, chosen)}
        as_json.write({**d, "not_judged": [n.as_json() for n in not_judged]})
        return 0
    out = console.output()
    most = None if every or workload is not None or clients is not None else 4
    shown = chosen if most is None else findings.fastest(chosen)[:most]
    told = findings.explained(found, shown, None)
    looked_for = len(every_cause()) - len({n.cause for n in not_judged})
    for g, e in zip(shown, told, strict=True):
        out.print(Text(e.title, style="bold"))
        if not e.findings:
            out.print(Padding(_nothing(run, g, looked_for), (0, 0, 0, 2)))
        for n, f in enumerate(e.findings, 1):
            out.print(Padding(Text(f"{n}. {f.role}: {f.sentence}", style="bold" if n == 1 else ""), (0, 0, 0, 2)))
            for label, words in (("cost", f.cost), ("seen", f.facts), ("try", f.remedy)):
                if words:
                    out.print(Padding(Text.assemble((f"{label}  ".ljust(6), "dim"), words), (0, 0, 0, 5)))
        out.print()
    _print_dips(run, shown, out)
    for gap in not_judged:
        out.print(gap.sentence(), markup=False)
    if len(told) < len(chosen):
        out.print(f"{len(told)} of {len(chosen)} configurations; all: pgdyno explain {path} --all", markup=False)
    return 0


def _nothing(run: RunAnalysis, group: Group, looked_for: int) -> str:
    """Return the reason why there is no finding, given the number of causes that were examined."""
    if not run.observed(group.trials).has("waits"):
        return (
            "Nothing was collected beside its trials: an older version, run.collect = [], or the server refused. "
            "events.jsonl of a trial says what could not be recorded."
        )
    return f"Nothing stands out, of {looked_for} causes that were looked for."


def _all_dips(run: RunAnalysis, groups: list[Group]) -> list[dict[str, object]]:
    out: list[dict[str, object]] = []
    for g in groups:
        for r in run.observed(g.trials).trials:
            out += [
                {"trial": r.trial.plan.number, **asdict(d), "explained": dips.explained(r, d)} for d in dips.dips_of(r)
            ]
    return out


def _print_dips(run: RunAnalysis, groups: list[Group], out: Console) -> None:
    for g in groups:
        for r in run.observed(g.trials).trials:
            found = dips.dips_of(r)
            zero = r.window[0]
            for d in found[:_DIPS]:
                why = ", ".join(dips.explained(r, d)) or "nothing that was seen explains it"
                at = f"{(d.start_ns - zero) / 1e9:.1f} to {(d.end_ns - zero) / 1e9:.1f} s"
                out.print(f"dip of trial {r.trial.plan.number}, {at}: {d.loss * 100:.0f}% lower; {why}", markup=False)
            if len(found) > _DIPS:
                out.print(f"… {len(found) - _DIPS} more dips of trial {r.trial.plan.number}: --json", markup=False)
