//! What a dataset is: tables, and a function from row number to row. The one description that all ways of loading share.

use crate::heap::btree::Keys;
use crate::size::{BTree, PAGE, Width, btree, data_length, heap_pages};
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
    /// `varchar(n)`
    Varchar(u16),
    /// `numeric(precision, scale)`
    Numeric(u8, u8),
}

impl Kind {
    /// Returns the type as CREATE TABLE spells it.
    pub fn sql(self) -> String {
        match self {
            Kind::Int4 => "int".into(),
            Kind::Int8 => "bigint".into(),
            Kind::Float8 => "double precision".into(),
            Kind::Timestamp => "timestamp".into(),
            Kind::Timestamptz => "timestamptz".into(),
            Kind::Text => "text".into(),
            Kind::Char(n) => format!("char({n})"),
            Kind::Varchar(n) => format!("varchar({n})"),
            Kind::Numeric(precision, scale) => format!("numeric({precision},{scale})"),
        }
    }

    /// Decimal digits behind the point, of a `numeric`.
    #[inline]
    pub fn scale(self) -> u8 {
        if let Kind::Numeric(_, scale) = self { scale } else { 0 }
    }

    /// Bytes of a value, which is also how it is aligned; none for what varies.
    pub fn fixed(self) -> Option<u64> {
        match self {
            Kind::Int4 => Some(4),
            Kind::Int8 | Kind::Float8 | Kind::Timestamp | Kind::Timestamptz => Some(8),
            Kind::Text | Kind::Char(_) | Kind::Varchar(_) | Kind::Numeric(..) => None,
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
    /// `numeric` of the column's scale, in units of its last digit: 12.34 is 1234.
    Numeric(i64),
}

/// The most columns that a key has.
pub const KEY_COLUMNS: usize = 4;
/// The values of a row's key, in the key's order; those behind its last column are 0.
pub type Key = [i64; KEY_COLUMNS];

/// One row, filled by [`Dataset::row`] and used again for the next.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Values in the order of the columns.
    pub values: Vec<Value>,
    bytes: Vec<u8>,
    /// Only its widths are asked for: texts may hold anything of their length.
    pub draft: bool,
    /// See [`Row::group_of`].
    group: Option<(u64, Vec<u32>)>,
    /// The dataset's, to find the next row by the last one; any value is right.
    pub near: usize,
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

    /// The next value, a text that `write` appends.
    #[inline]
    pub fn text_with<T>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let start = self.bytes.len();
        let result = write(&mut self.bytes);
        self.values.push(Value::Text(start, self.bytes.len()));
        result
    }

    /// The next `count` values, texts of one length, which `write` appends all together.
    #[inline]
    pub fn texts_with(&mut self, count: usize, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        let each = (self.bytes.len() - start) / count;
        self.values.extend((0..count).map(|n| Value::Text(start + n * each, start + (n + 1) * each)));
    }

    /// Returns the data of group `tag`. Calls `work` to compute the data, unless the last request was for the same
    /// group.
    #[inline]
    pub fn group_of(&mut self, tag: u64, work: impl FnOnce() -> Vec<u32>) -> &[u32] {
        if self.group.as_ref().is_none_or(|(of, _)| *of != tag) {
            self.group = Some((tag, work()));
        }
        self.group.as_ref().map_or(&[], |(_, all)| all)
    }

    /// A text's bytes.
    #[inline]
    pub fn bytes(&self, start: usize, end: usize) -> &[u8] {
        &self.bytes[start..end]
    }
}

/// A secondary index, whose order the dataset knows ([`Dataset::in_order`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// Its columns: integers of one width, or some of them texts.
    pub columns: Vec<usize>,
}

/// Properties that make a table a range partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// The partitioned table.
    pub parent: String,
    /// The column by which it is.
    pub column: usize,
    /// The least value, and the first that is too great; none: open.
    pub from: Option<i64>,
    /// See `from`.
    pub to: Option<i64>,
}

impl Partition {
    /// Partition `number` of `count`, of `each` values from 1 on; the first and the last are open, so that any value has one.
    pub fn of(parent: &str, column: usize, number: u64, count: u64, each: u64) -> Partition {
        let bound = |n: u64| (n * each + 1) as i64;
        let from = (number > 0).then(|| bound(number));
        let to = (number + 1 < count).then(|| bound(number + 1));
        Partition { parent: parent.to_owned(), column, from, to }
    }
}

/// A table of a dataset.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows' numbers in the dataset's count of the table: from 0, but for partitions.
    pub rows: Range<u64>,
    /// The columns of the primary key, all of one width; none: it has no key. Its values grow with the row's number.
    pub key: Vec<usize>,
    /// Its other indexes.
    pub indexes: Vec<Index>,
    /// It is a partition of another.
    pub partition: Option<Partition>,
    /// The column of a BRIN index, if it has one.
    pub brin: Option<usize>,
    /// Widths of the values of a row, by column; if rows differ, those of a typical row.
    pub widths: Vec<Width>,
    /// Numbers of the rows that always begin a page, if rows differ in width. They ascend from the table's first row.
    ///
    /// Pages between two of these rows can be filled without looking at other rows. Empty: all rows have the same
    /// shape.
    pub breaks: Vec<u64>,
    /// Percent of a heap page that is filled.
    pub fillfactor: u64,
    /// A SELECT that makes the rows from `{first}` to `{last}` (numbers from 0, both included) in the server.
    pub query: String,
}

impl Table {
    /// Its columns' types.
    pub fn kinds(&self) -> Vec<Kind> {
        self.columns.iter().map(|c| c.kind).collect()
    }

    /// Returns the number of rows.
    pub fn count(&self) -> u64 {
        self.rows.end - self.rows.start
    }

    /// Bytes of the heap and the primary key's pages and level, as they will be; where rows differ in width, about.
    pub fn size(&self) -> (u64, Option<BTree>) {
        let heap = heap_pages(self.count(), &self.widths, self.fillfactor) * PAGE;
        (heap, self.key_width().map(|width| btree(self.count(), width)))
    }

    /// Returns the keys of a B-tree over the table's key, or `None` if the table has no key.
    pub fn keys(&self) -> Option<Keys> {
        self.key_width().map(|bytes| Keys {
            rows: self.count(),
            columns: self.key.len(),
            bytes,
            vary: false,
            repeat: false,
        })
    }

    /// Returns the keys of a B-tree over one of the table's indexes.
    pub fn index_keys(&self, index: &Index) -> Keys {
        let widest = |kind: Kind| match kind {
            Kind::Char(n) | Kind::Varchar(n) => Width::Text(u64::from(n)),
            other => Width::Fixed(other.fixed().unwrap_or(8)),
        };
        let kinds = index.columns.iter().map(|c| self.columns[*c].kind);
        let widths: Vec<Width> = kinds.clone().map(widest).collect();
        // Of texts nobody promises that they differ.
        let vary = kinds.into_iter().any(|kind| kind.fixed().is_none());
        Keys { rows: self.count(), columns: index.columns.len(), bytes: data_length(&widths), vary, repeat: vary }
    }

    /// Bytes of the key's values.
    pub fn key_width(&self) -> Option<u64> {
        let width: u64 = self.key.iter().filter_map(|c| self.columns[*c].kind.fixed()).sum();
        (width > 0).then_some(width)
    }
}

/// Tables and their rows.
pub trait Dataset: Send + Sync {
    /// Its tables, in the order in which they are made. Partitions stand for their parent.
    fn tables(&self) -> &[Table];
    /// Fills `row` with row `number` of table `table`.
    fn row(&self, table: usize, number: u64, row: &mut Row);
    /// Returns the number of rows, from row `number` on, that are known to be as long as that row. The rows need not be
    /// made for this. The result is at least 1.
    fn as_long(&self, _table: usize, _number: u64, _row: &mut Row) -> u64 {
        1
    }
    /// The key of row `number` of table `table`, without making the whole row; `row` is there for [`Row::group_of`].
    fn key(&self, table: usize, number: u64, row: &mut Row) -> Key;
    /// The row that stands at `place` (counted as rows are) in the order of index `index` of table `table`, texts compared as
    /// bytes and equal rows by their numbers: returns its number and fills `row` with the columns of the index alone.
    fn in_order(&self, table: usize, index: usize, place: u64, row: &mut Row) -> u64;
}

/// A key of one column.
pub fn single(key: i64) -> Key {
    [key, 0, 0, 0]
}

/// 2026-01-01 00:00 UTC in microseconds since 2000-01-01: when the time series of the datasets begin.
pub const EPOCH: i64 = 9497 * 86_400_000_000;
