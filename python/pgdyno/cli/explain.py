"""`pgdyno explain`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.text import Text as RichText

from pgdyno import i18n
from pgdyno.cli import as_json, console
from pgdyno.diagnosis import dips
from pgdyno.diagnosis.action import Action
from pgdyno.diagnosis.causes import every_cause
from pgdyno.diagnosis.explain import Diagnosis
from pgdyno.errors import UsageError, msg
from pgdyno.judge.groups import Group, fastest
from pgdyno.message import Message, Name, Text, listed, message
from pgdyno.model import EventKind
from pgdyno.report import client_time, findings
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store import reading
from pgdyno.units import Quantity

#: Dips that are told of a configuration.
_DIPS = 8
#: Events that are told of a configuration, and how many of them.
_CHANGES, _CHANGES_SHOWN = (EventKind.SCHEMA_CHANGED, EventKind.SETTING_CHANGED), 4
#: Parts of the clients' time that are shown, and the least share of the others that is.
_PARTS, _LEAST = 5, 0.005


def main(path: Path, workload: str | None, clients: int | None, every: bool, lang: str, json_output: bool) -> int:
    """Explain why each configuration is as fast as it is."""
    run = RunAnalysis(reading.read(path))
    data, groups = run.data, run.groups
    if not groups:
        raise UsageError(msg("error-no-finished-trial-there-nothing", path=path))
    chosen = [
        g for g in groups if (workload is None or g.workload == workload) and clients in (None, g.clients)
    ]  # fmt: skip
    if not chosen:
        known = ", ".join(dict.fromkeys(f"{g.workload} with {g.clients}" for g in groups))
        raise UsageError(msg("error-no-configuration-workload-number-clients"), msg("remedy-choices", choices=known))
    diagnosis = Diagnosis.merged([run.diagnosis_of(g) for g in chosen])
    found, not_judged = diagnosis.findings, diagnosis.not_judged
    if json_output:
        d = {"path": data.path, "findings": [f.as_json() for f in found], "dips": _all_dips(run, chosen)}
        d["client_time"] = [
            {"trials": [t.plan.number for t in g.trials], "shares": shares}
            for g in chosen
            if (shares := client_time.shares(run.observed(g.trials), i18n.writer("en")))
        ]
        as_json.write({**d, "not_judged": [n.as_json() for n in not_judged]})
        return 0
    out, say = console.output(), i18n.writer(lang)
    most = None if every or workload is not None or clients is not None else 4
    shown = chosen if most is None else fastest(chosen)[:most]
    told = findings.explained(run, shown)
    looked_for = len(every_cause()) - len({n.cause for n in not_judged})
    for g, e in zip(shown, told, strict=True):
        out.print(RichText(say(e.title), style="bold"))
        if time := _time(run, g, say):
            out.print(Padding(RichText(say(time), style="dim"), (0, 0, 0, 2)))
        if not e.findings:
            out.print(Padding(i18n.text(_nothing(run, g, looked_for), lang), (0, 0, 0, 2)))
        for n, f in enumerate(e.findings, 1):
            line = f"{n}. {say(message('labelled', label=f.role, text=f.sentence))}"
            out.print(Padding(RichText(line, style="bold" if n == 1 else ""), (0, 0, 0, 2)))
            for label, text in (("cost", f.cost), ("seen", f.facts), ("try", f.remedy)):
                if text:
                    title = say(message(f"explain-{label}"))
                    out.print(Padding(RichText.assemble((f"{title}  ".ljust(6), "dim"), say(text)), (0, 0, 0, 5)))
            for a in f.actions:
                _print_action(a, out, say)
        if changed := _changed(run, g):
            out.print(Padding(RichText(say(changed)), (0, 0, 0, 2)))
        out.print()
    _print_dips(run, shown, out, lang)
    for gap in not_judged:
        out.print(say(gap.message), markup=False)
    if len(told) < len(chosen):
        command = Name(f"pgdyno explain {path} --all")
        more = message("explain-more", shown=len(told), all=len(chosen), command=command)
        out.print(i18n.text(more, lang), markup=False)
    return 0


def _time(run: RunAnalysis, group: Group, say: Callable[[Text | Message | Name], str]) -> Message | None:
    """Return the clients' time in parts that add up to all of it, the largest first; None if it was not sampled."""
    shares = client_time.shares(run.observed(group.trials), say)
    largest = sorted(shares, key=lambda name: -shares[name])[:_PARTS]
    if not largest:
        return None
    parts = [(name, shares[name]) for name in largest]
    if (rest := 1 - sum(share for _, share in parts)) > _LEAST:
        parts.append((say(message("wait-others")), rest))
    return message(
        "explain-time",
        parts=listed(
            [message("explain-time-part", state=Name(name), share=Quantity(share, "share")) for name, share in parts],
            "list",
        ),
    )


def _changed(run: RunAnalysis, group: Group) -> Message | None:
    """Return what was defined or set otherwise during the trials, whether it cost anything or not; None: nothing."""
    found: list[Text] = []
    for event in run.observed(group.trials).events(*_CHANGES):
        if event.text not in found:
            found.append(event.text)
    if not found:
        return None
    rest = [message("explain-changed-more", n=len(found) - _CHANGES_SHOWN)] if len(found) > _CHANGES_SHOWN else []
    return message("explain-changed", changes=listed([*found[:_CHANGES_SHOWN], *rest], "semicolon"))


def _print_action(a: Action, out: Console, say: Callable[[Text | Message | Name], str]) -> None:
    """Print an action as lines to copy, with its predicted gain."""
    title = say(message("explain-do"))
    for n, line in enumerate(a.lines):
        out.print(Padding(RichText.assemble((f"{title if not n else ''}  ".ljust(6), "dim"), say(line)), (0, 0, 0, 5)))
    out.print(Padding(RichText(say(a.outlook), style="dim"), (0, 0, 0, 11)))


def _nothing(run: RunAnalysis, group: Group, looked_for: int) -> Message:
    """Return why there is no finding, of `looked_for` causes."""
    if product := run.data.manifest.server.product:
        return message("explain-other-product", product=Name(product))
    if not run.observed(group.trials).has("waits"):
        return message("explain-not-collected")
    return message("explain-nothing", n=looked_for)


def _all_dips(run: RunAnalysis, groups: list[Group]) -> list[dict[str, object]]:
    out: list[dict[str, object]] = []
    for g in groups:
        for r in run.observed(g.trials).trials:
            out += [
                {"trial": r.trial.plan.number, **asdict(d), "explained": [i18n.text(m) for m in dips.explained(r, d)]}
                for d in dips.dips_of(r)
            ]
    return out


def _print_dips(run: RunAnalysis, groups: list[Group], out: Console, lang: str) -> None:
    for g in groups:
        for r in run.observed(g.trials).trials:
            found, zero, trial = dips.dips_of(r), r.window[0], r.trial.plan.number
            for d in found[:_DIPS]:
                why = dips.explained(r, d) or [message("dip-unexplained")]
                told = message(
                    "dip",
                    trial=trial,
                    begin=Name(f"{(d.start_ns - zero) / 1e9:.1f}"),
                    end=Name(f"{(d.end_ns - zero) / 1e9:.1f}"),
                    loss=Quantity(d.loss, "share"),
                    why=Name(", ".join(i18n.text(m, lang) for m in why)),
                )
                out.print(i18n.text(told, lang), markup=False)
            if len(found) > _DIPS:
                out.print(i18n.text(message("dips-more", n=len(found) - _DIPS, trial=trial), lang), markup=False)
