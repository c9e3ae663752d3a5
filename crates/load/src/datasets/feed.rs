//! `feed`: what sensors send; id, value, time, with a BRIN index on the time. One table, or many.

use crate::rows::{Column, Dataset, EPOCH, Key, Kind, Row, Table, Value, single};
use crate::size::Width;

/// Microseconds between two rows.
const STEP: i64 = 1000;

/// The dataset with so many tables and rows.
#[derive(Clone, Debug)]
pub struct Feed {
    tables: Vec<Table>,
}

impl Feed {
    /// `tables` tables of `rows` rows each: `feed`, or `feed1` … `feedN`.
    pub fn new(rows: u64, tables: u32, fillfactor: u64) -> Feed {
        let query = "select n + 1, 0.1, timestamp '2026-01-01' + n * interval '1 millisecond' \
                     from generate_series({first}::bigint, {last}) n";
        let table = |name: String| Table {
            name,
            columns: vec![
                Column { name: "id", kind: Kind::Int4, constraint: "" },
                Column { name: "val", kind: Kind::Float8, constraint: "" },
                Column { name: "crt_time", kind: Kind::Timestamp, constraint: "default now()" },
            ],
            rows: 0..rows,
            key: Vec::new(),
            indexes: Vec::new(),
            breaks: Vec::new(),
            partition: None,
            brin: Some(2),
            widths: vec![Width::Fixed(4), Width::Fixed(8), Width::Fixed(8)],
            fillfactor,
            query: query.into(),
        };
        let tables = match tables {
            1 => vec![table("feed".into())],
            n => (1..=n).map(|i| table(format!("feed{i}"))).collect(),
        };
        Feed { tables }
    }
}

impl Dataset for Feed {
    fn tables(&self) -> &[Table] {
        &self.tables
    }

    fn row(&self, _table: usize, number: u64, row: &mut Row) {
        row.clear();
        row.push(Value::Int4((number as i64 + 1) as i32));
        row.push(Value::Float8(0.1));
        row.push(Value::Int8(EPOCH + number as i64 * STEP));
    }

    fn key(&self, _table: usize, number: u64, _row: &mut Row) -> Key {
        single(number as i64 + 1)
    }

    /// None of its tables has such an index.
    fn in_order(&self, _: usize, _: usize, place: u64, _: &mut Row) -> u64 {
        place
    }
}
