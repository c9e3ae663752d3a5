"""Values of a column, drawn: each is a quantile of a number between 0 and 1, so that any distribution can follow any
other column (a Gaussian copula).

Rows come in chunks, and each chunk has random numbers of its own: the data are the same whoever draws which.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy

from pgdyno.load.own.drawn import CHUNK, Drawn
from pgdyno.store import tabular

Array = np.ndarray[Any, Any]
_ALPHABET = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz0123456789", dtype=np.uint8)
#: Of a normal distribution, standard deviations between the least and the greatest.
_WIDE = 6.0
#: Of an exponential distribution, means between them.
_LONG = 7.0
_SEED = 20180901


def zipf(u: Array, n: int, s: float) -> Array:
    """Ranks from 1 to `n`, rank k about as often as k to the power of -s: the inverse of the continuous distribution on
    1 to n + 1.
    """
    x = (n + 1.0) ** u if abs(s - 1) < 1e-9 else (((n + 1.0) ** (1 - s) - 1) * u + 1) ** (1 / (1 - s))
    return np.asarray(np.clip(np.floor(x), 1, n))


def shape(u: Array, c: Drawn) -> Array:
    """From 0 to below 1."""
    if c.distribution == "normal":
        return np.asarray(np.clip(scipy.special.ndtri(u) / _WIDE + 0.5, 0, 1 - 1e-12))
    if c.distribution == "exponential":
        return np.asarray(np.clip(-np.log1p(-u) / _LONG, 0, 1 - 1e-12))
    if c.distribution == "zipf":
        n = max(1, min(int(c.high - c.low) + 1, 1 << 52)) if c.type != "number" else 10_000
        return np.asarray((zipf(u, n, c.skew) - 1) / n)
    return u


def chunk(columns: Sequence[Drawn], table: int, first: int, end: int, rows: int) -> bytes:
    """Rows from `first` to `end` of the `table`-th table, which has `rows`, as CSV."""
    rng = np.random.default_rng([_SEED, table, first // CHUNK])
    index = np.arange(first, end, dtype=np.int64)
    drawn: dict[str, Array] = {}
    out = []
    for c in _in_order(columns):
        u = _uniform(c, index, rows, drawn, rng)
        drawn[c.name] = u
        values = _values(c, u, index, rows, rng)
        if c.nulls:
            values = tabular.without(values, rng.random(len(index)) < c.nulls)
        out.append((columns.index(c), values))
    return tabular.as_csv([values for _, values in sorted(out, key=lambda x: x[0])])


def _in_order(columns: Sequence[Drawn]) -> list[Drawn]:
    """Those that others follow first."""
    done: list[Drawn] = []
    left = list(columns)
    while left:
        names = {c.name for c in done}
        ready = [c for c in left if not c.like or c.like in names]
        # Whoever made the columns has seen to it that there is no circle.
        done += ready or left
        left = [c for c in left if c not in done]
    return done


def _uniform(c: Drawn, index: Array, rows: int, drawn: Mapping[str, Array], rng: np.random.Generator) -> Array:
    if c.type == "serial":
        return (index + 0.5) / rows
    u = rng.random(len(index))
    if not c.like:
        return u
    r = c.correlation
    return np.asarray(
        scipy.special.ndtr(
            r * scipy.special.ndtri(drawn[c.like]) + math.sqrt(1 - r * r) * scipy.special.ndtri(np.maximum(u, 1e-300))
        )
    )


def _values(c: Drawn, u: Array, index: Array, rows: int, rng: np.random.Generator) -> tabular.Column:
    if c.type == "serial":
        return tabular.numbers(int(c.low) + index)
    if c.divisor:
        return tabular.numbers(int(c.low) + index // c.divisor * c.step % (int(c.high - c.low) + 1))
    if c.type in ("integer", "reference"):
        width = int(c.high) - int(c.low) + 1
        return tabular.numbers(int(c.low) + np.minimum(np.floor(shape(u, c) * width), width - 1).astype(np.int64))
    if c.type == "number":
        return tabular.numbers(np.round(c.low + shape(u, c) * (c.high - c.low), c.decimals))
    if c.type in ("timestamp", "date"):
        return tabular.instants(np.floor(c.low + shape(u, c) * (c.high - c.low + 1)), c.type)
    if c.type == "boolean":
        return tabular.numbers(u < 0.5)
    if c.type == "choice":
        weights = np.cumsum(np.asarray(c.weights or [1.0] * len(c.values), dtype=np.float64))
        at = np.searchsorted(weights / weights[-1], shape(u, c), side="right")
        return tabular.chosen(np.minimum(at, len(c.values) - 1), c.values)
    if c.type == "uuid":
        return tabular.texts(np.full(len(index), 32), rng.bytes(16 * len(index)).hex().encode())
    return _text(c, u, index, rows, rng)


def _text(c: Drawn, u: Array, index: Array, rows: int, rng: np.random.Generator) -> tabular.Column:
    lengths = np.floor(c.low + shape(u, c) * (c.high - c.low + 1)).astype(np.int64)
    digits = max(1, math.ceil(math.log(max(2, rows), len(_ALPHABET)))) if c.unique else 0
    lengths = np.maximum(lengths, digits)
    letters = _ALPHABET[rng.integers(0, len(_ALPHABET), int(lengths.sum()), dtype=np.int64)]
    starts = np.cumsum(lengths) - lengths
    rest = index.copy()
    for n in range(digits):
        # The row's number, its digits first.
        letters[starts + n] = _ALPHABET[rest % len(_ALPHABET)]
        rest //= len(_ALPHABET)
    return tabular.texts(lengths, letters.tobytes())
