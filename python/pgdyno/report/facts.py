"""Conditions of the measurement in a report: loading, sizes, storage, environment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

from pgdyno import i18n
from pgdyno.format import integer, milliseconds, rows, size
from pgdyno.model import spelled
from pgdyno.report.cells import Cell, Table
from pgdyno.report.heading import version_of
from pgdyno.store.manifest import Manifest
from pgdyno.store.reading import RunData


def loading(data: RunData) -> Table:
    """Return the table of how each place was loaded."""
    cells: list[list[str | Cell]] = []
    places = data.manifest.places
    labels = _labels(list(places))
    for label, place in places.items():
        d = place.dataset
        phases = d.phases_s
        if not d.loaded or not phases:
            continue
        total = d.loading_s
        written = sum(d.bytes.values())
        cells.append(
            [
                labels[label],
                d.name,
                d.method,
                f"{d.rows:,}",
                f"{phases.get('generate', 0):.2f}",
                # Direct loading writes keys together with the tables.
                f"{phases['keys']:.2f}" if "keys" in phases else "–",
                f"{phases.get('vacuum', 0):.2f}",
                f"{total:.2f}",
                f"{written / total / 1e6:,.0f}" if total else "–",
            ]
        )
    return Table(
        "loading",
        "Loading",
        ["place", "dataset", "method", "rows", "generate s", "keys s", "vacuum s", "all s", "MB/s"],
        cells,
        "Loaded once, so these times have no spread. MB/s: bytes of tables and keys by the time of all phases, without "
        "checks. Loading by direct writes keys and other indexes together with the tables.",
        3,
        ["place", "method"],
    )


def _labels(places: Sequence[str]) -> dict[str, str]:
    """Return the labels of places without the parts that all of them share."""
    parts = {label: label.split(", ") for label in places}
    common = set.intersection(*(set(p) for p in parts.values())) if parts else set()
    return {label: ", ".join(x for x in p if x not in common) for label, p in parts.items()}


def sizes(data: RunData) -> Table:
    """Tables and indexes after loading."""
    cells: list[list[str | Cell]] = []
    places = data.manifest.places
    labels = _labels(list(places))
    for label, place in places.items():
        # Of many tables alike, the first.
        alike = re.compile(r"^(idx_)?feed[0-9]+$")
        described = [r for r in place.dataset.relations if not alike.match(r.name) or r.table == "feed1"]
        for r in described[:24]:
            cells.append(
                [
                    labels[label],
                    r.name,
                    r.method or r.kind,
                    f"~{rows(int(float(f'{r.rows:.3g}')))}",
                    size(r.bytes),
                    "–" if r.level is None else str(r.level),
                    "–" if r.buffers is None else str(r.buffers),
                ]
            )
    if len(places) < 2:
        cells = [c[1:] for c in cells]
    return Table(
        "sizes",
        "Sizes",
        [*(["place"] if len(places) > 1 else []), "relation", "kind", "rows", "size", "level", "buffers"],
        cells,
        "As loaded, before the trials. Rows: as the planner estimates them. Level: of a B-tree's root, by bt_metap (0: "
        "one page). Buffers: pages that a search for one key touches in index and table, by EXPLAIN (ANALYZE, "
        "BUFFERS).",
        3 if len(places) > 1 else 2,
        ["kind"],
    )


def storage(data: RunData) -> Table:
    """Return the table of the storage probes' fio jobs."""
    cells: list[list[str | Cell]] = []
    for name, probe in (data.manifest.storage_probes or {}).items():
        for job in probe.jobs:
            for what, s in (("read", job.read), ("write", job.write)):
                cells.append(
                    [
                        name,
                        job.title,
                        what,
                        integer(s.iops),
                        f"{s.bytes_per_s / 1e6:,.0f}",
                        *(milliseconds(ns) for ns in (s.p50_ns, s.p99_ns, s.max_ns)),
                    ]
                )
    probes = list((data.manifest.storage_probes or {}).values())
    said = " ".join(dict.fromkeys(f"{c[:1].upper()}{c[1:]}." for p in probes for c in p.caveats))
    about = f"{probes[0].threads} threads, {probes[0].seconds:g} s each, pages of 8 kB, 65% reads. " if probes else ""
    return Table(
        "storage",
        "Storage probe",
        ["target", "job", "what", "IOPS", "MB/s", "p50 ms", "p99 ms", "max ms"],
        cells,
        f"fio on a file of {size(probes[0].file_bytes)}: {about}One measurement each, so no spread. {said}"
        if probes
        else "",
        3,
        ["max ms", "p50 ms"],
    )


def syncs(data: RunData) -> Table:
    """Return the table of the storage probes' pg_test_fsync results: one durable page, by sync method."""
    cells: list[list[str | Cell]] = []
    for name, probe in (data.manifest.storage_probes or {}).items():
        for s in probe.syncs:
            rate = s.operations_per_s
            if "one 8kB write" in s.group and rate:
                cells.append([name, s.method, integer(rate), f"{1e6 / rate:,.0f}"])
    return Table(
        "syncs",
        "Making a page durable",
        ["target", "method", "operations/s", "µs"],
        cells,
        "pg_test_fsync: one page of 8 kB written and synced, one after the other.",
        2,
    )


def _loop(m: Manifest) -> str:
    if m.capacity is not None:
        return "rates as the search went"
    if rates := m.varied.get("rate"):
        return f"rates of {', '.join(spelled(r) if r is not None else 'a closed loop' for r in rates)} TPS"
    rate = m.run.rate
    return "closed loop" if rate is None else f"open loop at {rate:g} TPS over all clients (Poisson arrivals)"


def _measured(m: Manifest) -> str:
    return f"{m.run.duration_s} s measured" if m.capacity is None else "as long as the objective needs"


def _varied(m: Manifest, name: str, value: object) -> str:
    """Return a value, or all its values if the run varies it."""
    values = m.varied.get(name)
    return f"{', '.join(map(spelled, values))} (varied)" if values else str(value)


def environment(data: RunData) -> list[tuple[str, str]]:
    """Return the names and values that describe the environment and the method of the measurement."""
    m = data.manifest
    h, run = m.host, m.run
    where = m.target.host
    kind = "Unix-domain socket" if where.startswith("/") else "TCP"
    order = {"random": "random order", "interleaved": "in turn", "written": "one after the other"}
    order |= {"duet": f"duets: both servers up, the load on one at a time in slices of {run.slice_s or 0:g} s"}
    order |= {"simultaneous": f"both servers up and under load at once, slices of {run.slice_s or 0:g} s"}
    times = f"{run.repetitions} repetition{'s' if run.repetitions != 1 else ''}"
    if run.restarts > 1:
        times = f"{run.restarts} starts of the servers with {times} each"
    drivers = dict.fromkeys(t.summary.driver for t in data.trials if t.summary and t.summary.driver)
    items = [
        ("server", m.server.version or version_of(m)),
        ("connection", f"{where} ({kind}){f', through {m.server.pooler}' if m.server.pooler else ''}"),
        ("client machine", f"{h.cpu}, {'?' if h.cores is None else h.cores} cores, {size(h.memory_bytes)}"),
        ("kernel", h.kernel),
        ("storage", f"{h.storage.type or '?'} on {h.storage.device or '?'}" if h.storage else "not known (remote)"),
        ("dataset", f"{_dataset(m)}, {size(sum(m.dataset.bytes.values()) if m.dataset else 0)} with indexes"),
        (
            "each trial",
            f"{run.warmup_s} s warm-up, {_measured(m)}, "
            f"{_varied(m, 'protocol', run.protocol)} protocol, "
            f"{_loop(m)}, "
            f"{times}, {'chosen as it went' if m.capacity is not None else order.get(run.order, 'random order')}"
            f"{', one dataset after the other' if m.batched else ''}, "
            f"seed {run.seed}",
        ),
        ("pgdyno", m.pgdyno),
    ]
    items += [("client's driver", ", ".join(drivers))] if drivers else []
    items += [("after", m.source)] if m.source else []
    items += [(n, _varied(m, n, s.value)) for n, s in m.server.settings.items() if n in _SHOWN_SETTINGS]
    for label, place in m.places.items() if len(m.places) > 1 else []:
        items.append((f"place: {label}", place.server.version or "?"))
    items += [("not recorded", x) for x in m.not_recorded]
    return items


_SHOWN_SETTINGS = (
    "autovacuum", "checkpoint_timeout", "data_checksums", "fsync", "full_page_writes", "huge_pages", "io_method",
    "max_connections", "max_wal_size", "shared_buffers", "synchronous_commit", "wal_level", "wal_sync_method",
)  # fmt: skip


def settings(data: RunData, lang: str = "en") -> list[tuple[str, str]]:
    """Return the server's non-default settings, with the reasons for those that pgdyno chose."""
    m = data.manifest
    known = {s.name: i18n.translated(s.reason, "reason-", lang) for s in m.chosen_settings}
    found = [(n, s) for n, s in sorted(m.server.settings.items()) if s.source not in (None, "", "default", "override")]
    return [
        (n, " ".join(filter(None, [_varied(m, n, s.value), f"({known[n]})" if known.get(n) else ""]))) for n, s in found
    ]


def scripts(data: RunData) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """Return the scripts of each workload, with the share of transactions that runs each script."""
    out = []
    for name, of in data.manifest.scripts.items():
        whole = sum(weight for _, _, weight in of) or 1
        part = [(PurePath(n).name, f"{weight / whole * 100:.3g}%", text.strip()) for n, text, weight in of]
        out.append((name, part))
    return out


def method(data: RunData) -> list[str]:
    """Return sentences that describe how the run was measured."""
    m, run = data.manifest, data.manifest.run
    out = []
    if run.order == "duet":
        out.append(
            "Both servers were up with all clients connected, and the load went to one at a time, in slices in the "
            "order A B B A or B A A B by chance; the beginning of each slice is left out."
        )
    elif run.order == "simultaneous":
        out.append("Both servers were up and under load at once; the beginning of each slice is left out.")
    elif m.capacity is not None:
        out.append(
            "Each rate was chosen by what the trials before it had said of the threshold; a trial is as long as the "
            "objective's figure needs, 5 to 60 s unless --duration says more."
        )
    else:
        words = {"random": "in random order", "interleaved": "in turn", "written": "one configuration after the other"}
        times = run.repetitions * run.restarts
        out.append(f"Trials were run {words.get(run.order, 'in random order')}, so many of each: {times}.")
    loop = (
        "Closed loop: each client begins its next transaction when the last has ended."
        if run.rate is None and "rate" not in m.varied
        else "Open loop: transactions are due at random times (Poisson), and latency counts from then."
    )
    out.append(loop)
    out.append(
        "Throughput counts what was committed within the measurement; latency is of whole transactions, in histograms "
        "of 3 significant digits that are merged, never averaged. ± is half the width of a 95% confidence interval."
    )
    if m.same_machine:
        out.append("Client and server ran on one machine and shared its processors.")
    return out


def _dataset(m: Manifest) -> str:
    return (m.dataset.name if m.dataset else "") or "not known"
