//! The rows that the tables begin with (clause 4.3.3.1), each a function of the seed and its number: so any part can be
//! made by anybody, and the whole is the same.

use crate::random::{Constants, data, digits, last_name, letters, nurand, permutation};
use crate::schema::{
    CUSTOMERS, DISTRICTS, FIRST_NEW_ORDER, ITEMS, LINES, NAMES, NEW_ORDERS, Name, by_warehouse, table,
};
use pgdyno_base::Prng;
use pgdyno_load::rows::{EPOCH, Index, Key, Partition, Value};
use pgdyno_load::{Dataset, Row, Table};

/// Rows between two of an item table's places where a page begins in any case.
const ITEMS_TOGETHER: usize = 10_000;
/// Orders of a district, as the lists of a group have them.
const ORDERS: usize = CUSTOMERS as usize;

/// The tables of some warehouses, in one set or several that have nothing in common.
#[derive(Clone, Debug)]
pub struct Tpcc {
    seed: u64,
    constants: Constants,
    tables: Vec<Table>,
    /// Set of each table, and its name: the one of the nine tables that it is, or is a partition of.
    of: Vec<(u64, Name)>,
    /// Number of the first order line of each district, followed by the end, per set.
    lines: Vec<Vec<u64>>,
}

impl Tpcc {
    /// `warehouses` warehouses in each of `sets` sets; the large tables in so many partitions by warehouse, 0: in none.
    pub fn new(warehouses: u32, sets: u32, partitions: u32, fillfactor: u64, seed: u64) -> Tpcc {
        let (warehouses, constants) = (u64::from(warehouses), Constants::of_seed(seed));
        let partitions = u64::from(partitions).min(warehouses);
        let mut new = Tpcc { seed, constants, tables: Vec::new(), of: Vec::new(), lines: Vec::new() };
        for set in 0..sets {
            let mut starts = vec![0];
            for district in 0..warehouses * DISTRICTS {
                let mut rng = new.lines_of(u64::from(set), district);
                let lines: u64 = (0..CUSTOMERS).map(|_| rng.range_u64(LINES.0, LINES.1)).sum();
                starts.push(starts[district as usize] + lines);
            }
            for name in NAMES {
                let per_warehouse = |rows: u64| (0..warehouses).map(|w| w * rows).collect::<Vec<_>>();
                let (rows, breaks) = match name {
                    Name::Item => (ITEMS, (0..ITEMS).step_by(ITEMS_TOGETHER).collect()),
                    Name::Warehouse => (warehouses, vec![0]),
                    Name::District => (warehouses * DISTRICTS, vec![0]),
                    Name::Customer | Name::History | Name::Orders => {
                        let each = DISTRICTS * CUSTOMERS;
                        (warehouses * each, per_warehouse(each))
                    }
                    Name::NewOrder => (warehouses * DISTRICTS * NEW_ORDERS, Vec::new()),
                    Name::OrderLine => {
                        let first = |w: u64| starts[(w * DISTRICTS) as usize];
                        (first(warehouses), (0..warehouses).map(first).collect())
                    }
                    Name::Stock => (warehouses * ITEMS, per_warehouse(ITEMS)),
                };
                let whole = table(name, set, sets, 0..rows, breaks, fillfactor);
                let parts = match by_warehouse(name) {
                    Some(column) if partitions > 0 => {
                        let first = |w: u64| match name {
                            Name::OrderLine => starts[(w * DISTRICTS) as usize],
                            _ => rows / warehouses * w,
                        };
                        cut(&whole, column, warehouses, partitions, first)
                    }
                    _ => vec![whole],
                };
                new.of.extend(parts.iter().map(|_| (u64::from(set), name)));
                new.tables.extend(parts);
            }
            new.lines.push(starts);
        }
        new
    }

    /// The constants of NURand that go with these rows.
    pub fn constants(&self) -> Constants {
        self.constants
    }

    /// A stream for one purpose and one thing.
    fn stream(&self, set: u64, purpose: u64, number: u64) -> Prng {
        let mixed = self.seed ^ (set << 8 | purpose).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        Prng::from_seed(mixed.wrapping_add(number.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
    }

    /// Returns the random stream for the number of lines of each of a district's orders, in sequence.
    fn lines_of(&self, set: u64, district: u64) -> Prng {
        self.stream(set, 100, district)
    }

    /// Returns the data of a district's orders that is known only for all of them together.
    ///
    /// The slice begins with the number of each order's first line within the district, and the end. Each order's
    /// customer follows, counted from 0.
    fn orders<'a>(&self, set: u64, district: u64, row: &'a mut Row) -> &'a [u32] {
        let work = || {
            let mut all = Vec::with_capacity(2 * ORDERS + 1);
            let (mut rng, mut next) = (self.lines_of(set, district), 0);
            for _ in 0..ORDERS {
                all.push(next);
                next += rng.range_u64(LINES.0, LINES.1) as u32;
            }
            all.push(next);
            all.extend(permutation(&mut self.stream(set, 101, district), ORDERS as u32));
            all
        };
        row.group_of(set << 40 | district, work)
    }

    /// Returns the district of an order line (over all warehouses), its order and its line number, all counted from 0.
    /// Notes its place in `row.near`.
    fn line(&self, set: u64, number: u64, row: &mut Row) -> (u64, u64, u64) {
        // Mostly rows are asked for one after the other: of the same order, or of the next.
        let (near_district, near_order) = (row.near / ORDERS, row.near % ORDERS);
        let starts = &self.lines[set as usize];
        let here =
            |district: usize| starts.get(district + 1).is_some_and(|end| starts[district] <= number && number < *end);
        let district =
            if here(near_district) { near_district } else { starts.partition_point(|first| *first <= number) - 1 };
        let within = (number - starts[district]) as u32;
        let firsts = &self.orders(set, district as u64, row)[..=ORDERS];
        let here = |order: usize| order < ORDERS && firsts[order] <= within && within < firsts[order + 1];
        let order = [near_order, near_order + 1].into_iter().find(|order| here(*order));
        let order = order.unwrap_or_else(|| firsts.partition_point(|first| *first <= within) - 1);
        let line = u64::from(within - firsts[order]);
        row.near = district * ORDERS + order;
        (district as u64, order as u64, line)
    }

    /// Appends a customer's first and last name; the stream goes on with what else is drawn.
    fn names(&self, set: u64, number: u64, draft: bool, first: &mut Vec<u8>, last: &mut Vec<u8>) -> Prng {
        let (mut rng, c) = (self.stream(set, 3, number), number % CUSTOMERS);
        letters(&mut rng, 8, 16, draft, first);
        let name = if c < 1000 { c } else { nurand(&mut rng, 255, self.constants.last_name_load, 0, 999) };
        last_name(name, last);
        rng
    }

    /// A district's customers, from 0, by last and first name.
    fn by_name<'a>(&self, set: u64, district: u64, row: &'a mut Row) -> &'a [u32] {
        let work = || {
            // A name of letters, with zeroes behind it, stands among numbers as it does among texts.
            let number = |name: &[u8]| {
                let mut bytes = [0; 16];
                bytes[..name.len()].copy_from_slice(name);
                u128::from_be_bytes(bytes)
            };
            let (mut first, mut last) = (Vec::new(), Vec::new());
            let mut all: Vec<_> = (0..CUSTOMERS)
                .map(|c| {
                    first.clear();
                    last.clear();
                    self.names(set, district * CUSTOMERS + c, false, &mut first, &mut last);
                    (number(&last), number(&first), c as u32)
                })
                .collect();
            all.sort_unstable();
            all.into_iter().map(|(.., c)| c).collect()
        };
        row.group_of(1 << 62 | set << 40 | district, work)
    }

    /// A district's orders, from 0, by customer.
    fn by_customer<'a>(&self, set: u64, district: u64, row: &'a mut Row) -> &'a [u32] {
        let work = || {
            let mut all = vec![0; ORDERS];
            let customers = permutation(&mut self.stream(set, 101, district), ORDERS as u32);
            (0..).zip(customers).for_each(|(order, customer)| all[customer as usize] = order);
            all
        };
        row.group_of(1 << 63 | set << 40 | district, work)
    }

    fn customer(&self, set: u64, number: u64, row: &mut Row) {
        let draft = row.draft;
        let (district, c) = (number / CUSTOMERS, number % CUSTOMERS);
        let (w, d) = (district / DISTRICTS, district % DISTRICTS);
        int(row, c + 1);
        int(row, d + 1);
        int(row, w + 1);
        let mut last = Vec::with_capacity(15);
        let mut rng = row.text_with(|o| self.names(set, number, draft, o, &mut last));
        row.text(b"OE");
        row.text(&last);
        address(&mut rng, row);
        row.text_with(|o| digits(&mut rng, 16, draft, o));
        row.push(Value::Int8(EPOCH));
        row.text(if rng.range_u64(1, 10) == 1 { b"BC" } else { b"GC" });
        row.push(Value::Numeric(dollars(50_000)));
        row.push(Value::Numeric(rng.range_i64(0, 5_000)));
        row.push(Value::Numeric(dollars(-10)));
        row.push(Value::Numeric(dollars(10)));
        int(row, 1);
        int(row, 0);
        row.text_with(|o| letters(&mut rng, 300, 500, draft, o));
    }

    fn order(&self, set: u64, number: u64, row: &mut Row) {
        let mut rng = self.stream(set, 5, number);
        let (district, o) = (number / CUSTOMERS, number % CUSTOMERS);
        let known = self.orders(set, district, row);
        let lines = known[o as usize + 1] - known[o as usize];
        let customer = known[ORDERS + 1 + o as usize];
        int(row, o + 1);
        int(row, district % DISTRICTS + 1);
        int(row, district / DISTRICTS + 1);
        int(row, u64::from(customer) + 1);
        row.push(Value::Int8(EPOCH));
        if o + 1 < FIRST_NEW_ORDER {
            int(row, rng.range_u64(1, 10));
        } else {
            row.push(Value::Null);
        }
        int(row, u64::from(lines));
        int(row, 1);
    }

    fn order_line(&self, set: u64, number: u64, row: &mut Row) {
        let draft = row.draft;
        let mut rng = self.stream(set, 7, number);
        let (district, order, line) = self.line(set, number, row);
        let warehouse = district / DISTRICTS + 1;
        let delivered = order + 1 < FIRST_NEW_ORDER;
        int(row, order + 1);
        int(row, district % DISTRICTS + 1);
        int(row, warehouse);
        int(row, line + 1);
        int(row, rng.range_u64(1, ITEMS));
        int(row, warehouse);
        row.push(if delivered { Value::Int8(EPOCH) } else { Value::Null });
        int(row, 5);
        row.push(Value::Numeric(if delivered { 0 } else { rng.range_i64(1, dollars(10_000) - 1) }));
        row.text_with(|o| letters(&mut rng, 24, 24, draft, o));
    }

    fn stock(&self, set: u64, number: u64, row: &mut Row) {
        let draft = row.draft;
        let mut rng = self.stream(set, 8, number);
        int(row, number % ITEMS + 1);
        int(row, number / ITEMS + 1);
        int(row, rng.range_u64(10, 100));
        row.texts_with(DISTRICTS as usize, |o| letters(&mut rng, DISTRICTS * 24, DISTRICTS * 24, draft, o));
        row.push(Value::Int8(0));
        int(row, 0);
        int(row, 0);
        row.text_with(|o| data(&mut rng, draft, o));
    }

    fn history(&self, set: u64, number: u64, row: &mut Row) {
        let draft = row.draft;
        let mut rng = self.stream(set, 4, number);
        let district = number / CUSTOMERS;
        let (w, d) = (district / DISTRICTS + 1, district % DISTRICTS + 1);
        int(row, number % CUSTOMERS + 1);
        for value in [d, w, d, w] {
            int(row, value);
        }
        row.push(Value::Int8(EPOCH));
        row.push(Value::Numeric(dollars(10)));
        row.text_with(|o| letters(&mut rng, 12, 24, draft, o));
    }
}

/// Cuts a table into partitions of as many warehouses each; `first` is the number of a warehouse's first row.
fn cut(whole: &Table, column: usize, warehouses: u64, partitions: u64, first: impl Fn(u64) -> u64) -> Vec<Table> {
    let each = warehouses.div_ceil(partitions);
    let count = warehouses.div_ceil(each);
    let part = |p: u64| {
        let rows = first(p * each)..first(((p + 1) * each).min(warehouses));
        Table {
            name: format!("{}_{}", whole.name, p + 1),
            breaks: whole.breaks.iter().copied().filter(|b| rows.contains(b)).collect(),
            indexes: (whole.indexes.iter())
                .map(|i| Index { name: format!("{}_{}", i.name, p + 1), columns: i.columns.clone() })
                .collect(),
            partition: Some(Partition::of(&whole.name, column, p, count, each)),
            rows,
            ..whole.clone()
        }
    };
    (0..count).map(part).collect()
}

/// Converts dollars to cents.
const fn dollars(amount: i64) -> i64 {
    amount * 100
}

#[inline]
fn int(row: &mut Row, value: u64) {
    row.push(Value::Int4(value as i32));
}

/// Two streets, a city, a state, a code (clause 4.3.2.7).
fn address(rng: &mut Prng, row: &mut Row) {
    let draft = row.draft;
    for _ in 0..3 {
        row.text_with(|o| letters(rng, 10, 20, draft, o));
    }
    row.text_with(|o| letters(rng, 2, 2, draft, o));
    row.text_with(|o| {
        digits(rng, 4, draft, o);
        o.extend_from_slice(b"11111");
    });
}

impl Dataset for Tpcc {
    fn tables(&self) -> &[Table] {
        &self.tables
    }

    fn row(&self, table: usize, number: u64, row: &mut Row) {
        row.clear();
        let draft = row.draft;
        let (set, name) = self.of[table];
        match name {
            Name::Item => {
                let mut rng = self.stream(set, 0, number);
                int(row, number + 1);
                int(row, rng.range_u64(1, 10_000));
                row.text_with(|o| letters(&mut rng, 14, 24, draft, o));
                row.push(Value::Numeric(rng.range_i64(dollars(1), dollars(100))));
                row.text_with(|o| data(&mut rng, draft, o));
            }
            Name::Warehouse => {
                let mut rng = self.stream(set, 1, number);
                int(row, number + 1);
                row.text_with(|o| letters(&mut rng, 6, 10, draft, o));
                address(&mut rng, row);
                row.push(Value::Numeric(rng.range_i64(0, 2_000)));
                row.push(Value::Numeric(dollars(300_000)));
            }
            Name::District => {
                let mut rng = self.stream(set, 2, number);
                int(row, number % DISTRICTS + 1);
                int(row, number / DISTRICTS + 1);
                row.text_with(|o| letters(&mut rng, 6, 10, draft, o));
                address(&mut rng, row);
                row.push(Value::Numeric(rng.range_i64(0, 2_000)));
                row.push(Value::Numeric(dollars(30_000)));
                int(row, CUSTOMERS + 1);
            }
            Name::Customer => self.customer(set, number, row),
            Name::History => self.history(set, number, row),
            Name::Orders => self.order(set, number, row),
            Name::NewOrder => {
                let (district, order) = (number / NEW_ORDERS, number % NEW_ORDERS);
                int(row, order + FIRST_NEW_ORDER);
                int(row, district % DISTRICTS + 1);
                int(row, district / DISTRICTS + 1);
            }
            Name::OrderLine => self.order_line(set, number, row),
            Name::Stock => self.stock(set, number, row),
        }
    }

    fn as_long(&self, table: usize, number: u64, row: &mut Row) -> u64 {
        let (set, name) = self.of[table];
        // Delivered orders have a carrier, those that are not have none; delivered lines a date, and all the same amount.
        match name {
            Name::Orders => match number % CUSTOMERS + 1 {
                order if order < FIRST_NEW_ORDER => FIRST_NEW_ORDER - order,
                order => CUSTOMERS + 1 - order,
            },
            Name::OrderLine => {
                let (district, order, _) = self.line(set, number, row);
                if order + 1 >= FIRST_NEW_ORDER {
                    return 1;
                }
                let delivered = self.orders(set, district, row)[FIRST_NEW_ORDER as usize - 1];
                self.lines[set as usize][district as usize] + u64::from(delivered) - number
            }
            _ => 1,
        }
    }

    fn key(&self, table: usize, number: u64, row: &mut Row) -> Key {
        let (set, name) = self.of[table];
        let in_district = |district: u64, third: u64, fourth: u64| {
            [district / DISTRICTS + 1, district % DISTRICTS + 1, third, fourth].map(|v| v as i64)
        };
        match name {
            Name::Item | Name::Warehouse | Name::History => [number as i64 + 1, 0, 0, 0],
            Name::District => in_district(number, 0, 0),
            Name::Stock => [(number / ITEMS) as i64 + 1, (number % ITEMS) as i64 + 1, 0, 0],
            Name::Customer | Name::Orders => in_district(number / CUSTOMERS, number % CUSTOMERS + 1, 0),
            Name::NewOrder => in_district(number / NEW_ORDERS, number % NEW_ORDERS + FIRST_NEW_ORDER, 0),
            Name::OrderLine => {
                let (district, order, line) = self.line(set, number, row);
                in_district(district, order + 1, line + 1)
            }
        }
    }

    fn in_order(&self, table: usize, _: usize, place: u64, row: &mut Row) -> u64 {
        row.clear();
        let (set, name) = self.of[table];
        let (district, rank) = (place / CUSTOMERS, (place % CUSTOMERS) as usize);
        let (w, d) = (district / DISTRICTS + 1, district % DISTRICTS + 1);
        if name == Name::Customer {
            let number = district * CUSTOMERS + u64::from(self.by_name(set, district, row)[rank]);
            int(row, w);
            int(row, d);
            let mut first = Vec::with_capacity(16);
            row.text_with(|last| self.names(set, number, false, &mut first, last));
            row.text(&first);
            return number;
        }
        // Each customer has one order.
        let order = self.by_customer(set, district, row)[rank];
        [w, d, rank as u64 + 1, u64::from(order) + 1].into_iter().for_each(|value| int(row, value));
        district * CUSTOMERS + u64::from(order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_load::heap::{place, tuple};
    use std::sync::atomic::AtomicBool;

    fn rows(tpcc: &Tpcc, name: Name) -> Vec<Vec<Value>> {
        let table = NAMES.iter().position(|n| *n == name).unwrap_or_default();
        let mut row = Row::default();
        (0..tpcc.tables()[table].count())
            .map(|n| {
                tpcc.row(table, n, &mut row);
                row.values.clone()
            })
            .collect()
    }

    fn integer(value: Value) -> i64 {
        match value {
            Value::Int4(v) => i64::from(v),
            Value::Int8(v) | Value::Numeric(v) => v,
            _ => -1,
        }
    }

    #[test]
    fn lines_are_those_of_their_orders() {
        let tpcc = Tpcc::new(2, 1, 0, 100, 7);
        let orders = rows(&tpcc, Name::Orders);
        let lines = rows(&tpcc, Name::OrderLine);
        let counts: Vec<i64> = orders.iter().map(|o| integer(o[6])).collect();
        assert_eq!(counts.iter().sum::<i64>(), lines.len() as i64);
        let mut at = 0;
        for (o, order) in orders.iter().enumerate() {
            for n in 0..counts[o] {
                let line = &lines[at];
                at += 1;
                let key: Vec<i64> = line[..4].iter().map(|v| integer(*v)).collect();
                assert_eq!(key, [integer(order[0]), integer(order[1]), integer(order[2]), n + 1]);
                let delivered = integer(order[0]) < 2_101;
                assert_eq!((order[5] == Value::Null, line[6] == Value::Null), (!delivered, !delivered));
            }
        }
    }

    /// Checks that every customer of a district has one order (clause 4.3.3.1).
    #[test]
    fn customers_of_orders_are_a_permutation() {
        let tpcc = Tpcc::new(1, 1, 0, 100, 7);
        let mut customers: Vec<i64> = rows(&tpcc, Name::Orders)[..3000].iter().map(|o| integer(o[3])).collect();
        customers.sort_unstable();
        assert!(customers.iter().enumerate().all(|(i, c)| *c == i as i64 + 1));
    }

    #[test]
    fn keys_rise_and_are_those_of_their_rows() {
        let tpcc = Tpcc::new(2, 2, 0, 100, 7);
        for (number, table) in tpcc.tables().iter().enumerate().filter(|(_, t)| !t.key.is_empty()) {
            let (mut row, mut scratch, mut before) = (Row::default(), Row::default(), [0; 4]);
            for n in (0..table.count()).step_by(17) {
                tpcc.row(number, n, &mut row);
                let key = tpcc.key(number, n, &mut scratch);
                let found: Vec<i64> = table.key.iter().map(|c| integer(row.values[*c])).collect();
                assert_eq!(key[..found.len()], found, "{} {n}", table.name);
                assert!(key > before, "{} {n}", table.name);
                before = key;
            }
        }
    }

    #[test]
    fn rows_do_not_depend_on_who_makes_them_or_when() {
        let (a, b) = (Tpcc::new(3, 2, 0, 100, 7), Tpcc::new(3, 2, 0, 100, 7));
        let mut shared = Row::default();
        for table in 0..a.tables().len() {
            let count = a.tables()[table].count();
            for n in [0, 1, count / 2, count - 1, 5 % count] {
                let mut fresh = Row::default();
                a.row(table, n, &mut fresh);
                b.row(table, n, &mut shared);
                assert_eq!(fresh.values, shared.values);
            }
        }
        let (mut x, mut y) = (Row::default(), Row::default());
        a.row(3, 5, &mut x);
        Tpcc::new(3, 2, 0, 100, 8).row(3, 5, &mut y);
        assert_ne!(x.values, y.values);
        a.row(3 + NAMES.len(), 5, &mut y);
        assert_ne!(x.values, y.values, "sets have rows of their own");
    }

    #[test]
    fn partitions_hold_the_same_rows() {
        let (whole, cut) = (Tpcc::new(5, 1, 0, 100, 7), Tpcc::new(5, 1, 2, 100, 7));
        // Of 3 and 2 warehouses.
        assert_eq!(cut.tables().len(), 3 + 6 * 2);
        for (n, table) in cut.tables().iter().enumerate().filter(|(_, t)| t.partition.is_some()) {
            let partition = table.partition.as_ref().unwrap();
            let of = whole.tables().iter().position(|t| t.name == partition.parent).unwrap();
            let first = table.name.ends_with("_1");
            let bounds = if first { (None, Some(4)) } else { (Some(4), None) };
            assert_eq!((partition.from, partition.to), bounds, "{}", table.name);
            let (mut a, mut b) = (Row::default(), Row::default());
            for number in [table.rows.start, table.rows.end - 1] {
                cut.row(n, number, &mut a);
                whole.row(of, number, &mut b);
                assert_eq!(a.values, b.values);
                let w = integer(a.values[partition.column]);
                assert_eq!((w < 4, (1..=5).contains(&w)), (first, true), "{}", table.name);
            }
        }
        let rows = |t: &Tpcc| t.tables().iter().map(Table::count).sum::<u64>();
        assert_eq!(rows(&whole), rows(&cut));
    }

    #[test]
    fn rows_are_as_long_as_is_known() {
        let tpcc = Tpcc::new(1, 1, 0, 100, 7);
        let length = |table: usize, number: u64, row: &mut Row| {
            tpcc.row(table, number, row);
            tuple::length(row, &tpcc.tables()[table].kinds())
        };
        for (number, table) in tpcc.tables().iter().enumerate() {
            let (mut at, mut runs, mut row) = (0, 0, Row::default());
            while at < table.count() {
                runs += 1;
                let (first, known) = (length(number, at, &mut row), tpcc.as_long(number, at, &mut row));
                assert!((1..=table.count() - at).contains(&known));
                assert!((at..at + known).all(|n| length(number, n, &mut row) == first), "{} {at}", table.name);
                at += known;
            }
            // 20 of orders; of lines those that are delivered, 70%, are ten.
            let share = runs as f64 / table.count() as f64;
            let most = [("tpcc_orders", 0.001), ("tpcc_order_line", 0.31)];
            assert!(most.iter().all(|(name, most)| *name != table.name || share < *most), "{} {share}", table.name);
        }
    }

    #[test]
    fn pages_begin_where_they_must_whoever_looks() {
        let tpcc = Tpcc::new(2, 1, 0, 100, 7);
        for (number, table) in tpcc.tables().iter().enumerate().filter(|(_, t)| !t.breaks.is_empty()) {
            let pages = place::pages(&tpcc, number, 1, &AtomicBool::new(false));
            assert_eq!(pages, place::pages(&tpcc, number, 4, &AtomicBool::new(false)));
            assert!(pages.windows(2).all(|w| w[0] < w[1]), "{}", table.name);
            assert!(table.breaks.iter().all(|b| pages.binary_search(b).is_ok()), "{}", table.name);
            assert_eq!(pages.last(), Some(&table.rows.end));
            // What is said beforehand is near what will be.
            let (heap, _) = table.size();
            let said = heap as f64 / 8192.0 / (pages.len() - 1) as f64;
            assert!(table.count() < 1000 || (0.9..1.1).contains(&said), "{}: {said}", table.name);
        }
    }
}
