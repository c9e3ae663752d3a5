"""Names of configurations as messages."""

from __future__ import annotations

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


def trials_of(m: int, n: int) -> Message:
    """Return a number of trials of `n`."""
    return message("m-of-n-trials-one", m=m, n=n) if n == 1 else message("m-of-n-trials", m=m, n=n)
