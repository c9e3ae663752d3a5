//! What a dataset is: tables, and a function from row number to row. The one description that all ways of loading share.

use crate::size::{BTree, PAGE, Width, btree, heap_pages};
use std::ops::Range;

/// A column's type, as far as loading must know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `int`
    Int4,
    /// `bigint`
    Int8,
    /// `double precision`
    Float8,
    /// `timestamp`, microseconds since 2000-01-01
    Timestamp,
    /// `timestamptz`, microseconds since 2000-01-01 UTC
    Timestamptz,
    /// `text`
    Text,
    /// `char(n)` of so many characters; values are padded with blanks.
    Char(u16),
}

impl Kind {
    /// As CREATE TABLE spells it.
    pub fn sql(self) -> String {
        match self {
            Kind::Int4 => "int".into(),
            Kind::Int8 => "bigint".into(),
            Kind::Float8 => "double precision".into(),
            Kind::Timestamp => "timestamp".into(),
            Kind::Timestamptz => "timestamptz".into(),
            Kind::Text => "text".into(),
            Kind::Char(n) => format!("char({n})"),
        }
    }

    /// Bytes of a value, which is also how it is aligned; none for what varies.
    pub fn fixed(self) -> Option<u64> {
        match self {
            Kind::Int4 => Some(4),
            Kind::Int8 | Kind::Float8 | Kind::Timestamp | Kind::Timestamptz => Some(8),
            Kind::Text | Kind::Char(_) => None,
        }
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// NOT NULL, DEFAULT …, or nothing.
    pub constraint: &'static str,
}

/// A value in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// NULL.
    Null,
    /// `int`
    Int4(i32),
    /// Eight bytes: `bigint`, and both timestamps.
    Int8(i64),
    /// `double precision`
    Float8(f64),
    /// A text: where it stands in the row's bytes. Blanks that a `char(n)` is padded with are left out.
    Text(usize, usize),
}

/// One row, filled by [`Dataset::row`] and used again for the next.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// In the order of the columns.
    pub values: Vec<Value>,
    bytes: Vec<u8>,
}

impl Row {
    /// Empties it.
    #[inline]
    pub fn clear(&mut self) {
        self.values.clear();
        self.bytes.clear();
    }

    /// The next value.
    #[inline]
    pub fn push(&mut self, value: Value) {
        self.values.push(value);
    }

    /// The next value, a text.
    #[inline]
    pub fn text(&mut self, text: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(text);
        self.values.push(Value::Text(start, self.bytes.len()));
    }

    /// A text's bytes.
    #[inline]
    pub fn bytes(&self, start: usize, end: usize) -> &[u8] {
        &self.bytes[start..end]
    }
}

/// A table of a dataset. All its rows are of one shape.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows' numbers in the dataset's count of the table: from 0, but for partitions.
    pub rows: Range<u64>,
    /// The column of the primary key, if it has one. Its values grow with the row's number.
    pub key: Option<usize>,
    /// The column of a BRIN index, if it has one.
    pub brin: Option<usize>,
    /// How wide the values of a row are, column by column.
    pub widths: Vec<Width>,
    /// Percent of a heap page that is filled.
    pub fillfactor: u64,
    /// A SELECT that makes the rows from `{first}` to `{last}` (numbers from 0, both included) in the server.
    pub query: String,
}

impl Table {
    /// How many rows it has.
    pub fn count(&self) -> u64 {
        self.rows.end - self.rows.start
    }

    /// Bytes of the heap and the primary key's pages and level, as they will be.
    pub fn size(&self) -> (u64, Option<BTree>) {
        let heap = heap_pages(self.count(), &self.widths, self.fillfactor) * PAGE;
        (heap, self.key_width().map(|width| btree(self.count(), width)))
    }

    /// Bytes of the key's value.
    pub fn key_width(&self) -> Option<u64> {
        self.key.and_then(|c| self.columns[c].kind.fixed())
    }
}

/// Tables and their rows.
pub trait Dataset: Send + Sync {
    /// Its tables, in the order in which they are made. Partitions stand for their parent.
    fn tables(&self) -> &[Table];
    /// Fills `row` with row `number` of table `table`.
    fn row(&self, table: usize, number: u64, row: &mut Row);
    /// The key of row `number` of table `table`, without making the whole row.
    fn key(&self, table: usize, number: u64) -> i64;
}

/// 2026-01-01 00:00 UTC in microseconds since 2000-01-01: when the time series of the datasets begin.
pub const EPOCH: i64 = 9497 * 86_400_000_000;
