//! Rows for `\pick`: a sample of a table, which the clients of a workload draw from.

use crate::value::{Text, Value};
use std::sync::Arc;

/// Rows of some columns. Scripts are compiled against the columns; the rows may follow.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Name of the sample in scripts.
    pub name: String,
    /// The columns, as variables are named after them.
    pub columns: Vec<String>,
    /// The values, row after row.
    values: Vec<Value>,
    /// A transaction's row is said by a schedule, and not drawn.
    pub is_scheduled: bool,
}

impl Sample {
    /// A sample of these rows, each with a value for each column; `None` is SQL's NULL.
    pub fn new(name: &str, columns: Vec<String>, rows: &[Vec<Option<String>>]) -> Result<Sample, String> {
        let mut values = Vec::new();
        for row in rows {
            if row.len() != columns.len() {
                return Err(format!("sample {name}: a row of {} values for {} columns", row.len(), columns.len()));
            }
            values.extend(row.iter().map(|v| match v {
                None => Value::Null,
                Some(text) => Value::Picked(Arc::new(Text::new(text.as_bytes()))),
            }));
        }
        Ok(Sample { name: name.to_owned(), columns, values, is_scheduled: false })
    }

    /// Returns the number of rows to pick from.
    pub fn rows(&self) -> u64 {
        (self.values.len() / self.columns.len().max(1)) as u64
    }

    /// The values of row `n`, from 0.
    pub fn row(&self, n: u64) -> &[Value] {
        let width = self.columns.len();
        &self.values[n as usize * width..][..width]
    }
}
