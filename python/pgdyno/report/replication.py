"""Cost of standbys: throughput, commit latency, time spent waiting for standbys, and replication lag."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pgdyno import i18n
from pgdyno.figures import TPS
from pgdyno.judge.groups import Group
from pgdyno.message import Message, Name, Text, listed, message
from pgdyno.model import Latency, spelled
from pgdyno.report import names
from pgdyno.report.cells import (
    COUNT,
    HALF_WIDTH,
    MS,
    NUMBER,
    PERCENT,
    SIZE,
    Column,
    Form,
    Table,
    all_linked,
    cells,
    column,
)
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store import hlog
from pgdyno.store.reading import RunData
from pgdyno.units import Quantity, Share

_COMMITS = {"commit", "end"}
#: Columns of axes whose names are long.
_SHORT = {
    "synchronous_commit": column("sync commit"),
    "synchronous_standby_names": column("waits for"),
    "round_trip_ms": column("rtt ms"),
}
#: Seconds that are shown in milliseconds.
_LAG = Form(lambda v: MS.write(v * 1e9), "s", 1.0, True)


@dataclass(frozen=True)
class Lag:
    """Replication lag over all samples of all standbys, in seconds and bytes."""

    mean_s: float
    max_s: float
    max_bytes: float


@dataclass(frozen=True)
class Cost:
    """A configuration's."""

    group: Group
    #: Of its statement COMMIT or END; None: it has none, or several.
    commit: Latency | None
    #: The part of the clients' time in which commits waited for standbys; None: not sampled.
    waiting: Share | None
    #: None: there were no standbys.
    lag: Lag | None


def costs(run: RunAnalysis) -> list[Cost]:
    """Return the cost of standbys for all configurations, or an empty list if none had a standby."""
    return [_cost(run, g) for g in run.groups] if _any_standby(run) else []


def _axes(groups: Sequence[Group]) -> list[str]:
    """Return the axes that vary in any of the groups."""
    return list(dict.fromkeys(name for g in groups for name in g.varied))


def _axis_columns(axes: Sequence[str]) -> list[Column]:
    """Return the columns of the axes: nobody reads values that share one cell with all others."""
    return [_SHORT[a] if a in _SHORT else Column(a, Name(a)) for a in axes]


def _values(g: Group, axes: Sequence[str]) -> list[str | None]:
    """Return the values of a group, one for each axis."""
    return [spelled(g.varied[a]) if a in g.varied else None for a in axes]


def _any_standby(run: RunAnalysis) -> bool:
    # Before histograms are read: a run may have thousands of configurations, and most have no standby. Of each target
    # one is looked at.
    places = {t.place: g for g in run.groups for t in g.trials[:1]}
    return any(run.data.samples[t.plan.number, "standbys"] for g in places.values() for t in g.trials)


def _cost(run: RunAnalysis, g: Group) -> Cost:
    e = run.observed(g.trials)
    rows = e.whole("standbys")
    seconds = [row["replay_s"] for row in rows]
    lag = Lag(sum(seconds) / len(rows), max(seconds), max(row["replay_bytes"] for row in rows)) if rows else None
    return Cost(g, _commit(run.data, g), e.waiting("IPC:SyncRep") if lag else None, lag)


def _commit(data: RunData, g: Group) -> Latency | None:
    found = [s.latency for s in data.pooled_statements[g.key] if s.text.strip().rstrip(";").lower() in _COMMITS]
    return found[0] if len(found) == 1 else None


def table(run: RunAnalysis) -> Table:
    """Return the table of standby costs, with a row for each configuration."""
    axes = _axes(run.groups)
    rows = []
    for c in costs(run):
        g, none = c.group, [None] * 3
        commit = [c.commit.p50_ns, c.commit.p95_ns, c.commit.p99_ns] if c.commit else none
        waiting = [c.waiting.mean, c.waiting.high - c.waiting.mean] if c.waiting else none[:2]
        lag = [c.lag.mean_s, c.lag.max_s, c.lag.max_bytes] if c.lag else none
        figures = [g.over("tps").mean, g.half_width(), *(n or None for n in commit), *waiting, *lag]
        rows.append([*cells([g.workload, *_values(g, axes), g.clients]), *all_linked(figures, g.trials)])
    return Table(
        "replication",
        message("table-replication"),
        [
            column("workload"), *_axis_columns(axes), column("clients", COUNT), column(TPS.heading, NUMBER),
            column("±", HALF_WIDTH), *(column(x, MS) for x in ("commit p50 ms", "commit p95 ms", "commit p99 ms")),
            column("waiting", PERCENT), column("waiting ±", PERCENT), column("lag ms", _LAG),
            column("lag max ms", _LAG), column("lag max", SIZE),
        ],
        rows,
        [message("note-replication")],
        2 + len(axes),
        ["workload", "waiting ±", "commit p95 ms", "lag max", "lag max ms", "clients", "commit p99 ms"],
    )  # fmt: skip


def reads(run: RunAnalysis) -> Table:
    """Return the table of reads on standbys during the trials: their staleness and speed.

    The table has a row for each configuration and standby.
    """
    axes = _axes(run.groups)
    rows = []
    for g in run.groups if _any_standby(run) else []:
        seconds = sum(t.summary.elapsed_s for t in g.trials if t.summary)
        for name in dict.fromkeys(row["standby"] for row in run.observed(g.trials).whole("standbys")):
            old, read = (run.data.histogram(tag(name), g.key) for tag in (hlog.staleness, hlog.standby_reads))
            if not old.count and not read.count:
                continue
            done = [read.count / seconds if seconds and read.count else None]
            done += [read.percentile(p) if read.count else None for p in (50, 99)]
            age = [old.percentile(p) if old.count else None for p in (50, 95, 99, 100)]
            label = cells([g.workload, *_values(g, axes), name])
            rows.append([*label, *all_linked([*age, *done], g.trials), *cells([old.count])])
    return Table(
        "standby-reads",
        message("table-standby-reads"),
        [
            column("workload"), *_axis_columns(axes), column("standby"),
            *(column(x, MS) for x in ("stale p50 ms", "stale p95 ms", "stale p99 ms", "stale max ms")),
            column("reads/s", NUMBER), column("read p50 ms", MS), column("read p99 ms", MS), column("beats", COUNT),
        ],
        rows,
        [message("note-standby-reads")],
        2 + len(axes),
        ["workload", "beats", "stale p95 ms", "read p50 ms"],
    )  # fmt: skip


def sentences(run: RunAnalysis) -> list[Text]:
    """Return the share of asynchronous throughput that remains if commits wait for standbys, by network."""
    found: list[Text] = []
    waiting: dict[tuple[str, int], list[tuple[float, float, str]]] = {}
    asynchronous: dict[tuple[str, int], list[Group]] = {}
    for c in costs(run):
        g, e = c.group, run.observed(c.group.trials)
        waits_for, commit = e.setting("synchronous_standby_names"), e.setting("synchronous_commit") or "on"
        trip = float(g.trials[0].parameters.get("round_trip_ms") or 0.0)
        key = (g.workload, g.clients)
        if c.lag and waits_for and commit not in ("off", "local"):
            waiting.setdefault(key, []).append((trip, g.over("tps").mean, f"{commit}, {waits_for}"))
        elif c.lag and commit != "off" and not trip:
            asynchronous.setdefault(key, []).append(g)
    for key, figures in waiting.items():
        if key not in asynchronous:
            continue
        base = asynchronous[key][0]
        whole = base.over("tps").mean
        if not whole:
            continue
        half = base.half_width()
        parts = [
            _remaining(trip, [f for f in figures if f[0] == trip], whole) for trip in sorted({f[0] for f in figures})
        ]
        where = message("in-brackets", text=listed([Name(key[0]), names.clients(int(key[1]))]))
        found.append(
            message(
                "answer-standbys", tps=Quantity(whole, "count"),
                half=None if half is None else message("plus-minus-in-brackets", half=Quantity(half, "half-width")),
                where=where if len(waiting) > 1 else None, parts=listed(parts),
            )
        )  # fmt: skip
    return found


def _remaining(trip: float, figures: Sequence[tuple[float, float, str]], whole: float) -> Message:
    """Return the share of the throughput `whole` that commits reach which wait for standbys.

    `figures` holds throughput and settings with one round trip, in milliseconds, that was added to the network.
    """
    of = sorted((tps / whole, name) for _, tps, name in figures)
    shown = [message("remaining", share=Quantity(s, "share", 0), settings=Name(n)) for s, n in (of[0], of[-1])]
    rest = shown[0] if len(of) == 1 else message("from-to", low=shown[0], high=shown[1])
    return message("remaining-over", trip=Quantity(trip, "plain"), rest=rest) if trip else rest


def as_json(run: RunAnalysis) -> list[dict[str, Any]]:
    """For machines: seconds, bytes, parts."""
    found = []
    for c in costs(run):
        g, e = c.group, run.observed(c.group.trials)
        standbys = dict.fromkeys(row["standby"] for row in e.whole("standbys"))
        seconds = sum(t.summary.elapsed_s for t in g.trials if t.summary)
        shown = {}
        for name in standbys:
            old, read = (run.data.histogram(tag(name), g.key) for tag in (hlog.staleness, hlog.standby_reads))
            shown[name] = {
                "beats": old.count,
                "stale_s": {p: old.percentile(float(p)) / 1e9 for p in ("50", "95", "99", "100")}
                if old.count
                else None,
                "reads_per_s": read.count / seconds if seconds else None,
                "read_p99_s": read.percentile(99) / 1e9 if read.count else None,
            }
        found.append(
            {
                "workload": g.workload, "clients": g.clients, **g.varied, "tps": g.over("tps").mean,
                "commit_s": c.commit and {p: getattr(c.commit, f"p{p}_ns") / 1e9 for p in (50, 95, 99)},
                "waiting": None if c.waiting is None else asdict(c.waiting),
                "lag": None if c.lag is None else asdict(c.lag),
                "standbys": shown,
            }
        )  # fmt: skip
    return found


def bars(run: RunAnalysis, lang: str) -> list[dict[str, object]]:
    """Return the rows of the chart of standbys, one per configuration.

    Each row states what commits wait for, which standbys they wait for, and the network between them. It also has the
    throughput and the commit latency.
    """
    found = []
    for c in costs(run):
        e, half = run.observed(c.group.trials), c.group.half_width() or 0.0
        trip = c.group.trials[0].parameters.get("round_trip_ms") or 0.0
        tps = c.group.over("tps").mean
        waits_for = e.setting("synchronous_standby_names")
        network = message("network-added", trip=Quantity(trip, "plain")) if trip else message("network-local")
        standbys = Name(waits_for) if waits_for else message("standbys-asynchronous")
        found.append(
            {
                "workload": c.group.workload,
                "clients": c.group.clients,
                "synchronous_commit": e.setting("synchronous_commit") or "on",
                "standbys": i18n.text(standbys if c.lag else message("standbys-none"), lang),
                "network": i18n.text(network, lang),
                "trip": trip,
                "TPS": round(tps, 1),
                "low": round(tps * (1 - min(1.0, half)), 1),
                "high": round(tps * (1 + half), 1),
                "commit p99 ms": None if c.commit is None else float(f"{c.commit.p99_ns / 1e6:.3g}"),
            }
        )
    return found
