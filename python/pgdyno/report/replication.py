"""Cost of standbys: throughput, commit latency, time spent waiting for standbys, and replication lag."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pgdyno.figures import TPS
from pgdyno.format import count, integer, milliseconds, percent, plus_minus, size
from pgdyno.judge.groups import Group
from pgdyno.model import Latency, spelled
from pgdyno.report.cells import Cell, Table, all_linked
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store import hlog
from pgdyno.store.reading import RunData
from pgdyno.units import Share

_COMMITS = {"commit", "end"}
#: What columns call axes whose names are long.
_SHORT = {"synchronous_commit": "sync commit", "synchronous_standby_names": "waits for", "round_trip_ms": "rtt ms"}


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


def _values(g: Group, axes: Sequence[str]) -> list[str]:
    """Return the values of a group, one column for each axis.

    Nobody reads values that share one cell with all others.
    """
    return [spelled(g.varied[a]) if a in g.varied else "–" for a in axes]


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
    cells: list[list[str | Cell]] = []
    for c in costs(run):
        g, tps = c.group, c.group.over("tps")
        commit = [milliseconds(n) for n in (c.commit.p50_ns, c.commit.p95_ns, c.commit.p99_ns)] if c.commit else []
        waiting = [percent(c.waiting.mean), f"{c.waiting.high - c.waiting.mean:.1%}"] if c.waiting else ["–", "–"]
        lag = [_ms(c.lag.mean_s), _ms(c.lag.max_s), size(c.lag.max_bytes)] if c.lag else ["–"] * 3
        figures = [TPS.cell(tps.mean), plus_minus(g.half_width()), *(commit or ["–"] * 3), *waiting, *lag]
        cells.append([g.workload, *_values(g, axes), str(g.clients), *all_linked(figures, g.trials)])
    columns = ["workload", *(_SHORT.get(a, a) for a in axes), "clients", TPS.heading, "±"]
    columns += ["commit p50 ms", "commit p95 ms", "commit p99 ms", "waiting", "waiting ±", "lag ms"]
    columns += ["lag max ms", "lag max"]
    return Table(
        "replication",
        "What standbys cost",
        columns,
        cells,
        "Commit: the statement that commits, all repetitions together. Waiting: the part of the clients' time in which "
        "commits waited for standbys (wait event SyncRep, sampled), with half the width of its 95% interval. Lag: "
        "until what was committed is seen on a standby, as the primary knows it (replay_lag), sampled each second: "
        "mean and longest of all standbys, and bytes.",
        2 + len(axes),
        ["workload", "waiting ±", "commit p95 ms", "lag max", "lag max ms", "clients", "commit p99 ms"],
    )


def reads(run: RunAnalysis) -> Table:
    """Return the table of reads on standbys during the trials: their staleness and speed.

    The table has a row for each configuration and standby.
    """
    axes = _axes(run.groups)
    cells: list[list[str | Cell]] = []
    for g in run.groups if _any_standby(run) else []:
        seconds = sum(t.summary.elapsed_s for t in g.trials if t.summary)
        for name in dict.fromkeys(row["standby"] for row in run.observed(g.trials).whole("standbys")):
            old, read = (run.data.histogram(tag(name), g.key) for tag in (hlog.staleness, hlog.standby_reads))
            if not old.count and not read.count:
                continue
            done = [integer(read.count / seconds) if seconds and read.count else "–"]
            done += [milliseconds(read.percentile(p)) if read.count else "–" for p in (50, 99)]
            age = [milliseconds(old.percentile(p)) if old.count else "–" for p in (50, 95, 99, 100)]
            cells.append([g.workload, *_values(g, axes), name, *all_linked([*age, *done], g.trials), f"{old.count:,}"])
    return Table(
        "standby-reads",
        "What standbys showed",
        ["workload", *(_SHORT.get(a, a) for a in axes), "standby", "stale p50 ms", "stale p95 ms", "stale p99 ms",
         "stale max ms", "reads/s", "read p50 ms", "read p99 ms", "beats"],
        cells,
        "Stale: from the answer to a commit on the primary until a read on the standby sees it, by a heartbeat: a row "
        "that is updated 50 times a second and read on each standby each millisecond or two, so no finer than that; of "
        "all repetitions together. Reads: what the experiment reads on standbys meanwhile, closed loop unless it names "
        "a rate.",
        2 + len(axes),
        ["workload", "beats", "stale p95 ms", "read p50 ms"],
    )  # fmt: skip


def sentences(run: RunAnalysis) -> list[str]:
    """Return the share of asynchronous throughput that remains if commits wait for standbys, by network."""
    found = []
    waiting: dict[tuple[str, int], list[tuple[float, float, str]]] = {}
    asynchronous: dict[tuple[str, int], list[Group]] = {}
    for c in costs(run):
        g, e = c.group, run.observed(c.group.trials)
        names, commit = e.setting("synchronous_standby_names"), e.setting("synchronous_commit") or "on"
        trip = float(g.trials[0].parameters.get("round_trip_ms") or 0.0)
        key = (g.workload, g.clients)
        if c.lag and names and commit not in ("off", "local"):
            waiting.setdefault(key, []).append((trip, g.over("tps").mean, f"{commit}, {names}"))
        elif c.lag and commit != "off" and not trip:
            asynchronous.setdefault(key, []).append(g)
    for key, figures in waiting.items():
        if key not in asynchronous:
            continue
        base = asynchronous[key][0]
        whole = base.over("tps").mean
        if not whole:
            continue
        half = plus_minus(base.half_width())
        parts = []
        for trip in sorted({t for t, _, _ in figures}):
            of = sorted((tps / whole, name) for t, tps, name in figures if t == trip)
            (low, slow), (high, fast) = of[0], of[-1]
            where = f"with {trip:g} ms more of round trip " if trip else ""
            part = f"{low:.0%} ({slow})" if len(of) == 1 else f"{low:.0%} ({slow}) to {high:.0%} ({fast})"
            parts.append(f"{where}{part}")
        where = f" ({key[0]}, {count(int(key[1]), 'client')})" if len(waiting) > 1 else ""
        found.append(
            f"Asynchronous standbys leave {TPS.cell(whole)} TPS{'' if half == '–' else f' (± {half})'}{where}; commits "
            f"that wait for a standby do {', '.join(parts)} of that."
        )
    return found


def as_json(run: RunAnalysis) -> list[dict[str, Any]]:
    """For machines: seconds, bytes, parts."""
    found = []
    for c in costs(run):
        g, e = c.group, run.observed(c.group.trials)
        names = dict.fromkeys(row["standby"] for row in e.whole("standbys"))
        seconds = sum(t.summary.elapsed_s for t in g.trials if t.summary)
        shown = {}
        for name in names:
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


def _ms(seconds: float) -> str:
    return milliseconds(seconds * 1e9)


def bars(run: RunAnalysis) -> list[dict[str, object]]:
    """Return the rows of the chart of standbys, one per configuration.

    Each row states what commits wait for, which standbys they wait for, and the network between them. It also has the
    throughput and the commit latency.
    """
    found = []
    for c in costs(run):
        e, half = run.observed(c.group.trials), c.group.half_width() or 0.0
        trip = c.group.trials[0].parameters.get("round_trip_ms") or 0.0
        tps = c.group.over("tps").mean
        names = e.setting("synchronous_standby_names")
        found.append(
            {
                "workload": c.group.workload,
                "clients": c.group.clients,
                "synchronous_commit": e.setting("synchronous_commit") or "on",
                "standbys": (names or "asynchronous") if c.lag else "no standby",
                "network": f"{trip:g} ms round trip added" if trip else "local network",
                "trip": trip,
                "TPS": round(tps, 1),
                "low": round(tps * (1 - min(1.0, half)), 1),
                "high": round(tps * (1 + half), 1),
                "commit p99 ms": None if c.commit is None else float(f"{c.commit.p99_ns / 1e6:.3g}"),
            }
        )
    return found
