//! New-Order (clause 2.4): a customer orders five to fifteen items; one in a hundred orders names an item that does not
//! exist, and is rolled back.

use super::{BEGIN, CALL, COMMIT, ROLLBACK, Statement, Terms};
use crate::exchange::{Arg, Exchange, Order, Unexpected};
use crate::schema::{ITEMS, LINES};
use pgdyno_base::Prng;

const CUSTOMER: usize = 3;
const DISTRICT: usize = 4;
const NEXT_ORDER: usize = 5;
const ORDER: usize = 6;
const NEW_ORDER: usize = 7;
const ITEM: usize = 8;
const STOCK: usize = 9;
const TAKE: usize = 10;
const LINE: usize = 11;

/// One round trip each, as in sysbench-tpcc; see the guide for what differs.
pub const STATEMENTS: &[Statement] = &[
    ("begin", "begin"),
    ("commit", "commit"),
    ("roll back", "rollback"),
    (
        "get customer and tax",
        "select c_discount, c_last, c_credit, w_tax from {customer}, {warehouse} \
         where w_id = $1 and c_w_id = w_id and c_d_id = $2 and c_id = $3",
    ),
    ("lock district", "select d_next_o_id, d_tax from {district} where d_w_id = $1 and d_id = $2 for update"),
    ("count order in district", "update {district} set d_next_o_id = $3 + 1 where d_w_id = $1 and d_id = $2"),
    (
        "insert order",
        "insert into {orders} (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
         values ($1, $2, $3, $4, localtimestamp, $5, $6)",
    ),
    ("insert new order", "insert into {new_order} (no_o_id, no_d_id, no_w_id) values ($1, $2, $3)"),
    ("get item", "select i_price, i_name, i_data from {item} where i_id = $1"),
    (
        "lock stock",
        "select s_quantity, s_data, case $3::int when 1 then s_dist_01 when 2 then s_dist_02 when 3 then s_dist_03 \
         when 4 then s_dist_04 when 5 then s_dist_05 when 6 then s_dist_06 when 7 then s_dist_07 when 8 then s_dist_08 \
         when 9 then s_dist_09 else s_dist_10 end from {stock} where s_w_id = $1 and s_i_id = $2 for update",
    ),
    (
        "update stock",
        "update {stock} set s_quantity = $3, s_ytd = s_ytd + $4, s_order_cnt = s_order_cnt + 1, \
         s_remote_cnt = s_remote_cnt + $5 where s_w_id = $1 and s_i_id = $2",
    ),
    (
        "insert order line",
        "insert into {order_line} (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, \
         ol_amount, ol_dist_info) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    ),
];

/// The call of its function.
pub const CALLS: &[Statement] = &[
    ("begin", "begin"),
    ("commit", "commit"),
    ("roll back", "rollback"),
    ("new order", "select {new_order}_transaction($1, $2, $3, $4::int[], $5::int[], $6::int[], $7)"),
];

/// Input of the transaction.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "they are the standard's")]
pub struct Input {
    pub warehouse: u64,
    pub district: u64,
    pub customer: u64,
    pub items: Vec<u64>,
    /// The warehouse that each item comes from.
    pub suppliers: Vec<u64>,
    pub quantities: Vec<u64>,
    /// Its last item does not exist.
    pub rolls_back: bool,
}

impl Input {
    /// Clause 2.4.1.
    pub fn draw(rng: &mut Prng, terms: &Terms) -> Input {
        let (warehouse, district) = (terms.warehouse(rng), Terms::district(rng));
        let customer = terms.customer(rng);
        let lines = rng.range_u64(LINES.0, LINES.1);
        let rolls_back = rng.range_u64(1, 100) == 1;
        let (mut items, mut suppliers, mut quantities) = (Vec::new(), Vec::new(), Vec::new());
        for line in 1..=lines {
            let unused = rolls_back && line == lines;
            items.push(if unused { ITEMS + 1 } else { terms.item(rng) });
            let remote = rng.range_u64(1, 100) == 1;
            suppliers.push(if remote { terms.other_warehouse(rng, warehouse) } else { warehouse });
            quantities.push(rng.range_u64(1, 10));
        }
        Input { warehouse, district, customer, items, suppliers, quantities, rolls_back }
    }
}

/// The transaction.
pub async fn run(db: Exchange, i: Input) -> Result<(), Unexpected> {
    let (w, d) = (Arg::Int(i.warehouse), Arg::Int(i.district));
    db.ask(BEGIN, &[]);
    db.ask(CUSTOMER, &[w, d, Arg::Int(i.customer)]);
    db.ask(DISTRICT, &[w, d]);
    let mut rows = db.answers().await;
    rows.some("the customer")?;
    let number = rows.some("the district")?.int(0)?;
    let order = Arg::Int(number);

    let all_local = i.suppliers.iter().all(|s| *s == i.warehouse);
    db.ask(NEXT_ORDER, &[w, d, order]);
    let count = Arg::Int(i.items.len() as u64);
    db.ask(ORDER, &[order, d, w, Arg::Int(i.customer), count, Arg::Int(all_local.into())]);
    db.ask(NEW_ORDER, &[order, d, w]);
    for (item, supplier) in i.items.iter().zip(&i.suppliers) {
        db.ask(ITEM, &[Arg::Int(*item)]);
        // What does not exist is found out by its price, before its stock is looked for.
        if *item <= ITEMS {
            db.ask(STOCK, &[Arg::Int(*supplier), Arg::Int(*item), d]);
        }
    }
    let mut rows = db.answers().await;
    let mut taken: Vec<((u64, u64), u64)> = Vec::with_capacity(i.items.len());
    for (n, item) in i.items.iter().enumerate() {
        let (price, quantity, supplier) = (rows.any(), i.quantities[n], i.suppliers[n]);
        if price.count() == 0 {
            db.ask(ROLLBACK, &[]);
            db.answers().await;
            return if i.rolls_back { Ok(()) } else { Err(Unexpected(format!("item {item} is not there"))) };
        }
        let stock = rows.some("the stock")?;
        // An item may be ordered twice; its stock was read before either took from it.
        let before = taken.iter().rev().find(|(of, _)| *of == (supplier, *item)).map(|(_, left)| *left);
        let in_stock = before.map_or_else(|| stock.int(0), Ok)?;
        let left = if in_stock >= quantity + 10 { in_stock - quantity } else { in_stock + 91 - quantity };
        taken.push(((supplier, *item), left));
        let remote = u64::from(supplier != i.warehouse);
        db.ask(TAKE, &[Arg::Int(supplier), Arg::Int(*item), Arg::Int(left), Arg::Int(quantity), Arg::Int(remote)]);
        let line = [Arg::Int(n as u64 + 1), Arg::Int(*item), Arg::Int(supplier), Arg::Int(quantity)];
        let amount = Arg::Cents(price.cents(0)? * quantity as i64);
        db.ask(LINE, &[order, d, w, line[0], line[1], line[2], line[3], amount, Arg::Text(stock.text(2))]);
    }
    db.ask(COMMIT, &[]);
    db.answers().await;
    db.acknowledged(Order { warehouse: i.warehouse, district: i.district, number });
    Ok(())
}

/// Runs the transaction through its function.
pub async fn call(db: Exchange, i: Input, in_block: bool) -> Result<(), Unexpected> {
    let mut rows = super::call(&db, in_block, !i.rolls_back, |db| {
        let (w, d, c) = (Arg::Int(i.warehouse), Arg::Int(i.district), Arg::Int(i.customer));
        let (items, suppliers) = (Arg::Ints(&i.items), Arg::Ints(&i.suppliers));
        db.ask(CALL, &[w, d, c, items, suppliers, Arg::Ints(&i.quantities), Arg::Bool(i.rolls_back)]);
    })
    .await;
    let order = rows.some("the order")?;
    // NULL: an item does not exist.
    match (order.value(0, 0), i.rolls_back) {
        (None, true) => Ok(()),
        (Some(_), false) => {
            db.acknowledged(Order { warehouse: i.warehouse, district: i.district, number: order.int(0)? });
            Ok(())
        }
        _ => Err(Unexpected("an item is not there".into())),
    }
}
