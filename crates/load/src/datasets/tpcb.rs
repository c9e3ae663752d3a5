//! `tpcb`: pgbench's four tables, equal in schema and content to what `pgbench -i` makes.

use crate::rows::{Column, Dataset, Key, Kind, Partition, Row, Table, Value, single};
use crate::size::Width;

/// Rows of pgbench_accounts in one unit of scale.
pub const ACCOUNTS: u64 = 100_000;
/// Rows of pgbench_tellers in one unit of scale.
pub const TELLERS: u64 = 10;
/// Smallest scale at which account numbers are bigint, as in pgbench.
const BIGINT_FROM: u32 = 20_000;
/// Index of the first table of accounts in the list: the only one, or the first of its partitions.
const FIRST_ACCOUNTS: usize = 2;

/// The dataset at a scale.
#[derive(Clone, Debug)]
pub struct Tpcb {
    scale: u32,
    tables: Vec<Table>,
}

impl Tpcb {
    /// pgbench's `-s scale`, `-F fillfactor`, and `--partitions` by range; 0: not partitioned.
    pub fn new(scale: u32, fillfactor: u64, partitions: u32) -> Tpcb {
        let aid = if scale >= BIGINT_FROM { Kind::Int8 } else { Kind::Int4 };
        let n = u64::from(scale);
        let int = Width::Fixed(4);
        let column = |name, kind| Column { name, kind, constraint: "" };
        let key = |name, kind| Column { name, kind, constraint: "not null" };
        let table = |name: &str, columns, rows, key, widths, query: &str| Table {
            name: name.to_owned(),
            columns,
            rows,
            key,
            indexes: Vec::new(),
            breaks: Vec::new(),
            partition: None,
            brin: None,
            widths,
            fillfactor,
            query: query.to_owned(),
        };
        let mut tables = vec![
            table(
                "pgbench_branches",
                vec![key("bid", Kind::Int4), column("bbalance", Kind::Int4), column("filler", Kind::Char(88))],
                0..n,
                vec![0],
                vec![int, int, Width::Null],
                "select n + 1, 0 from generate_series({first}::bigint, {last}) n",
            ),
            table(
                "pgbench_tellers",
                vec![
                    key("tid", Kind::Int4),
                    column("bid", Kind::Int4),
                    column("tbalance", Kind::Int4),
                    column("filler", Kind::Char(84)),
                ],
                0..n * TELLERS,
                vec![0],
                vec![int, int, int, Width::Null],
                "select n + 1, n / 10 + 1, 0 from generate_series({first}::bigint, {last}) n",
            ),
        ];
        let accounts = |name: &str, rows| {
            table(
                name,
                vec![
                    key("aid", aid),
                    column("bid", Kind::Int4),
                    column("abalance", Kind::Int4),
                    column("filler", Kind::Char(84)),
                ],
                rows,
                vec![0],
                vec![Width::Fixed(aid.fixed().unwrap_or(8)), int, int, Width::Text(84)],
                "select n + 1, n / 100000 + 1, 0, '' from generate_series({first}::bigint, {last}) n",
            )
        };
        let all = n * ACCOUNTS;
        if partitions == 0 {
            tables.push(accounts("pgbench_accounts", 0..all));
        } else {
            let each = all.div_ceil(u64::from(partitions));
            tables.extend((0..u64::from(partitions)).map(|p| {
                let rows = (p * each).min(all)..((p + 1) * each).min(all);
                let partition = Some(Partition::of("pgbench_accounts", 0, p, partitions.into(), each));
                Table { partition, ..accounts(&format!("pgbench_accounts_{}", p + 1), rows) }
            }));
        }
        let history = vec![
            column("tid", Kind::Int4),
            column("bid", Kind::Int4),
            column("aid", aid),
            column("delta", Kind::Int4),
            column("mtime", Kind::Timestamp),
            column("filler", Kind::Char(22)),
        ];
        tables.push(Table { fillfactor: 100, ..table("pgbench_history", history, 0..0, Vec::new(), Vec::new(), "") });
        Tpcb { scale, tables }
    }
}

impl Dataset for Tpcb {
    fn tables(&self) -> &[Table] {
        &self.tables
    }

    #[inline]
    fn row(&self, table: usize, number: u64, row: &mut Row) {
        row.clear();
        let n = number as i64 + 1;
        match table {
            0 => {
                row.push(Value::Int4(n as i32));
                row.push(Value::Int4(0));
                row.push(Value::Null);
            }
            1 => {
                row.push(Value::Int4(n as i32));
                row.push(Value::Int4((number / TELLERS) as i32 + 1));
                row.push(Value::Int4(0));
                row.push(Value::Null);
            }
            _ => {
                debug_assert!((FIRST_ACCOUNTS..self.tables.len() - 1).contains(&table));
                row.push(if self.scale >= BIGINT_FROM { Value::Int8(n) } else { Value::Int4(n as i32) });
                row.push(Value::Int4((number / ACCOUNTS) as i32 + 1));
                row.push(Value::Int4(0));
                row.text(b"");
            }
        }
    }

    fn key(&self, _table: usize, number: u64, _row: &mut Row) -> Key {
        single(number as i64 + 1)
    }

    /// None of its tables has such an index.
    fn in_order(&self, _: usize, _: usize, place: u64, _: &mut Row) -> u64 {
        place
    }
}
