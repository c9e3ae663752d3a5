"""A statement that reads a whole table for a few of its rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pgdyno.diagnosis import foreign, parts
from pgdyno.diagnosis.action import Action
from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.finding import CLIENTS_TIME, TRANSACTION_TIME, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.gains import removed
from pgdyno.diagnosis.observed import Observed
from pgdyno.diagnosis.phrases import shortened
from pgdyno.diagnosis.recorded import Row
from pgdyno.diagnosis.thresholds import MissingIndex
from pgdyno.message import Name, message
from pgdyno.samples import CATALOG, CUT
from pgdyno.units import Quantity, Share

#: A column that is compared with a value, alone on its side: "(v = $1)", "((name)::text = 'a'::text)".
_CONDITION = re.compile(
    r'\(+(?:\w+\.)?(?P<name>"(?:[^"]|"")+"|[a-z_]\w*)(?:\)::(?P<cast>[a-z]+[\w ]*))? (?P<operator>=|<=|>=|<|>) '
    r"(?:ANY )?\(*['\d$-]"
)
#: Conditions that an index of plain columns does not serve.
_NOT_SERVED = re.compile(r"\b(?:OR|NOT|SubPlan|CASE|COALESCE)\b")
#: Words by which a statement asks for some of the rows, or for what an index has without them.
_PICKS = re.compile(r"\b(?:where|join|limit|fetch|having|merge|distinct\s+on|(?:min|max)\s*\()", re.IGNORECASE)
#: Types that a cast to text does not change for an index.
_TEXT = re.compile(r"text|character varying|character")
_LAST = re.compile(r'("(?:[^"]|"")*"|[^."]+)$')


def _plain(name: str) -> str:
    """Return a table name without its schema and quotes, as EXPLAIN prints it: public."User" becomes User."""
    match = _LAST.search(name)
    return match[0].strip('"').replace('""', '"') if match else name


def _judge(e: Observed) -> Finding | None:
    found: list[tuple[float, Row, float, float]] = []
    for row in e.whole("plans"):
        if not row["scan_filters"]:
            continue
        table = [t for t in e.whole("tables") if _plain(str(t["table"])) == row["scanned_table"]]
        # Where it was not carried out: what the table's counters say of its scans.
        scans = sum(t["seq_scans"] for t in table)
        thrown = row["rows_thrown_away"] if row["rows_thrown_away"] >= 0 else 0.0
        if row["rows_thrown_away"] < 0 and scans:
            thrown = sum(t["seq_rows_read"] for t in table) / scans
        wanted = max(1.0, row["rows"], row["scanned_rows"] if row["rows"] < 0 else 0.0)
        share = e.statement_share(str(row["script"]), int(row["line"]))
        if thrown >= MissingIndex.ROWS and thrown / wanted >= MissingIndex.THROWN_AWAY and share >= MissingIndex.SHARE:
            found.append((share, row, thrown, wanted))
    if not found:
        return _scanned_tables(e) if e.is_observation else _hidden(e)
    share, row, thrown, wanted = max(found, key=lambda f: f[0])
    return e.finding(
        CAUSE,
        message(
            "missing-index", rows=Quantity(thrown, "count"), table=Name(str(row["scanned_table"])),
            wanted=Quantity(wanted, "count"), share=Quantity(share, "share"),
            statement=Name(str(row["statement"])[:120]),
        ),
        Share(share, share * 0.9, min(1.0, share)), TRANSACTION_TIME, Confidence.HIGH,
        message("missing-index-remedy", table=Name(str(row["scanned_table"]))),
        [Fact("rows-discarded", thrown), Fact("transaction-share", share, "%")],
        actions=_actions(e, row, Share(share, share * 0.9, min(1.0, share))),
    )  # fmt: skip


def _actions(e: Observed, row: Row, cost: Share) -> list[Action]:
    names = [str(t["table"]) for t in e.whole("tables") if _plain(str(t["table"])) == row["scanned_table"]]
    if len(set(names)) != 1:
        return []
    prefix = f"{names[0]}."
    types = {
        str(d["name"]).removeprefix(prefix).strip('"'): str(d["definition"])
        for d in e.whole("definitions")
        if d["object"] == "column" and str(d["name"]).startswith(prefix)
    }
    if not (columns := filtered_columns(str(row.get("scan_filter") or ""), types)):
        return []
    return [_index(names[0], columns, removed(e, cost, 0.7, frees_cpu=True))]


def _index(table: str, columns: Sequence[str], gain: Share) -> Action:
    return Action("index", gain, "removed", sql=[f"CREATE INDEX CONCURRENTLY ON {table} ({', '.join(columns)})"])


def filtered_columns(text: str, types: Mapping[str, str] | None = None) -> list[str]:
    """Return the columns of an index for the condition of a scan, as SQL: equal ones, then one with a range.

    Conditions that an index of plain columns does not serve (functions, OR, NOT, <>, casts of other types than text)
    give no column. `types` holds the types of the table's columns, as far as they are known.
    """
    # Literals hold anything.
    text = re.sub(r"'(?:[^']|'')*'", "''", text)
    if _NOT_SERVED.search(text):
        return []
    equal, ranges = list[str](), list[str]()
    for match in _CONDITION.finditer(text):
        name, cast = match["name"], match["cast"]
        if cast and (cast.strip() != "text" or not _TEXT.match((types or {}).get(name.strip('"'), ""))):
            continue
        (equal if match["operator"] == "=" else ranges).append(name)
    return list(dict.fromkeys([*equal, *(r for r in ranges[:1] if r not in equal)]))


def _hidden(e: Observed) -> Finding | None:
    """Judge scans that no statement of the scripts makes: those of foreign keys' checks, triggers and functions."""
    transactions = sum(r.trial.summary.committed for r in e.trials if r.trial.summary)
    running, plans = e.running, e.whole("plans")
    if not transactions or running is None or not plans:
        return None
    visible = " ".join(f"{row['plan']} {row['plan_after']}" for row in plans)
    others = " ".join(ran.command for r in e.trials for ran in foreign.commands(r))
    best: tuple[float, str, float, float] | None = None
    names = {str(t["table"]) for t in e.whole("tables")}
    for name in sorted(n for n in names if not n.startswith(CATALOG)):
        rows = [t for t in e.whole("tables") if t["table"] == name]
        scans, read = (sum(t[column] for t in rows) for column in ("seq_scans", "seq_rows_read"))
        is_told = re.search(rf"\b{re.escape(_plain(name))}\b", f"{visible} {others}") is not None
        if is_told or scans < MissingIndex.SCANS * transactions or read < MissingIndex.ROWS * scans:
            continue
        if best is None or read > best[0]:
            best = (read, name, scans / transactions, read / scans)
    if best is None or running.mean < MissingIndex.SHARE:
        return None
    _, name, scans, rows_each = best
    # The scans run on a CPU; what else does is not told apart.
    cost = Share(running.mean, 0.0, running.high)
    return e.finding(
        CAUSE,
        message(
            "missing-index-hidden", table=Name(name), scans=Quantity(scans, "factor"),
            rows=Quantity(rows_each, "count"), share=running,
        ),
        cost, CLIENTS_TIME, Confidence.MEDIUM,
        message("missing-index-hidden-remedy", table=Name(name)),
        [Fact("rows-read", rows_each), Fact("scans-per-transaction", scans)],
        actions=[_index(name, columns, removed(e, cost, 0.2, frees_cpu=True)) for columns in _unindexed(e, name)],
    )  # fmt: skip


def _scanned_tables(e: Observed) -> Finding | None:
    """Judge the tables of an observed server, whose plans are not known, by their scans."""
    # Also those that are rolled back.
    transactions = sum(r.trial.summary.committed for r in e.trials if r.trial.summary) + e.rolled_back
    running = e.running
    if not transactions or running is None or running.mean < MissingIndex.SHARE:
        return None
    scanned = [
        t for t in e.whole("tables")
        if t["seq_scans"] >= MissingIndex.SCANS * transactions
        and t["seq_rows_read"] >= MissingIndex.ROWS * t["seq_scans"]
        and not str(t["table"]).startswith(CATALOG)
    ]  # fmt: skip
    for table in sorted(scanned, key=lambda t: -float(t["seq_rows_read"])):
        name = str(table["table"])
        of = re.compile(rf"\b{re.escape(_plain(name))}\b", re.IGNORECASE)
        named = [s for s in parts.statements(e) if of.search(s.statement)]
        busy = [s for s in named if may_want_few(s.statement)]
        # Statements that want all rows account for the scans, unless a foreign key's check may do as well.
        if busy or not named or _unindexed(e, name):
            return _scanned(e, table, transactions, running, busy)
    return None


def _scanned(
    e: Observed, table: Row, transactions: float, running: Share, busy: Sequence[parts.BusyStatement]
) -> Finding:
    """Return the finding about a table that is read whole; `busy` are the statements that name it, if any is known."""
    name, scans, rows_each = str(table["table"]), table["seq_scans"], table["seq_rows_read"] / table["seq_scans"]
    # Of a statement that names the table the time is known; of a foreign key's check or a trigger, only a bound.
    share = busy[0].share if busy else 0.0
    low, high = (share * 0.5, min(1.0, share)) if busy else (0.0, running.high)
    cost = Share((low + high) / 2 if busy else running.mean, low, high)
    where = message("missing-index-statement", statement=Name(shortened(busy[0].statement))) if busy else None
    return e.finding(
        CAUSE,
        message(
            "missing-index-tables", table=Name(name), scans=Quantity(scans / transactions, "factor"),
            rows=Quantity(rows_each, "count"), share=cost, where=where,
        ),
        cost, CLIENTS_TIME, Confidence.MEDIUM,
        message("missing-index-remedy" if busy else "missing-index-hidden-remedy", table=Name(name)),
        [Fact("rows-read", rows_each), Fact("scans-per-transaction", scans / transactions)],
    )  # fmt: skip


def may_want_few(statement: str) -> bool:
    """Return True unless a statement plainly asks for all rows of its tables, which no index spares.

    The text of a long statement ends early, and may go on with a condition.
    """
    return statement.endswith(CUT) or _PICKS.search(statement) is not None


def _unindexed(e: Observed, table: str) -> list[list[str]]:
    """Return the columns of the table's foreign keys that have no index."""
    found = [r for r in e.whole("definitions") if r["object"] == "unindexed-key" and r["definition"] == table]
    return [[str(r["name"])] for r in found]


CAUSE = Cause("missing-index", Kind.TROUBLE, "a sequential scan for a few rows", _judge)
