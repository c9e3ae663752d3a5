"""Parts of messages that several causes share."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pgdyno.diagnosis.thresholds import Ranking
from pgdyno.message import Message, Name, message
from pgdyno.statements import is_commit
from pgdyno.units import Quantity

if TYPE_CHECKING:
    from pgdyno.diagnosis.observed import Observed

#: Characters of a statement that are shown.
_STATEMENT = 80
#: How PostgreSQL checks a foreign key or carries out its action (ri_triggers.c), and the table that it reads.
_CHECK = re.compile(
    r'(?:SELECT \S+ FROM|DELETE FROM|UPDATE) (?:ONLY )?("(?:[^"]|"")+"\."(?:[^"]|"")+") .*OPERATOR\(', re.DOTALL
)
_COLUMNS = re.compile(r"^select\b.*?\bfrom\b", re.IGNORECASE)


def shortened(statement: str) -> str:
    """Shorten a statement so that it fits into a sentence."""
    text = " ".join(statement.split()).rstrip("; ")
    if len(text) > _STATEMENT:
        # Which table it reads says more than which columns.
        text = _COLUMNS.sub("select … from", text, count=1)
    return text if len(text) <= _STATEMENT else f"{text[:_STATEMENT]}…"


def dominant_share(name: str, share: float) -> Message | None:
    """Return the dominant owner and its share, or None if unknown."""
    return message("mostly-of", share=Quantity(share, "share"), name=Name(name)) if name else None


def nested(e: Observed) -> Message | None:
    """Return what takes most of the statements' time within them, or None if it is little or unknown.

    It is a function, a check of foreign keys, a statement of either, or else a plan of very many tables.
    """
    found = [("nested", name, share, ms) for name, share, ms in e.functions[:1]]
    for text, share, ms in e.nested_statements[:1]:
        check = _CHECK.match(text)
        name = check[1].replace('"', "") if check else shortened(text)
        found.append(("nested-foreign-key" if check else "nested-statement", name, share, ms))
    # Of a function and a statement of its own, the function.
    id, name, share, ms = max(found, key=lambda x: x[2], default=("", "", 0.0, 0.0))
    if share < Ranking.FUNCTION_NAMED:
        return _many_tables(e)
    return message(id, name=Name(name), share=Quantity(share, "share"), each=Quantity(ms * 1e6, "ns"))


def _many_tables(e: Observed) -> Message | None:
    """Return the statement whose plan scans most tables: each is planned, locked and opened every time."""
    statement, n = e.widest_plan
    if n < Ranking.TABLES_NAMED:
        return None
    return message("many-tables", statement=Name(shortened(statement)), n=n)


def slowest(e: Observed) -> Message | None:
    """Return the statement that takes most of a transaction's time, or None if no one stands out.

    COMMIT does not: its time is a wait for WAL.
    """
    statement, share = e.slowest_statement
    if share < Ranking.STATEMENT_NAMED or is_commit(statement):
        return None
    return message("slowest", statement=Name(shortened(statement)), share=Quantity(share, "share"))


def setting(e: Observed, name: str, otherwise: str = "setting-unknown") -> Name | Message:
    """Return the value of a server setting, or the message `otherwise` if it was not recorded."""
    value = e.setting(name)
    return Name(value) if value else message(otherwise)
