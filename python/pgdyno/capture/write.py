"""Writes what was captured: a script a file, and an experiment that runs them by their weights."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path

from pgdyno import i18n
from pgdyno.capture.statements import Capture, Replayed
from pgdyno.errors import UsageError, msg
from pgdyno.message import Message, Name, Text, listed, message, single_line
from pgdyno.units import Quantity

#: The weight of the most frequent script.
_HEAVIEST = 1000
#: Statements that were left out, in the README, and reasons in the error where nothing was captured.
_LISTED, _REASONS = 100, 6
_EXPERIMENT = """\
# {head}
# {readme}
# {careful}
#   pgdyno run {file} --target "..."
name = "{name}"
title = {title}

[dataset]
kind = "none"

[workloads.captured]
title = "captured TPS"{read_only}{replay}
scripts = [
{scripts}
]
{samples}
# {produced}
[workloads.captured.production]
covered = {covered_part:.4f}
of = {what_part}
{production}

[axes]
clients = {clients}

[run]
{rate}{times}
protocol = "prepared"
"""
Say = Callable[[Text], str]


def write(
    found: Capture,
    folder: Path,
    *,
    source: Text,
    when: str,
    read_only: bool = False,
    times: float = 1.0,
    say: Say = i18n.text,
) -> Path:
    """Write the capture into a new folder; return the file of the experiment.

    `times` multiplies the rate of production, and `say` writes comments and the README in a language. Raise UsageError
    if the folder exists.
    """
    if not found.scripts:
        why = {say(x): x for x in [*(x.why for x in found.left_out), *found.notes]}
        raise UsageError(msg("error-nothing-was-captured"), listed(list(why.values())[:_REASONS], "semicolon"))
    try:
        # Bounds of somebody's numbers stand in the scripts.
        folder.mkdir(mode=0o700, parents=True)
    except FileExistsError as e:
        raise UsageError(
            msg("error-there-already-nothing-was-written", folder=folder), msg("remedy-name-another-folder-output")
        ) from e
    most = max(s.calls for s in found.scripts)
    lines = []
    for s in found.scripts:
        (folder / f"{s.name}.sql").write_text(s.text, encoding="utf-8")
        weight = max(1, round(_HEAVIEST * s.calls / most))
        lines.append(f'  {{ file = "{s.name}.sql", name = "{s.name}", weight = {weight} }},')
    clients, rate = [1, 8, 32], f"# {say(msg('captured-rate-unknown'))}\n"
    if found.pace is not None:
        pace = found.pace.times(times)
        said = msg(
            "captured-rate", tps=f"{found.pace.tps:,.4g}", seconds=f"{found.pace.seconds:,.4g}", times=f"{times:g}"
        )
        clients = [pace.clients]
        rate = f"# {say(said)}\n# {say(msg('captured-closed'))}\nrate = {pace.tps:.6g}\n"
    replay, how_long = "", "duration_s = 60\nwarmup_s = 10\nrepetitions = 3"
    if found.replay is not None:
        _write_replay(found.replay, folder / "replay.tsv")
        clients, rate, replay = (
            [found.replay.clients],
            "",
            f'\n# {say(msg("captured-replay"))}\nreplay = "replay.tsv"',
        )
        how_long = f"duration_s = {math.ceil(10 * found.replay.seconds) / 10 + 0.5}\nwarmup_s = 0\nrepetitions = 1"
    name = re.sub(r"[^a-z0-9_-]+", "-", folder.name.lower()).strip("-_")[:60] or "captured"
    file = folder / f"{name}.toml"
    head = message(
        "captured-head",
        source=single_line(source), when=Name(when), n=len(found.scripts), share=Quantity(found.covered, "share"),
        what=found.of,
    )  # fmt: skip
    title = say(message("captured-title", source=single_line(source)))
    refuses = f"\n# {say(msg('captured-read-only'))}\nread_only = true"
    text = _EXPERIMENT.format(
        head=say(head), readme=say(msg("captured-see-readme")), careful=say(msg("captured-careful")), file=file,
        name=name, title=json.dumps(title, ensure_ascii=False), scripts="\n".join(lines),
        read_only=refuses if read_only else "", covered_part=min(1.0, found.covered),
        what_part=json.dumps(say(found.of), ensure_ascii=False), produced=say(msg("captured-produced")),
        production="\n".join(_produced(found)), samples=_samples(found, say), clients=json.dumps(clients), rate=rate,
        replay=replay, times=how_long,
    )  # fmt: skip
    file.write_text(text, encoding="utf-8")
    (folder / "README.md").write_text(_readme(found, single_line(source), when, say), encoding="utf-8")
    return file


def _write_replay(of: Replayed, file: Path) -> None:
    with file.open("x", encoding="utf-8") as f:
        f.write("# client, milliseconds from the begin, script, sample, values\n")
        for client, ms, script, sample, values in of.lines:
            given = json.dumps(values, ensure_ascii=False) if values else "-"
            f.write(f"{client}\t{ms:.3f}\t{script}\t{sample}\t{given}\n")


def _samples(found: Capture, say: Say) -> str:
    scheduled = found.replay.samples if found.replay is not None else {}
    if not found.samples and not found.listed and not scheduled:
        return ""
    lists_of_replay = [
        f"samples.{name} = {{ columns = {json.dumps(columns)}, scheduled = true }}"
        for name, columns in scheduled.items()
    ]
    lists = [
        f"samples.{listed.name} = {{ columns = {json.dumps(listed.columns)}, "
        f"values = {json.dumps(listed.rows, ensure_ascii=False)} }}"
        for listed in found.listed
    ]
    lines = [
        f"samples.{name} = {{ table = {json.dumps(table, ensure_ascii=False)}, "
        f"columns = {json.dumps(columns, ensure_ascii=False)}{'' if nulls else ', nulls = false'} }}"
        for name, (table, columns, nulls) in sorted(found.samples.items())
    ]
    lines = lines and [f"# {say(msg('captured-rows'))}", *lines]
    lists = lists and [f"# {say(msg('captured-bounds'))}", *lists]
    lists = [*lists, *(lists_of_replay and [f"# {say(msg('captured-scheduled'))}", *lists_of_replay])]
    return "\n".join([*lines, *lists]) + "\n"


def _produced(found: Capture) -> list[str]:
    calls = sum(s.calls for s in found.scripts)
    pace = [f"tps = {found.pace.tps:.6g}"] if found.pace is not None else []
    return [
        *pace,
        *(
            f"scripts.{json.dumps(s.name, ensure_ascii=False)} = {{ share = {s.calls / calls:.6f}"
            + "".join(f", {name} = {value:.6g}" for name, value in s.each.items())
            + (f", plan = {json.dumps(s.plan, ensure_ascii=False)}" if s.plan else "")
            + " }"
            for s in found.scripts
        ),
    ]


def _readme(found: Capture, source: Text, when: str, say: Say) -> str:
    covered = message(
        "captured-covered", n=len(found.scripts), share=Quantity(found.covered, "percent"), what=found.of
    )  # fmt: skip
    out = [
        f"# {say(message('captured-title', source=source))}, {when}",
        "",
        say(covered),
        "",
        f"## {say(message('captured-not-kept'))}",
        "",
        say(message("captured-values")),
        "",
        *(f"- {say(x)}" for x in (*_not_kept(found), *found.notes)),
        "",
        *_head(say, "captured-script", "captured-calls", "captured-differs"),
        "|---|---:|---|",
        *(f"| {s.name} | {s.calls:,} | {say(listed(s.remarks, 'semicolon')) or '–'} |" for s in found.scripts),
    ]
    if found.left_out:
        out += ["", f"## {say(message('captured-left-out'))}", "", say(message("captured-share")), ""]
        out += [*_head(say, "captured-why", "captured-calls", "captured-part", "captured-statement")]
        out += ["|---|---:|---:|---|"]
        some = sorted(found.left_out, key=lambda x: -x.part)[:_LISTED]
        out += [f"| {say(x.why)} | {x.calls:,} | {x.part * 100:.2g}% | `{_short(x.text)}` |" for x in some]
        if more := sorted(found.left_out, key=lambda x: -x.part)[_LISTED:]:
            out.append(f"| {say(message('captured-more', n=len(more)))} | {sum(x.calls for x in more):,} | | |")
    return "\n".join(out) + "\n"


def _head(say: Say, *ids: str) -> list[str]:
    return [f"| {' | '.join(say(Message(id)) for id in ids)} |"]


def _not_kept(found: Capture) -> list[Message]:
    if found.replay is not None:
        return [message("captured-lost-connections")]
    if found.is_of_log:
        return [message("captured-lost-order"), message("captured-lost-results")]
    return [message("captured-lost-transactions")]


def _short(text: str) -> str:
    flat = " ".join(text.split()).replace("|", "\\|").replace("`", "'")
    return flat if len(flat) <= 120 else f"{flat[:119]}…"
