//! Stock-Level (clause 2.8): how many of the items that were ordered last are running low.

use super::{BEGIN, CALL, COMMIT, Statement, Terms};
use crate::exchange::{Arg, Exchange, Unexpected};
use pgdyno_base::Prng;

const DISTRICT: usize = 3;
const LOW: usize = 4;
/// Orders that are looked at.
const ORDERS: u64 = 20;

/// One round trip each.
pub const STATEMENTS: &[Statement] = &[
    ("begin", "begin"),
    ("commit", "commit"),
    ("roll back", "rollback"),
    ("get next order", "select d_next_o_id from {district} where d_w_id = $1 and d_id = $2"),
    (
        "count low stock",
        "select pg_catalog.count(distinct s_i_id) from {order_line}, {stock} where ol_w_id = $1 and ol_d_id = $2 \
         and ol_o_id >= $3 and ol_o_id < $4 and s_w_id = $1 and s_i_id = ol_i_id and s_quantity < $5",
    ),
];

/// The call of its function.
pub const CALLS: &[Statement] = &[
    ("begin", "begin"),
    ("commit", "commit"),
    ("roll back", "rollback"),
    ("level of stock", "select {stock}_level($1, $2, $3)"),
];

/// Input of the transaction.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "they are the standard's")]
pub struct Input {
    pub warehouse: u64,
    pub district: u64,
    pub threshold: u64,
}

impl Input {
    /// Clause 2.8.1: a terminal's own warehouse and district.
    pub fn draw(rng: &mut Prng, terms: &Terms) -> Input {
        let warehouse = terms.warehouse(rng);
        let district = terms.district.unwrap_or_else(|| Terms::district(rng));
        Input { warehouse, district, threshold: rng.range_u64(10, 20) }
    }
}

/// The transaction.
pub async fn run(db: Exchange, i: Input) -> Result<(), Unexpected> {
    let (w, d) = (Arg::Int(i.warehouse), Arg::Int(i.district));
    db.ask(BEGIN, &[]);
    db.ask(DISTRICT, &[w, d]);
    let next = db.answers().await.some("the district")?.int(0)?;
    db.ask(LOW, &[w, d, Arg::Int(next.saturating_sub(ORDERS)), Arg::Int(next), Arg::Int(i.threshold)]);
    db.ask(COMMIT, &[]);
    db.answers().await.some("the count").map(drop)
}

/// Runs the transaction through its function.
pub async fn call(db: Exchange, i: Input, in_block: bool) -> Result<(), Unexpected> {
    let args = [Arg::Int(i.warehouse), Arg::Int(i.district), Arg::Int(i.threshold)];
    super::call(&db, in_block, true, |db| db.ask(CALL, &args)).await.some("the count")?.int(0).map(drop)
}
