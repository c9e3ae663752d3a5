//! What a dataset is: tables, and a function from row number to row.

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
