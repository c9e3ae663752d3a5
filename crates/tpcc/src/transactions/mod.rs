//! The five transactions (clause 2), one file each: its statements, what it is given, and its code. And each as a function in
//! the server: it leaves the same rows and reads the same columns, in one statement for the client and fewer in the server.

pub mod delivery;
pub mod new_order;
pub mod order_status;
pub mod payment;
pub mod stock_level;

use crate::counts::{Counted, Counts};
use crate::exchange::{Answers, Exchange, Unexpected};
use crate::random::{Constants, last_name, nurand};
use crate::schema::{CUSTOMERS, DISTRICTS, ITEMS};
use pgdyno_base::Prng;
use std::future::Future;
use std::pin::Pin;

/// Future that executes a transaction.
pub type Running = Pin<Box<dyn Future<Output = Result<(), Unexpected>> + Send>>;

/// One of the five.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are the standard's")]
pub enum Kind {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
}

/// All of them, in the standard's order.
pub const KINDS: [Kind; 5] = [Kind::NewOrder, Kind::Payment, Kind::OrderStatus, Kind::Delivery, Kind::StockLevel];

/// A statement: what reports call it, and its text, in which tables stand as `{stock}`.
pub type Statement = (&'static str, &'static str);

/// The statements that begin and end every transaction, first in each list.
pub const BEGIN: usize = 0;
/// See [`BEGIN`].
pub const COMMIT: usize = 1;
/// See [`BEGIN`].
pub const ROLLBACK: usize = 2;
/// Index of the call in the functions' statement lists.
pub const CALL: usize = 3;

impl Kind {
    /// Returns the transaction's name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Kind::NewOrder => "new-order",
            Kind::Payment => "payment",
            Kind::OrderStatus => "order-status",
            Kind::Delivery => "delivery",
            Kind::StockLevel => "stock-level",
        }
    }

    /// Its statements; or those that call its function.
    pub fn statements(self, as_function: bool) -> &'static [Statement] {
        match (self, as_function) {
            (Kind::NewOrder, false) => new_order::STATEMENTS,
            (Kind::Payment, false) => payment::STATEMENTS,
            (Kind::OrderStatus, false) => order_status::STATEMENTS,
            (Kind::Delivery, false) => delivery::STATEMENTS,
            (Kind::StockLevel, false) => stock_level::STATEMENTS,
            (Kind::NewOrder, true) => new_order::CALLS,
            (Kind::Payment, true) => payment::CALLS,
            (Kind::OrderStatus, true) => order_status::CALLS,
            (Kind::Delivery, true) => delivery::CALLS,
            (Kind::StockLevel, true) => stock_level::CALLS,
        }
    }

    /// The function that does the same in the server: CREATE FUNCTION, in which names of tables stand as in statements.
    pub fn function(self) -> &'static str {
        match self {
            Kind::NewOrder => include_str!("new_order.sql"),
            Kind::Payment => include_str!("payment.sql"),
            Kind::OrderStatus => include_str!("order_status.sql"),
            Kind::Delivery => include_str!("delivery.sql"),
            Kind::StockLevel => include_str!("stock_level.sql"),
        }
    }

    /// Draws what a transaction is given (clauses 2.4.1, 2.5.1, 2.6.1, 2.7.1, 2.8.1).
    pub fn draw(self, rng: &mut Prng, terms: &Terms) -> Input {
        match self {
            Kind::NewOrder => Input::NewOrder(new_order::Input::draw(rng, terms)),
            Kind::Payment => Input::Payment(payment::Input::draw(rng, terms)),
            Kind::OrderStatus => Input::OrderStatus(order_status::Input::draw(rng, terms)),
            Kind::Delivery => Input::Delivery(delivery::Input::draw(rng, terms)),
            Kind::StockLevel => Input::StockLevel(stock_level::Input::draw(rng, terms)),
        }
    }
}

/// Input of a transaction.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "they are the standard's")]
pub enum Input {
    NewOrder(new_order::Input),
    Payment(payment::Input),
    OrderStatus(order_status::Input),
    Delivery(delivery::Input),
    StockLevel(stock_level::Input),
}

impl Input {
    /// The transaction, ready to run; or the same by its function, within BEGIN and COMMIT if `in_block`.
    pub fn run(&self, db: Exchange, as_function: bool, in_block: bool) -> Running {
        match (self.clone(), as_function) {
            (Input::NewOrder(i), false) => Box::pin(new_order::run(db, i)),
            (Input::Payment(i), false) => Box::pin(payment::run(db, i)),
            (Input::OrderStatus(i), false) => Box::pin(order_status::run(db, i)),
            (Input::Delivery(i), false) => Box::pin(delivery::run(db, i)),
            (Input::StockLevel(i), false) => Box::pin(stock_level::run(db, i)),
            (Input::NewOrder(i), true) => Box::pin(new_order::call(db, i, in_block)),
            (Input::Payment(i), true) => Box::pin(payment::call(db, i, in_block)),
            (Input::OrderStatus(i), true) => Box::pin(order_status::call(db, i, in_block)),
            (Input::Delivery(i), true) => Box::pin(delivery::call(db, i, in_block)),
            (Input::StockLevel(i), true) => Box::pin(stock_level::call(db, i, in_block)),
        }
    }
}

impl Input {
    /// Counts it among what was drawn.
    pub fn count(&self, counts: &Counts) {
        match self {
            Input::NewOrder(i) => {
                counts.add(Counted::NewOrders, 1);
                counts.add(Counted::RolledBackNewOrders, i.rolls_back.into());
                counts.add(Counted::OrderLines, i.items.len());
                counts.add(Counted::RemoteOrderLines, i.suppliers.iter().filter(|s| **s != i.warehouse).count());
            }
            Input::Payment(i) => {
                counts.add(Counted::Payments, 1);
                counts.add(Counted::RemotePayments, (i.customer_warehouse != i.warehouse).into());
                counts.add(Counted::PaymentsByName, i.customer.is_named().into());
            }
            Input::OrderStatus(i) => {
                counts.add(Counted::OrderStatuses, 1);
                counts.add(Counted::OrderStatusesByName, i.customer.is_named().into());
            }
            Input::Delivery(_) => counts.add(Counted::Deliveries, 1),
            Input::StockLevel(_) => {}
        }
    }
}

/// Parameters from which inputs are drawn.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Warehouses of a set.
    pub warehouses: u64,
    /// Constants of NURand.
    pub constants: Constants,
    /// The client's own warehouse; none: any.
    pub warehouse: Option<u64>,
    /// Its own district, for stock-level; none: any.
    pub district: Option<u64>,
}

impl Terms {
    fn warehouse(&self, rng: &mut Prng) -> u64 {
        self.warehouse.unwrap_or_else(|| rng.range_u64(1, self.warehouses))
    }

    fn district(rng: &mut Prng) -> u64 {
        rng.range_u64(1, DISTRICTS)
    }

    fn customer(&self, rng: &mut Prng) -> u64 {
        nurand(rng, 1023, self.constants.customer, 1, CUSTOMERS)
    }

    fn item(&self, rng: &mut Prng) -> u64 {
        nurand(rng, 8191, self.constants.item, 1, ITEMS)
    }

    /// Another warehouse than `home`, if there is one.
    fn other_warehouse(&self, rng: &mut Prng, home: u64) -> u64 {
        if self.warehouses == 1 {
            return home;
        }
        let w = rng.range_u64(1, self.warehouses - 1);
        if w >= home { w + 1 } else { w }
    }
}

/// Identification of a customer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Customer {
    /// Customer number, used in 40 of 100 cases.
    Number(u64),
    /// Customer's last name.
    Name(Vec<u8>),
}

impl Customer {
    fn draw(rng: &mut Prng, terms: &Terms) -> Customer {
        if rng.range_u64(1, 100) > 60 {
            return Customer::Number(terms.customer(rng));
        }
        let mut name = Vec::new();
        last_name(nurand(rng, 255, terms.constants.last_name_run, 0, 999), &mut name);
        Customer::Name(name)
    }

    fn is_named(&self) -> bool {
        matches!(self, Customer::Name(_))
    }

    /// Number and name as the functions take them: one of them is 0, or empty.
    fn for_call(&self) -> (u64, &[u8]) {
        match self {
            Customer::Number(c) => (*c, b""),
            Customer::Name(name) => (0, name),
        }
    }
}

/// Returns the index of the middle one of `count` customers of one name, ordered by first name. The position is rounded
/// up (clause 2.5.2.2).
fn in_the_middle(count: usize) -> usize {
    count.div_ceil(2).saturating_sub(1)
}

/// Calls a function, whose arguments `ask` gives, by itself or within a block; `keep`: it is committed, else rolled back.
async fn call(db: &Exchange, in_block: bool, keep: bool, ask: impl FnOnce(&Exchange)) -> Answers {
    let in_block = in_block || !keep;
    if in_block {
        db.ask(BEGIN, &[]);
    }
    ask(db);
    if in_block {
        db.ask(if keep { COMMIT } else { ROLLBACK }, &[]);
    }
    db.answers().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_customer_in_the_middle_is_the_standards() {
        // n/2 rounded up, counted from 1.
        assert_eq!([1, 2, 3, 4, 5].map(in_the_middle), [0, 0, 1, 1, 2]);
    }

    #[test]
    fn statements_begin_alike_and_name_their_tables() {
        for (kind, as_function) in KINDS.iter().flat_map(|k| [(k, false), (k, true)]) {
            let all = kind.statements(as_function);
            assert_eq!([all[BEGIN].1, all[COMMIT].1, all[ROLLBACK].1], ["begin", "commit", "rollback"]);
            let text = crate::schema::with_names(all[CALL].1, 1, 2);
            assert!(!text.contains('{') && text.contains('2'), "{text}");
        }
    }

    #[test]
    fn what_is_drawn_is_within_the_standards_bounds() {
        let constants = Constants::of_seed(1);
        let (mut rng, terms) =
            (Prng::from_seed(9), Terms { warehouses: 10, constants, warehouse: None, district: None });
        let (counts, n) = (Counts::default(), 20_000);
        for _ in 0..n {
            KINDS.iter().for_each(|kind| kind.draw(&mut rng, &terms).count(&counts));
            let i = new_order::Input::draw(&mut rng, &terms);
            assert!((5..=15).contains(&i.items.len()) && i.items.len() == i.suppliers.len());
            assert!(i.quantities.iter().all(|q| (1..=10).contains(q)));
            let unused = i.items.iter().filter(|i| !(1..=ITEMS).contains(*i)).count();
            assert_eq!(unused, usize::from(i.rolls_back));
            let p = payment::Input::draw(&mut rng, &terms);
            assert!((100..=500_000).contains(&p.amount));
        }
        let counted: std::collections::HashMap<_, _> = counts.named().into_iter().collect();
        let part = |of: &str, all: &str| counted[of] as f64 / counted[all] as f64;
        assert_eq!([counted["new_orders"], counted["payments"], counted["deliveries"]], [n; 3]);
        assert!((0.007..0.013).contains(&part("rolled_back_new_orders", "new_orders")));
        assert!((9.9..10.1).contains(&part("order_lines", "new_orders")));
        assert!((0.008..0.012).contains(&part("remote_order_lines", "order_lines")));
        assert!((0.14..0.16).contains(&part("remote_payments", "payments")));
        assert!((0.585..0.615).contains(&part("payments_by_name", "payments")));
        assert!((0.585..0.615).contains(&part("order_statuses_by_name", "order_statuses")));
        // With one warehouse nothing is remote.
        let alone = Terms { warehouses: 1, ..terms };
        assert!((0..500).all(|_| new_order::Input::draw(&mut rng, &alone).suppliers.iter().all(|s| *s == 1)));
    }
}
