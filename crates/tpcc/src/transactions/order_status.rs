//! Order-Status (clause 2.6): a customer asks for the last order.

use super::{BEGIN, CALL, COMMIT, Customer, Statement, Terms, in_the_middle};
use crate::exchange::{Arg, Exchange, Unexpected};
use pgdyno_base::Prng;

const COUNT_NAME: usize = 3;
const BY_NAME: usize = 4;
const CUSTOMER: usize = 5;
const LAST_ORDER: usize = 6;
const LINES: usize = 7;

/// One round trip each.
pub const STATEMENTS: &[Statement] = &[
    ("begin", "begin"),
    ("commit", "commit"),
    ("roll back", "rollback"),
    ("count customers of name", "select count(*) from {customer} where c_w_id = $1 and c_d_id = $2 and c_last = $3"),
    (
        "get customers of name",
        "select c_balance, c_first, c_middle, c_id from {customer} \
         where c_w_id = $1 and c_d_id = $2 and c_last = $3 order by c_first",
    ),
    (
        "get customer",
        "select c_balance, c_first, c_middle, c_last from {customer} where c_w_id = $1 and c_d_id = $2 and c_id = $3",
    ),
    (
        "get last order",
        "select o_id, o_carrier_id, o_entry_d from {orders} \
         where o_w_id = $1 and o_d_id = $2 and o_c_id = $3 order by o_id desc limit 1",
    ),
    (
        "get order lines",
        "select ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d from {order_line} \
         where ol_w_id = $1 and ol_d_id = $2 and ol_o_id = $3",
    ),
];

/// The call of its function.
pub const CALLS: &[Statement] = &[
    ("begin", "begin"),
    ("commit", "commit"),
    ("roll back", "rollback"),
    ("status of order", "select {orders}_status($1, $2, $3, $4)"),
];

/// Input of the transaction.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "they are the standard's")]
pub struct Input {
    pub warehouse: u64,
    pub district: u64,
    pub customer: Customer,
}

impl Input {
    /// Clause 2.6.1.
    pub fn draw(rng: &mut Prng, terms: &Terms) -> Input {
        let (warehouse, district) = (terms.warehouse(rng), Terms::district(rng));
        Input { warehouse, district, customer: Customer::draw(rng, terms) }
    }
}

/// The transaction.
pub async fn run(db: Exchange, i: Input) -> Result<(), Unexpected> {
    let (w, d) = (Arg::Int(i.warehouse), Arg::Int(i.district));
    db.ask(BEGIN, &[]);
    let customer = match &i.customer {
        Customer::Number(number) => {
            db.ask(CUSTOMER, &[w, d, Arg::Int(*number)]);
            *number
        }
        Customer::Name(name) => {
            db.ask(COUNT_NAME, &[w, d, Arg::Text(name)]);
            db.ask(BY_NAME, &[w, d, Arg::Text(name)]);
            let mut rows = db.answers().await;
            rows.any();
            let found = rows.some("a customer of that name")?;
            found.int_of(in_the_middle(found.count()), 3)?
        }
    };
    let by_number = matches!(i.customer, Customer::Number(_));
    db.ask(LAST_ORDER, &[w, d, Arg::Int(customer)]);
    let mut rows = db.answers().await;
    if by_number {
        rows.some("the customer")?;
    }
    let order = rows.some("the customer's last order")?.int(0)?;
    db.ask(LINES, &[w, d, Arg::Int(order)]);
    db.ask(COMMIT, &[]);
    db.answers().await.some("the order's lines").map(drop)
}

/// Runs the transaction through its function.
pub async fn call(db: Exchange, i: Input, in_block: bool) -> Result<(), Unexpected> {
    let mut rows = super::call(&db, in_block, true, |db| {
        let (number, name) = i.customer.for_call();
        db.ask(CALL, &[Arg::Int(i.warehouse), Arg::Int(i.district), Arg::Int(number), Arg::Text(name)]);
    })
    .await;
    rows.some("the order")?.int(0).map(drop)
}
