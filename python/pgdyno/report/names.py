"""Names of configurations as messages."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.diagnosis.finding import Finding
from pgdyno.judge.groups import Group
from pgdyno.message import Listed, Message, Name, Text, counted, listed, message
from pgdyno.model import spelled
from pgdyno.units import Quantity


def clients(n: int) -> Message:
    """Return a number of clients."""
    return counted("n-clients", n)


def varied(g: Group | Finding, but: str = "") -> list[Text]:
    """Return the varied settings of a configuration, without the axis `but`, and its hot set.

    All of the rows is named only in a run that has other hot sets too.
    """
    hot = [message("hot-set", share=Quantity(g.hot_set, "%"))] if g.hot_set != 1 or g.has_hot_sets else []
    return [*(Name(f"{k} = {spelled(v)}") for k, v in g.varied.items() if k != but), *hot]


def configuration(g: Group | Finding, but: str = "") -> Listed:
    """Return the name of a configuration: workload, varied settings without the axis `but`, hot set, clients."""
    return listed([Name(g.workload), *varied(g, but), clients(g.clients)])


def apart(groups: Sequence[Group]) -> list[Listed]:
    """Return the names of configurations that stand beside each other: only the parts in which they differ."""
    whole = [configuration(g).items for g in groups]
    if len(whole) < 2:
        return [listed(items) for items in whole]
    common = [x for x in whole[0] if all(x in items for items in whole)]
    return [listed([x for x in items if x not in common] or items[:1]) for items in whole]


def trials_of(m: int, n: int) -> Message:
    """Return a number of trials of `n`."""
    return message("m-of-n-trials-one", m=m, n=n) if n == 1 else message("m-of-n-trials", m=m, n=n)
