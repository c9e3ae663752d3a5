//! Payment (clause 2.5): a customer pays; the balances of warehouse and district grow, and history gets a row.

use super::{BEGIN, CALL, COMMIT, Customer, Statement, Terms, in_the_middle};
use crate::exchange::{Arg, Exchange, Unexpected};
use crate::schema::DISTRICTS;
use pgdyno_base::Prng;

const PAY_WAREHOUSE: usize = 3;
const WAREHOUSE: usize = 4;
const PAY_DISTRICT: usize = 5;
const DISTRICT: usize = 6;
const COUNT_NAME: usize = 7;
const BY_NAME: usize = 8;
const CUSTOMER: usize = 9;
const DATA: usize = 10;
const PAY_BAD: usize = 11;
const PAY: usize = 12;
const HISTORY: usize = 13;

/// One round trip each.
pub const STATEMENTS: &[Statement] = &[
    ("begin", "begin"),
    ("commit", "commit"),
    ("roll back", "rollback"),
    ("pay warehouse", "update {warehouse} set w_ytd = w_ytd + $2 where w_id = $1"),
    ("get warehouse", "select w_street_1, w_street_2, w_city, w_state, w_zip, w_name from {warehouse} where w_id = $1"),
    ("pay district", "update {district} set d_ytd = d_ytd + $3 where d_w_id = $1 and d_id = $2"),
    (
        "get district",
        "select d_street_1, d_street_2, d_city, d_state, d_zip, d_name from {district} where d_w_id = $1 and d_id = $2",
    ),
    ("count customers of name", "select count(*) from {customer} where c_w_id = $1 and c_d_id = $2 and c_last = $3"),
    (
        "get customers of name",
        "select c_id from {customer} where c_w_id = $1 and c_d_id = $2 and c_last = $3 order by c_first",
    ),
    (
        "lock customer",
        "select c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_credit, \
         c_credit_lim, c_discount, c_balance, c_ytd_payment, c_since from {customer} \
         where c_w_id = $1 and c_d_id = $2 and c_id = $3 for update",
    ),
    ("get data of bad credit", "select c_data from {customer} where c_w_id = $1 and c_d_id = $2 and c_id = $3"),
    (
        "pay customer of bad credit",
        "update {customer} set c_balance = c_balance - $4, c_ytd_payment = c_ytd_payment + $4, \
         c_payment_cnt = c_payment_cnt + 1, c_data = $5 where c_w_id = $1 and c_d_id = $2 and c_id = $3",
    ),
    (
        "pay customer",
        "update {customer} set c_balance = c_balance - $4, c_ytd_payment = c_ytd_payment + $4, \
         c_payment_cnt = c_payment_cnt + 1 where c_w_id = $1 and c_d_id = $2 and c_id = $3",
    ),
    (
        "insert history",
        "insert into {history} (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
         values ($1, $2, $3, $4, $5, localtimestamp, $6, $7)",
    ),
];

/// The call of its function.
pub const CALLS: &[Statement] = &[
    ("begin", "begin"),
    ("commit", "commit"),
    ("roll back", "rollback"),
    ("pay", "select {history}_payment($1, $2, $3, $4, $5, $6, $7)"),
];

/// Input of the transaction.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "they are the standard's")]
pub struct Input {
    pub warehouse: u64,
    pub district: u64,
    pub customer_warehouse: u64,
    pub customer_district: u64,
    pub customer: Customer,
    /// Amount in cents.
    pub amount: i64,
}

impl Input {
    /// Clause 2.5.1: 15 of 100 pay at a warehouse that is not their own.
    pub fn draw(rng: &mut Prng, terms: &Terms) -> Input {
        let (warehouse, district) = (terms.warehouse(rng), Terms::district(rng));
        let own = rng.range_u64(1, 100) <= 85 || terms.warehouses == 1;
        let (customer_warehouse, customer_district) = if own {
            (warehouse, district)
        } else {
            (terms.other_warehouse(rng, warehouse), rng.range_u64(1, DISTRICTS))
        };
        let customer = Customer::draw(rng, terms);
        // From 1.00 to 5,000.00.
        let amount = rng.range_i64(100, 500_000);
        Input { warehouse, district, customer_warehouse, customer_district, customer, amount }
    }
}

/// The transaction.
pub async fn run(db: Exchange, i: Input) -> Result<(), Unexpected> {
    let (w, d, amount) = (Arg::Int(i.warehouse), Arg::Int(i.district), Arg::Cents(i.amount));
    let (cw, cd) = (Arg::Int(i.customer_warehouse), Arg::Int(i.customer_district));
    db.ask(BEGIN, &[]);
    db.ask(PAY_WAREHOUSE, &[w, amount]);
    db.ask(WAREHOUSE, &[w]);
    db.ask(PAY_DISTRICT, &[w, d, amount]);
    db.ask(DISTRICT, &[w, d]);
    if let Customer::Name(name) = &i.customer {
        db.ask(COUNT_NAME, &[cw, cd, Arg::Text(name)]);
        db.ask(BY_NAME, &[cw, cd, Arg::Text(name)]);
    }
    if let Customer::Number(number) = i.customer {
        db.ask(CUSTOMER, &[cw, cd, Arg::Int(number)]);
    }
    let mut rows = db.answers().await;
    let (warehouse, district) = (rows.some("the warehouse")?, rows.some("the district")?);
    let (number, customer) = match &i.customer {
        Customer::Number(number) => (*number, rows.some("the customer")?),
        Customer::Name(_) => {
            rows.any();
            let found = rows.some("a customer of that name")?;
            let number = found.int_of(in_the_middle(found.count()), 0)?;
            db.ask(CUSTOMER, &[cw, cd, Arg::Int(number)]);
            (number, db.answers().await.some("the customer")?)
        }
    };

    let c = Arg::Int(number);
    if customer.text(9) == b"BC" {
        db.ask(DATA, &[cw, cd, c]);
        let old = db.answers().await.some("the customer")?;
        let data = data_of_bad_credit(&i, number, old.text(0));
        db.ask(PAY_BAD, &[cw, cd, c, amount, Arg::Text(&data)]);
    } else {
        db.ask(PAY, &[cw, cd, c, amount]);
    }
    let place = [warehouse.text(5), b"    ", district.text(5)].concat();
    db.ask(HISTORY, &[cd, cw, c, d, w, amount, Arg::Text(&place)]);
    db.ask(COMMIT, &[]);
    db.answers().await;
    Ok(())
}

/// Returns the new data of a customer with bad credit. The payment is put first, and the end is cut off (clause
/// 2.5.2.2).
fn data_of_bad_credit(i: &Input, number: u64, old: &[u8]) -> Vec<u8> {
    const MOST: usize = 500;
    let (paid, cents) = (i.amount / 100, i.amount % 100);
    let (cd, cw, d, w) = (i.customer_district, i.customer_warehouse, i.district, i.warehouse);
    let mut data = format!("{number} {cd} {cw} {d} {w} {paid}.{cents:02} ").into_bytes();
    data.extend_from_slice(old);
    data.truncate(MOST);
    data
}

/// Runs the transaction through its function.
pub async fn call(db: Exchange, i: Input, in_block: bool) -> Result<(), Unexpected> {
    let mut rows = super::call(&db, in_block, true, |db| {
        let (number, name) = i.customer.for_call();
        let (w, d) = (Arg::Int(i.warehouse), Arg::Int(i.district));
        let (cw, cd) = (Arg::Int(i.customer_warehouse), Arg::Int(i.customer_district));
        db.ask(CALL, &[w, d, cw, cd, Arg::Int(number), Arg::Text(name), Arg::Cents(i.amount)]);
    })
    .await;
    rows.some("the payment")?.int(0).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_of_bad_credit_holds_what_was_paid_and_is_cut() {
        let customer = Customer::Number(7);
        let i =
            Input { warehouse: 1, district: 2, customer_warehouse: 3, customer_district: 4, customer, amount: 1205 };
        assert_eq!(data_of_bad_credit(&i, 7, b"old"), b"7 4 3 2 1 12.05 old");
        assert_eq!(data_of_bad_credit(&i, 7, &[b'x'; 500]).len(), 500);
    }
}
