"""Drawing of column values.

Each value is a quantile of a number between 0 and 1. Any distribution can therefore follow any other column (a
Gaussian copula). Each value is also a function of its row's number, so that the key of any row is known.
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy

from pgdyno.load.own import spellings
from pgdyno.load.own.drawn import Drawn, Filling, Pick
from pgdyno.load.own.sizes import size_of
from pgdyno.store import tabular

Array = np.ndarray[Any, Any]
_ALPHABET = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz0123456789", dtype=np.uint8)
#: A byte's letter.
_LETTERS = _ALPHABET[np.arange(256) % len(_ALPHABET)]
#: Of a normal distribution, standard deviations between the least and the greatest.
_WIDE = 6.0
#: Of an exponential distribution, means between them.
_LONG = 7.0
_SEED = 20180901
#: Values that floating point counts.
_EXACT = 2**52
_U64 = np.uint64


def zipf(u: Array, n: int, s: float) -> Array:
    """Return ranks from 1 to `n`, where rank k is about as frequent as k to the power of -`s`.

    The function is the inverse of the continuous distribution on 1 to n + 1.
    """
    x = (n + 1.0) ** u if abs(s - 1) < 1e-9 else (((n + 1.0) ** (1 - s) - 1) * u + 1) ** (1 / (1 - s))
    return np.asarray(np.clip(np.floor(x), 1, n))


def shape(u: Array, c: Drawn) -> Array:
    """Convert uniform random numbers to the column's distribution, from 0 to below 1."""
    if c.distribution == "normal":
        return np.asarray(np.clip(scipy.special.ndtri(u) / _WIDE + 0.5, 0, 1 - 1e-12))
    if c.distribution == "exponential":
        return np.asarray(np.clip(-np.log1p(-u) / _LONG, 0, 1 - 1e-12))
    if c.distribution == "zipf":
        n = size_of(c) if c.type == "number" else max(1, min(int(c.high - c.low) + 1, _EXACT))
        return np.asarray((zipf(u, n, c.skew) - 1) / n)
    return u


def mixed(x: Array) -> Array:
    """Permute 64-bit numbers so that neighbours are far apart.

    Source: the finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
    """
    x = x.astype(_U64)
    x = (x ^ (x >> _U64(30))) * _U64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> _U64(27))) * _U64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> _U64(31)))


def permuted(index: Array, total: int, seed: int) -> Array:
    """Permute the numbers from 0 to below `total`.

    The permutation is a Feistel network of four rounds over the next even power of two. It is repeated until the
    number is within the range again (Black and Rogaway, 2002).
    """
    half = _U64(max(1, (max(1, (total - 1).bit_length()) + 1) // 2))
    mask = (_U64(1) << half) - _U64(1)
    x = index.astype(_U64)
    outside = np.ones(len(x), dtype=bool)
    while outside.any():
        left, right = x[outside] >> half, x[outside] & mask
        for round_ in range(4):
            key = _U64((seed * 4 + round_ + 1) * 0x9E3779B97F4A7C15 % 2**64)
            left, right = right, left ^ (mixed(right + key) & mask)
        x[outside] = (left << half) | right
        outside = x >= _U64(total)
    return x.astype(np.int64)


class Drawer:
    """Draws the rows of tables that refer to each other; any thread may ask."""

    def __init__(self, fillings: Sequence[Filling]) -> None:
        self._of = {f.name: f for f in fillings}
        self._numbers = {f.name: n for n, f in enumerate(fillings)}
        self._lock = threading.RLock()
        self._kept: dict[tuple[str, ...], Any] = {}

    def chunk(self, f: Filling, first: int, end: int) -> bytes:
        """Rows from `first` to `end` as CSV."""
        index = np.arange(first, end, dtype=np.int64)
        rows = _Rows(self, f, index)
        return tabular.as_csv([rows.values(c) for c in f.columns])

    def column(self, table: str, name: str, index: Array) -> tabular.Column:
        """Values of one column, of these rows."""
        f = self._of[table]
        return _Rows(self, f, index).values(next(c for c in f.columns if c.name == name))

    def seed(self, table: str, name: str, what: str = "") -> int:
        """Return the seed of a column's random numbers."""
        text = f"{_SEED}/{self._numbers[table]}/{name}/{what}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")

    def rows_by(self, table: str, column: str) -> tuple[tabular.Column, Array, Array]:
        """Distinct values of a column; the table's rows in their order; and where each value's rows begin."""
        with self._lock:
            key = ("by", table, column)
            if key not in self._kept:
                whole = self.column(table, column, np.arange(self._of[table].rows, dtype=np.int64))
                self._kept[key] = tabular.grouped(whole)
            return self._kept[key]  # type: ignore[no-any-return]

    def rows_within(self, table: str, within: Sequence[tuple[str, str, str]]) -> Array:
        """Rows of a table whose columns have values that columns of other tables have."""
        with self._lock:
            key = ("within", table, *(x for w in within for x in w))
            if key not in self._kept:
                index = np.arange(self._of[table].rows, dtype=np.int64)
                for ours, other, theirs in within:
                    distinct, _, _ = self.rows_by(other, theirs)
                    index = index[tabular.places(self.column(table, ours, index), distinct) >= 0]
                self._kept[key] = index
            return self._kept[key]  # type: ignore[no-any-return]


class _Rows:
    """Some rows of a table."""

    def __init__(self, drawer: Drawer, f: Filling, index: Array) -> None:
        self._drawer, self._f, self._index = drawer, f, index
        self._columns = {c.name: c for c in f.columns}
        self._picks = {p.name: p for p in f.picks}
        self._chosen: dict[str, tuple[Array, Array]] = {}
        self._drawn: dict[str, tabular.Column] = {}

    def values(self, c: Drawn) -> tabular.Column:
        """Return a column's values, NULL among them."""
        if c.name not in self._drawn:
            values = self._picked(c) if c.type == "picked" else self._values(c)
            if c.nulls:
                values = tabular.without(values, self._plain_uniform(c.source or c.name, "null") < c.nulls)
            self._drawn[c.name] = values
        return self._drawn[c.name]

    def _plain_uniform(self, name: str, what: str = "") -> Array:
        return (self._hashed(name, what) >> _U64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54

    def _hashed(self, name: str, what: str = "", n: int = 0) -> Array:
        seed = (self._drawer.seed(self._f.name, name, what) + n * 0xD1B54A32D192ED03) % 2**64
        return mixed(self._index.astype(_U64) * _U64(0x9E3779B97F4A7C15) + _U64(seed))

    def _uniform(self, c: Drawn) -> Array:
        """Numbers between 0 and 1, which any distribution is a function of."""
        if c.type == "serial":
            return np.asarray((self._index + 0.5) / self._f.rows)
        if c.sorted_with:
            every = np.sort(np.stack([self._plain_uniform(name) for name in c.sorted_with]), axis=0)
            return np.asarray(every[list(c.sorted_with).index(c.name)])
        u = self._plain_uniform(c.source or c.name)
        if not c.like:
            return u
        other = self._columns[c.like]
        v = self._uniform(self._picks[other.pick].drawn if other.type == "picked" else other)
        r = c.correlation
        normal = scipy.special.ndtri
        return np.asarray(scipy.special.ndtr(r * normal(v) + math.sqrt(1 - r * r) * normal(u)))

    def _places(self, c: Drawn, size: int) -> Array:
        """Which of the `size` values of a column each row has."""
        if c.type in ("timestamp", "date", "number") and c.unique:
            return self._index * max(1, size // max(1, self._f.rows))
        if c.type == "serial" or c.unique:
            return self._index
        if c.digit is not None:
            d = c.digit
            return np.asarray(permuted(self._index, d.total, d.seed) // d.divisor % size)
        u = shape(self._uniform(c), c)
        if c.segments:
            # Which interval a row has is the same for all columns of the table.
            widths = np.asarray([b - a + 1 for a, b in c.segments])
            n = np.minimum((self._plain_uniform("@segment") * len(widths)).astype(np.int64), len(widths) - 1)
            return np.asarray((np.cumsum(widths) - widths)[n] + np.floor(u * widths[n]), dtype=np.int64)
        return np.asarray(np.minimum(np.floor(u * size), size - 1), dtype=np.int64)

    def _values(self, c: Drawn) -> tabular.Column:
        if c.type == "serial":
            return tabular.numbers(int(c.low) + self._index)
        if c.type == "text":
            return self._text(c)
        if c.type == "uuid":
            return self._uuid(c)
        if c.type == "choice":
            return self._choice(c)
        if c.type == "spelled":
            write = spellings.speller(c.spelling)
            return tabular.spelled([write(int(k)) for k in self._places(c, size_of(c))])
        if c.type == "number" and not (c.unique or c.digit or c.segments) and size_of(c) >= _EXACT:
            return tabular.numbers(np.round(c.low + shape(self._uniform(c), c) * (c.high - c.low), c.decimals))
        k = self._places(c, size_of(c))
        if c.type == "boolean":
            return tabular.numbers(k == 0)
        if c.type == "number":
            return tabular.numbers(np.round(c.low + k * 10.0**-c.decimals, c.decimals))
        values = _within_segments(c, k) if c.segments else int(c.low) + k
        return tabular.instants(values, c.type) if c.type in ("timestamp", "date") else tabular.numbers(values)

    def _choice(self, c: Drawn) -> tabular.Column:
        if c.unique or c.digit is not None or not c.weights:
            return tabular.chosen(self._places(c, len(c.values)), c.values)
        weights = np.cumsum(np.asarray(c.weights, dtype=np.float64))
        at = np.searchsorted(weights / weights[-1], shape(self._uniform(c), c), side="right")
        return tabular.chosen(np.minimum(at, len(c.values) - 1), c.values)

    def _uuid(self, c: Drawn) -> tabular.Column:
        if c.unique or c.digit is not None:
            seed = _U64(self._drawer.seed(self._f.name, c.name))
            k = self._places(c, size_of(c)).astype(_U64)
            parts = mixed(k + seed), mixed(k ^ seed)
        else:
            parts = self._hashed(c.name), self._hashed(c.name, n=1)
        octets = np.stack([part.astype(">u8").view(np.uint8).reshape(-1, 8) for part in parts], axis=1).reshape(-1, 16)
        return tabular.texts(np.full(len(octets), 32), octets.tobytes().hex().encode())

    def _text(self, c: Drawn) -> tabular.Column:
        # The number of characters has the distribution.
        lengths = np.floor(c.low + shape(self._uniform(c), c) * (c.high - c.low + 1)).astype(np.int64)
        size = size_of(c)
        is_key = c.unique or c.digit is not None
        places = self._places(c, size) if is_key else self._index
        count = self._f.rows if c.unique else size
        digits = 0 if not is_key else max(1, math.ceil(math.log(max(2, count), len(_ALPHABET)) - 1e-9))
        lengths = np.maximum(lengths, digits)
        most = int(lengths.max(initial=0))
        words = [self._hashed(c.name, "letters", n) for n in range(-(-most // 8))]
        letters = np.stack(words, axis=1).view(np.uint8) if words else np.zeros((len(lengths), 0), np.uint8)
        letters = _LETTERS[letters]
        for n in range(digits):
            # The row's number, its digits first.
            letters[:, n] = _ALPHABET[places % len(_ALPHABET)]
            places = places // len(_ALPHABET)
        used = np.arange(letters.shape[1])[None, :] < lengths[:, None]
        return tabular.texts(lengths, letters[used].tobytes())

    # ------------------------------------------------------------ rows of other tables

    def _picked(self, c: Drawn) -> tabular.Column:
        rows, absent = self._rows_of(self._picks[c.pick])
        p = self._picks[c.pick]
        if p.parent:
            values = self._drawer.column(p.parent, c.column, rows)
        else:
            values = tabular.spelled(list(p.pool[c.column])).take(tabular.numbers(rows))
        return tabular.without(values, absent) if absent.any() else values

    def _rows_of(self, p: Pick) -> tuple[Array, Array]:
        """Which row of the other table each refers to, and which refer to none."""
        if p.name not in self._chosen:
            self._chosen[p.name] = self._choose(p)
        return self._chosen[p.name]

    def _choose(self, p: Pick) -> tuple[Array, Array]:
        absent = np.zeros(len(self._index), dtype=bool)
        if p.drawn.nulls:
            absent = self._plain_uniform(p.name, "null") < p.drawn.nulls
        u = shape(self._uniform(p.drawn), p.drawn)
        if p.same is not None:
            ours, theirs = p.same
            distinct, order, begins = self._drawer.rows_by(p.parent, theirs)
            at = tabular.places(self.values(self._columns[ours]), distinct)
            absent |= at < 0
            at = np.maximum(at, 0)
            counts = begins[at + 1] - begins[at]
            return order[begins[at] + np.minimum((u * counts).astype(np.int64), counts - 1)], absent
        if p.other_than:
            rows, _ = self._rows_of(self._picks[p.other_than])
            size = size_of(p.drawn)
            return (rows + 1 + np.minimum((u * (size - 1)).astype(np.int64), size - 2)) % size, absent
        if p.before:
            rows = np.minimum((u * self._index).astype(np.int64), np.maximum(self._index - 1, 0))
            return rows, absent | ((self._index == 0) & p.first_is_null)
        if p.within:
            allowed = self._drawer.rows_within(p.parent, p.within)
            return allowed[np.minimum((u * len(allowed)).astype(np.int64), len(allowed) - 1)], absent
        return self._places(p.drawn, size_of(p.drawn)), absent


def _within_segments(c: Drawn, k: Array) -> Array:
    widths = np.asarray([int(b - a) + 1 for a, b in c.segments])
    begins = np.cumsum(widths) - widths
    n = np.searchsorted(begins, k, side="right") - 1
    return np.asarray(np.asarray([int(a) for a, _ in c.segments])[n] + k - begins[n])
