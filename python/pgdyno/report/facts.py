"""What a report says of the ground that was measured on: loading, sizes, storage, environment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pgdyno.model import RunData, spelled
from pgdyno.report.cells import Cell, Table
from pgdyno.report.format import integer, milliseconds, size
from pgdyno.report.heading import version_of


def loading(data: RunData) -> Table:
    """How each place was loaded."""
    cells: list[list[str | Cell]] = []
    places = data.manifest.get("places") or {}
    labels = _labels(list(places))
    for label, place in places.items():
        d = place.get("dataset") or {}
        phases = d.get("phases_s") or {}
        if not d.get("loaded") or not phases:
            continue
        total = sum(phases.values())
        written = sum((d.get("bytes") or {}).values())
        cells.append(
            [
                labels[label],
                str(d.get("name", "")),
                str(d.get("method", "")),
                f"{int(d.get('rows', 0)):,}",
                f"{phases.get('generate', 0):.2f}",
                f"{phases.get('keys', 0):.2f}",
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
        "Loaded once, so these times have no spread. MB/s: bytes of tables and keys by the time of all phases.",
        3,
        ["place", "method"],
    )


def _labels(places: Sequence[str]) -> dict[str, str]:
    """The labels of places without what all of them have."""
    parts = {label: label.split(", ") for label in places}
    common = set.intersection(*(set(p) for p in parts.values())) if parts else set()
    return {label: ", ".join(x for x in p if x not in common) for label, p in parts.items()}


def sizes(data: RunData) -> Table:
    """Tables and indexes after loading."""
    cells: list[list[str | Cell]] = []
    places = data.manifest.get("places") or {}
    labels = _labels(list(places))
    for label, place in places.items():
        described = (place.get("dataset") or {}).get("relations") or []
        # Of many tables alike, the first.
        alike = re.compile(r"^(idx_)?feed[0-9]+$")
        for r in [r for r in described if not alike.match(r["name"]) or r["table"] == "feed1"][:24]:
            level, buffers = r.get("level"), r.get("buffers")
            cells.append(
                [
                    labels[label],
                    r["name"],
                    r["method"] or r["kind"],
                    f"{r['rows']:,}",
                    size(r["bytes"]),
                    "–" if level is None else str(level),
                    "–" if buffers is None else str(buffers),
                ]
            )
    if len(places) < 2:
        cells = [c[1:] for c in cells]
    return Table(
        "sizes",
        "Sizes",
        [*(["place"] if len(places) > 1 else []), "relation", "kind", "rows", "size", "level", "buffers"],
        cells,
        "As loaded, before the trials. "
        "Rows: as the planner knows them. Level: of a B-tree's root, by bt_metap (0: one page). Buffers: pages that "
        "a search "
        "for one key touches in index and table, by EXPLAIN (ANALYZE, BUFFERS).",
        3 if len(places) > 1 else 2,
        ["kind"],
    )


def storage(data: RunData) -> Table:
    """The storage probes' fio jobs."""
    cells: list[list[str | Cell]] = []
    for name, probe in (data.manifest.get("storage_probes") or {}).items():
        for job in probe.get("jobs") or []:
            for what in ("read", "write"):
                s = job[what]
                cells.append(
                    [
                        name,
                        job["title"],
                        what,
                        integer(s["iops"]),
                        f"{s['bytes_per_s'] / 1e6:,.0f}",
                        *(milliseconds(s[k]) for k in ("p50_ns", "p99_ns", "max_ns")),
                    ]
                )
    probes = list((data.manifest.get("storage_probes") or {}).values())
    said = " ".join(dict.fromkeys(f"{c[:1].upper()}{c[1:]}." for p in probes for c in p.get("caveats") or []))
    about = (
        f"{probes[0]['threads']} threads, {probes[0]['seconds']:g} s each, pages of 8 kB, 65% reads. " if probes else ""
    )
    return Table(
        "storage",
        "Storage probe",
        ["target", "job", "what", "IOPS", "MB/s", "p50 ms", "p99 ms", "max ms"],
        cells,
        f"fio on a file of {size(probes[0]['file_bytes'])}: {about}One measurement each, so no spread. {said}"
        if probes
        else "",
        3,
        ["max ms", "p50 ms"],
    )


def syncs(data: RunData) -> Table:
    """The storage probes' pg_test_fsync: one page made durable, by each method."""
    cells: list[list[str | Cell]] = []
    for name, probe in (data.manifest.get("storage_probes") or {}).items():
        for s in probe.get("syncs") or []:
            rate = s["operations_per_s"]
            if "one 8kB write" in s["group"] and rate:
                cells.append([name, s["method"], integer(rate), f"{1e6 / rate:,.0f}"])
    return Table(
        "syncs",
        "Making a page durable",
        ["target", "method", "operations/s", "µs"],
        cells,
        "pg_test_fsync: one page of 8 kB written and synced, one after the other.",
        2,
    )


def _loop(m: dict[str, Any]) -> str:
    rate = m.get("run", {}).get("rate")
    if rates := (m.get("varied") or {}).get("rate"):
        return f"rates of {', '.join(spelled(r) if r is not None else 'a closed loop' for r in rates)} TPS"
    return "closed loop" if rate is None else f"open loop at {rate:g} TPS over all clients (Poisson arrivals)"


def _varied(m: dict[str, Any], name: str, value: Any) -> str:
    """A value, or those that it has in turn."""
    values = (m.get("varied") or {}).get(name)
    return f"{', '.join(map(spelled, values))} (varied)" if values else str(value)


def environment(data: RunData) -> list[tuple[str, str]]:
    """Where and how it was measured."""
    m = data.manifest
    h, server, run = m.get("host", {}), m.get("server", {}), m.get("run", {})
    shown = server.get("settings") or {}
    storage_ = h.get("storage") or {}
    bytes_ = (m.get("dataset") or {}).get("bytes") or {}
    where = str(m.get("target", {}).get("host", ""))
    kind = "Unix-domain socket" if where.startswith("/") else "TCP"
    order = {"random": "random order", "interleaved": "in turn", "written": "one after the other"}
    items = [
        ("server", str(server.get("version") or version_of(m))),
        ("connection", f"{where} ({kind})"),
        ("client machine", f"{h.get('cpu', '?')}, {h.get('cores', '?')} cores, {size(h.get('memory_bytes', 0))}"),
        ("kernel", str(h.get("kernel", "?"))),
        (
            "storage",
            f"{storage_.get('type', '?')} on {storage_.get('device', '?')}" if storage_ else "not known (remote)",
        ),
        ("dataset", f"{_dataset(m)}, {size(sum(bytes_.values()))} with indexes"),
        (
            "each trial",
            f"{run.get('warmup_s')} s warm-up, {run.get('duration_s')} s measured, "
            f"{_varied(m, 'protocol', run.get('protocol'))} protocol, "
            f"{_loop(m)}, "
            f"{run.get('repetitions')} repetitions, {order.get(run.get('order', ''), 'random order')}"
            f"{', one dataset after the other' if m.get('batched') else ''}, "
            f"seed {run.get('seed')}",
        ),
        ("pgdyno", str(m.get("pgdyno", "?"))),
    ]
    items += [("after", str(m["source"]))] if m.get("source") else []
    items += [(n, _varied(m, n, s.get("value"))) for n, s in shown.items() if n in _SHOWN_SETTINGS]
    places = m.get("places") or {}
    for label, place in places.items() if len(places) > 1 else []:
        items.append((f"place: {label}", str((place.get("server") or {}).get("version", "?"))))
    items += [("not recorded", x) for x in m.get("not_recorded", [])]
    return items


_SHOWN_SETTINGS = (
    "autovacuum", "checkpoint_timeout", "data_checksums", "fsync", "full_page_writes", "huge_pages", "io_method",
    "max_connections", "max_wal_size", "shared_buffers", "synchronous_commit", "wal_level", "wal_sync_method",
)  # fmt: skip


def _dataset(manifest: dict[str, Any]) -> str:
    """Its name; run directories from before it had one know the scale."""
    return (manifest.get("dataset") or {}).get("name") or f"tpcb scale={manifest.get('scale', '?')}"
