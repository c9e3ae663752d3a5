//! What a dataset is: tables, and a function from row number to row.

use crate::size::{BTree, PAGE, Width, btree, heap_pages};

/// A table of a dataset.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// What stands between the parentheses of CREATE TABLE.
    pub columns: String,
    /// Storage parameters, or nothing.
    pub with: String,
    /// How many rows it has.
    pub rows: u64,
    /// Its primary key's column, if it has one.
    pub key: Option<&'static str>,
    /// How wide the values of a row are, column by column: all rows are alike.
    pub widths: Vec<Width>,
    /// Bytes of the key.
    pub key_width: u64,
}

impl Table {
    /// Bytes of the heap and the primary key's pages and level, as they will be.
    pub fn size(&self) -> (u64, Option<BTree>) {
        let heap = heap_pages(self.rows, &self.widths, 100) * PAGE;
        (heap, self.key.map(|_| btree(self.rows, self.key_width)))
    }
}

/// Tables and their rows.
pub trait Dataset {
    /// How the dataset is called.
    fn name(&self) -> &'static str;
    /// Its tables, in the order in which they are made.
    fn tables(&self) -> &[Table];
    /// Appends row `row` (from 0) of table `table` in COPY's binary format.
    fn write_row(&self, table: usize, row: u64, out: &mut Vec<u8>);
    /// What the comment on each table says: how the dataset is recognised later.
    fn mark(&self) -> String;
}
