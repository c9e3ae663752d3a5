"""`pgdyno plan`."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich import box

from pgdyno import i18n
from pgdyno.cli import console, thresholds
from pgdyno.cli.options import language
from pgdyno.cli.overrides import run_overrides, say_what_is_too_short
from pgdyno.cli.requests import RunRequest
from pgdyno.cli.tables import Table
from pgdyno.cluster.managed import FACTS
from pgdyno.collect import host
from pgdyno.load.plan import measure_disk
from pgdyno.load.units import pg_size
from pgdyno.message import Message, Name, Text, counted, listed, message
from pgdyno.run.planning import resume
from pgdyno.run.planning.matrix import Configuration, Place
from pgdyno.run.planning.plan import Plan, plan_run
from pgdyno.run.planning.prepared import prepare
from pgdyno.run.sites.servers import Servers
from pgdyno.spec.experiment import Experiment
from pgdyno.spec.values import size_bytes
from pgdyno.store.manifest import Change
from pgdyno.stream.stream import RunStream
from pgdyno.units import Quantity

#: Measured: connecting, VACUUM of the small tables, counters, and writing it all down.
_AROUND_TRIAL_S = 0.3
#: Of a private server: initdb and starts.
_AROUND_PLACE_S = 2.5
#: A load over connections, by bytes per second; a guess that says so.
_COPY_RATE = 150e6


def main(request: RunRequest) -> int:
    """Show the plan of an experiment and return the exit code."""
    servers, lang = request.server.options(), language(request.output.lang)
    for text in request.fail_if or []:
        # A mistake in it is one of `run`, too.
        thresholds.threshold(text)
    prepared = prepare(request.experiment, run_overrides(request).apply, request.runs, servers.target)
    plan = plan_run(prepared, servers)
    say_what_is_too_short(plan)
    done = resume.finished(prepared.resumed)
    facts = _facts(plan.only(lambda t: t.plan not in done))
    changes: list[Text] = [x.message if isinstance(x, Change) else Name(x) for x in prepared.shrunk]
    if request.output.json_output:
        plain = {"shrunk": [i18n.text(x) for x in changes], "problems": [i18n.text(x) for x in facts["problems"]]}
        sys.stdout.write(json.dumps(facts | plain, indent=2) + "\n")
    else:
        _show(plan.experiment, facts, changes, i18n.writer(lang))
    return 0 if facts["fits"] else 5


def _facts(plan: Plan) -> dict[str, Any]:
    experiment, planned = plan.experiment, plan.trials
    if not planned:
        raise resume.complete()
    configurations = [t.configuration for t in planned]
    # In the order of the file, whatever order the trials have.
    places = list(dict.fromkeys(c.place for c in plan.configurations))
    servers = Servers(plan, RunStream())
    run = experiment.run
    warmup = run.warmup_limit_s if run.warmup_s == "steady" else run.warmup_s
    each = warmup + run.longest_s + run.between.pause_s + _AROUND_TRIAL_S
    disk = measure_disk(Path(tempfile.gettempdir()))
    shown = [_place(experiment, servers, p, configurations) for p in places]
    load_s = sum(p["bytes"] / (disk if p["private"] else _COPY_RATE) for p in shown)
    starts_s = _AROUND_PLACE_S * sum(p["private"] for p in shown) * run.restarts
    probe_s = 0.0
    if experiment.storage is not None:
        private = len({p["target"] for p in shown if p["private"]})
        probe_s = private * (4 * (experiment.storage.seconds + 2) + 17 * max(1, experiment.storage.seconds // 10))
    free = host.free_bytes(Path(tempfile.gettempdir()))
    needed = sum(p["bytes"] for p in shown if p["private"] and p["folder"] is None)
    problems = [*_problems(experiment, shown), *servers.refused_settings(fetch=False)]
    if needed >= free * 0.9:
        problems.append(message("plan-too-large"))
    return {
        "name": experiment.name,
        "title": experiment.title,
        "places": shown,
        "trials": len(planned),
        "configurations": len(plan.configurations),
        "repetitions": run.repetitions,
        "restarts": run.restarts,
        "order": run.order,
        "varied": list(plan.varied),
        "seconds_a_trial": each,
        "trials_s": each * len(planned),
        "load_s": load_s + starts_s,
        "storage_s": probe_s,
        "total_s": each * len(planned) + load_s + starts_s + probe_s,
        "bytes": needed,
        "free_bytes": free,
        "size_left_open": any(not p["private"] or p["kind"] == "cluster" for p in shown)
        and any(_left_open(experiment, p) for p in places),
        "setup": sum(len(experiment.all_datasets[p.dataset].setup) for p in places),
        "problems": problems,
        "fits": not problems,
        "disk_bytes_per_s": disk,
    }


def _left_open(experiment: Experiment, place: Place) -> bool:
    return place.scale is None and experiment.all_datasets[place.dataset].left_open


def _problems(experiment: Experiment, places: list[dict[str, Any]]) -> list[Text]:
    """Return the problems with the places where the data are to lie, except the temporary folder."""
    found: list[Text] = []
    needed: dict[str, int] = {}
    for p in places:
        if p["private"]:
            needed[p["target"]] = needed.get(p["target"], 0) + p["bytes"]
    for name, size in needed.items():
        target = experiment.all_targets[name]
        where, bytes_ = Name(f"targets.{name}"), Quantity(size, "bytes")
        # WAL, and what the workloads add.
        room = size * 13 // 10
        if target.file_system is not None and room > size_bytes(target.file_system.size):
            found.append(
                message("plan-small-file-system", where=where, size=Name(target.file_system.size), needed=bytes_)
            )
        if target.cluster is not None and not (Path(target.cluster) / FACTS).exists():
            found.append(message("plan-no-cluster", where=where, folder=Name(target.cluster)))
        for space, folder in target.tablespaces.items():
            if not Path(folder).is_dir():
                found.append(
                    message("plan-no-folder", where=Name(f"{where.text}.tablespaces.{space}"), folder=Name(folder))
                )
        if target.folder is not None and not Path(target.folder).is_dir():
            found.append(message("plan-no-folder", where=where, folder=Name(target.folder)))
        elif target.folder is not None and room > host.free_bytes(Path(target.folder)):
            found.append(message("plan-small-folder", where=where, folder=Name(target.folder), needed=bytes_))
    return found


def _place(experiment: Experiment, servers: Servers, place: Place, all_: Sequence[Configuration]) -> dict[str, Any]:
    target = experiment.all_targets[place.target]
    folder = Path(named) if (named := target.cluster or target.folder) else None
    private = servers.addresses.is_private(place.target)
    where = folder if folder is not None and folder.is_dir() else Path(tempfile.gettempdir())
    wanted = servers.sizes.dataset_of(place, folder=where if private else None)
    return {
        "target": place.target,
        "private": private,
        "kind": "cluster" if target.cluster is not None else "private" if private else "yours",
        "version": place.version,
        "folder": target.cluster or target.folder or (target.file_system.type if target.file_system else None),
        "dataset": wanted.name,
        "rows": wanted.rows,
        "bytes": wanted.total_bytes,
        "trials": sum(c.place == place for c in all_),
    }


def _show(experiment: Experiment, facts: dict[str, Any], changes: list[Text], say: Callable[[Text], str]) -> None:
    out = console.output()
    # The title is its author's.
    out.print(f"{experiment.name}: {say(Name(experiment.title, experiment.title_zh))}", style="bold", markup=False)
    if changes:
        out.print(f"{say(message('heading-shrunk'))} {say(listed(changes, 'semicolon'))}", markup=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("server", "dataset"):
        table.add_column(say(message(f"column-{column}")), overflow="fold")
    for column in ("rows", "bytes", "trials"):
        table.add_column(say(message(f"column-{column}")), justify="right", no_wrap=True)
    for p in facts["places"]:
        whose = p["kind"]
        kind = say(message(f"plan-server-{whose}"))
        named = p["target"] if p["target"] != "private" else ""
        server = " ".join(filter(None, [named, f"({kind})" if named else kind, p["version"] and f"PG {p['version']}"]))
        table.add_row(server, p["dataset"], f"{p['rows']:,}", pg_size(p["bytes"]), str(p["trials"]))
    out.print(table)
    for sentence in _sentences(facts):
        out.print(say(sentence), markup=False)
    for problem in facts["problems"]:
        out.print(say(problem), style="bold", markup=False)


def _sentences(facts: dict[str, Any]) -> Iterator[Message]:
    """Yield what the plan's figures say: trials, time, space."""
    if facts["varied"]:
        yield message("plan-varied", axes=listed((Name(x) for x in facts["varied"]), "list"))
    several = facts["restarts"] > 1
    yield message(
        "plan-trials",
        trials=counted("n-trials", facts["trials"]),
        configurations=counted("n-configurations", facts["configurations"]),
        repetitions=counted("n-repetitions", facts["repetitions"]),
        starts=message("plan-starts", n=facts["restarts"]) if several else None,
        order=Name(facts["order"]),
        seconds=Quantity(facts["seconds_a_trial"], "fixed", digits=1),
    )
    yield message(
        "plan-time",
        total=Quantity(facts["total_s"], "duration"),
        trials=Quantity(facts["trials_s"], "duration"),
        loading=Quantity(facts["load_s"], "duration"),
        probe=message("plan-probe", time=Quantity(facts["storage_s"], "duration")) if facts["storage_s"] else None,
    )
    elsewhere: dict[str, int] = {}
    for p in facts["places"]:
        if p["private"] and p["folder"] is not None:
            elsewhere[p["folder"]] = elsewhere.get(p["folder"], 0) + p["bytes"]
    if facts["bytes"]:
        yield message(
            "plan-space",
            needed=Name(pg_size(facts["bytes"])),
            free=Name(pg_size(facts["free_bytes"])),
            speed=Quantity(facts["disk_bytes_per_s"], "bytes/s"),
        )
    for folder, size in elsewhere.items():
        yield message("plan-space-elsewhere", needed=Name(pg_size(size)), folder=Name(folder))
    if facts["size_left_open"]:
        yield message("plan-size-open")
    if facts["setup"]:
        yield message("plan-setup", n=facts["setup"])
