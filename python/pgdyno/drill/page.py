"""A drill as a page: what was lost, and why; every figure; the load around each fault."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno import i18n
from pgdyno.drill.drill import Drill
from pgdyno.drill.modes import Mode
from pgdyno.drill.records import Round
from pgdyno.drill.words import METHOD, METHOD_FOREIGN, answers
from pgdyno.message import Message, Name, Text, counted, listed, message
from pgdyno.plot.model import GREY, Axis, Figure, Key, Line, Mark, Panel, Rule, Span
from pgdyno.plot.scales import scale
from pgdyno.report.cells import COUNT, Form, Table, cells, column, fixed, significant
from pgdyno.report.charts import Chart, Say
from pgdyno.report.lead import Tile
from pgdyno.report.page import Page, render
from pgdyno.report.whitepaper import Block, Source
from pgdyno.units import Quantity

#: Seconds of a round that are shown before its fault and behind it.
_BEFORE_S, _AFTER_S = 2.0, 20.0
#: Rows of clients, and of events.
_MOST_CLIENTS = 400
_MOST_EVENTS = 400
#: Fault, found dead, promoted.
_MARKS = ["#D55E00", "#E69F00", "#009E73"]


def written(drill: Drill, lang: str = "en") -> str:
    """Return the drill's page as HTML."""
    wrong = _wrong(drill)
    return render(
        Page(
            title=message("drill-title", name=Name(drill.name)),
            subtitle=_subtitle(drill),
            answers=answers(drill),
            tables=[_lost(drill), _times(drill), _speeds(drill)],
            charts=[_load(drill, i18n.writer(lang))],
            details=[_rounds(drill), _clients(drill), _events(drill), _facts(drill)],
            method=METHOD_FOREIGN if drill.is_foreign else METHOD,
            tiles=_tiles(drill),
            error=listed(wrong, "semicolon") if wrong else None,
            lang=lang,
        )
    )


def source(drill: Drill, lang: str = "en") -> Source:
    """Return what a drill contributes to a whitepaper."""
    told = answers(drill)
    blocks = {
        "summary": Block(sentences=[*_wrong(drill), *(a.sentence for a in told)]),
        "failover": Block(
            items=[n for a in told for n in a.notes],
            charts=[_load(drill, i18n.writer(lang))],
            tables=[_lost(drill), _times(drill), _speeds(drill)],
        ),
        "method": Block(sentences=METHOD_FOREIGN if drill.is_foreign else METHOD),
    }
    return Source(message("drill-title", name=Name(drill.name)), _subtitle(drill), blocks)


def _wrong(drill: Drill) -> list[Text]:
    return [*([drill.stopped] if drill.stopped else []), *drill.defects]


def _subtitle(drill: Drill) -> Message:
    title: dict[str, Name | Message | int] = {
        "version": Name(drill.version), "primary": Name(drill.members[0]), "standbys": len(drill.members) - 1,
        "clients": counted("n-clients", drill.options.clients),
    }  # fmt: skip
    return Message("drill-subtitle", title)


def _tiles(drill: Drill) -> list[Tile]:
    """Return what a drill is done for: lost commits, the outage, when the primary was found dead, and the rounds."""
    verdicts = [v for _, v in drill.verdicts]
    if not verdicts:
        return []
    lost, acknowledged = sum(v.lost for v in verdicts), sum(v.acknowledged for v in verdicts)
    failed, planned = sum(len(v.errors) for v in verdicts), sum(v.rounds for v in verdicts)
    of = message("drill-tile-acknowledged", n=Quantity(acknowledged, "whole"))
    rounds = Name(f"{planned - failed}")
    back = counted("drill-tile-not-back", sum(v.not_back for v in verdicts))
    median, found = (_longest(x) for x in ([v.outage_p50_s for v in verdicts], [v.detected_s for v in verdicts]))
    longest = _longest([v.outage_max_s for v in verdicts])
    outage = listed([message("drill-tile-longest", s=_time(longest)), back])
    done = counted("drill-tile-failed", failed)
    return [
        Tile(message("drill-tile-lost"), Name(f"{lost:,}"), of, "bad" if lost else "", "lost"),
        Tile(message("drill-tile-outage"), _time(median), outage, section="times"),
        Tile(message("drill-tile-found"), _time(found), message("drill-tile-of-fault"), section="times"),
        Tile(message("drill-tile-rounds"), rounds, done, "bad" if failed else "", "rounds"),
    ]


def _longest(seconds: Sequence[float | None]) -> float | None:
    return max((s for s in seconds if s is not None), default=None)


def _time(seconds: float | None) -> Text:
    return message("not-known") if seconds is None else message("tile-seconds", s=Quantity(seconds * 1e9, "ns"))


_RATE, _SECONDS = fixed(0), fixed(2, "s")
#: Seconds that are shown in milliseconds.
_MILLISECONDS = Form(lambda v: significant(3).write(v * 1e3), "s", 1.0, True)


def _of(mode: Mode, fault: str) -> str:
    return f"{mode.name}: {fault}" if mode.name else fault


def _lost(drill: Drill) -> Table:
    rows = []
    for mode, v in drill.verdicts:
        waits_for = f"{v.synchronous_commit}, {v.synchronous_standby_names or 'async'}"
        counts = (v.acknowledged, v.lost, v.lost - v.lost_in_silence, v.unknown, v.unknown_there, v.seen_and_missing)
        rows.append(cells([_of(mode, v.fault), waits_for, v.rounds - len(v.errors), v.tps, v.p50_s, v.p99_s, *counts]))
    counted_columns = ("acked", "lost", "warned", "unknown", "there", "seen, gone")
    return Table(
        "lost",
        message("drill-table-lost"),
        [
            column("fault"), column("waits for"), column("rounds", COUNT), column("commits/s", _RATE),
            column("p50 ms", _MILLISECONDS), column("p99 ms", _MILLISECONDS),
            *(column(x, COUNT) for x in counted_columns),
        ],
        rows,
        [message("drill-note-lost")],
        2,
    )  # fmt: skip


def _times(drill: Drill) -> Table:
    rows = []
    for mode, v in drill.verdicts:
        times = (v.detected_s, v.promote_s, v.outage_p50_s, v.outage_p95_s, v.outage_max_s)
        rows.append(cells([_of(mode, v.fault), *times, v.not_back]))
    times_of = ("found dead s", "pg_promote s", "outage s", "95% s", "longest s")
    return Table(
        "times",
        message("drill-table-times"),
        [column("fault"), *(column(x, _SECONDS) for x in times_of), column("not back", COUNT)],
        rows,
        [message("drill-note-times")],
    )


def _speeds(drill: Drill) -> Table:
    rows = []
    for mode, v in drill.verdicts:
        late: Text | float | None = v.recovered_s
        if v.not_recovered and late is None:
            late = message("more-than", x=Name(f"{v.watched_s:.1f}"))
        rates, tails = (v.tps, v.during_tps, v.after_tps), (v.p99_s, v.during_p99_s, v.after_p99_s)
        rows.append(cells([_of(mode, v.fault), *rates, *tails, v.promoted_s, v.first_commit_s, late]))
    return Table(
        "speeds",
        message("drill-table-speeds"),
        [
            column("fault"), *(column(x, _RATE) for x in ("before commits/s", "until served", "behind that")),
            *(column(x, _MILLISECONDS) for x in ("before p99 ms", "until served p99 ms", "behind that p99 ms")),
            *(column(x, _SECONDS) for x in ("new primary s", "first commit s", "90% s")),
        ],
        rows,
        [message("drill-note-speeds")],
    )  # fmt: skip


def _events(drill: Drill) -> Table:
    rows = []
    for mode, fault, rounds in drill.rounds:
        for r in rounds:
            zero = r.fault_ns or (r.events[0][0] if r.events else 0)
            rows += [cells([f"{_of(mode, fault)} {r.number}", text, (at - zero) / 1e9]) for at, text in r.events]
    note: list[Text] = [message("drill-note-events")]
    if len(rows) > _MOST_EVENTS:
        note.append(message("drill-note-first", n=_MOST_EVENTS, of=len(rows)))
    columns = [column("round"), column("what", id="event"), column("s", _SECONDS)]
    return Table("events", message("drill-table-events"), columns, rows[:_MOST_EVENTS], note, 2)


def _facts(drill: Drill) -> Table:
    beside = drill.options.beside
    clients = counted("n-clients", drill.options.clients)
    rows = [cells([name, str(value)]) for name, value in drill.facts.items()]
    rows.append(cells([message("drill-load"), message("drill-load-of", clients=clients)]))
    if beside:
        script = listed([Name(str(beside.script)), counted("n-clients", beside.clients)])
        rows.append(cells([message("drill-beside-it"), script]))
    columns = [column("what", id="fact"), column("value", is_long=True)]
    return Table("facts", message("section-data"), columns, rows, labels=2)


def _rounds(drill: Drill) -> Table:
    rows = []
    for mode, fault, rounds in drill.rounds:
        for r in rounds:
            outages = sorted(s for o in r.outages if (s := o.seconds) is not None)
            found = None if r.detected_ns is None or r.down_ns is None else (r.detected_ns - r.down_ns) / 1e9
            a = r.audit
            counts = (a.acknowledged, len(a.lost), a.unknown) if a else (None, None, None)
            middle = outages[len(outages) // 2] if outages else None
            others = listed(message("drill-rejoined", member=Name(m), how=how) for m, how in r.rejoined.items())
            rows.append(
                cells(
                    [
                        f"{_of(mode, fault)} {r.number}", r.old_primary, r.new_primary or None, r.tps, *counts, found,
                        middle, r.error or others,
                    ]
                )
            )  # fmt: skip
    return Table(
        "rounds",
        message("drill-table-rounds"),
        [
            column("round"), column("from", id="from-member"), column("to", id="to-member"),
            column("commits/s", _RATE), *(column(x, COUNT) for x in ("acked", "lost", "unknown")),
            column("found dead s", _SECONDS), column("outage s", _SECONDS), column("others", is_long=True),
        ],
        rows,
        labels=3,
    )  # fmt: skip


def _clients(drill: Drill) -> Table:
    """Return a table of the last commit before the outage and the first after it, by round and client."""
    rows = []
    for mode, fault, rounds in drill.rounds:
        for r in rounds:
            for o in r.outages:
                at = (None if t is None else (t - r.fault_ns) / 1e9 for t in (o.last_ns, o.first_ns))
                rows.append(cells([f"{_of(mode, fault)} {r.number}", o.client, *at, o.seconds]))
    note: list[Text] = [message("drill-note-clients")]
    if len(rows) > _MOST_CLIENTS:
        note.append(message("drill-note-first", n=_MOST_CLIENTS, of=len(rows)))
    columns = [column("round"), column("client", COUNT)]
    columns += [column(x, _SECONDS) for x in ("last s", "first s", "outage s")]
    return Table("clients", message("drill-table-clients"), columns, rows[:_MOST_CLIENTS], note)


def _load(drill: Drill, say: Say) -> Chart:
    """Return a chart of commits per second around each fault, with a panel for each fault and a line for each round."""
    found: dict[str, list[Mark]] = {}
    kinds: dict[str, str] = {}
    round_of = say(message("column-round"))
    for mode, fault, rounds in drill.rounds:
        marks = found.setdefault(_of(mode, fault), [])
        for r in rounds:
            points = [(round(at, 2), tps) for at, tps in r.series if -_BEFORE_S <= at <= _AFTER_S]
            marks.append(Line(points, f"{round_of} {r.number}", width=1.0, opacity=0.7, is_stepped=True))
            for (kind, at), colour in zip(_marks(r, say), _MARKS, strict=False):
                if at is None:
                    continue
                kinds[kind] = colour
                marks.append(Rule(x=at, colour=colour, dash="", hint=f"{kind}: {at:.2f} s"))
    outage = say(message("drill-tile-outage"))
    for mode, v in drill.verdicts:
        if v.outage_p50_s is not None and (shown := found.get(_of(mode, v.fault))):
            shown.insert(0, Span(0.0, v.outage_p50_s, outage, f"{v.outage_p50_s:.2f} s", GREY))
    points = [p for marks in found.values() for m in marks if isinstance(m, Line) for p in m.points]
    top = scale(Axis(), [y for _, y in points], 0, 1).high
    end = max([x for x, _ in points], default=_AFTER_S)
    x = Axis(say(message("axis-since-fault")), domain=(-_BEFORE_S, max(end, 1.0)), is_time=True)
    y = Axis(say(message("column-commits-s")), domain=(0.0, top), form="si")
    panels = [Panel(x, y, marks, name, 430, 120) for name, marks in found.items()]
    keys = [Key(name, colour, shape="line") for name, colour in kinds.items()]
    if any(isinstance(m, Span) for marks in found.values() for m in marks):
        keys.append(Key(outage, GREY, shape="span"))
    return Chart("load", message("drill-chart"), message("drill-chart-note"), Figure(panels, 2, keys))


def _marks(r: Round, say: Say) -> list[tuple[str, float | None]]:
    """Fault, found dead and promoted, in seconds since the fault; None: it was not seen."""
    known = (
        (message("mark-fault"), r.fault_ns), (message("mark-found-dead"), r.detected_ns),
        (message("mark-promoted"), r.promoted_ns),
    )  # fmt: skip
    return [(say(kind), round((ns - r.fault_ns) / 1e9, 3) if ns else None) for kind, ns in known]
