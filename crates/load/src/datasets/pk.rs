//! `pk`: one table that is read, updated and filled by its primary key; id, a text of 29 bytes, a time.

use crate::rows::{Column, Dataset, EPOCH, Key, Kind, Row, Table, Value, single};
use crate::size::Width;

/// The text is a time as `now()::text` prints it in UTC.
const TEXT: u64 = 29;

/// The dataset with so many rows.
#[derive(Clone, Debug)]
pub struct Pk {
    wide: bool,
    tables: Vec<Table>,
}

impl Pk {
    /// A table `pk` of `rows` rows.
    pub fn new(rows: u64, fillfactor: u64) -> Pk {
        let wide = rows > i32::MAX as u64;
        let id = if wide { Kind::Int8 } else { Kind::Int4 };
        let query = "select n + 1, to_char(timestamp '2026-01-01' + n * interval '1 microsecond', \
                     'YYYY-MM-DD HH24:MI:SS.US') || '+00', timestamptz '2026-01-01 00:00:00+00' + \
                     n * interval '1 microsecond' from generate_series({first}::bigint, {last}) n";
        let table = Table {
            name: "pk".into(),
            columns: vec![
                Column { name: "id", kind: id, constraint: "not null" },
                Column { name: "info", kind: Kind::Text, constraint: "" },
                Column { name: "crt_time", kind: Kind::Timestamptz, constraint: "default now()" },
            ],
            rows: 0..rows,
            key: vec![0],
            indexes: Vec::new(),
            breaks: Vec::new(),
            partition: None,
            brin: None,
            widths: vec![Width::Fixed(if wide { 8 } else { 4 }), Width::Text(TEXT), Width::Fixed(8)],
            fillfactor,
            query: query.into(),
        };
        Pk { wide, tables: vec![table] }
    }
}

impl Dataset for Pk {
    fn tables(&self) -> &[Table] {
        &self.tables
    }

    fn row(&self, _table: usize, number: u64, row: &mut Row) {
        row.clear();
        let n = number as i64 + 1;
        row.push(if self.wide { Value::Int8(n) } else { Value::Int4(n as i32) });
        row.text(&time_text(number));
        row.push(Value::Int8(EPOCH + number as i64));
    }

    fn key(&self, _table: usize, number: u64, _row: &mut Row) -> Key {
        single(number as i64 + 1)
    }

    /// None of its tables has such an index.
    fn in_order(&self, _: usize, _: usize, place: u64, _: &mut Row) -> u64 {
        place
    }
}

/// 2026-01-01 and so many microseconds, as `now()::text` prints it in UTC. Reaches to the end of 2026; later days
/// would need more of a calendar than a dataset of fewer than 30 trillion rows does.
fn time_text(micros: u64) -> [u8; TEXT as usize] {
    const MONTHS: [u64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let (seconds, us) = (micros / 1_000_000, micros % 1_000_000);
    let (mut day, mut month) = (seconds / 86_400, 0);
    while month < 11 && day >= MONTHS[month] {
        day -= MONTHS[month];
        month += 1;
    }
    let mut out = *b"2026-00-00 00:00:00.000000+00";
    let mut put = |at: usize, digits: usize, mut v: u64| {
        for i in (at..at + digits).rev() {
            out[i] = b'0' + (v % 10) as u8;
            v /= 10;
        }
    };
    put(5, 2, month as u64 + 1);
    put(8, 2, day + 1);
    put(11, 2, seconds % 86_400 / 3600);
    put(14, 2, seconds % 3600 / 60);
    put(17, 2, seconds % 60);
    put(20, 6, us);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_the_server_prints_them() {
        assert_eq!(&time_text(0), b"2026-01-01 00:00:00.000000+00");
        assert_eq!(&time_text(49_999_999), b"2026-01-01 00:00:49.999999+00");
        assert_eq!(&time_text((31 * 86_400 + 28 * 86_400) * 1_000_000 - 1), b"2026-02-28 23:59:59.999999+00");
        assert_eq!(&time_text(100_000_000_000), b"2026-01-02 03:46:40.000000+00");
    }
}
