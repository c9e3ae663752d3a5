"""Conditions that TPC-C's tables must fulfil.

The consistency conditions (clause 3.3.2) must always hold. Those of clause 4.3.3.1 must hold when the tables are
populated. Each condition is a query for what violates it.

No session may write meanwhile, because each query has a snapshot of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import psycopg

from pgdyno import i18n
from pgdyno.message import Argument, Message, counted
from pgdyno.tpcc.schema import named

Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True)
class Condition:
    """Something that must be true, by the standard's clause."""

    clause: str
    #: Message that describes it.
    id: str
    #: SELECT of a text for each thing that breaks it; tables stand as {stock}.
    sql: str
    #: It holds only as long as no transaction has run.
    fresh: bool = False
    #: Arguments of the message.
    args: Mapping[str, Argument] = field(default_factory=dict)

    @property
    def text(self) -> Message:
        """Description of the condition."""
        return Message(self.id, self.args)


@dataclass(frozen=True)
class Checked:
    """A condition and what was found."""

    clause: str
    text: Message
    #: Things that break it, over all sets.
    broken: int
    #: One of them.
    example: str
    seconds: float

    @property
    def holds(self) -> bool:
        """Nothing breaks it."""
        return self.broken == 0

    @property
    def title(self) -> str:
        """Description of the condition, in English."""
        return i18n.text(self.text)

    def as_json(self) -> dict[str, Any]:
        """Return the result for machines, and for the run's record."""
        facts = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "text"}
        return facts | {"title": self.title, "holds": self.holds}


_BY_DISTRICT = "format('warehouse %s, district %s: %s and %s', w, d, a, b)"

CONSISTENCY = [
    Condition(
        "3.3.2.1",
        "condition-1",
        """select format('warehouse %s: %s and %s', w_id, w_ytd, d) from {warehouse}
           left join (select d_w_id, sum(d_ytd) d from {district} group by 1) s on d_w_id = w_id
           where w_ytd is distinct from d""",
    ),
    Condition(
        "3.3.2.2",
        "condition-2",
        """select format('warehouse %s, district %s: next %s, orders to %s, new orders to %s',
             d_w_id, d_id, d_next_o_id, o, n)
           from {district}
           left join (select o_w_id, o_d_id, max(o_id) o from {orders} group by 1, 2) x
             on (o_w_id, o_d_id) = (d_w_id, d_id)
           left join (select no_w_id, no_d_id, max(no_o_id) n from {new_order} group by 1, 2) y
             on (no_w_id, no_d_id) = (d_w_id, d_id)
           where d_next_o_id - 1 is distinct from o or (n is not null and n <> o)""",
    ),
    Condition(
        "3.3.2.3",
        "condition-3",
        """select format('warehouse %s, district %s: %s rows from %s to %s', no_w_id, no_d_id, count(*),
             min(no_o_id), max(no_o_id))
           from {new_order} group by no_w_id, no_d_id having max(no_o_id) - min(no_o_id) + 1 <> count(*)""",
    ),
    Condition(
        "3.3.2.4",
        "condition-4",
        f"""select {_BY_DISTRICT} from
           (select o_w_id w, o_d_id d, sum(o_ol_cnt) a from {{orders}} group by 1, 2) x
           full join (select ol_w_id w, ol_d_id d, count(*) b from {{order_line}} group by 1, 2) y using (w, d)
           where a is distinct from b""",
    ),
    Condition(
        "3.3.2.5",
        "condition-5",
        """select format('order %s of warehouse %s, district %s', coalesce(o_id, no_o_id), coalesce(o_w_id, no_w_id),
             coalesce(o_d_id, no_d_id))
           from {orders} full join {new_order} on (no_w_id, no_d_id, no_o_id) = (o_w_id, o_d_id, o_id)
           where (o_carrier_id is null) <> (no_o_id is not null) or o_id is null""",
    ),
    Condition(
        "3.3.2.6",
        "condition-6",
        """select format('order %s of warehouse %s, district %s: %s and %s', o, w, d, a, b) from
           (select o_w_id w, o_d_id d, o_id o, o_ol_cnt a from {orders}) x
           full join (select ol_w_id w, ol_d_id d, ol_o_id o, count(*) b from {order_line} group by 1, 2, 3) y
           using (w, d, o) where a is distinct from b""",
    ),
    Condition(
        "3.3.2.7",
        "condition-7",
        """select format('line %s of order %s of warehouse %s, district %s', ol_number, ol_o_id, ol_w_id, ol_d_id)
           from {order_line} join {orders} on (o_w_id, o_d_id, o_id) = (ol_w_id, ol_d_id, ol_o_id)
           where (ol_delivery_d is null) <> (o_carrier_id is null)""",
    ),
    Condition(
        "3.3.2.8",
        "condition-8",
        """select format('warehouse %s: %s and %s', w_id, w_ytd, h) from {warehouse}
           left join (select h_w_id, sum(h_amount) h from {history} group by 1) s on h_w_id = w_id
           where w_ytd is distinct from h""",
    ),
    Condition(
        "3.3.2.9",
        "condition-9",
        f"""select {_BY_DISTRICT} from (select d_w_id w, d_id d, d_ytd a from {{district}}) x
           left join (select h_w_id w, h_d_id d, sum(h_amount) b from {{history}} group by 1, 2) y using (w, d)
           where a is distinct from b""",
    ),
    Condition(
        "3.3.2.10",
        "condition-10",
        """select format('customer %s of warehouse %s, district %s: %s and %s', c, w, d, balance,
             coalesce(amount, 0) - coalesce(paid, 0)) from
           (select c_w_id w, c_d_id d, c_id c, c_balance balance from {customer}) x
           left join (select o_w_id w, o_d_id d, o_c_id c, sum(ol_amount) amount from {orders} join {order_line}
             on (ol_w_id, ol_d_id, ol_o_id) = (o_w_id, o_d_id, o_id) where ol_delivery_d is not null group by 1, 2, 3) y
             using (w, d, c)
           left join (select h_c_w_id w, h_c_d_id d, h_c_id c, sum(h_amount) paid from {history} group by 1, 2, 3) z
             using (w, d, c)
           where balance is distinct from coalesce(amount, 0) - coalesce(paid, 0)""",
    ),
    # The standard has 2100 alone, which is true until the first delivery. Each delivery is counted at its customer.
    Condition(
        "3.3.2.11",
        "condition-11",
        f"""select {_BY_DISTRICT} from
           (select o_w_id w, o_d_id d, count(*) - (select count(*) from {{new_order}}
              where (no_w_id, no_d_id) = (o_w_id, o_d_id)) a from {{orders}} group by 1, 2) x
           join (select c_w_id w, c_d_id d, 2100 + sum(c_delivery_cnt) b from {{customer}} group by 1, 2) y using (w, d)
           where a is distinct from b""",
    ),
    Condition(
        "3.3.2.12",
        "condition-12",
        """select format('customer %s of warehouse %s, district %s: %s and %s', c, w, d, total,
             coalesce(amount, 0)) from
           (select c_w_id w, c_d_id d, c_id c, c_balance + c_ytd_payment total from {customer}) x
           left join (select o_w_id w, o_d_id d, o_c_id c, sum(ol_amount) amount from {orders} join {order_line}
             on (ol_w_id, ol_d_id, ol_o_id) = (o_w_id, o_d_id, o_id) where ol_delivery_d is not null group by 1, 2, 3) y
             using (w, d, c)
           where total is distinct from coalesce(amount, 0)""",
    ),
]


def _count(id: str, expected: str, having: str, **args: Argument) -> Condition:
    sql = f"select format('%s rows', n) from ({having}) x where n <> {expected}"
    return Condition("4.3.3.1", id, sql, fresh=True, args=args)


def _wrong(right: str) -> str:
    """Return the SQL condition for rows that violate `right`, including those where it is NULL."""
    return f"({right}) is not true"


def _address(prefix: str) -> str:
    """Return the SQL condition for rows with invalid address columns."""
    parts = ("street_1", "street_2", "city")
    right = " and ".join(f"length({prefix}_{part}) between 10 and 20" for part in parts)
    return _wrong(f"{right} and length({prefix}_state) = 2")


#: What is wrong with the texts of a row of stock that order lines take, one for each district.
_DISTRICTS_TEXTS = _wrong(" and ".join(f"length(s_dist_{n:02}) = 24" for n in range(1, 11)))
#: A tenth of rows drawn one by one lies within this of a tenth (five standard deviations of the fewest that are asked).
_TENTH = "abs(part - 0.1) > greatest(0.01, 5 * sqrt(0.09 / n))"

POPULATION = [
    _count("condition-initial-rows-items", "100000", "select count(*) n from {item}"),
    Condition(
        "4.3.3.1",
        "condition-initial-rows-warehouse",
        """select format('warehouse %s: %s rows of stock, %s districts', w_id, s, d) from {warehouse}
           left join (select s_w_id, count(*) s from {stock} group by 1) x on s_w_id = w_id
           left join (select d_w_id, count(*) d from {district} group by 1) y on d_w_id = w_id
           where s is distinct from 100000 or d is distinct from 10""",
        fresh=True,
    ),
    Condition(
        "4.3.3.1",
        "condition-initial-rows-district",
        """select format('warehouse %s, district %s: %s, %s, %s, %s', d_w_id, d_id, c, o, h, n) from {district}
           left join (select c_w_id, c_d_id, count(*) c from {customer} group by 1, 2) x
             on (c_w_id, c_d_id) = (d_w_id, d_id)
           left join (select o_w_id, o_d_id, count(*) o from {orders} group by 1, 2) y
             on (o_w_id, o_d_id) = (d_w_id, d_id)
           left join (select h_w_id, h_d_id, count(*) h from {history} group by 1, 2) z
             on (h_w_id, h_d_id) = (d_w_id, d_id)
           left join (select no_w_id, no_d_id, count(*) n from {new_order} group by 1, 2) v
             on (no_w_id, no_d_id) = (d_w_id, d_id)
           where (c, o, h, n) is distinct from (3000::bigint, 3000::bigint, 3000::bigint, 900::bigint)""",
        fresh=True,
    ),
    Condition(
        "4.3.3.1",
        "condition-initial-orders",
        """select format('warehouse %s, district %s: %s customers, %s to %s lines', o_w_id, o_d_id,
             count(distinct o_c_id), min(o_ol_cnt), max(o_ol_cnt))
           from {orders} group by o_w_id, o_d_id
           having count(distinct o_c_id) <> 3000 or min(o_ol_cnt) < 5 or max(o_ol_cnt) > 15""",
        fresh=True,
    ),
    Condition(
        "4.3.3.1",
        "condition-initial-new-orders",
        """select format('order %s of warehouse %s, district %s', o_id, o_w_id, o_d_id) from {orders}
           where (o_id > 2100) <> (o_carrier_id is null) or o_carrier_id not between 1 and 10
             or (o_all_local = 1 and o_entry_d is not null) is not true""",
        fresh=True,
    ),
    Condition(
        "4.3.3.1",
        "condition-initial-order-lines",
        """select format('line %s of order %s of warehouse %s, district %s', ol_number, ol_o_id, ol_w_id, ol_d_id)
           from {order_line} left join {orders} on (o_w_id, o_d_id, o_id) = (ol_w_id, ol_d_id, ol_o_id)
           where (ol_quantity = 5 and ol_supply_w_id = ol_w_id and ol_i_id between 1 and 100000 and case
             when ol_o_id <= 2100 then ol_amount = 0 and ol_delivery_d = o_entry_d
             else ol_amount between 0.01 and 9999.99 and ol_delivery_d is null end) is not true""",
        fresh=True,
    ),
    Condition(
        "4.3.3.1",
        "condition-initial-original",
        f"""select format('%s: %s of %s', t, part, n) from (
             select 'item' t, count(*) n, avg((i_data like '%ORIGINAL%')::int) part from {{item}}
             union all select 'stock of warehouse ' || s_w_id, count(*), avg((s_data like '%ORIGINAL%')::int)
               from {{stock}} group by s_w_id) x where {_TENTH}""",
        fresh=True,
    ),
    Condition(
        "4.3.3.1",
        "condition-initial-credit",
        f"""select format('warehouse %s: %s of %s', w, part, n) from (
             select c_w_id w, count(*) n, avg((c_credit = 'BC')::int) part,
               bool_and((c_balance = -10 and c_ytd_payment = 10 and c_payment_cnt = 1 and c_delivery_cnt = 0
                 and c_credit_lim = 50000 and c_discount between 0 and 0.5 and c_middle = 'OE'
                 and c_credit in ('GC', 'BC') and c_since is not null) is true) begun
             from {{customer}} group by 1) x where {_TENTH} or not begun""",
        fresh=True,
    ),
    Condition(
        "4.3.2.3",
        "condition-initial-last-names",
        """select format('warehouse %s, district %s: %s names', c_w_id, c_d_id,
             count(distinct c_last) filter (where c_id <= 1000))
           from {customer} group by c_w_id, c_d_id
           having count(distinct c_last) filter (where c_id <= 1000) <> 1000
             or not bool_and(coalesce(c_last, '') ~ '^((BAR|OUGHT|ABLE|PRI|PRES|ESE|ANTI|CALLY|ATION|EING)){3}$')""",
        fresh=True,
    ),
    Condition(
        "4.3.3.1",
        "condition-initial-beginnings",
        """select 'warehouse ' || w_id from {warehouse}
             where (w_ytd = 300000 and w_tax between 0 and 0.2 and w_zip ~ '^[0-9]{4}11111$') is not true
           union all select format('warehouse %s, district %s', d_w_id, d_id) from {district}
             where (d_ytd = 30000 and d_next_o_id = 3001 and d_tax between 0 and 0.2
               and d_zip ~ '^[0-9]{4}11111$') is not true""",
        fresh=True,
    ),
    Condition(
        "4.3.3.1",
        "condition-initial-stock",
        """select format('item %s of warehouse %s', s_i_id, s_w_id) from {stock}
           where (s_quantity between 10 and 100 and (s_ytd, s_order_cnt, s_remote_cnt) = (0, 0, 0)) is not true""",
        fresh=True,
    ),
    Condition(
        "4.3.3.1",
        "condition-initial-texts",
        f"""select 'item ' || i_id from {{item}} where (length(i_name) between 14 and 24
               and length(i_data) between 26 and 50 and i_price between 1 and 100
               and i_im_id between 1 and 10000) is not true
           union all select format('item %s of warehouse %s', s_i_id, s_w_id) from {{stock}}
             where (length(s_data) between 26 and 50) is not true or {_DISTRICTS_TEXTS}
           union all select 'warehouse ' || w_id from {{warehouse}}
             where (length(w_name) between 6 and 10) is not true or {_address("w")}
           union all select format('warehouse %s, district %s', d_w_id, d_id) from {{district}}
             where (length(d_name) between 6 and 10) is not true or {_address("d")}
           union all select format('customer %s of warehouse %s, district %s', c_id, c_w_id, c_d_id) from {{customer}}
             where (length(c_first) between 8 and 16 and length(c_data) between 300 and 500
               and c_phone ~ '^[0-9]{{16}}$' and c_zip ~ '^[0-9]{{4}}11111$') is not true or {_address("c")}
           union all select format('history of customer %s of warehouse %s, district %s', h_c_id, h_c_w_id, h_c_d_id)
             from {{history}}
             where (length(h_data) between 12 and 24 and h_amount = 10 and h_date is not null) is not true
           union all select format('line %s of order %s of warehouse %s, district %s', ol_number, ol_o_id, ol_w_id,
             ol_d_id)
             from {{order_line}} where (length(ol_dist_info) = 24) is not true""",
        fresh=True,
    ),
]


def warehouse_range(count: int) -> Condition:
    """Restrict a condition to the warehouses of each set."""
    return _count(counted("n-warehouses", count).id, str(count), "select count(*) n from {warehouse}", n=count)


def checked(
    conn: Connection,
    sets: int,
    conditions: list[Condition],
    began: Callable[[Condition, int, int], object] = lambda *_: None,
    *,
    schema: str = "",
) -> Iterator[Checked]:
    """Check conditions one after the other, over all sets.

    The tables are those in `schema`, or those that the search path finds. `began` is called with each condition, its
    number and the number of conditions. Raise psycopg.Error if a query fails.
    """
    for number, condition in enumerate(conditions):
        began(condition, number, len(conditions))
        start, broken, example = time.monotonic(), 0, ""
        for n in range(sets):
            sql = f"select count(*), min(what) from ({named(condition.sql, n, sets, schema)}) as broken(what)"
            row = conn.execute(sql.encode()).fetchone()
            if row is not None and row[0]:
                broken += int(row[0])
                example = example or f"{f'set {n + 1}: ' if sets > 1 else ''}{row[1]}"
        yield Checked(condition.clause, condition.text, broken, example, time.monotonic() - start)
