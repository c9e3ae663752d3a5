//! Rows in COPY's binary format.

use crate::numeric::Digits;
use crate::rows::{Kind, Row, Value};
use pgdyno_postgres::copy;

/// Appends a row of columns of these kinds.
#[inline]
pub fn append(row: &Row, kinds: &[Kind], out: &mut Vec<u8>) {
    copy::row(out, row.values.len() as u16);
    for (value, kind) in row.values.iter().zip(kinds) {
        match *value {
            Value::Null => copy::null(out),
            Value::Int4(v) => copy::int4(out, v),
            Value::Int8(v) => copy::int8(out, v),
            Value::Float8(v) => copy::int8(out, v.to_bits() as i64),
            // The server pads char(n) itself.
            Value::Text(start, end) => copy::text(out, row.bytes(start, end)),
            Value::Numeric(v) => {
                let Digits { digits, count, weight, negative, scale } = Digits::of(v, kind.scale());
                out.extend_from_slice(&(8 + 2 * count as u32).to_be_bytes());
                out.extend_from_slice(&(count as u16).to_be_bytes());
                out.extend_from_slice(&weight.to_be_bytes());
                out.extend_from_slice(&(if negative { 0x4000u16 } else { 0 }).to_be_bytes());
                out.extend_from_slice(&u16::from(scale).to_be_bytes());
                digits[..count].iter().for_each(|d| out.extend_from_slice(&d.to_be_bytes()));
            }
        }
    }
}
