"""The clients' time as one bar of 100% for each configuration: on CPUs, each wait, network and client."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.diagnosis.observed import Observed
from pgdyno.judge.groups import Group
from pgdyno.message import message
from pgdyno.plot.model import COLOURS, GREY, Axis, Figure, Key, Panel, Piece
from pgdyno.report import names, timeline
from pgdyno.report.charts import Chart, Say
from pgdyno.results.analysis import RunAnalysis

#: Bars of the chart, and states with a colour of their own.
_MOST_BARS, _MOST_STATES = 8, len(COLOURS)
#: Share of a bar from which its percentage is written in it.
_WRITTEN = 0.05
_WIDTH, _BAR = 620, 34


def chart(run: RunAnalysis, groups: Sequence[Group], say: Say) -> Chart | None:
    """Return the chart, or None if the clients' time was not sampled."""
    shown = [(g, shares(run.observed(g.trials), say)) for g in groups[:_MOST_BARS]]
    shown = [(g, parts) for g, parts in shown if parts]
    if not shown:
        return None
    totals: dict[str, float] = {}
    for _, parts in shown:
        for name, share in parts.items():
            totals[name] = totals.get(name, 0.0) + share
    order = sorted(totals, key=lambda n: -totals[n])
    named = order[:_MOST_STATES]
    palette = dict(zip(named, timeline.state_colours(named, timeline.own_colours(say)), strict=True))
    others = say(message("wait-others"))
    pieces, bands = [], []
    for name_of, (_, parts) in zip(names.apart([g for g, _ in shown]), shown, strict=True):
        band = say(name_of)
        bands.append(band)
        at = 0.0
        rest = sum(share for name, share in parts.items() if name not in palette)
        for name, share in [*((n, parts.get(n, 0.0)) for n in palette), (others, rest)]:
            if share > 0:
                text = f"{share:.0%}" if share >= _WRITTEN else ""
                hint = f"{band}: {name} {share:.1%}"
                pieces.append(Piece(band, at, at + 100 * share, text, hint, palette.get(name, GREY)))
            at += 100 * share
    keys = [Key(name, colour) for name, colour in palette.items()]
    if len(totals) > len(palette):
        keys.append(Key(others, GREY))
    x = Axis(say(message("axis-clients-time")), domain=(0.0, 100.0))
    panel = Panel(x, Axis(kind="band", bands=tuple(bands)), pieces, width=_WIDTH, height=_BAR * len(bands))
    return Chart(
        "client-time", message("chart-client-time"), message("chart-client-time-note"), Figure([panel], keys=keys)
    )


def shares(observed: Observed, say: Say) -> dict[str, float]:
    """Return the share of the clients' time in each state by its name; together 1. Empty: not sampled.

    Idle time on purpose (the next arrival, a pause, the other side's turn) is in no share.
    """
    seconds: dict[str, float] = {}
    for r in observed.trials:
        for sample in r.client_time:
            for what, clients in sample.counts.items():
                if what[0] == "idle" and observed.is_idle_on_purpose:
                    continue
                name = timeline.state_name(what, say)
                seconds[name] = seconds.get(name, 0.0) + sample.seconds * clients
    whole = sum(seconds.values())
    return {name: s / whole for name, s in seconds.items()} if whole > 0 else {}
