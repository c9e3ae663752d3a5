//! Delivery (clause 2.7): the oldest order of each district of a warehouse is delivered.

use super::{BEGIN, CALL, COMMIT, Statement, Terms};
use crate::exchange::{Arg, Exchange, Unexpected};
use crate::schema::DISTRICTS;
use pgdyno_base::Prng;

const OLDEST: usize = 3;
const NO_LONGER_NEW: usize = 4;
const CUSTOMER: usize = 5;
const CARRIER: usize = 6;
const LINES: usize = 7;
const AMOUNT: usize = 8;
const BALANCE: usize = 9;

/// One round trip each.
pub const STATEMENTS: &[Statement] = &[
    ("begin", "begin"),
    ("commit", "commit"),
    ("roll back", "rollback"),
    (
        "lock oldest new order",
        "select no_o_id from {new_order} where no_w_id = $1 and no_d_id = $2 order by no_o_id limit 1 for update",
    ),
    ("delete new order", "delete from {new_order} where no_w_id = $1 and no_d_id = $2 and no_o_id = $3"),
    ("get customer of order", "select o_c_id from {orders} where o_w_id = $1 and o_d_id = $2 and o_id = $3"),
    ("set carrier", "update {orders} set o_carrier_id = $4 where o_w_id = $1 and o_d_id = $2 and o_id = $3"),
    (
        "deliver lines",
        "update {order_line} set ol_delivery_d = localtimestamp where ol_w_id = $1 and ol_d_id = $2 and ol_o_id = $3",
    ),
    ("get amount", "select sum(ol_amount) from {order_line} where ol_w_id = $1 and ol_d_id = $2 and ol_o_id = $3"),
    (
        "update balance",
        "update {customer} set c_balance = c_balance + $4, c_delivery_cnt = c_delivery_cnt + 1 \
         where c_w_id = $1 and c_d_id = $2 and c_id = $3",
    ),
];

/// The call of its function.
pub const CALLS: &[Statement] = &[
    ("begin", "begin"),
    ("commit", "commit"),
    ("roll back", "rollback"),
    ("deliver", "select {order_line}_delivery($1, $2)"),
];

/// Input of the transaction.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "they are the standard's")]
pub struct Input {
    pub warehouse: u64,
    pub carrier: u64,
}

impl Input {
    /// Clause 2.7.1.
    pub fn draw(rng: &mut Prng, terms: &Terms) -> Input {
        Input { warehouse: terms.warehouse(rng), carrier: rng.range_u64(1, 10) }
    }
}

/// The transaction. A district without a new order is passed over.
pub async fn run(db: Exchange, i: Input) -> Result<(), Unexpected> {
    let (w, carrier) = (Arg::Int(i.warehouse), Arg::Int(i.carrier));
    db.ask(BEGIN, &[]);
    (1..=DISTRICTS).for_each(|d| db.ask(OLDEST, &[w, Arg::Int(d)]));
    let (mut rows, mut oldest) = (db.answers().await, Vec::new());
    for d in 1..=DISTRICTS {
        let row = rows.any();
        if row.count() == 0 {
            db.passed_over();
        } else {
            oldest.push((d, row.int(0)?));
        }
    }
    let mut delivered = Vec::new();
    for (d, order) in oldest {
        let of_order = [w, Arg::Int(d), Arg::Int(order)];
        db.ask(NO_LONGER_NEW, &of_order);
        db.ask(CUSTOMER, &of_order);
        db.ask(CARRIER, &[of_order[0], of_order[1], of_order[2], carrier]);
        db.ask(LINES, &of_order);
        db.ask(AMOUNT, &of_order);
        delivered.push(d);
    }
    if !delivered.is_empty() {
        let mut rows = db.answers().await;
        for d in delivered {
            let (customer, amount) = (rows.some("the order")?.int(0)?, rows.some("the amount")?.cents(0)?);
            db.ask(BALANCE, &[w, Arg::Int(d), Arg::Int(customer), Arg::Cents(amount)]);
        }
    }
    db.ask(COMMIT, &[]);
    db.answers().await;
    Ok(())
}

/// Runs the transaction through its function.
pub async fn call(db: Exchange, i: Input, in_block: bool) -> Result<(), Unexpected> {
    let ask = |db: &Exchange| db.ask(CALL, &[Arg::Int(i.warehouse), Arg::Int(i.carrier)]);
    if super::call(&db, in_block, true, ask).await.some("the delivery")?.int(0)? < DISTRICTS {
        db.passed_over();
    }
    Ok(())
}
