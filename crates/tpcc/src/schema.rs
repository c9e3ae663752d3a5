//! The nine tables (clause 1.3), how many rows they begin with (clause 1.2.1, 4.3.3), and their names.

use pgdyno_load::rows::{Column, Index, Kind, Table};
use pgdyno_load::size::Width;
use std::ops::Range;

/// Items; each warehouse has them all in stock.
pub const ITEMS: u64 = 100_000;
/// Districts of a warehouse.
pub const DISTRICTS: u64 = 10;
/// Customers of a district; as many orders, and as many rows of history.
pub const CUSTOMERS: u64 = 3_000;
/// The first order that is not delivered yet.
pub const FIRST_NEW_ORDER: u64 = 2_101;
/// Orders of a district that are not delivered yet.
pub const NEW_ORDERS: u64 = CUSTOMERS - FIRST_NEW_ORDER + 1;
/// Least and most lines of an order.
pub const LINES: (u64, u64) = (5, 15);

/// A table, in the order in which they are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are the standard's")]
pub enum Name {
    Item,
    Warehouse,
    District,
    Customer,
    History,
    Orders,
    NewOrder,
    OrderLine,
    Stock,
}

/// All of them.
pub const NAMES: [Name; 9] = [
    Name::Item,
    Name::Warehouse,
    Name::District,
    Name::Customer,
    Name::History,
    Name::Orders,
    Name::NewOrder,
    Name::OrderLine,
    Name::Stock,
];

impl Name {
    /// Returns the table's name in SQL, without the number of its set.
    pub fn sql(self) -> &'static str {
        match self {
            Name::Item => "tpcc_item",
            Name::Warehouse => "tpcc_warehouse",
            Name::District => "tpcc_district",
            Name::Customer => "tpcc_customer",
            Name::History => "tpcc_history",
            Name::Orders => "tpcc_orders",
            Name::NewOrder => "tpcc_new_order",
            Name::OrderLine => "tpcc_order_line",
            Name::Stock => "tpcc_stock",
        }
    }

    /// Its name in set `set` (from 0) of `sets`: with a number where there are several.
    pub fn in_set(self, set: u32, sets: u32) -> String {
        if sets == 1 { self.sql().into() } else { format!("{}{}", self.sql(), set + 1) }
    }
}

/// Puts the tables' names of a set into a statement, in which they stand as `{stock}` and the like.
pub fn with_names(text: &str, set: u32, sets: u32) -> String {
    NAMES.iter().fold(text.to_owned(), |text, name| {
        let short = name.sql().trim_start_matches("tpcc_");
        text.replace(&format!("{{{short}}}"), &name.in_set(set, sets))
    })
}

fn column(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, constraint: "" }
}

fn key(name: &'static str) -> Column {
    Column { name, kind: Kind::Int4, constraint: "not null" }
}

/// Its columns. Numbers that the standard wants to hold a certain count of digits are `int` where that is enough.
fn columns(name: Name) -> Vec<Column> {
    use Kind::{Char, Int4, Int8, Numeric, Timestamp, Varchar};
    let money = Numeric(12, 2);
    let address = |street_1, street_2, city, state, zip| {
        [
            column(street_1, Varchar(20)),
            column(street_2, Varchar(20)),
            column(city, Varchar(20)),
            column(state, Char(2)),
            column(zip, Char(9)),
        ]
    };
    match name {
        Name::Item => vec![
            key("i_id"),
            column("i_im_id", Int4),
            column("i_name", Varchar(24)),
            column("i_price", Numeric(5, 2)),
            column("i_data", Varchar(50)),
        ],
        Name::Warehouse => {
            let mut all = vec![key("w_id"), column("w_name", Varchar(10))];
            all.extend(address("w_street_1", "w_street_2", "w_city", "w_state", "w_zip"));
            all.extend([column("w_tax", Numeric(4, 4)), column("w_ytd", money)]);
            all
        }
        Name::District => {
            let mut all = vec![key("d_id"), key("d_w_id"), column("d_name", Varchar(10))];
            all.extend(address("d_street_1", "d_street_2", "d_city", "d_state", "d_zip"));
            all.extend([column("d_tax", Numeric(4, 4)), column("d_ytd", money), column("d_next_o_id", Int4)]);
            all
        }
        Name::Customer => {
            let mut all = vec![
                key("c_id"),
                key("c_d_id"),
                key("c_w_id"),
                column("c_first", Varchar(16)),
                column("c_middle", Char(2)),
                column("c_last", Varchar(16)),
            ];
            all.extend(address("c_street_1", "c_street_2", "c_city", "c_state", "c_zip"));
            all.extend([
                column("c_phone", Char(16)),
                column("c_since", Timestamp),
                column("c_credit", Char(2)),
                column("c_credit_lim", money),
                column("c_discount", Numeric(4, 4)),
                column("c_balance", money),
                column("c_ytd_payment", money),
                column("c_payment_cnt", Int4),
                column("c_delivery_cnt", Int4),
                column("c_data", Varchar(500)),
            ]);
            all
        }
        Name::History => vec![
            column("h_c_id", Int4),
            column("h_c_d_id", Int4),
            column("h_c_w_id", Int4),
            column("h_d_id", Int4),
            column("h_w_id", Int4),
            column("h_date", Timestamp),
            column("h_amount", Numeric(6, 2)),
            column("h_data", Varchar(24)),
        ],
        Name::Orders => vec![
            key("o_id"),
            key("o_d_id"),
            key("o_w_id"),
            column("o_c_id", Int4),
            column("o_entry_d", Timestamp),
            column("o_carrier_id", Int4),
            column("o_ol_cnt", Int4),
            column("o_all_local", Int4),
        ],
        Name::NewOrder => vec![key("no_o_id"), key("no_d_id"), key("no_w_id")],
        Name::OrderLine => vec![
            key("ol_o_id"),
            key("ol_d_id"),
            key("ol_w_id"),
            key("ol_number"),
            column("ol_i_id", Int4),
            column("ol_supply_w_id", Int4),
            column("ol_delivery_d", Timestamp),
            column("ol_quantity", Int4),
            column("ol_amount", Numeric(6, 2)),
            column("ol_dist_info", Char(24)),
        ],
        Name::Stock => {
            const DISTS: [&str; 10] = [
                "s_dist_01",
                "s_dist_02",
                "s_dist_03",
                "s_dist_04",
                "s_dist_05",
                "s_dist_06",
                "s_dist_07",
                "s_dist_08",
                "s_dist_09",
                "s_dist_10",
            ];
            let mut all = vec![key("s_i_id"), key("s_w_id"), column("s_quantity", Int4)];
            all.extend(DISTS.map(|name| column(name, Char(24))));
            all.extend([
                column("s_ytd", Int8),
                column("s_order_cnt", Int4),
                column("s_remote_cnt", Int4),
                column("s_data", Varchar(50)),
            ]);
            all
        }
    }
}

/// The columns of its primary key, in the key's order.
fn primary_key(name: Name) -> Vec<usize> {
    match name {
        Name::Item | Name::Warehouse => vec![0],
        Name::District | Name::Stock => vec![1, 0],
        Name::Customer | Name::Orders | Name::NewOrder => vec![2, 1, 0],
        Name::OrderLine => vec![2, 1, 0, 3],
        Name::History => vec![],
    }
}

/// The column that holds the warehouse, of tables that are partitioned by it.
pub fn by_warehouse(name: Name) -> Option<usize> {
    match name {
        Name::Item | Name::Warehouse | Name::District => None,
        Name::History => Some(4),
        Name::Stock => Some(1),
        Name::Customer | Name::Orders | Name::NewOrder | Name::OrderLine => Some(2),
    }
}

/// Returns the width of typical values.
fn width(kind: Kind) -> Width {
    match kind {
        Kind::Char(n) => Width::Text(u64::from(n)),
        // Between the least and the most that is drawn.
        Kind::Varchar(500) => Width::Text(400),
        Kind::Varchar(50) => Width::Text(38),
        Kind::Varchar(n) => Width::Text(u64::from(n) * 3 / 4),
        Kind::Numeric(..) => Width::Text(5),
        fixed => Width::Fixed(fixed.fixed().unwrap_or(8)),
    }
}

/// A table of a set.
pub fn table(name: Name, set: u32, sets: u32, rows: Range<u64>, breaks: Vec<u64>, fillfactor: u64) -> Table {
    let columns = columns(name);
    let own = name.in_set(set, sets);
    // Customers by last name (clauses 2.5.2.2, 2.6.2.2); a customer's last order.
    let index = |columns: Vec<usize>| {
        vec![Index { name: format!("{own}_by_{}", if name == Name::Customer { "name" } else { "customer" }), columns }]
    };
    let indexes = match name {
        Name::Customer => index(vec![2, 1, 5, 3]),
        Name::Orders => index(vec![2, 1, 3, 0]),
        _ => Vec::new(),
    };
    Table {
        widths: columns.iter().map(|c| width(c.kind)).collect(),
        key: primary_key(name),
        indexes,
        brin: None,
        partition: None,
        rows,
        breaks,
        fillfactor,
        query: String::new(),
        columns,
        name: own,
    }
}
