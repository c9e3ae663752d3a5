"""What a report says, before it is said in any form."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pgdyno.analysis.spread import Estimate, estimate
from pgdyno.model import Caveat, RunData, TrialRecord, TrialSummary
from pgdyno.report import charts
from pgdyno.report.format import integer, milliseconds, percent, rows, size

GIB = 1024**3


@dataclass(frozen=True)
class Table:
    """A table: columns with a name, and cells; numbers are right-aligned."""

    title: str
    columns: list[str]
    cells: list[list[str]]
    #: What the columns mean, where it is not plain; and the limits of the method.
    note: str = ""
    #: How many leading columns are text.
    text_columns: int = 1


@dataclass(frozen=True)
class Chart:
    """A chart as a Vega-Lite description."""

    name: str
    title: str
    note: str
    spec: dict[str, Any]


@dataclass(frozen=True)
class View:
    """A report."""

    title: str
    subtitle: str
    #: Why the run ended early; stands at the top.
    error: str
    #: What to beware of: text, remedy, how many trials.
    caveats: list[tuple[str, str, str]]
    main: Table
    detail: Table
    statements: Table
    outcomes: Table
    trials: Table
    environment: list[tuple[str, str]] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)

    @property
    def tables(self) -> list[Table]:
        """In the order of reading, without the empty ones."""
        return [t for t in (self.main, self.detail, self.statements, self.outcomes, self.trials) if t.cells]


@dataclass(frozen=True)
class Group:
    """The repetitions of one configuration."""

    workload: str
    hot_set: float
    clients: int
    trials: list[TrialRecord]

    @property
    def key(self) -> tuple[str, float, int]:
        """Where the pooled latencies are found."""
        return self.workload, self.hot_set, self.clients

    def over(self, name: str) -> Estimate:
        """A figure of the summaries, over the repetitions."""
        return estimate([float(getattr(t.summary, name)) for t in self.trials if t.summary])


def groups_of(data: RunData) -> list[Group]:
    """Configurations in reading order; only trials that were finished count."""
    found: dict[tuple[str, float, int], list[TrialRecord]] = {}
    for t in data.trials:
        if t.summary is not None and t.state == "finished":
            found.setdefault((t.plan.workload, t.plan.hot_set, t.plan.clients), []).append(t)
    names = list(data.manifest.get("workloads", {}))
    order = {n: i for i, n in enumerate(names)}
    return [Group(*k, found[k]) for k in sorted(found, key=lambda k: (order.get(k[0], 99), k[1], k[2]))]


def build(data: RunData, *, with_charts: bool = True) -> View:
    """The view of a run."""
    m = data.manifest
    groups = groups_of(data)
    return View(
        title=m.get("title", m.get("name", "run")),
        subtitle=_subtitle(data),
        error=_error(data),
        caveats=_caveats(data),
        main=_main_table(data, groups),
        detail=_detail_table(data, groups),
        statements=_statement_table(data, groups),
        outcomes=_outcome_table(data),
        trials=_trial_table(data),
        environment=_environment(data),
        charts=[Chart(*c) for c in charts.all_charts(data, groups)] if with_charts else [],
    )


def _error(data: RunData) -> str:
    m = data.manifest
    if m.get("error") or m.get("ended_at"):
        return str(m.get("error") or "")
    done = sum(t.state == "finished" for t in data.trials)
    return f"it was cut off (killed?): {done} of {m.get('trials', '?')} trials were finished"


def instance(m: dict[str, Any]) -> str:
    """As vendors name sizes: cores and memory."""
    if not m.get("same_machine", True):
        return str(m.get("target", {}).get("host", "remote"))[:14]
    h = m.get("host", {})
    return f"{h.get('cores', '?')}c {h.get('memory_bytes', 0) / GIB:.0f}g"


def _version(m: dict[str, Any]) -> str:
    shown = m.get("server", {}).get("settings") or {}
    return str(shown.get("server_version", {}).get("value", m.get("server", {}).get("protocol_version", "?")))


def _subtitle(data: RunData) -> str:
    m = data.manifest
    done = sum(t.state == "finished" for t in data.trials)
    return f"PostgreSQL {_version(m)}, {m.get('started_at', '')}, {done} of {m.get('trials', len(data.trials))} trials"


def _caveats(data: RunData) -> list[tuple[str, str, str]]:
    counts = Counter(c for t in data.trials for c in t.caveats)
    if data.manifest.get("same_machine", True):
        counts[Caveat.SHARED_MACHINE] = len(data.trials)
    if 0 < data.manifest.get("run", {}).get("repetitions", 3) < 3:
        counts[Caveat.FEW_REPETITIONS] = len(data.trials)
    if data.manifest.get("not_recorded"):
        counts[Caveat.NOT_RECORDED] = len(data.trials)
    if _fits_in_memory(data.manifest):
        counts[Caveat.FITS_IN_MEMORY] = len(data.trials)
    return [(c.text, c.remedy, f"{n} of {len(data.trials)} trials") for c, n in counts.items()]


def _fits_in_memory(m: dict[str, Any]) -> bool:
    data = sum((m.get("dataset", {}).get("bytes") or {}).values())
    value = ((m.get("server", {}).get("settings") or {}).get("shared_buffers") or {}).get("value", "")
    match = re.fullmatch(r"(\d+)\s*(kB|MB|GB|TB)", value)
    if not match:
        return False
    factor = {"kB": 1024, "MB": 1024**2, "GB": 1024**3, "TB": 1024**4}[match[2]]
    return bool(data and data < int(match[1]) * factor)


def _main_table(data: RunData, groups: Sequence[Group]) -> Table:
    """As seed 004 prints it: instance, rows, hot set, and a figure a workload, each at its best number of clients."""
    m = data.manifest
    titles = m.get("workloads", {})
    best: dict[tuple[float, str], tuple[float, int, Estimate]] = {}
    for g in groups:
        e = g.over("qps")
        if (g.hot_set, g.workload) not in best or e.median > best[g.hot_set, g.workload][0]:
            best[g.hot_set, g.workload] = (e.median, g.clients, e)
    cells = []
    total = m.get("rows", 0)
    for hot_set in sorted({g.hot_set for g in groups}):
        row = [instance(m), rows(total), f"{rows(round(total * hot_set))} ({hot_set * 100:g}%)"]
        for workload in titles:
            found = best.get((hot_set, workload))
            row += [integer(found[0]), str(found[1])] if found else ["–", "–"]
        cells.append(row)
    columns = ["instance", "rows", "hot set"]
    for title in titles.values():
        columns += [title, "clients"]
    return Table(
        "Queries per second",
        columns,
        cells,
        "Median over the repetitions, at the number of clients that was best; the next table has all of them. "
        "QPS counts the SQL statements of committed transactions, BEGIN and END included. " + str(m.get("note", "")),
        3,
    )


def _detail_table(data: RunData, groups: Sequence[Group]) -> Table:
    cells = []
    for g in groups:
        tps = g.over("tps")
        pooled = data.pooled[g.key]
        cells.append(
            [
                g.workload,
                f"{g.hot_set * 100:g}%",
                str(g.clients),
                integer(tps.median),
                percent(tps.spread),
                str(tps.n),
                *(milliseconds(ns) for ns in pooled.percentiles()),
            ]
        )
    return Table(
        "Throughput and latency",
        ["workload", "hot set", "clients", "TPS", "spread", "n", "p50 ms", "p95 ms", "p99 ms", "p99.9 ms"],
        cells,
        "TPS: median of n repetitions; spread: (highest - lowest) / median. Latency of whole transactions, percentiles "
        "of all repetitions' transactions together, to 3 significant digits; client and server on one machine count "
        "each other's waiting for a CPU.",
        2,
    )


def _statement_table(data: RunData, groups: Sequence[Group]) -> Table:
    """Of the middle number of clients of each workload, over the widest hot set."""
    cells = []
    for workload in dict.fromkeys(g.workload for g in groups):
        own = [g for g in groups if g.workload == workload]
        widest = max(g.hot_set for g in own)
        own = [g for g in own if g.hot_set == widest]
        g = own[len(own) // 2]
        for s in data.pooled_statements[g.key]:
            text = " ".join(s.text.split())
            cells.append(
                [
                    f"{g.workload}, c={g.clients}",
                    text,
                    milliseconds(s.latency.mean_ns),
                    *(milliseconds(ns) for ns in s.latency.percentiles()),
                ]
            )
    return Table(
        "Latency by statement",
        ["workload", "statement", "mean ms", "p50 ms", "p95 ms", "p99 ms", "p99.9 ms"],
        cells,
        "From sending a statement to its ReadyForQuery, all repetitions together, over the widest hot set.",
        2,
    )


def _outcomes_text(s: TrialSummary) -> str:
    codes = ", ".join(f"{n:,} failed with {code}" for code, n in sorted(s.failed.items()))
    parts = [codes] if codes else []
    for n, what in (
        (s.unknown, "unknown"),
        (s.skipped, "skipped"),
        (s.unfinished, "unfinished"),
        (s.lost, "lost connections"),
    ):
        if n:
            parts.append(f"{n:,} {what}")
    return "; ".join(parts)


def _outcome_table(data: RunData) -> Table:
    """Only trials in which something but commits happened."""
    cells = []
    for t in data.trials:
        text = _outcomes_text(t.summary) if t.summary else ""
        text = "; ".join(x for x in (text, " ".join(t.error.split())) if x)
        if text:
            cells.append([t.plan.folder, t.state, text])
    return Table("What went wrong", ["trial", "state", "outcomes"], cells, "", 3)


def _trial_table(data: RunData) -> Table:
    cells = []
    for t in data.trials:
        s = t.summary
        if s is None:
            cells.append([t.plan.folder, t.state, "–", "–", "–", "–", "–"])
            continue
        cells.append(
            [
                t.plan.folder,
                t.state,
                f"{s.committed:,}",
                integer(s.tps),
                milliseconds(s.latency.p99_ns),
                milliseconds(s.latency.max_ns),
                percent(s.client_cpu_share),
            ]
        )
    return Table(
        "Every trial",
        ["trial", "state", "committed", "TPS", "p99 ms", "max ms", "client CPU"],
        cells,
        "client CPU: of the busiest worker thread's time, the part on a CPU. Each trial's folder under trials/ has its "
        "time series (intervals.parquet), its latencies (latency.hlog) and its events (events.jsonl).",
        2,
    )


def _loop(run: dict[str, Any]) -> str:
    rate = run.get("rate")
    return "closed loop" if rate is None else f"open loop at {rate:g} TPS over all clients (Poisson arrivals)"


def _environment(data: RunData) -> list[tuple[str, str]]:
    m = data.manifest
    h, server, run = m.get("host", {}), m.get("server", {}), m.get("run", {})
    shown = server.get("settings") or {}
    storage = h.get("storage") or {}
    sizes = (m.get("dataset") or {}).get("bytes") or {}
    where = str(m.get("target", {}).get("host", ""))
    kind = "Unix-domain socket" if where.startswith("/") else "TCP"
    items = [
        ("server", str(server.get("version") or _version(m))),
        (
            "connection",
            f"{where} ({kind})",
        ),
        ("client machine", f"{h.get('cpu', '?')}, {h.get('cores', '?')} cores, {size(h.get('memory_bytes', 0))}"),
        ("kernel", str(h.get("kernel", "?"))),
        ("storage", f"{storage.get('type', '?')} on {storage.get('device', '?')}" if storage else "not known (remote)"),
        ("dataset", f"{_dataset(m)}, {size(sum(sizes.values()))} with indexes"),
        (
            "each trial",
            f"{run.get('warmup_s')} s warm-up, {run.get('duration_s')} s measured, {run.get('protocol')} protocol, "
            f"{_loop(run)}, "
            f"{run.get('repetitions')} repetitions in random order, seed {run.get('seed')}",
        ),
        ("pgdyno", str(m.get("pgdyno", "?"))),
    ]
    items += [(name, str(s.get("value"))) for name, s in shown.items() if name in _SHOWN_SETTINGS]
    items += [("not recorded", x) for x in m.get("not_recorded", [])]
    return items


_SHOWN_SETTINGS = (
    "autovacuum", "checkpoint_timeout", "data_checksums", "fsync", "full_page_writes", "huge_pages", "io_method",
    "max_connections", "max_wal_size", "shared_buffers", "synchronous_commit", "wal_level", "wal_sync_method",
)  # fmt: skip


def _dataset(manifest: dict[str, Any]) -> str:
    """Its name; run directories from before it had one know the scale."""
    return (manifest.get("dataset") or {}).get("name") or f"tpcb scale={manifest.get('scale', '?')}"
