"""Tests of atomicity and isolation from outside (clauses 3.2 and 3.4 of the TPC-C standard).

The tests stop transactions half-way, beside other transactions. They use the statements that the workload itself
sends.

Each test reports what it saw. The isolation level determines which isolation a server provides. At READ COMMITTED,
which sysbench, HammerDB and most applications use, tests 7 to 9 do not pass. This is not a defect of the server.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

import psycopg

from pgdyno import i18n
from pgdyno.errors import PgdynoError, msg
from pgdyno.format import one_line
from pgdyno.message import Message, Name, Text, message

Connection = psycopg.Connection[tuple[Any, ...]]
Row = tuple[Any, ...]
#: Between two looks at whether a transaction waits for another; and how long one is waited for.
_LOOK_S, _PATIENCE_S = 0.02, 20.0
#: What is tested on: the tables' first warehouse.
_W, _D, _C, _ITEMS = 1, 1, 17, (11, 23, 35, 47, 59)
#: An item's number that none has (clause 2.4.1.5).
_UNUSED = 100_001


@dataclass(frozen=True)
class Tested:
    """A test and what came of it."""

    clause: str
    passed: bool
    #: What was seen.
    seen: Text

    @property
    def title(self) -> Message:
        """Name of the test."""
        return Message(f"acid-test-{self.clause.replace('.', '-')}")

    def as_json(self) -> dict[str, Any]:
        """Return the result for machines."""
        return asdict(self) | {"title": i18n.text(self.title), "seen": i18n.text(self.seen)}


class NotPassedError(PgdynoError):
    """A test has not passed: what was seen instead."""


class Session:
    """A connection that runs transactions statement by statement, and stops at a given one."""

    def __init__(self, conn: Connection, statements: dict[str, str], isolation: str) -> None:
        self.conn = conn
        self._statements = statements
        self._isolation = isolation

    def begin(self) -> None:
        """Begins a transaction."""
        self.conn.execute(f"begin isolation level {self._isolation}".encode())

    def commit(self) -> None:
        self.conn.execute("commit")

    def rollback(self) -> None:
        self.conn.execute("rollback")

    def end(self) -> None:
        """Roll back the open transaction, if there is one."""
        if self.conn.info.transaction_status not in (
            psycopg.pq.TransactionStatus.IDLE,
            psycopg.pq.TransactionStatus.UNKNOWN,
        ):
            self.rollback()

    def do(self, name: str, *values: Any) -> list[Row]:
        """Run a statement of the workload by its name."""
        text = re.sub(r"\$(\d+)", lambda m: f"%(p{m[1]})s", self._statements[name].replace("%", "%%"))
        done = self.conn.execute(text.encode(), {f"p{n}": v for n, v in enumerate(values, 1)})
        return done.fetchall() if done.description else []

    def new_order(
        self,
        customer: int = _C,
        items: Sequence[int] = _ITEMS,
        priced: Callable[[int, Decimal], object] = lambda *_: None,
    ) -> int:
        """Run New-Order up to its COMMIT and return the order's number.

        If an item does not exist, New-Order runs up to its ROLLBACK. `priced` is called with the number and the price
        of each line before the transaction goes on.
        """
        self.begin()
        self.do("new-order: get customer and tax", _W, _D, customer)
        order = int(self.do("new-order: lock district", _W, _D)[0][0])
        self.do("new-order: count order in district", _W, _D, order)
        self.do("new-order: insert order", order, _D, _W, customer, len(items), 1)
        self.do("new-order: insert new order", order, _D, _W)
        for n, item in enumerate(items, 1):
            row = self.do("new-order: get item", item)
            if not row:
                return order
            price = row[0][0]
            priced(n, price)
            quantity, _, info = self.do("new-order: lock stock", _W, item, _D)[0]
            left = quantity - 1 if quantity >= 11 else quantity + 90
            self.do("new-order: update stock", _W, item, left, 1, 0)
            self.do("new-order: insert order line", order, _D, _W, n, item, _W, 1, price, info)
        return order

    def payment(self, customer: int, amount: Decimal) -> None:
        """Payment up to its COMMIT."""
        self.begin()
        self.do("payment: pay warehouse", _W, amount)
        self.do("payment: pay district", _W, _D, amount)
        self.do("payment: lock customer", _W, _D, customer)
        self.do("payment: pay customer", _W, _D, customer, amount)
        self.do("payment: insert history", _D, _W, customer, _D, _W, amount, "acid")

    def delivery(self) -> tuple[int, Decimal] | None:
        """Delivery of one district up to its COMMIT; returns customer and amount, or nothing to deliver."""
        self.begin()
        oldest = self.do("delivery: lock oldest new order", _W, _D)
        if not oldest:
            return None
        of = (_W, _D, oldest[0][0])
        self.do("delivery: delete new order", *of)
        customer = int(self.do("delivery: get customer of order", *of)[0][0])
        self.do("delivery: set carrier", *of, 1)
        self.do("delivery: deliver lines", *of)
        amount = Decimal(self.do("delivery: get amount", *of)[0][0])
        self.do("delivery: update balance", _W, _D, customer, amount)
        return customer, amount

    def last_order(self, customer: int = _C) -> int:
        """Return the last order, which Order-Status reads, within a transaction."""
        return int(self.do("order-status: get last order", _W, _D, customer)[0][0])


class Beside:
    """Work that another session does meanwhile, on a thread, because it may have to wait.

    `look` is a connection that asks the server for which session the work waits.
    """

    def __init__(self, session: Session, work: Callable[[], Any], look: Connection) -> None:
        self._pid = session.conn.info.backend_pid
        self._look = look
        self._error: BaseException | None = None
        self._result: Any = None

        def run() -> None:
            try:
                self._result = work()
            except BaseException as e:
                self._error = e

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    def waits(self) -> bool:
        """Return True if the work waits for another session, and False if it has ended.

        The server reports which sessions block it, so slow work does not count as waiting. Work that has not ended
        within the timeout also returns True.
        """
        deadline = time.monotonic() + _PATIENCE_S
        while self._thread.is_alive() and time.monotonic() < deadline:
            self._thread.join(_LOOK_S)
            row = self._look.execute("select pg_blocking_pids(%s) <> '{}'", [self._pid]).fetchone()
            if row is not None and row[0]:
                return True
        return self._thread.is_alive()

    def end(self) -> None:
        """Wait until the work has ended, with or without an error."""
        self._thread.join(_PATIENCE_S)

    def refused(self) -> bool:
        """Return True if the server has rejected the work with SQLSTATE 40001.

        Such a rejection is one way to isolate transactions. Raise any other exception as `result` does.
        """
        try:
            self.result()
        except psycopg.errors.SerializationFailure:
            return True
        return False

    def result(self) -> Any:
        """Return the result of the work, or raise its exception.

        Raise NotPassedError if the work does not end.
        """
        self._thread.join(_PATIENCE_S)
        if self._thread.is_alive():
            raise NotPassedError(msg("error-did-not-end-within-s-2", patience_s=f"{_PATIENCE_S:g}"))
        if self._error is not None:
            raise self._error
        return self._result


@dataclass
class Bench:
    """Three sessions, and how to look at the tables from outside."""

    one: Session
    two: Session
    three: Session
    look: Connection
    #: Of the tables, by how they stand in statements.
    names: dict[str, str]

    def alongside(self, session: Session, work: Callable[[], Any]) -> Beside:
        """Something that a session does meanwhile."""
        return Beside(session, work, self.look)

    def value(self, sql: str, *values: Any) -> Any:
        row = self.look.execute(sql.encode(), values).fetchone()
        return None if row is None else row[0] if len(row) == 1 else row

    def next_order(self) -> int:
        sql = "select d_next_o_id from {district} where (d_w_id, d_id) = (%s, %s)"
        return int(self.value(sql.format(**self.names), _W, _D))

    def balance(self, customer: int) -> Decimal:
        sql = "select c_balance from {customer} where (c_w_id, c_d_id, c_id) = (%s, %s, %s)"
        return Decimal(self.value(sql.format(**self.names), _W, _D, customer))


def _money(bench: Bench) -> Any:
    """Return the values that a payment changes."""
    sql = """select (select w_ytd from {warehouse} where w_id = 1),
        (select d_ytd from {district} where (d_w_id, d_id) = (1, 1)),
        (select format('%%s %%s %%s', c_balance, c_ytd_payment, c_payment_cnt) from {customer}
           where (c_w_id, c_d_id, c_id) = (1, 1, 17)), (select count(*) from {history})"""
    return bench.value(sql.format(**bench.names))


def _atomic_commit(b: Bench) -> Text:
    before = _money(b)
    b.one.payment(_C, Decimal("12.34"))
    b.one.commit()
    after = _money(b)
    if any(x == y for x, y in zip(before, after, strict=True)):
        raise NotPassedError(msg("error-part-committed-payment-missing"))
    return message("acid-all-changed")


def _atomic_rollback(b: Bench) -> Text:
    before = _money(b)
    b.one.payment(_C, Decimal("12.34"))
    b.one.rollback()
    if _money(b) != before:
        raise NotPassedError(msg("error-part-payment-was-rolled-back"))
    return message("acid-nothing-changed")


def _order_status_beside_new_order(b: Bench, end: str) -> Text:
    b.two.begin()
    before = b.two.last_order()
    b.two.commit()
    order = b.one.new_order()
    b.two.begin()
    beside = b.alongside(b.two, b.two.last_order)
    if beside.waits():
        raise NotPassedError(msg("error-reader-waits-for-writer"))
    if beside.result() != before:
        raise NotPassedError(msg("error-order-not-committed-seen"))
    b.two.commit()
    getattr(b.one, end)()
    b.two.begin()
    after = b.two.last_order()
    b.two.commit()
    if after != (order if end == "commit" else before):
        raise NotPassedError(msg("error-after-last-order", end=end, after=after))
    return message(f"acid-order-seen-{end}")


def _isolation_1(b: Bench) -> Text:
    return _order_status_beside_new_order(b, "commit")


def _isolation_2(b: Bench) -> Text:
    return _order_status_beside_new_order(b, "rollback")


def _two_new_orders(b: Bench, end: str) -> Text:
    """Both of the same customer; the one that rolls back has an unused item."""
    expected = b.next_order()
    first = b.one.new_order(items=_ITEMS if end == "commit" else (*_ITEMS, _UNUSED))
    beside = b.alongside(b.two, b.two.new_order)
    if not beside.waits():
        raise NotPassedError(msg("error-second-new-order-district-does"))
    getattr(b.one, end)()
    try:
        second = beside.result()
        b.two.commit()
        again = None
    except psycopg.errors.SerializationFailure:
        # As a client does that tries again.
        b.two.rollback()
        second = b.two.new_order()
        b.two.commit()
        again = message("acid-after-retry")
    if (first, second) != (expected, expected + (end == "commit")) or b.next_order() != second + 1:
        raise NotPassedError(
            msg(
                "error-orders-where-was-next-now",
                first=first,
                second=second,
                expected=expected,
                next_order=b.next_order(),
            )
        )
    numbers = {"first": Name(str(first)), "second": Name(str(second))}
    return message(f"acid-second-waited-{end}", again=again, **numbers)


def _isolation_3(b: Bench) -> Text:
    return _two_new_orders(b, "commit")


def _isolation_4(b: Bench) -> Text:
    return _two_new_orders(b, "rollback")


def _payment_beside_delivery(b: Bench, end: str) -> Text:
    delivered = b.one.delivery()
    if delivered is None:
        b.one.rollback()
        raise NotPassedError(msg("error-there-no-new-order-deliver"))
    customer, amount = delivered
    paid, before = Decimal("7.00"), b.balance(customer)
    beside = b.alongside(b.two, lambda: b.two.payment(customer, paid))
    if not beside.waits():
        raise NotPassedError(msg("error-payment-customer-does-not-wait"))
    getattr(b.one, end)()
    again = None
    try:
        beside.result()
        b.two.commit()
    except psycopg.errors.SerializationFailure:
        b.two.rollback()
        b.two.payment(customer, paid)
        b.two.commit()
        again = message("acid-payment-retried")
    expected = before - paid + (amount if end == "commit" else 0)
    if b.balance(customer) != expected:
        raise NotPassedError(msg("error-balance-should-be", balance=b.balance(customer), expected=expected))
    return message(f"acid-payment-waited-{end}", again=again)


def _isolation_5(b: Bench) -> Text:
    return _payment_beside_delivery(b, "commit")


def _isolation_6(b: Bench) -> Text:
    return _payment_beside_delivery(b, "rollback")


def _how(waited: bool, refused: bool) -> Message:
    if refused:
        return message("acid-waited-refused" if waited else "acid-no-wait-refused")
    return message("acid-waited" if waited else "acid-no-wait")


def _isolation_7(b: Bench) -> Text:
    """Test that a price is read repeatably.

    A new order reads a price, another transaction raises it, and the order reads it again.
    """
    x, y = _ITEMS[:2]
    select = "select i_price from {item} where i_id = %s".format(**b.names)
    update = "update {item} set i_price = round(i_price * 1.1, 2) where i_id = %s".format(**b.names)
    restore = "update {item} set i_price = %s where i_id = %s".format(**b.names)
    before = [b.value(select, item) for item in (x, x, y)]
    raised: list[Decimal] = []
    found: list[Decimal] = []
    waited: list[bool] = []
    beside: list[Beside] = []

    def raise_prices() -> None:
        b.three.begin()
        for item in (x, y):
            b.three.conn.execute(update.encode(), [item])
        b.three.commit()

    def priced(line: int, price: Decimal) -> None:
        found.append(price)
        if line == 1:
            beside.append(b.alongside(b.three, raise_prices))
            waited.append(beside[0].waits())

    try:
        b.one.new_order(items=(x, x, y), priced=priced)
        b.one.commit()
        refused = beside[0].refused()
        raised += [b.value(select, item) for item in (x, y)]
    finally:
        b.one.end()
        for other in beside:
            other.end()
        b.three.end()
        for item, price in zip((x, y), before[1:], strict=True):
            b.look.execute(restore.encode(), [price, item])
    if found != before:
        was, is_ = next((was, is_) for was, is_ in zip(before, found, strict=False) if was != is_)
        raise NotPassedError(msg("error-price-was-read-then-beside", was=was, now=is_))
    if not refused and any(new == old for new, old in zip(raised, before[1:], strict=True)):
        raise NotPassedError(msg("error-price-was-raised-not-there"))
    return message("acid-same-price", how=_how(waited[0], refused))


def _isolation_8(b: Bench) -> Text:
    """Test that a delivery sees no phantom new order.

    A delivery finds nothing to deliver, a new order arrives, and the delivery looks again. The delivery itself deletes
    the new orders that it would find, and its rollback restores them. Whatever stops the test, the tables still hold
    these rows.
    """
    remove = "delete from {new_order} where (no_w_id, no_d_id) = (1, 1)".format(**b.names)
    b.one.begin()
    try:
        b.one.conn.execute(remove.encode())
        seen = [len(b.one.do("delivery: lock oldest new order", _W, _D))]

        def order() -> None:
            b.two.new_order()
            b.two.commit()

        beside = b.alongside(b.two, order)
        waited = beside.waits()
        seen.append(len(b.one.do("delivery: lock oldest new order", _W, _D)))
    finally:
        b.one.end()
    refused = beside.refused()
    if seen != [0, 0]:
        raise NotPassedError(msg("error-new-order-appeared-delivery-had"))
    return message("acid-no-phantom-delivery", how=_how(waited, refused))


def _isolation_9(b: Bench) -> Text:
    """Test that an order-status sees no phantom new order.

    An order-status reads the last order, a new order arrives, and the order-status reads again.
    """
    b.one.begin()
    before = b.one.last_order()

    def order() -> None:
        b.two.new_order()
        b.two.commit()

    beside = b.alongside(b.two, order)
    waited = beside.waits()
    again = b.one.last_order()
    b.one.commit()
    refused = beside.refused()
    if again != before:
        raise NotPassedError(msg("error-last-order-was-then-same", before=before, again=again))
    return message("acid-no-phantom-order", how=_how(waited, refused))


#: By clause.
TESTS: list[tuple[str, Callable[[Bench], Text]]] = [
    ("3.2.2.1", _atomic_commit),
    ("3.2.2.2", _atomic_rollback),
    ("3.4.2.1", _isolation_1),
    ("3.4.2.2", _isolation_2),
    ("3.4.2.3", _isolation_3),
    ("3.4.2.4", _isolation_4),
    ("3.4.2.5", _isolation_5),
    ("3.4.2.6", _isolation_6),
    ("3.4.2.7", _isolation_7),
    ("3.4.2.8", _isolation_8),
    ("3.4.2.9", _isolation_9),
]


def tested(
    connect: Callable[[], Connection],
    names: dict[str, str],
    statements: dict[str, str],
    isolation: str,
    began: Callable[[str, int, int], object] = lambda *_: None,
) -> Iterator[Tested]:
    """Run all tests and yield the result of each.

    `names` maps the tables to their names in statements. `statements` maps names to the workload's statements.
    Afterwards the tables are consistent, with some more orders and payments. Raise psycopg.Error if a statement fails
    for an unexpected reason.
    """
    for number, (clause, test) in enumerate(TESTS):
        began(clause, number, len(TESTS))
        with ExitStack() as stack:
            conns = [stack.enter_context(closing(connect())) for _ in range(4)]
            for conn in conns:
                conn.autocommit = True
            one, two, three = (Session(c, statements, isolation) for c in conns[:3])
            bench = Bench(one, two, three, conns[3], names)
            passed = False
            try:
                seen = test(bench)
                passed = True
            except NotPassedError as e:
                seen = e.cause
            except psycopg.errors.SerializationFailure as e:
                seen = message("acid-refused-needlessly", reason=Name(one_line(e)))
        yield Tested(clause, passed, seen)
