"""Conditions of the measurement in a report: loading, sizes, storage, environment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

from pgdyno import i18n
from pgdyno.message import Listed, Message, Name, Text, counted, listed, message
from pgdyno.model import spelled
from pgdyno.report.cells import COUNT, MS, NUMBER, SIZE, Form, Table, cells, column, fixed
from pgdyno.report.heading import version_of
from pgdyno.store.manifest import ChosenSetting, Manifest
from pgdyno.store.probe import Probe
from pgdyno.store.reading import RunData
from pgdyno.units import Quantity

#: Of many relations, those that are listed.
_RELATIONS = 24
_SECONDS, _MB_PER_S = fixed(2, "s"), fixed(0, "bytes/s", 1e6)
_ESTIMATE = Form(lambda v: f"~{i18n.quantity(Quantity(float(f'{v:.3g}'), 'rows'))}")


def loading(data: RunData) -> Table:
    """Return the table of how each place was loaded."""
    rows = []
    places = data.manifest.places
    labels = _labels(list(places))
    for label, place in places.items():
        d = place.dataset
        phases = d.phases_s
        if not d.loaded or not phases:
            continue
        total = d.loading_s
        written = sum(d.bytes.values())
        rows.append(
            cells(
                [
                    labels[label], d.name, message("method-direct") if d.method == "direct" else d.method, d.rows,
                    phases.get("generate", 0.0),
                    # Direct loading writes keys together with the tables.
                    phases.get("keys"), phases.get("vacuum", 0.0), total, written / total if total else None,
                ]
            )
        )  # fmt: skip
    return Table(
        "loading",
        message("table-loading"),
        [
            column("place"), column("dataset"), column("method"), column("rows", COUNT), column("generate s", _SECONDS),
            column("keys s", _SECONDS), column("vacuum s", _SECONDS), column("all s", _SECONDS),
            column("MB/s", _MB_PER_S),
        ],
        rows,
        [message("note-loading")],
        3,
        ["place", "method"],
    )  # fmt: skip


def _labels(places: Sequence[str]) -> dict[str, str]:
    """Return the labels of places without the parts that all of them share."""
    parts = {label: label.split(", ") for label in places}
    common = set.intersection(*(set(p) for p in parts.values())) if parts else set()
    return {label: ", ".join(x for x in p if x not in common) for label, p in parts.items()}


def sizes(data: RunData) -> Table:
    """Tables and indexes after loading."""
    rows = []
    places = data.manifest.places
    several = len(places) > 1
    labels = _labels(list(places))
    # Of many tables alike, the first.
    alike = re.compile(r"^(idx_)?feed[0-9]+$")
    for label, place in places.items():
        described = [r for r in place.dataset.relations if not alike.match(r.name) or r.table == "feed1"]
        for r in described[:_RELATIONS]:
            kind = (
                Message(f"relation-{r.kind}") if not r.method and r.kind in ("table", "index") else r.method or r.kind
            )
            rows.append(
                cells([*([labels[label]] if several else []), r.name, kind, r.rows, r.bytes, r.level, r.buffers])
            )
    return Table(
        "sizes",
        message("table-sizes"),
        [
            *([column("place")] if several else []), column("relation"), column("kind"), column("rows", _ESTIMATE),
            column("size", SIZE), column("level", COUNT), column("buffers", COUNT),
        ],
        rows,
        [message("note-sizes")],
        3 if several else 2,
        ["kind"],
    )  # fmt: skip


def storage(data: RunData) -> Table:
    """Return the table of the storage probes' fio jobs."""
    rows = []
    for name, probe in (data.manifest.storage_probes or {}).items():
        for job in probe.jobs:
            for what, s in ((message("job-read"), job.read), (message("job-write"), job.write)):
                title = i18n.known(job.title, "job-") or Name(job.title)
                times = [ns or None for ns in (s.p50_ns, s.p99_ns, s.max_ns)]
                rows.append(cells([name, title, what, s.iops, s.bytes_per_s, *times]))
    probes = list((data.manifest.storage_probes or {}).values())
    return Table(
        "storage",
        message("table-storage"),
        [
            column("target"), column("job"), column("what"), column("IOPS", NUMBER), column("MB/s", _MB_PER_S),
            *(column(x, MS) for x in ("p50 ms", "p99 ms", "max ms")),
        ],
        rows,
        _storage_note(probes) if probes else [],
        3,
        ["max ms", "p50 ms"],
    )  # fmt: skip


def _storage_note(probes: Sequence[Probe]) -> list[Text]:
    p = probes[0]
    caveats: list[Text] = []
    for limit in (x for probe in probes for x in probe.limits):
        if limit not in caveats:
            caveats.append(limit)
    seconds = Quantity(p.seconds, "plain")
    size = Quantity(p.file_bytes, "bytes")
    return [message("note-storage", size=size, threads=p.threads, seconds=seconds), *caveats]


def syncs(data: RunData) -> Table:
    """Return the table of the storage probes' pg_test_fsync results: one durable page, by sync method."""
    rows = []
    for name, probe in (data.manifest.storage_probes or {}).items():
        for s in probe.syncs:
            rate = s.operations_per_s
            if "one 8kB write" in s.group and rate:
                rows.append(cells([name, s.method, rate, 1 / rate]))
    return Table(
        "syncs",
        message("table-syncs"),
        [column("target"), column("method"), column("operations/s", NUMBER), column("µs", fixed(0, "s", 1e-6))],
        rows,
        [message("note-syncs")],
        2,
    )


def _loop(m: Manifest) -> Message:
    if m.capacity is not None:
        return message("loop-search")
    if rates := m.varied.get("rate"):
        shown = [message("loop-closed-one") if r is None else Name(spelled(r)) for r in rates]
        return message("loop-rates", rates=listed(shown, "list"))
    rate = m.run.rate
    return message("loop-closed") if rate is None else message("loop-open", rate=Quantity(rate, "plain"))


def _varied(m: Manifest, name: str, value: object) -> Text:
    """Return a value, or all its values if the run varies it."""
    values = m.varied.get(name)
    return message("varied", values=Name(", ".join(map(spelled, values)))) if values else Name(str(value))


def _order(m: Manifest) -> Text:
    run = m.run
    slices = Quantity(run.slice_s or 0, "plain")
    match "search" if m.capacity is not None else run.order:
        case "search":
            return message("order-search")
        case "duet":
            return message("order-duet", slices=slices)
        case "simultaneous":
            return message("order-simultaneous", slices=slices)
        case "interleaved":
            return message("order-interleaved")
        case "written":
            return message("order-written")
        case "random":
            return message("order-random")
    # Of another version.
    return Name(run.order)


def _each_trial(m: Manifest) -> Listed:
    run = m.run
    times = counted("n-repetitions", run.repetitions)
    measured = message("measured-as-needed")
    if m.capacity is None:
        measured = message("measured-for", seconds=Name(str(run.duration_s)))
        if run.duration_limit_s is not None:
            longest = Quantity(run.duration_limit_s, "duration")
            measured = message("measured-until-steady", seconds=Name(str(run.duration_s)), longest=longest)
    parts: list[Text | None] = [
        message("warmup-for", seconds=Name(str(run.warmup_s))),
        measured,
        message("protocol-of", protocol=_varied(m, "protocol", run.protocol)),
        _loop(m),
        message("n-starts-of", n=run.restarts, times=times) if run.restarts > 1 else times,
        _order(m),
        message("order-batched") if m.batched else None,
        message("seed", seed=Name(str(run.seed))),
    ]
    return listed(parts)


def environment(data: RunData) -> list[tuple[Text, Text]]:
    """Return the names and values that describe the environment and the method of the measurement."""
    m = data.manifest
    h = m.host
    where = m.target.host
    kind = message("socket-unix") if where.startswith("/") else message("socket-tcp")
    pooler = message("through-pooler", pooler=Name(m.server.pooler)) if m.server.pooler else None
    drivers = dict.fromkeys(t.summary.driver for t in data.trials if t.summary and t.summary.driver)
    unknown = message("not-known-place")
    disk = h.storage and message("storage-on", type=Name(h.storage.type or "?"), device=Name(h.storage.device or "?"))
    cores = Name("?" if h.cores is None else str(h.cores))
    machine = message("machine", cpu=Name(h.cpu), cores=cores, memory=Quantity(h.memory_bytes, "bytes"))
    stored = Quantity(sum(m.dataset.bytes.values()) if m.dataset else 0, "bytes")
    items: list[tuple[Text, Text]] = [
        (message("env-server"), Name(m.server.version or version_of(m))),
        (message("env-connection"), message("connection", host=Name(where), kind=kind, pooler=pooler)),
        (message("env-client"), machine),
        (message("env-kernel"), Name(h.kernel)),
        (message("env-storage"), disk or unknown),
        (message("env-dataset"), message("dataset-with-indexes", dataset=_dataset(m), size=stored)),
        (message("env-trial"), _each_trial(m)),
        (message("env-pgdyno"), Name(m.pgdyno)),
    ]
    items += [(message("env-driver"), Name(", ".join(drivers)))] if drivers else []
    items += [(message("env-after"), Name(m.source))] if m.source else []
    items += [(message("env-tags"), Name(", ".join(m.tags)))] if m.tags else []
    items += [(message("env-note"), Name(m.remark))] if m.remark else []
    items += [(Name(n), _varied(m, n, s.value)) for n, s in m.server.settings.items() if n in _SHOWN_SETTINGS]
    for label, place in m.places.items() if len(m.places) > 1 else []:
        items.append((message("env-place", place=Name(label)), Name(place.server.version or "?")))
    items += [(message("env-not-recorded"), x) for x in m.gaps]
    return items


_SHOWN_SETTINGS = (
    "autovacuum", "checkpoint_timeout", "data_checksums", "fsync", "full_page_writes", "huge_pages",
    "innodb_buffer_pool_size", "innodb_doublewrite", "innodb_flush_log_at_trx_commit", "io_method", "log_bin",
    "max_connections", "max_wal_size", "shared_buffers", "sync_binlog", "synchronous_commit",
    "transaction_isolation", "tx_isolation", "wal_level", "wal_sync_method",
)  # fmt: skip


def settings(data: RunData) -> list[tuple[Text, Text]]:
    """Return the server's non-default settings, with the reasons for those that pgdyno chose."""
    m = data.manifest
    reasons = {s.name: s for s in m.chosen_settings}
    out: list[tuple[Text, Text]] = []
    for n, s in sorted(m.server.settings.items()):
        if s.source in (None, "", "default", "override"):
            continue
        value = _varied(m, n, s.value)
        if reason := reasons.get(n):
            value = message("setting-because", value=value, reason=_reason(reason))
        out.append((Name(n), value))
    return out


def _reason(chosen: ChosenSetting) -> Text:
    if (id := f"reason-{chosen.reason_id}") in i18n.catalogue("en"):
        return message(id)
    # The wording of an earlier version has no translation.
    return i18n.known(chosen.reason, "reason-") or Name(chosen.reason, zh=i18n.text(message("reason-earlier"), "zh"))


def scripts(data: RunData) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """Return the scripts of each workload, with the share of transactions that runs each script."""
    out = []
    for name, of in data.manifest.scripts.items():
        whole = sum(weight for _, _, weight in of) or 1
        part = [(PurePath(n).name, f"{weight / whole * 100:.3g}%", text.strip()) for n, text, weight in of]
        out.append((name, part))
    return out


def method(data: RunData) -> list[Text]:
    """Return sentences that describe how the run was measured."""
    m, run = data.manifest, data.manifest.run
    out: list[Text] = []
    if run.order == "duet":
        out.append(message("method-duet"))
    elif run.order == "simultaneous":
        out.append(message("method-simultaneous"))
    elif m.capacity is not None:
        out.append(message("method-search"))
    else:
        out.append(message("method-order", order=_order(m), n=run.repetitions * run.restarts))
    closed = run.rate is None and "rate" not in m.varied
    out.append(message("method-closed") if closed else message("method-open"))
    out.append(message("method-counts"))
    if m.same_machine:
        out.append(message("method-same-machine"))
    return out


def _dataset(m: Manifest) -> Text:
    name = m.dataset.name if m.dataset else ""
    return Name(name) if name else message("not-known")
