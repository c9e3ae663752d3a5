"""Writes what was captured: a script a file, and an experiment that runs them by their weights."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

from pgdyno.capture.statements import Capture, Replayed
from pgdyno.errors import UsageError, msg

#: The weight of the most frequent script.
_HEAVIEST = 1000
#: Of what was left out.
_LISTED = 100
_EXPERIMENT = """\
# What {source} has carried out, captured on {when}: {n} scripts, {covered:.0f}% of {what}.
# README.md says what they do not keep.
# The dataset is the database as it is. Scripts that write change it: run this on a copy.
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
# What production did, with which reports compare what the run does. Of one call.
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


#: Open loop: production's clients do not wait for a server that is slower.
_RATE = """\
# Open loop: production did {pace.tps:,.4g} a second in the mean over {pace.seconds:,.4g} s; here {times:g} times of it.
# Leave rate out for a closed loop: as much as the clients can.
rate = {tps:.6g}
"""
_READ_ONLY = "\n# Whatever its statements call: the server refuses to write.\nread_only = true"


def write(
    found: Capture, folder: Path, *, source: str, when: str, what: str, read_only: bool = False, times: float = 1.0
) -> Path:
    """Write the capture into a new folder; return the file of the experiment.

    `times` multiplies the rate of production. Raise UsageError if the folder exists.
    """
    if not found.scripts:
        why = dict.fromkeys([*(x.why for x in found.left_out), *found.notes])
        raise UsageError(msg("error-nothing-was-captured"), "; ".join(why)[:400])
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
    clients, rate = [1, 8, 32], "# How much production does in a second is not known. rate = 100 makes an open loop.\n"
    if found.pace is not None:
        pace = found.pace.times(times)
        clients, rate = [pace.clients], _RATE.format(pace=found.pace, tps=pace.tps, times=times)
    replay, how_long = "", "duration_s = 60\nwarmup_s = 10\nrepetitions = 3"
    if found.replay is not None:
        _write_replay(found.replay, folder / "replay.tsv")
        clients, rate, replay = (
            [found.replay.clients],
            "",
            '\n# Sessions begin transactions as in the log.\nreplay = "replay.tsv"',
        )
        how_long = f"duration_s = {math.ceil(10 * found.replay.seconds) / 10 + 0.5}\nwarmup_s = 0\nrepetitions = 1"
    name = re.sub(r"[^a-z0-9_-]+", "-", folder.name.lower()).strip("-_")[:60] or "captured"
    file = folder / f"{name}.toml"
    source = " ".join(source.split())
    text = _EXPERIMENT.format(
        source=source, when=when, n=len(found.scripts), covered=100 * found.covered, what=what, file=file, name=name,
        title=json.dumps(f"Captured from {source}", ensure_ascii=False), scripts="\n".join(lines),
        read_only=_READ_ONLY if read_only else "", covered_part=min(1.0, found.covered), what_part=json.dumps(what),
        production="\n".join(_produced(found)), samples=_samples(found), clients=json.dumps(clients), rate=rate,
        replay=replay, times=how_long,
    )  # fmt: skip
    file.write_text(text, encoding="utf-8")
    (folder / "README.md").write_text(_readme(found, source, when, what), encoding="utf-8")
    return file


def _write_replay(of: Replayed, file: Path) -> None:
    with file.open("x", encoding="utf-8") as f:
        f.write("# client, milliseconds from the begin, script, sample, values\n")
        for client, ms, script, sample, values in of.lines:
            given = json.dumps(values, ensure_ascii=False) if values else "-"
            f.write(f"{client}\t{ms:.3f}\t{script}\t{sample}\t{given}\n")


def _samples(found: Capture) -> str:
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
    lines = lines and ["# Rows that the scripts draw from (\\pick): of tables, as they are where this runs.", *lines]
    lists = lists and ["# Bounds of numbers and times, and what else was asked for.", *lists]
    lists = [*lists, *(lists_of_replay and ["# What replay.tsv gives to each transaction.", *lists_of_replay])]
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


def _readme(found: Capture, source: str, when: str, what: str) -> str:
    out = [
        f"# Captured from {source}, {when}",
        "",
        f"{len(found.scripts)} scripts stand for {found.covered * 100:.1f}% of {what}.",
        "",
        "## What the scripts do not keep",
        "",
        "Of values only bounds of numbers and times stand in the scripts, and those of columns that --with-values "
        "named; others are read from the tables where the scripts run.",
        "",
        *_not_kept(found),
        *(f"- {note}" for note in found.notes),
        "",
        "| script | calls | what is not as it was |",
        "|---|---:|---|",
        *(f"| {s.name} | {s.calls:,} | {'; '.join(s.remarks) or '–'} |" for s in found.scripts),
    ]
    if found.left_out:
        out += [
            "",
            "## What was left out",
            "",
            "Share: of the time of all; of their number, where the time is not known.",
            "",
        ]
        out += ["| why | calls | share | statement |", "|---|---:|---:|---|"]
        some = sorted(found.left_out, key=lambda x: -x.part)[:_LISTED]
        out += [f"| {x.why} | {x.calls:,} | {x.part * 100:.2g}% | `{_short(x.text)}` |" for x in some]
        if more := sorted(found.left_out, key=lambda x: -x.part)[_LISTED:]:
            out.append(f"| and {len(more)} more | {sum(x.calls for x in more):,} | | |")
    return "\n".join(out) + "\n"


def _not_kept(found: Capture) -> list[str]:
    if found.replay is not None:
        return ["- Connections: sessions that were over before others began share one."]
    if found.is_of_log:
        return [
            "- Think time between transactions, and their order in a session (--replay keeps them). Think time within "
            "transactions is kept: their locks are held as long (\\sleep).",
            "- What a statement returned and a later one of its transaction was given, unless both are in the log.",
        ]
    return ["- Transactions: each statement is one. What belongs together in a transaction is not kept (--log has it)."]


def _short(text: str) -> str:
    flat = " ".join(text.split()).replace("|", "\\|").replace("`", "'")
    return flat if len(flat) <= 120 else f"{flat[:119]}…"
