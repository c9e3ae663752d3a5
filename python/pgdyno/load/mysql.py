"""Loading into MySQL and MariaDB: LOAD DATA LOCAL from memory, over several connections, in the order of the key.

A table's comment is its mark, as on PostgreSQL. LOCAL makes errors of rows warnings: what is there is counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress

from pgdyno import _core
from pgdyno.errors import PgdynoError, RefusedError, TargetError, msg
from pgdyno.load.dataset import MARK, Dataset
from pgdyno.load.result import Loaded
from pgdyno.message import Name, Text
from pgdyno.mysql.session import LONG_S, Session, literal
from pgdyno.mysql.target import MySqlTarget
from pgdyno.stream.events import DatasetDone, DatasetProgress
from pgdyno.stream.stream import RunStream

#: Kinds that can be made there.
KINDS = ("tpcb", "pk", "feed")
#: Rows of a statement: each is a transaction, whose undo is kept until it ends.
_ROWS = 250_000
_UNFINISHED = " (not complete)"
#: PostgreSQL's types, and those that hold the same values.
_TYPES = {
    "double precision": "double",
    "timestamp": "datetime(6)",
    "timestamptz": "timestamp(6) null",
}
#: Of sessions that load.
_BEGIN = (
    "set session foreign_key_checks = 0, time_zone = '+00:00', sql_mode = ''",
    # Sessions that fill neighbouring ranges would wait for each other's gaps, and deadlock.
    "set session transaction isolation level read committed",
)


def refuse_unfit(where: Text, dataset: Dataset) -> None:
    """Raise RefusedError for a dataset, or an option of one, that cannot be made there."""
    options = {
        "partitions": dataset.partitions,
        "fillfactor": dataset.fillfactor != 100,
        "unlogged": dataset.unlogged,
        "tablespace": dataset.tablespace or dataset.index_tablespace,
    }
    named = [name for name, value in options.items() if value]
    if dataset.kind not in KINDS:
        raise RefusedError(
            msg("error-no-loading-into-mysql", kind=dataset.kind, where=where), msg("remedy-kind-none-of-mysql")
        )
    if named:
        raise RefusedError(msg("error-no-such-option-of-mysql", names=", ".join(named)), msg("remedy-leave-out"))


def look(target: MySqlTarget, dataset: Dataset, *, replace: bool) -> None:
    """Raise RefusedError where other tables stand in the dataset's place. Raise TargetError."""
    with Session(target) as session:
        _refuse_others(session, target, dataset, replace=replace)


def _refuse_others(session: Session, target: MySqlTarget, dataset: Dataset, *, replace: bool) -> None:
    marks = _marks(session, dataset)
    strangers = [name for name, mark in marks.items() if not mark.startswith(MARK)]
    if strangers:
        raise RefusedError(
            msg("error-tables-in-the-way", names=", ".join(strangers), where=target.where),
            msg("remedy-another-database"),
        )
    others = {mark.removeprefix(MARK).strip() for mark in marks.values()} - {dataset.name}
    others = {other for other in others if not other.endswith(_UNFINISHED.strip())}
    if others and not replace:
        raise RefusedError(
            msg("error-another-dataset-there", names=", ".join(sorted(others)), where=target.where),
            msg("remedy-replace-or-another-database"),
        )


def holds(target: MySqlTarget, dataset: Dataset) -> bool:
    """Return True if the dataset is there and complete. Raise TargetError."""
    with Session(target) as session:
        marks = _marks(session, dataset)
    return marks == dict.fromkeys((t.name for t in dataset.tables), f"{MARK} {dataset.name}")


def refresh(target: MySqlTarget, dataset: Dataset) -> None:
    """Empty pgbench's history, so that trials begin alike. Raise TargetError, and RefusedError if it is not ours."""
    if dataset.kind == "tpcb":
        with Session(target) as session:
            if not _marks(session, dataset).get("pgbench_history", "").startswith(MARK):
                raise RefusedError(msg("error-pgbench-history-another-table-now"), msg("remedy-who-else-at-work-this"))
            session.rows("truncate table pgbench_history")


def make(
    target: MySqlTarget,
    dataset: Dataset,
    *,
    connections: int,
    connect_timeout_s: float,
    stream: RunStream,
    replace: bool = False,
) -> Loaded:
    """Make all tables and their rows. Tables of ours that are there are dropped first, others than these if `replace`.

    Raise RefusedError where other tables stand in the way. Raise TargetError. A load that fails leaves no table.
    """
    done = Loaded("load data", dataset.rows, dataset.total_bytes, connections=connections)
    config = target.core_config()
    created = False
    try:
        with done.phase("create"), Session(target, patience_s=LONG_S) as session:
            stream.emit(DatasetProgress("create", 0, 0, 0, 0))
            _refuse_others(session, target, dataset, replace=replace)
            created = True
            _drop(session, dataset)
            for table in dataset.tables:
                session.rows(_create(dataset, table))
        with done.phase("generate"):
            _, done.moved_bytes = dataset.core.carry_out(
                config,
                _jobs(dataset),
                lambda rows, sent: stream.emit(DatasetProgress("generate", rows, dataset.rows, sent, 0)),
                connections=connections,
                connect_timeout_s=connect_timeout_s,
            )
        with Session(target, patience_s=LONG_S) as session:
            with done.phase("keys"):
                stream.emit(DatasetProgress("keys", 0, 0, 0, 0))
                for statement in _indexes(dataset):
                    session.rows(statement)
            with done.phase("check"):
                _count(session, target, dataset)
            with done.phase("keys"):
                for table in dataset.tables:
                    session.rows(f"analyze table {table.name}")
                    session.rows(f"alter table {table.name} comment = {literal(f'{MARK} {dataset.name}')}")
    except BaseException as e:
        if created:
            with suppress(PgdynoError), Session(target) as session:
                _drop(session, dataset)
        if isinstance(e, _core.CoreError) and e.kind != "stopped":
            # 1148 of servers before MySQL 8, and MariaDB; 3948 since.
            remedy = msg("remedy-local-infile") if e.sqlstate in ("42000", "M3948", "M4166") else Name("")
            raise TargetError(msg("error-loading-failed-2", reason=e), remedy) from e
        raise
    finally:
        stream.emit(DatasetDone())
    return done


def _marks(session: Session, dataset: Dataset) -> dict[str, str]:
    """Return the comments of the tables that have names of the dataset's."""
    names = ", ".join(literal(t.name) for t in dataset.tables)
    rows = session.rows(
        "select table_name, table_comment from information_schema.tables"
        f" where table_schema = {literal(session.target.dbname)} and table_name in ({names})"
    )
    return {str(name): str(comment or "") for name, comment in rows}


def _drop(session: Session, dataset: Dataset) -> None:
    for name, mark in _marks(session, dataset).items():
        if mark.startswith(MARK):
            session.rows(f"drop table {name}")


def _create(dataset: Dataset, table: _core.Table) -> str:
    columns = [_column(*column) for column in table.columns]
    # The rows lie in the order of the key: it must be there before they are.
    key = [f"primary key ({', '.join(table.key)})"] if table.key else []
    comment = literal(f"{MARK} {dataset.name}{_UNFINISHED}")
    return f"create table {table.name} ({', '.join([*columns, *key])}) engine = InnoDB comment = {comment}"


def _column(name: str, kind: str, constraint: str) -> str:
    kind = _TYPES.get(kind, re.sub(r"^numeric", "decimal", kind))
    return f"{name} {kind} {constraint.replace('now()', 'current_timestamp(6)')}".strip()


def _indexes(dataset: Dataset) -> Iterable[str]:
    for table in dataset.tables:
        for name, columns, _ in table.indexes:
            yield f"create index {name} on {table.name} ({', '.join(columns)})"
        # There is no BRIN: feed's time has a B-tree, or none.
        if table.brin is not None and dataset.index == "btree":
            yield f"create index {table.name}_{table.brin} on {table.name} ({table.brin})"


def _jobs(dataset: Dataset) -> list[Sequence[str | tuple[str, int, int, int]]]:
    jobs: list[Sequence[str | tuple[str, int, int, int]]] = []
    for number, table in enumerate(dataset.tables):
        columns = ", ".join(name for name, _, _ in table.columns)
        sql = (
            f"load data local infile 'pgdyno' into table {table.name} character set utf8mb4"
            f" fields terminated by '\\t' escaped by '\\\\' lines terminated by '\\n' ({columns})"
        )
        for first in range(table.first, table.end, _ROWS):
            jobs.append([*_BEGIN, (sql, number, first, min(first + _ROWS, table.end))])
    return jobs


def _count(session: Session, target: MySqlTarget, dataset: Dataset) -> None:
    for table in dataset.tables:
        found = int(session.value(f"select count(*) from {table.name}") or 0)
        if found != table.end - table.first:
            raise TargetError(
                msg("error-rows-missing", name=table.name, found=f"{found:,}", of=f"{table.end - table.first:,}",
                    where=target.where)
            )  # fmt: skip
