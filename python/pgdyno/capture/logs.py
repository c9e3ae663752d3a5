"""From a server's log (csvlog or jsonlog, with durations or statements): its transactions, statement by statement, with
parameters drawn from the values that were seen.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pgdyno.capture import draws, sql
from pgdyno.capture.draws import Distribution, Draw
from pgdyno.capture.statements import (
    Capture,
    Captured,
    Catalog,
    by_chance,
    is_open,
    may_write,
    name_of,
    shown,
    with_draws,
)
from pgdyno.errors import UsageError

_MESSAGE = re.compile(r"^(?:duration: [\d.]+ ms +)?(?:statement|execute [^:]*): (.*)$", re.DOTALL)
_PARAMETERS = re.compile(r"\$(\d+) = (NULL|'(?:[^']|'')*')")
#: Of csvlog's columns.
_CSV = {"dbname": 2, "session_id": 5, "message": 13, "detail": 14, "application_name": 22}
#: What begins and ends transactions.
_READ_WRITE = re.compile(r"\s*(?:begin|start|set)\b.*\bread\s+write\b", re.IGNORECASE | re.DOTALL)
_BOUNDS = ("begin", "start transaction", "commit", "end", "rollback", "abort")
#: Characters of a message.
_LONGEST = 64 << 20
_INTEGERS = ("smallint", "integer", "bigint")


@dataclass(frozen=True)
class Statement:
    """As the log has it."""

    session: str
    text: str
    parameters: dict[int, str | None]


def statements(paths: Sequence[Path], database: str) -> Iterator[Statement]:
    """All statements of a database, in order. Raises UsageError with file and line."""
    for path in paths:
        try:
            with path.open(encoding="utf-8", errors="replace", newline="") as f:
                yield from _of_json(path, f, database) if path.suffix == ".json" else _of_csv(path, f, database)
        except OSError as e:
            raise UsageError(f"cannot read {path}: {e.strerror}") from e


def _of_csv(path: Path, lines: Iterator[str], database: str) -> Iterator[Statement]:
    csv.field_size_limit(_LONGEST)
    for number, row in enumerate(csv.reader(lines), 1):
        if len(row) < 23:
            raise UsageError(
                f"{path}: entry {number} has {len(row)} columns: it is no csvlog of PostgreSQL's",
                "log_destination = 'csvlog' (or 'jsonlog', a .json file), log_min_duration_statement = 0.",
            )
        facts = {name: row[at] for name, at in _CSV.items()}
        if facts["dbname"] == database:
            yield from _statement(facts)


def _of_json(path: Path, lines: Iterator[str], database: str) -> Iterator[Statement]:
    for number, line in enumerate(lines, 1):
        try:
            facts = json.loads(line)
            if not isinstance(facts, dict):
                raise ValueError("it is no object")
        except ValueError as e:
            raise UsageError(f"{path}:{number}: {e}: it is no jsonlog of PostgreSQL's") from e
        if facts.get("dbname") == database:
            yield from _statement({name: str(facts.get(name) or "") for name in _CSV})


def _statement(facts: dict[str, str]) -> Iterator[Statement]:
    match = _MESSAGE.match(facts["message"])
    if match is None or facts["application_name"] == "pgdyno admin":
        return
    given = {
        int(n): None if v == "NULL" else v[1:-1].replace("''", "'") for n, v in _PARAMETERS.findall(facts["detail"])
    }
    yield Statement(facts["session_id"], match[1], given)


def of_log(paths: Sequence[Path], database: str, catalog: Catalog, *, top: int, read_only: bool) -> Capture:
    """Transactions by the statements that they are made of, the most frequent first."""
    seen: dict[tuple[str, ...], list[list[dict[int, str | None]]]] = {}
    for transaction in _transactions(statements(paths, database)):
        general = [_general(s) for s in transaction]
        texts = tuple(text for text, _ in general)
        if all(sql.is_control(t) for t in texts):
            continue
        seen.setdefault(texts, []).append([values for _, values in general])
    out = Capture()
    whole = sum(map(len, seen.values())) or 1
    for texts, given in sorted(seen.items(), key=lambda x: -len(x[1])):
        why = _why_not(texts, catalog, read_only) or (
            "" if len(out.scripts) < top else f"beyond the first {top} (--top)"
        )
        script = why or _script(texts, given, catalog, len(out.scripts) + 1)
        if isinstance(script, str):
            out.left_out.append((script, "; ".join(map(shown, texts)), len(given)))
        else:
            out.scripts.append(script)
            out.covered += len(given) / whole
    return out


def _transactions(every: Iterator[Statement]) -> Iterator[list[Statement]]:
    under_way: dict[str, list[Statement]] = {}
    for s in every:
        current = under_way.setdefault(s.session, [])
        current.append(s)
        first = current[0].text.strip().lower()
        opened = first.startswith(("begin", "start transaction"))
        ended = s.text.strip().lower().startswith(("commit", "end", "rollback", "abort"))
        if not opened or ended:
            yield under_way.pop(s.session)
    yield from (x for x in under_way.values() if x)


def _general(s: Statement) -> tuple[str, dict[int, str | None]]:
    if sql.is_control(s.text):
        return s.text.strip().rstrip(";"), {}
    text, values = sql.generalised(s.text)
    first = max(s.parameters, default=0)
    return text, {**s.parameters, **{first + n: v for n, v in enumerate(values, 1)}}


def _why_not(texts: Sequence[str], catalog: Catalog, read_only: bool) -> str:
    if any(sql.asks_catalog(t) for t in texts):
        return "it asks the catalog"
    for text in texts if read_only else ():
        why = "it asks for a transaction that writes" if _READ_WRITE.search(text) else may_write(text, catalog)
        if why:
            return why
    schema = [t for t in texts if sql.is_control(t) and not t.lower().startswith(_BOUNDS)]
    return f"it has {schema[0].split()[0]} in it" if schema else ""


def _script(
    texts: Sequence[str], given: Sequence[list[dict[int, str | None]]], catalog: Catalog, number: int
) -> Captured | str:
    lines: list[str] = []
    body: list[str] = []
    remarks: list[str] = []
    for at, text in enumerate(texts):
        if sql.is_control(text):
            body.append(f"{text};")
            continue
        types = catalog.types(text)
        if isinstance(types, str):
            return f"the server does not take its general form: {types}"
        drawn: dict[int, Draw] = {}
        tree = sql.parsed(text)
        if tree is None:
            return "it cannot be read, so which of its values are secrets is not known"
        uses = sql.uses(tree, catalog.names)
        # A value of which nobody knows where it goes, in a statement that has something to do with secrets.
        unsure = sql.names_secrets(text) or sql.has_no_columns(text)
        for n, type_ in enumerate(types, 1):
            values = [v for x in given if (v := x[at].get(n)) is not None]
            name = f"s{at + 1}p{n}"
            if not values:
                drawn[n] = Draw((), f"null::{type_}", "it was always null")
            elif catalog.is_secret(uses.get(n), type_) or (unsure and uses.get(n) is None and not is_open(type_)):
                drawn[n] = Draw((), by_chance(type_), "it may be a secret: drawn by chance")
            elif type_ in _INTEGERS and draws.are_integers(Distribution.of(values)):
                drawn[n] = draws.integers(name, Distribution.of(values))
            else:
                drawn[n] = draws.from_a_list(name, Distribution.of(values), type_)
        lines += [line for d in drawn.values() for line in d.lines]
        remarks += [f"statement {at + 1}, ${n}: {d.remark}" for n, d in drawn.items() if d.remark]
        body.append(f"{with_draws(text, drawn)};")
    main = next(t for t in texts if not sql.is_control(t))
    text = "\n".join([*lines, *body]) + "\n"
    return Captured(name_of(main, sql.parsed(main), number), text, len(given), remarks)
