"""Capture of a server's log: its transactions, statement by statement.

Parameters are drawn from the values that were seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

from pgdyno.capture import bounds, described, draws, lexical, logfiles, parameters, picks, sql
from pgdyno.capture.catalog import INTEGERS, Catalog
from pgdyno.capture.draws import Distribution, Draw, Listed
from pgdyno.capture.logfiles import Statement
from pgdyno.capture.pace import Pace, at_once, packed, think_time
from pgdyno.capture.relations import Relations
from pgdyno.capture.secrets import holds_none, looks_random
from pgdyno.capture.statements import (
    Capture,
    Captured,
    LeftOut,
    Replayed,
    listed_of,
    may_write,
    name_of,
    needs_of,
    prepared_form,
    shown,
    unfound,
    with_draws,
)
from pgdyno.errors import UsageError, msg
from pgdyno.message import Message, Text

#: What begins and ends transactions.
_READ_WRITE = re.compile(r"\s*(?:begin|start|set)\b.*\bread\s+write\b", re.IGNORECASE | re.DOTALL)
_BEGINS = re.compile(r"(?:begin|start\s+transaction)\b", re.IGNORECASE)
#: ROLLBACK TO a savepoint ends nothing.
_ENDS = re.compile(r"(?:commit|end|rollback(?!\s+(?:work\s+|transaction\s+)?to\b)|abort)\b", re.IGNORECASE)
_WITHIN = re.compile(
    r"(?:begin|start|commit|end|rollback|abort|savepoint|release)\b|set\s+local\s+(?:statement_timeout|lock_timeout|"
    r"idle_in_transaction_session_timeout|work_mem|synchronous_commit|enable_\w+|random_page_cost|jit|"
    r"max_parallel_workers_per_gather|constraint_exclusion|plan_cache_mode)\b",
    re.IGNORECASE,
)
#: Lists of any length are one statement.
_LIST = re.compile(r"\bin\s*\(\s*\$\d+(?:\s*,\s*\$\d+)*\s*\)", re.IGNORECASE)
_SETS = re.compile(r"\bset_config\s*\(", re.IGNORECASE)
#: A shorter log tells no rate.
_MOMENT_S = 1.0
_NUMBERS = (*INTEGERS, "numeric", "real", "double precision")


@dataclass
class _Seen:
    """Transactions that are alike: their statements, the values of each, and one of them as it was."""

    texts: tuple[str, ...]
    originals: tuple[str, ...]
    given: list[list[dict[int, str | None]]] = field(default_factory=list)
    #: How long each took in the server; None: not known.
    ms: list[float | None] = field(default_factory=list)
    #: Its session, and when it was begun.
    begun: list[tuple[str, float | None]] = field(default_factory=list)
    #: Milliseconds that the client let pass before each statement; None: not known.
    idle: list[list[float | None]] = field(default_factory=list)


def read_log(
    paths: Sequence[Path],
    database: str,
    catalog: Catalog,
    *,
    top: int,
    read_only: bool,
    prefix: str = "",
    replay: bool = False,
) -> Capture:
    """Capture the transactions of log files, grouped by their statements, the most frequent first.

    `prefix` is the server's log_line_prefix, for logs on stderr. With `replay`, each transaction keeps its time and
    its session. Raise UsageError if a log cannot be used.
    """
    reader = logfiles.Reader(paths, database, prefix)
    kinds: dict[tuple[str, ...], dict[tuple[str, ...], _Seen]] = {}
    clock = _Clock()
    replayed: list[tuple[Captured, _Seen]] = []
    for transaction in _transactions(reader.statements()):
        clock.saw(transaction)
        general = _general_of(transaction)
        texts = tuple(text for text, _ in general)
        if all(sql.is_session(t) for t in texts):
            continue
        # A replay keeps the lengths of lists.
        alike = kinds.setdefault(texts if replay else tuple(_shape(t) for t in texts), {})
        seen = alike.setdefault(texts, _Seen(texts, tuple(s.text for s in transaction)))
        seen.given.append([values for _, values in general])
        seen.ms.append(_ms_of(transaction))
        seen.begun.append((transaction[0].session, _begin_of(transaction)))
        seen.idle.append(_idle_before(transaction))
    out = Capture(notes=reader.notes())
    calls = {kind: sum(len(s.given) for s in alike.values()) for kind, alike in kinds.items()}
    out.of, out.is_of_log = msg("capture-of-log"), True
    times, whole = _times(kinds), sum(calls.values()) or 1
    for kind, alike in sorted(kinds.items(), key=lambda x: -calls[x[0]]):
        # Of lists of several lengths the most frequent stands for all.
        seen = max(alike.values(), key=lambda s: len(s.given))
        why = _why_not(seen.texts, catalog, read_only) or (
            None if len(out.scripts) < top else msg("capture-beyond", top=top)
        )
        values = replay and catalog.writes_all
        script = why or _script(seen, calls[kind], len(alike), catalog, len(out.scripts) + 1, with_values=values)
        if isinstance(script, Message):
            text = "; ".join(map(shown, seen.texts))
            out.left_out.append(LeftOut(script, text, calls[kind], times[kind] / (sum(times.values()) or 1)))
        else:
            out.add(script, catalog)
            out.covered += calls[kind] / whole
            replayed.append((script, seen))
    if replay:
        out.replay = _replayed(replayed, clock)
    out.notes = [*out.notes, *unfound(out)]
    out.pace = clock.pace(sum(s.calls for s in out.scripts))
    return out


def _times(kinds: dict[tuple[str, ...], dict[tuple[str, ...], _Seen]]) -> dict[tuple[str, ...], float]:
    """Return the time that each kind of transaction took.

    The number of transactions takes its place if the log does not give the duration of all of them.
    """
    ms = {kind: [ms for s in alike.values() for ms in s.ms] for kind, alike in kinds.items()}
    is_known = all(x is not None for of in ms.values() for x in of)
    return {kind: sum(x or 0.0 for x in of) if is_known else float(len(of)) for kind, of in ms.items()}


@dataclass
class _Clock:
    """Execution periods of transactions, by session."""

    spans: dict[str, tuple[float, float]] = field(default_factory=dict)
    busy_s: float = 0.0

    def saw(self, transaction: Sequence[Statement]) -> None:
        """One that is over."""
        ends = [s.at for s in transaction if s.at is not None]
        if not ends:
            return
        begin = _begin_of(transaction) or ends[0]
        first, last = self.spans.get(transaction[0].session, (begin, ends[-1]))
        self.spans[transaction[0].session] = (min(first, begin), max(last, ends[-1]))
        self.busy_s += ends[-1] - begin

    def pace(self, transactions: int) -> Pace | None:
        """Return the pace of the transactions: the number per second.

        None means that the log has no times, or covers only a moment.
        """
        seconds = max((b for _, b in self.spans.values()), default=0) - min(
            (a for a, _ in self.spans.values()), default=0
        )
        if seconds < _MOMENT_S:
            return None
        return Pace(transactions / seconds, seconds, at_once(self.spans.values()), self.busy_s / seconds)


def _begin_of(transaction: Sequence[Statement]) -> float | None:
    first = transaction[0]
    return None if first.at is None else first.at - (first.ms or 0.0) / 1e3


def _idle_before(transaction: Sequence[Statement]) -> list[float | None]:
    """Return how long the session waited for its client before each statement, in milliseconds.

    An entry is None if it is not known. A clock of whole seconds does not tell these times.
    """
    out: list[float | None] = [0.0]
    tells = any(s.at is not None and s.at % 1 for s in transaction)
    for before, s in pairwise(transaction):
        known = tells and s.ms is not None and s.at is not None and before.at is not None
        out.append(((s.at or 0.0) - (before.at or 0.0)) * 1e3 - (s.ms or 0.0) if known else None)
    return out


def _replayed(of: Sequence[tuple[Captured, _Seen]], clock: _Clock) -> Replayed:
    """Schedule the transactions at their times.

    Raise UsageError if the log does not give the times.
    """
    begins = [at for _, seen in of for _, at in seen.begun]
    if any(at is None for at in begins):
        raise UsageError(msg("error-replay-log-does-not-say"), msg("remedy-m-log-line-prefix-writes"))
    first = min((at for at in begins if at is not None), default=0.0)
    used = {session for _, seen in of for session, _ in seen.begun}
    clients = packed({s: span for s, span in clock.spans.items() if s in used})
    lines: list[tuple[int, float, str, str, Sequence[str | None]]] = []
    for script, seen in of:
        for (session, at), given in zip(seen.begun, seen.given, strict=True):
            values = [given[n].get(p) for n, p in script.scheduled]
            due = ((at or first) - first) * 1e3
            lines.append((clients[session], due, script.name, _sample_of(script) if values else "-", values))
    lines.sort(key=lambda line: line[1])
    samples = {_sample_of(s): [f"s{n + 1}p{p}" for n, p in s.scheduled] for s, _ in of if s.scheduled}
    seconds = lines[-1][1] / 1e3 if lines else 0.0
    return Replayed(len(set(clients.values())), seconds, lines, samples)


def _sample_of(script: Captured) -> str:
    return f"r{script.name.partition('-')[0]}"


def _ms_of(transaction: Sequence[Statement]) -> float | None:
    """Return the time in ms that the statements of a transaction took, or None if the log does not tell."""
    known = [s.ms for s in transaction]
    return sum(ms for ms in known if ms is not None) if all(ms is not None for ms in known) else None


def _shape(text: str) -> str:
    return re.sub(r"\$\d+", "$", _LIST.sub("in (...)", text))


def _transactions(every: Iterator[Statement]) -> Iterator[list[Statement]]:
    under_way: dict[str, list[Statement]] = {}
    for s in _parted(every):
        current = under_way.setdefault(s.session, [])
        current.append(s)
        opened = _BEGINS.match(sql.bare(current[0].text)) is not None
        ended = _ENDS.match(sql.bare(s.text)) is not None
        if not opened or ended:
            yield under_way.pop(s.session)
    yield from (x for x in under_way.values() if x)


def _parted(every: Iterator[Statement]) -> Iterator[Statement]:
    """Messages of several statements as these, within the transaction that they are."""
    for s in every:
        parts = lexical.split(s.text) if ";" in s.text else [s.text]
        if len(parts) < 2:
            yield s
            continue
        if not any(_BEGINS.match(p) or _ENDS.match(p) for p in parts):
            parts = ["BEGIN", *parts, "COMMIT"]
        for part in parts:
            yield replace(s, text=part, ms=None if s.ms is None else s.ms / len(parts))


_SAVEPOINT = re.compile(
    r"^((?:savepoint|release(?: savepoint)?|rollback (?:(?:work|transaction) )?to(?: savepoint)?) )"
    r"(\"(?:[^\"]|\"\")+\"|\w+)$",
    re.IGNORECASE,
)


def _general_of(transaction: Sequence[Statement]) -> list[tuple[str, dict[int, str | None]]]:
    """Statements without constants and comments; savepoints by their number, since drivers count theirs up."""
    names: dict[str, str] = {}
    out = []
    for s in transaction:
        text, values = _general(s)
        if (m := _SAVEPOINT.match(text)) is not None:
            text = f"{m[1]}s{names.setdefault(m[2], str(len(names) + 1))}"
        out.append((text, values))
    return out


def _general(s: Statement) -> tuple[str, dict[int, str | None]]:
    if sql.is_control(s.text):
        text = lexical.without_comments(s.text)
        # What is no part of a script has no constants in a list of what was left out.
        return (text if _WITHIN.match(text) else lexical.general(text)[0]), {}
    text, values = lexical.general(s.text)
    return text, {**s.parameters, **dict(enumerate(values, lexical.highest(s.text) + 1))}


def _why_not(texts: Sequence[str], catalog: Catalog, read_only: bool) -> Message | None:
    if any(sql.asks_catalog(t) for t in texts):
        return msg("capture-asks-catalog")
    for text in texts if read_only else ():
        why = msg("capture-read-write") if _READ_WRITE.search(text) else may_write(text, catalog)
        if why:
            return why
    schema = [t for t in texts if sql.is_control(t) and not _WITHIN.match(t)]
    return msg("capture-contains", command=schema[0].split()[0]) if schema else None


def _known(text: str, original: str, catalog: Catalog) -> tuple[str, list[str] | str]:
    """Return a general form that the server accepts and the types of its parameters.

    If it accepts none, return the reason in place of the types. Numbers keep their types if the server would infer
    another one for them.
    """
    types = catalog.types(text)
    if isinstance(types, str):
        for casts in (lexical.Casts.NONE, lexical.Casts.ALL):
            other, _ = lexical.general(original, casts)
            if not isinstance(found := catalog.types(other), str):
                return other, found
        return text, types
    plain, _ = lexical.general(original, lexical.Casts.NONE)
    inferred = catalog.types(plain) if plain != text else types
    same = not isinstance(inferred, str) and all(
        a == b or (a in _NUMBERS and b in _NUMBERS and b != "smallint") for a, b in zip(types, inferred, strict=True)
    )
    return (plain, inferred) if same else (text, types)


@dataclass
class _Values:
    """A statement of a transaction, and the values of its parameters in each transaction."""

    uses: dict[int, sql.Use]
    types: list[str]
    given: list[dict[int, str | None]]
    prefix: str
    place: str
    may_conflict: bool = False

    def of(self, n: int) -> list[str | None]:
        """Return the values of a parameter, by transaction."""
        return [x.get(n) for x in self.given]

    def alone(self, n: int, catalog: Catalog) -> Draw:
        """Draw a parameter by itself."""
        use, type_, name = self.uses.get(n), self.types[n - 1], f"{self.prefix}{n}"
        values = [v for v in self.of(n) if v is not None]
        if not values:
            return Draw((), f"null::{type_}", msg("draw-always-null"))
        table = catalog.tables.get(use.table) if use is not None else None
        varies = use is not None and use.inserted and len(set(values)) > 1
        if varies and use is not None and table is not None and parameters.is_new(table, use.column, self._described()):
            return parameters.new_key(name, table, use.column, type_)
        if words := [v for v in values if sql.is_word(use, v)]:
            return draws.from_a_list(name, Distribution.of(words), self.place)
        is_pattern = use is not None and use.how == "like" and not catalog.may_be_written(use, type_)
        if is_pattern and table is not None and catalog.has_rows(table):
            return picks.like(n, self._described(), table, values, catalog)
        is_number = use is not None and use.how == "equal" and type_ in INTEGERS
        if is_number and table is not None and use is not None and catalog.has_gaps(table, use.column):
            return parameters.alone(n, self._described(), catalog)
        if not catalog.may_be_written(use, type_):
            if catalog.column(use) is None and type_ in ("text", "character varying", "uuid"):
                return Draw((), looks_random(type_), msg("draw-unknown-random"))
            return parameters.alone(n, self._described(), catalog)
        of = Distribution.of(values)
        integers = type_ in INTEGERS and draws.are_integers(of)
        return draws.integers(name, of) if integers else draws.from_a_list(name, of, self.place)

    def column(self, n: int) -> tuple[str, str] | None:
        """Return the table and column that a parameter belongs to, or None if they are not known."""
        use = self.uses.get(n)
        return (use.table, use.column) if use is not None and use.column else None

    def together(self, relations: Relations, catalog: Catalog) -> dict[int, Draw]:
        """Return draws for parameters that come from one row, and for bounds that belong together.

        Parameters that all depend on earlier ones are excluded.
        """

        def hang(numbers: Sequence[int]) -> bool:
            return all(relations.is_related(self.column(n), self.of(n)) for n in numbers)

        found: dict[int, Draw] = {}
        for table, numbers in parameters.rows_together(self.uses, self.types, catalog):
            written = [catalog.may_be_written(self.uses[n], self.types[n - 1]) for n in numbers]
            if not all(written) and not hang(numbers):
                found |= picks.picked(table, {n: self.uses[n] for n in numbers}, self._described(), catalog)
        for low, high in bounds.ranges(self.uses):
            given = [
                (a, b) for a, b in zip(self.of(low), self.of(high), strict=True) if a is not None and b is not None
            ]
            if (
                given
                and not hang((low, high))
                and all(catalog.may_be_written(self.uses[n], self.types[n - 1]) for n in (low, high))
            ):
                name = f"{self.prefix}{low}"
                a, b = draws.pairs(name, draws.spread(given), self.place)
                found |= {low: a, high: b}
        return found

    def _described(self) -> described.Statement:
        lists = {n: [v for v in self.of(n) if v] for n, use in self.uses.items() if use.how == "list"}
        lengths = {n: round(sum(v.count(",") + 1 for v in of) / len(of)) for n, of in lists.items() if of}
        return described.Statement(
            self.uses, self.types, lengths=lengths, prefix=self.prefix, place=self.place, may_conflict=self.may_conflict
        )


def _script(
    seen: _Seen, calls: int, lengths: int, catalog: Catalog, number: int, *, with_values: bool = False
) -> Captured | Message:
    """Create a script for a kind of transaction; return the reason if there is none.

    With `with_values`, each transaction has its own values.
    """
    lines: list[str] = []
    scheduled: list[tuple[int, int]] = []
    body: list[str] = []
    remarks: list[Text] = [msg("capture-lengths", n=lengths)] if lengths > 1 else []
    needs: list[tuple[str, str, str, bool]] = []
    listed: list[Listed] = []
    relations = Relations()
    for at, text in enumerate(seen.texts):
        if waits := think_time(f"t{at + 1}", [x[at] for x in seen.idle]):
            lines += waits
            body.append(f"\\sleep :t{at + 1} us")
        if sql.is_control(text):
            body.append(f"{text};")
            continue
        text, types = _known(text, seen.originals[at], catalog)
        if isinstance(types, str):
            return msg("capture-general-form-refused", words=types)
        tree = sql.parsed(text)
        if _SETS.search(text):
            return msg("capture-sets-session")
        if tree is None:
            return msg("capture-secrets-unknown")
        values = _Values(
            sql.uses(tree, catalog.names),
            types,
            [x[at] for x in seen.given],
            f"s{at + 1}p",
            f"v{number}_",
            sql.may_conflict(text),
        )
        try:
            drawn = _drawn(text, values, relations, catalog)
            if with_values:
                own = [n for n, type_ in enumerate(types, 1) if not catalog.is_secret(values.uses.get(n), type_)]
                own = [n for n in own if not _is_unsure(text, values.uses.get(n), types[n - 1])]
                drawn |= {n: Draw((), f":r_s{at + 1}p{n}") for n in own}
                scheduled += [(at, n) for n in own]
        except described.NotKnownError as e:
            return e.reason
        if isinstance(why := catalog.types(prepared_form(with_draws(text, drawn))), str):
            return msg("capture-drawn-refused", words=why)
        lines += [line for d in drawn.values() for line in d.lines]
        needs += needs_of(drawn)
        listed += listed_of(drawn)
        remarks += [
            msg("capture-statement-parameter", at=at + 1, n=n, remark=d.remark) for n, d in drawn.items() if d.remark
        ]
        body.append(f"{with_draws(text, drawn)};")
    main = next(t for t in seen.texts if not sql.is_control(t))
    name = name_of(main, sql.parsed(main), number)
    lines = [f"\\pick r{name.partition('-')[0]} r_", *lines] if scheduled else lines
    text = "\n".join([*lines, *body]) + "\n"
    one: dict[str, float] = {"statements": sum(not sql.is_control(t) for t in seen.texts)}
    if known := [ms for ms in seen.ms if ms is not None]:
        one["ms"] = sum(known) / len(known)
    return Captured(name, text, calls, remarks, one, needs, listed, scheduled)


def _drawn(text: str, s: _Values, relations: Relations, catalog: Catalog) -> dict[int, Draw]:
    found: dict[int, Draw] = {}
    together = s.together(relations, catalog)
    for n, type_ in enumerate(s.types, 1):
        use, each = s.uses.get(n), s.of(n)
        if _is_unsure(text, use, type_) and any(v is not None for v in each):
            found[n] = Draw((), looks_random(type_), msg("draw-secret"))
            continue
        if n in together:
            found[n] = together[n]
            relations.keep(s.column(n), each, found[n])
        else:
            found[n] = relations.draw(s.column(n), each, f"{s.prefix}{n}", partial(s.alone, n, catalog))
            found[n] = _at_times_null(found[n], f"{s.prefix}{n}", each)
    return found


def _at_times_null(d: Draw, name: str, values: Sequence[str | None]) -> Draw:
    """Make a parameter NULL as often as it was NULL in the log."""
    part = sum(v is None for v in values) / max(1, len(values))
    if not 0 < part < 1 or not d.lines or re.fullmatch(r":\w+", d.expression) is None:
        return d
    unless = (f"\\set {name}_n random(1, {draws.PARTS})", f"\\if :{name}_n <= {round(part * draws.PARTS)}")
    return replace(d, lines=(*d.lines, *unless, f"\\set {d.expression[1:]} null", "\\endif"))


def _is_unsure(text: str, use: sql.Use | None, type_: str) -> bool:
    """Return True if it is unknown where a value goes, in a statement that involves secrets."""
    return use is None and not holds_none(type_) and (sql.names_secrets(text) or sql.has_no_columns(text))
