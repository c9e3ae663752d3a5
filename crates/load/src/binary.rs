//! Rows in COPY's binary format.

use crate::rows::{Row, Value};
use pgdyno_wire::copy;

/// Appends a row.
#[inline]
pub fn append(row: &Row, out: &mut Vec<u8>) {
    copy::row(out, row.values.len() as u16);
    for value in &row.values {
        match *value {
            Value::Null => copy::null(out),
            Value::Int4(v) => copy::int4(out, v),
            Value::Int8(v) => copy::int8(out, v),
            Value::Float8(v) => copy::int8(out, v.to_bits() as i64),
            // The server pads char(n) itself.
            Value::Text(start, end) => copy::text(out, row.bytes(start, end)),
        }
    }
}
