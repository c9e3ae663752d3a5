"""Reports as tests look at them: ids of messages, and their texts."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from pgdyno import i18n
from pgdyno.message import Listed, Message, Text
from pgdyno.plot.model import Figure


def ids(texts: Iterable[Text]) -> list[str]:
    """Return the ids of messages; of a name, its text."""
    return [x.id if isinstance(x, Message) else i18n.text(x) for x in texts]


def every_id(text: object) -> set[str]:
    """Return the ids of a message and of all messages within it."""
    match text:
        case Message(id=id, args=args):
            return {id, *(x for a in args.values() for x in every_id(a))}
        case Listed(items=items):
            return {x for item in items for x in every_id(item)}
    return set()


def words(texts: Iterable[Text], lang: str = "en") -> list[str]:
    """Return messages as text."""
    return [i18n.text(x, lang) for x in texts]


def english(page: str) -> list[str]:
    """Texts of a Chinese page, outside SQL and what others wrote, that hold English words in a row."""
    page = page.replace("select of somebody else", "")
    text = re.sub(r"<(script|style|pre)\b.*?</\1>", "", page, flags=re.DOTALL)
    texts = [html.unescape(x).strip() for x in re.findall(r">([^<>]+)<", text)]
    return [x for x in texts if re.search(r"\b[A-Za-z]{2,} [a-z]{2,} [a-z]{2,} [a-z]{2,}", x)]


def titles(figure: Figure) -> list[str]:
    """The texts of a chart: of its panels, axes, legends and lines."""
    found = [figure.legend, *(k.name for k in figure.keys)]
    for p in figure.panels:
        found += [p.title, p.x.title, p.y.title, *(k.name for k in p.keys)]
        found += [getattr(m, "name", "") for m in p.marks]
    return found
