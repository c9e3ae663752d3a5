"""Turns of the two sides of a duet: how long they are, how many there are, and in which order."""

from __future__ import annotations

import math
import random

#: Slices of a measurement whose length is left open, and the bounds of that length, seconds.
_SLICES, _SHORTEST_S, _LONGEST_S = 60, 0.25, 2.0
#: Time before a slice in which the other side's transactions end: a share of the slice, and the minimum, seconds.
_TRANSITION, _LEAST_S = 0.1, 0.03


def slice_of(duration_s: float) -> float:
    """Return the seconds of a slice that has no length of its own."""
    return min(_LONGEST_S, max(_SHORTEST_S, duration_s / _SLICES))


def transition_of(slice_s: float) -> float:
    """Return the seconds that are left out before each slice."""
    return max(_LEAST_S, _TRANSITION * slice_s)


def turns_for(seconds: float, slice_s: float, *, together: bool = False) -> int:
    """Return the number of turns, of both sides together, that hold this many seconds of each side.

    The number is a multiple of four if the sides take turns.
    """
    if together:
        return math.ceil(seconds / slice_s - 1e-9)
    return 4 * math.ceil(seconds / slice_s / 2 - 1e-9)


def order_of(turns: int, seed: int) -> list[int]:
    """Return the order of the turns: A B B A or B A A B, chosen at random.

    A drift then affects both sides equally.
    """
    rng = random.Random(seed)
    out: list[int] = []
    while len(out) < turns:
        first = rng.randrange(2)
        out += [first, 1 - first, 1 - first, first]
    return out[:turns]
