"""Languages: messages written from the catalogues, English and Chinese side by side.

A catalogue is a file of `id = text` lines, a subset of Fluent's syntax. `{ $name }` stands for an argument, and
`{ " " }` for a blank at the begin of a text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from pgdyno.format import change, factor, integer, milliseconds, percent, plus_minus, rows, significant, size, span
from pgdyno.message import Argument, Listed, Message, Name, Text
from pgdyno.units import Quantity, Share

LANGUAGES = ("en", "zh")
_LOCALE = Path(__file__).parent / "locale"
_LINE = re.compile(r"([a-z][a-z0-9-]*) = (.*)")
_PLACE = re.compile(r'\{ (?:\$([a-z][a-z0-9_]*)|"([^"]*)") \}')
#: Units that a language writes in its own way.
_UNITS = {"zh": {"ms": "毫秒", "s": "秒", "min": "分钟", "h": "小时", "days": "天"}}
#: What stands between texts in a row.
_MARKS = {
    "en": {"comma": ", ", "list": ", ", "semicolon": "; ", "sentence": " ", "line": "\n", "none": ""},
    "zh": {"comma": "，", "list": "、", "semicolon": "；", "sentence": "", "line": "\n", "none": ""},
}


@cache
def catalogue(lang: str) -> dict[str, str]:
    """Return the texts of a language by id. Raise ValueError if a line is no `id = text`, or an id occurs twice."""
    found: dict[str, str] = {}
    for file in sorted((_LOCALE / lang).glob("*.ftl")):
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if not line or line.startswith("#"):
                continue
            match = _LINE.fullmatch(line)
            if match is None or match[1] in found:
                raise ValueError(f"{lang}/{file.name}:{number}: not `id = text`, or a repeated id: {line[:60]!r}")
            found[match[1]] = match[2]
    return found


def chosen(lang: str | None) -> str:
    """Return the language that was asked for, or that of the locale (LC_ALL, LC_MESSAGES, LANG).

    Raise ValueError for a language that pgdyno does not have.
    """
    if lang is not None:
        if lang not in LANGUAGES:
            raise ValueError(lang)
        return lang
    named = next((os.environ[n] for n in ("LC_ALL", "LC_MESSAGES", "LANG") if os.environ.get(n)), "")
    return "zh" if named.lower().startswith("zh") else "en"


def known(english: str, prefix: str) -> Message | None:
    """Return the message of that prefix that has exactly this English text, for texts of older records."""
    found = (k for k, v in catalogue("en").items() if k.startswith(prefix) and v == english)
    return next((Message(k) for k in found), None)


def arguments_of(text: str) -> set[str]:
    """Return the names of the arguments of a catalogue's text."""
    return {name for name, _ in _PLACE.findall(text) if name}


def writer(lang: str) -> Callable[[Text], str]:
    """Return a function that writes messages in a language."""
    return lambda m: text(m, lang)


def text(m: Text, lang: str = "en") -> str:
    """Write a message in a language. Raise KeyError for an id that no catalogue has, or an argument that is missing."""
    if not isinstance(m, Message):
        return written(m, lang)
    return _PLACE.sub(lambda p: written(m.args[p[1]], lang) if p[1] else p[2], catalogue(lang)[m.id])


def written(value: Argument, lang: str = "en") -> str:
    """Write an argument of a message in a language."""
    match value:
        case None:
            return ""
        case Message():
            return text(value, lang)
        case Name():
            return value.zh or value.text if lang == "zh" else value.text
        case Listed():
            return _MARKS[lang][value.mark].join(written(x, lang) for x in value.items)
        case Share():
            return _share(value, lang)
        case Quantity():
            return quantity(value, lang)
        case _:
            return f"{value:,}"


def quantity(q: Quantity, lang: str = "en") -> str:
    """Format a value with its unit."""
    match q.unit:
        case "share":
            return _percent(q.value) if q.digits is None else f"{q.value * 100:.{q.digits}f}%"
        case "%":
            return f"{significant(q.value * 100, q.digits or 3)}%"
        case "percent":
            return percent(q.value)
        case "half-width":
            return plus_minus(q.value)
        case "change":
            return change(q.value, q.digits)
        case "times":
            return factor(q.value, q.digits or 2)
        case "latency":
            return f"{milliseconds(q.value)} {_unit('ms', lang)}"
        case "rows":
            return rows(round(q.value))
        case "plain":
            return f"{q.value:.12g}"
        case "rate":
            return f"{q.value:,g}"
        case "whole":
            return f"{q.value:,.0f}"
        case "fixed":
            return f"{q.value:,.{q.digits or 0}f}"
        case "rate4":
            return f"{q.value:,.4g}"
        case "ms":
            return f"{significant(q.value / 1e6, 3)} {_unit('ms', lang)}"
        case "ns":
            return _span(q.value / 1e9, lang) if q.value >= 1e10 else f"{milliseconds(q.value)} {_unit('ms', lang)}"
        case "time":
            return quantity(Quantity(q.value, "ns"), lang) if q.value else f"0 {_unit('ms', lang)}"
        case "seconds":
            return _span(q.value, lang)
        case "duration":
            return _duration(q.value, lang)
        case "bytes":
            return size(q.value)
        case "MB/s":
            return f"{significant(q.value / 1e6, 3)} MB/s"
        case "bytes/s":
            mb = q.value / 1e6
            # Never an exponent.
            return f"{mb:,.0f} MB/s" if mb >= 100 else f"{significant(mb, 3)} MB/s"
        case "/s":
            return f"{integer(q.value)}/s"
        case "factor":
            return significant(q.value, 3)
        case "two":
            return significant(q.value, 2)
        case _:
            return integer(q.value)


def _percent(value: float) -> str:
    return f"{value * 100:.0f}%" if value >= 0.0995 else f"{value * 100:.1f}%"


def _share(p: Share, lang: str) -> str:
    digits = 0 if p.high >= 0.0995 else 1
    low, high = (f"{x * 100:.{digits}f}" for x in (max(0.0, p.low), p.high))
    if low == high:
        return _percent(p.mean)
    return f"{_percent(p.mean)}（{low} 至 {high}%）" if lang == "zh" else f"{_percent(p.mean)} ({low} to {high}%)"


def _span(seconds: float, lang: str) -> str:
    number, unit = span(seconds).split(" ")
    return f"{number} {_unit(unit, lang)}"


def _duration(seconds: float, lang: str) -> str:
    if seconds < 120:
        return f"{seconds:.1f} {_unit('s', lang)}"
    hours, rest = divmod(round(seconds), 3600)
    minutes = f"{rest // 60} {_unit('min', lang)}"
    return f"{hours} {_unit('h', lang)} {minutes}" if hours else f"{minutes} {rest % 60} {_unit('s', lang)}"


def _unit(name: str, lang: str) -> str:
    return _UNITS.get(lang, {}).get(name, name)
