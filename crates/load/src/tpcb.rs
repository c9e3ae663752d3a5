//! `tpcb`: pgbench's four tables, equal in schema and content to what `pgbench -i` makes.

use crate::rows::{Dataset, Table};
use crate::size::Width;
use pgdyno_wire::copy;

/// Rows of pgbench_accounts in one unit of scale.
pub const ACCOUNTS: u64 = 100_000;
/// Rows of pgbench_tellers in one unit of scale.
pub const TELLERS: u64 = 10;
/// From this scale on, account numbers are bigint, as pgbench has it.
const BIGINT_FROM: u32 = 20_000;

/// The dataset at a scale.
#[derive(Clone, Debug)]
pub struct Tpcb {
    scale: u32,
    tables: Vec<Table>,
}

impl Tpcb {
    /// pgbench's `-s scale`.
    pub fn new(scale: u32) -> Tpcb {
        let aid = if scale >= BIGINT_FROM { "bigint" } else { "int" };
        let n = u64::from(scale);
        let aid_width = if aid == "bigint" { 8 } else { 4 };
        let int = Width::Fixed(4);
        let table = |name, columns: String, rows, key: Option<&'static str>| {
            let with = if key.is_some() { "with (fillfactor=100)".to_owned() } else { String::new() };
            // The fillers of branches and tellers are NULL, that of accounts is padded with blanks.
            let (widths, key_width) = match name {
                "pgbench_branches" => (vec![int, int, Width::Null], 4),
                "pgbench_tellers" => (vec![int, int, int, Width::Null], 4),
                "pgbench_accounts" => (vec![Width::Fixed(aid_width), int, int, Width::Text(84)], aid_width),
                _ => (Vec::new(), 0),
            };
            Table { name, columns, with, rows, key, widths, key_width }
        };
        let tables = vec![
            table("pgbench_branches", "bid int not null, bbalance int, filler char(88)".into(), n, Some("bid")),
            table(
                "pgbench_tellers",
                "tid int not null, bid int, tbalance int, filler char(84)".into(),
                n * TELLERS,
                Some("tid"),
            ),
            table(
                "pgbench_accounts",
                format!("aid {aid} not null, bid int, abalance int, filler char(84)"),
                n * ACCOUNTS,
                Some("aid"),
            ),
            table(
                "pgbench_history",
                format!("tid int, bid int, aid {aid}, delta int, mtime timestamp, filler char(22)"),
                0,
                None,
            ),
        ];
        Tpcb { scale, tables }
    }
}

impl Dataset for Tpcb {
    fn name(&self) -> &'static str {
        "tpcb"
    }

    fn tables(&self) -> &[Table] {
        &self.tables
    }

    #[inline]
    fn write_row(&self, table: usize, row: u64, out: &mut Vec<u8>) {
        let n = row as i64 + 1;
        match table {
            0 => {
                copy::row(out, 3);
                copy::int4(out, n as i32);
                copy::int4(out, 0);
                copy::null(out);
            }
            1 => {
                copy::row(out, 4);
                copy::int4(out, n as i32);
                copy::int4(out, (row / TELLERS) as i32 + 1);
                copy::int4(out, 0);
                copy::null(out);
            }
            _ => {
                copy::row(out, 4);
                if self.scale >= BIGINT_FROM {
                    copy::int8(out, n);
                } else {
                    copy::int4(out, n as i32);
                }
                copy::int4(out, (row / ACCOUNTS) as i32 + 1);
                copy::int4(out, 0);
                // The server pads it to 84 blanks.
                copy::text(out, b"");
            }
        }
    }

    fn mark(&self) -> String {
        format!("pgdyno dataset tpcb scale={}", self.scale)
    }
}
