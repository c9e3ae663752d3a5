"""Formatting of figures and texts, every figure with its unit."""

from __future__ import annotations

import math
from decimal import Decimal


def printable(text: str) -> str:
    """Return a text without characters that control a terminal.

    The text may come from a server, a file, or a run of another user.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def one_line(error: object, most: int = 2_000) -> str:
    """Return what an error says in one line. Of a text without an end the beginning says enough."""
    text = str(error)
    line = " ".join(text[: 4 * most].split())
    return line if len(text) <= 4 * most and len(line) <= most else f"{line[:most]} … ({len(text):,} characters in all)"


def count(n: int, noun: str) -> str:
    """1 trial, 2 trials, 1,000 rows."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def integer(value: float) -> str:
    """1,234,567; three digits below a hundred; a dash for nothing."""
    if math.isnan(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 or value == 0 else f"{value:,.3g}"


def milliseconds(ns: float) -> str:
    """Three significant digits, in milliseconds: 0.0456, 1.23, 45.6, 1,230."""
    ms = ns / 1e6
    if ms == 0 or not math.isfinite(ms):
        return "–"
    digits = max(0, 2 - math.floor(math.log10(abs(ms))))
    return f"{ms:,.{min(digits, 4)}f}"


def percent(fraction: float | None) -> str:
    """3.4%; a dash for nothing."""
    return "–" if fraction is None or math.isnan(fraction) else f"{fraction * 100:.1f}%"


def plus_minus(fraction: float | None) -> str:
    """Format half the width of an interval, as a share of its figure.

    An interval that reaches below zero is not symmetric and says little: over 100%.
    """
    return ">100%" if fraction is not None and fraction > 1 else percent(fraction)


def factor(x: float, digits: int = 2) -> str:
    """Return a factor in significant digits, never with an exponent, e.g. 0.31, 4.2, 585 or 3,600."""
    rounded = float(f"{x:.{digits}g}")
    return f"{rounded:,.0f}" if rounded >= 10 ** (digits - 1) else f"{Decimal(repr(rounded)):f}".removesuffix(".0")


def change(ratio: float, digits: int | None = None) -> str:
    """Return a ratio as a change in percent, e.g. +4.2% or -13%."""
    part = (ratio - 1) * 100
    text = f"{part:+.{(0 if abs(part) >= 9.95 else 1) if digits is None else digits}f}%"
    return text[1:] if text.strip("+-0.%") == "" else text


def rows(n: int) -> str:
    """5 M, 500 k, 123."""
    for unit, size in (("G", 1_000_000_000), ("M", 1_000_000), ("k", 1_000)):
        if n >= size:
            return f"{n / size:g} {unit}"
    return str(n)


def size(n: float) -> str:
    """Bytes, in powers of 1024."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024:
            return f"{n:,.0f} {unit}" if unit == "B" else f"{n:,.1f} {unit}"
        n /= 1024
    return f"{n:,.1f} TiB"


def span(seconds: float) -> str:
    """Format a duration that need not be exact: 40 s, 12 min, 3 h, 5 days."""
    for unit, size_s, until in (("s", 1, 90), ("min", 60, 90 * 60), ("h", 3600, 36 * 3600)):
        if seconds < until:
            return f"{max(1, round(seconds / size_s))} {unit}"
    return f"{round(seconds / 86_400):,} days"


def significant(value: float, digits: int) -> str:
    """Format a number with a number of significant digits, without an exponent."""
    if value == 0 or not math.isfinite(value) or 1e-4 <= abs(value) < 10**digits * 0.99:
        return f"{value:.{digits}g}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{places}f}"
