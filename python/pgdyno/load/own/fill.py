"""Tables filled with values that are drawn, over several connections by COPY."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing, suppress
from queue import Empty, SimpleQueue
from threading import Event

import psycopg

from pgdyno.cluster import administration
from pgdyno.cluster.target import Target
from pgdyno.errors import SpecError, msg
from pgdyno.format import one_line
from pgdyno.load.find import Connection
from pgdyno.load.own.draw import Drawer
from pgdyno.load.own.drawn import CHUNK, Filling

#: Chunks in one COPY: its rows come or go together.
_TOGETHER = 4


def filled(target: Target, f: Filling, drawer: Drawer, connections: int, pool: Executor) -> Iterator[tuple[int, int]]:
    """Fill a table; yield rows and bytes as they are loaded.

    Raise SpecError if the server refuses a value.
    """
    stop, done = Event(), SimpleQueue[tuple[int, int]]()
    step = CHUNK * _TOGETHER
    starts = list(range(0, f.rows, step))
    # Rows that refer to earlier ones come one after the other.
    sessions = 1 if f.in_order else connections
    parts = [pool.submit(_part, target, f, drawer, starts[n::sessions], step, stop, done) for n in range(sessions)]
    try:
        while not all(part.done() for part in parts):
            with suppress(Empty):
                yield done.get(timeout=0.1)
            for part in parts:
                # One that fails ends the others.
                if part.done():
                    part.result()
        for part in parts:
            part.result()
        while not done.empty():
            yield done.get()
    except psycopg.Error as e:
        column = e.diag.column_name or _column_of(e.diag.context or "")
        raise SpecError(
            f"fill.{f.name}: {e.diag.message_primary or one_line(e)}"
            + (f" ({e.diag.message_detail})" if e.diag.message_detail else ""),
            msg("remedy-say-how-drawn-under-fill", column=column or "COLUMN", name=f.name),
        ) from e
    finally:
        # Ctrl-C: what is under way ends with its chunk.
        stop.set()


def _column_of(context: str) -> str:
    """Return the column in an error context such as "COPY t, line 3, column c: ...".

    Return an empty string if the context names no column.
    """
    match = re.search(r"^COPY .*, line \d+, column ([^:]+)", context)
    return "" if match is None else match[1]


def _part(
    target: Target,
    f: Filling,
    drawer: Drawer,
    starts: Sequence[int],
    step: int,
    stop: Event,
    done: SimpleQueue[tuple[int, int]],
) -> None:
    if not starts:
        return
    names = ", ".join('"' + c.name.replace('"', '""') + '"' for c in f.columns)
    sql = f"copy {f.name} ({names}) from stdin (format csv)".encode()
    with closing(administration.connect(target, patience_s=None)) as conn:
        conn.execute("set timezone to 'UTC'")
        conn.execute("set datestyle to 'ISO'")
        for start in starts:
            end = min(start + step, f.rows)
            sent = 0
            with conn.cursor().copy(sql) as to:
                for first in range(start, end, CHUNK):
                    if stop.is_set():
                        return
                    piece = drawer.chunk(f, first, min(first + CHUNK, end))
                    to.write(piece)
                    sent += len(piece)
            done.put((end - start, sent))


def set_sequences(conn: Connection, fillings: Sequence[Filling]) -> None:
    """Set the sequences so that their next values follow the drawn values."""
    for f in fillings:
        for c in f.columns:
            if c.type != "serial" or not f.rows:
                continue
            row = conn.execute("select pg_catalog.pg_get_serial_sequence(%s, %s)", [f.name, c.name]).fetchone()
            if row is not None and row[0] is not None:
                conn.execute("select pg_catalog.setval(%s::pg_catalog.regclass, %s)", [row[0], int(c.low) + f.rows - 1])
