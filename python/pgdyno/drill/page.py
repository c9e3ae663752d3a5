"""A drill as a page: what was lost, and why; every figure; the load around each fault."""

from __future__ import annotations

from typing import Any

from pgdyno.drill.drill import Drill
from pgdyno.drill.modes import Mode
from pgdyno.drill.rounds import Round
from pgdyno.drill.words import METHOD, METHOD_FOREIGN, answers, milliseconds, seconds
from pgdyno.format import count
from pgdyno.report.cells import Table
from pgdyno.report.charts import base
from pgdyno.report.page import Chart, Page, render

#: Seconds of a round that are shown before its fault and behind it.
_BEFORE_S, _AFTER_S = 2.0, 20.0
#: Rows of clients, and of events.
_MOST_CLIENTS = 400
_MOST_EVENTS = 400
#: Fault, found dead, promoted.
_MARKS = ["#D55E00", "#E69F00", "#009E73"]


def written(drill: Drill) -> str:
    """Return the drill's page as HTML."""
    cluster = f"{drill.members[0]} and {len(drill.members) - 1} standbys"
    return render(
        Page(
            title=f"Drill of {drill.name}",
            subtitle=f"PostgreSQL {drill.version}; {cluster}; {count(drill.options.clients, 'client')}",
            answers=answers(drill),
            tables=[_lost(drill), _times(drill), _speeds(drill)],
            charts=[_load(drill)],
            details=[_rounds(drill), _clients(drill), _events(drill), _facts(drill)],
            method=METHOD_FOREIGN if drill.is_foreign else METHOD,
            error="; ".join(filter(None, [drill.stopped, *drill.defects])),
        )
    )


def _of(mode: Mode, fault: str) -> str:
    return f"{mode.name}: {fault}" if mode.name else fault


def _lost(drill: Drill) -> Table:
    columns = [
        "fault", "waits for", "rounds", "commits/s", "p50 ms", "p99 ms", "acked", "lost", "warned", "unknown", "there",
        "seen, gone",
    ]  # fmt: skip
    cells: list[list[Any]] = []
    for mode, v in drill.verdicts:
        cells.append([
            _of(mode, v.fault), f"{v.synchronous_commit}, {v.synchronous_standby_names or 'async'}",
            str(v.rounds - len(v.errors)), f"{v.tps:,.0f}", milliseconds(v.p50_s), milliseconds(v.p99_s),
            f"{v.acknowledged:,}", f"{v.lost:,}", f"{v.lost - v.lost_in_silence:,}", f"{v.unknown:,}",
            f"{v.unknown_there:,}", f"{v.seen_and_missing:,}",
        ])  # fmt: skip
    note = (
        "Waits for: synchronous_commit, synchronous_standby_names. Commits/s and latency before the fault, medians "
        "of the rounds. Warned: of the lost ones those that were acknowledged behind a warning. There: of the unknown "
        "ones those whose rows are there. Seen, gone: rows that were read before the failover, of any outcome."
    )
    return Table("lost", "What was lost", columns, cells, note, text_columns=2)


def _times(drill: Drill) -> Table:
    columns = ["fault", "found dead s", "pg_promote s", "outage s", "95% s", "longest s", "not back"]
    cells: list[list[Any]] = []
    for mode, v in drill.verdicts:
        times = (v.detected_s, v.promote_s, v.outage_p50_s, v.outage_p95_s, v.outage_max_s)
        cells.append([_of(mode, v.fault), *map(seconds, times), f"{v.not_back:,}"])
    note = (
        "Found dead and pg_promote: medians of the rounds. Outage: of all clients of all rounds the median, the 95th "
        "percentile, the longest. Not back: clients without a commit until the end of the round."
    )
    return Table("times", "How long nobody was served", columns, cells, note)


def _speeds(drill: Drill) -> Table:
    columns = [
        "fault", "before commits/s", "until served", "behind that", "before p99 ms", "until served p99 ms",
        "behind that p99 ms", "new primary s", "first commit s", "90% s",
    ]  # fmt: skip
    cells: list[list[Any]] = []
    for mode, v in drill.verdicts:
        rates = (v.tps, v.during_tps, v.after_tps)
        late = f">{v.watched_s:.1f}" if v.not_recovered and v.recovered_s is None else seconds(v.recovered_s)
        cells.append([
            _of(mode, v.fault), *("–" if r is None else f"{r:,.0f}" for r in rates),
            *map(milliseconds, (v.p99_s, v.during_p99_s, v.after_p99_s)), seconds(v.promoted_s),
            seconds(v.first_commit_s), late,
        ])  # fmt: skip
    note = (
        "Commits/s and p99 before the fault, from it until each client was served again, and from then to the end; "
        "medians of the rounds. Seconds since the fault: until another member was the primary, until any client had a "
        "commit acknowledged, until a second held 90% of the commits of before. A fault that goes on (slow links) goes "
        "on to the end."
    )
    return Table("speeds", "What it did to the speed", columns, cells, note)


def _events(drill: Drill) -> Table:
    cells: list[list[Any]] = []
    for mode, fault, rounds in drill.rounds:
        for r in rounds:
            zero = r.fault_ns or (r.events[0][0] if r.events else 0)
            cells += [[f"{_of(mode, fault)} {r.number}", text, f"{(at - zero) / 1e9:.2f}"] for at, text in r.events]
    note = "Seconds since the fault."
    if len(cells) > _MOST_EVENTS:
        note += f" The first {_MOST_EVENTS} of {len(cells):,}; round.json of each round has all."
    return Table("events", "What happened", ["round", "what", "s"], cells[:_MOST_EVENTS], note, text_columns=2)


def _facts(drill: Drill) -> Table:
    beside = drill.options.beside
    load = (
        f"{count(drill.options.clients, 'client')}, each BEGIN, a statement that inserts, updates and deletes, COMMIT"
    )
    facts = {
        **drill.facts,
        "load": load,
        **({"beside it": f"{beside.script}, {count(beside.clients, 'client')}"} if beside else {}),
    }
    return Table(
        "facts", "What it was measured on", ["what", "value"], [[k, v] for k, v in facts.items()], text_columns=2
    )


def _rounds(drill: Drill) -> Table:
    columns = ["round", "from", "to", "commits/s", "acked", "lost", "unknown", "found dead s", "outage s", "others"]
    cells: list[list[Any]] = []
    for mode, fault, rounds in drill.rounds:
        for r in rounds:
            outages = sorted(s for o in r.outages if (s := o.seconds) is not None)
            found = None if r.detected_ns is None or r.down_ns is None else (r.detected_ns - r.down_ns) / 1e9
            a = r.audit
            known = [f"{r.tps:,.0f}", *(f"{n:,}" for n in ((a.acknowledged, len(a.lost), a.unknown) if a else ()))]
            middle = outages[len(outages) // 2] if outages else None
            others = ", ".join(f"{m} {how}" for m, how in r.rejoined.items())
            cells.append([
                f"{_of(mode, fault)} {r.number}", r.old_primary, r.new_primary or "–",
                *known, *["–"] * (4 - len(known)), seconds(found), seconds(middle), r.error or others,
            ])  # fmt: skip
    return Table("rounds", "Rounds", columns, cells, text_columns=3)


def _clients(drill: Drill) -> Table:
    """Return a table of the last commit before the outage and the first after it, by round and client."""
    columns = ["round", "client", "last s", "first s", "outage s"]
    cells: list[list[Any]] = []
    for mode, fault, rounds in drill.rounds:
        for r in rounds:
            for o in r.outages:
                at = (None if t is None else (t - r.fault_ns) / 1e9 for t in (o.last_ns, o.first_ns))
                cells.append([f"{_of(mode, fault)} {r.number}", str(o.client), *map(seconds, at), seconds(o.seconds)])
    note = (
        "Seconds since the fault of the last commit that was acknowledged before the client's longest gap, and of the "
        "first one after it."
    )
    if len(cells) > _MOST_CLIENTS:
        note += f" The first {_MOST_CLIENTS} of {len(cells):,}; round.json of each round has all."
    return Table("clients", "Clients", columns, cells[:_MOST_CLIENTS], note)


def _load(drill: Drill) -> Chart:
    values: list[dict[str, object]] = []
    for mode, fault, rounds in drill.rounds:
        for r in rounds:
            what = {"what": _of(mode, fault), "round": str(r.number)}
            values += [{**what, "s": round(at, 2), "tps": tps} for at, tps in r.series if -_BEFORE_S <= at <= _AFTER_S]
            values += [{**what, "mark": at, "kind": kind} for kind, at in _marks(r)]
    x = {"field": "s", "type": "quantitative", "title": "seconds since the fault"}
    y = {"field": "tps", "type": "quantitative", "title": "commits/s"}
    rule = {
        "field": "kind",
        "type": "nominal",
        "title": None,
        "scale": {"range": _MARKS},
        "legend": {"orient": "top"},
    }
    spec = base(values, 0, 0)
    del spec["width"], spec["height"]
    spec |= {
        "columns": 2,
        "facet": {"field": "what", "type": "nominal", "title": None, "sort": [_of(m, f) for m, f, _ in drill.rounds]},
        "spec": {
            "width": 430,
            "height": 120,
            "layer": [
                {
                    "transform": [{"filter": "isValid(datum.s)"}],
                    "mark": {"type": "line", "strokeWidth": 1, "opacity": 0.7, "interpolate": "step-after"},
                    "encoding": {"x": x, "y": y, "detail": {"field": "round"}},
                },
                {
                    "transform": [{"filter": "isValid(datum.mark)"}],
                    "mark": {"type": "rule", "strokeWidth": 1.5},
                    "encoding": {"x": {"field": "mark", "type": "quantitative"}, "color": rule},
                },
            ],
        },
    }
    note = "Commits of all clients in each tenth of a second, a line for each round."
    return Chart("load", "Around the fault", note, spec)


def _marks(r: Round) -> list[tuple[str, float]]:
    known = (("1 fault", r.fault_ns), ("2 found dead", r.detected_ns), ("3 promoted", r.promoted_ns))
    return [(kind, round((ns - r.fault_ns) / 1e9, 3)) for kind, ns in known if ns]
