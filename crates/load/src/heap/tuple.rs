//! A heap tuple: header, null bitmap, values (`htup_details.h`, `heap_fill_tuple`).

use super::page::item_pointer;
use crate::numeric::Digits;
use crate::rows::{Kind, Row, Value};
use crate::size::SHORT_VARLENA;

/// Bytes of the header before the null bitmap.
const FIXED_HEADER: usize = 23;
/// Offset of `t_ctid` in the header.
const CTID: usize = 12;
const HAS_NULL: u16 = 0x0001;
const HAS_VARIABLE_WIDTH: u16 = 0x0002;
/// `HEAP_XMIN_FROZEN | HEAP_XMAX_INVALID`: what COPY FREEZE writes.
const FROZEN: u16 = 0x0300 | 0x0800;

/// Transaction and command that inserted the tuples. Both are meaningless because the tuples are frozen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The inserting transaction.
    pub xmin: u32,
    /// The inserting command.
    pub cmin: u32,
}

/// Makes `row` a tuple at the end of `out`, less its address.
pub fn append(row: &Row, kinds: &[Kind], stamp: Stamp, out: &mut Vec<u8>) {
    debug_assert_eq!(row.values.len(), kinds.len());
    let start = out.len();
    let columns = row.values.len();
    let has_null = row.values.contains(&Value::Null);
    let bitmap = if has_null { columns.div_ceil(8) } else { 0 };
    let data = (FIXED_HEADER + bitmap).next_multiple_of(8);
    out.resize(start + data, 0);
    if has_null {
        for (i, value) in row.values.iter().enumerate().filter(|(_, v)| **v != Value::Null) {
            debug_assert_ne!(*value, Value::Null);
            out[start + FIXED_HEADER + i / 8] |= 1 << (i % 8);
        }
    }
    let varies = values(row, kinds, start, out);
    let infomask = FROZEN | if has_null { HAS_NULL } else { 0 } | if varies { HAS_VARIABLE_WIDTH } else { 0 };
    let header = &mut out[start..];
    header[..4].copy_from_slice(&stamp.xmin.to_le_bytes());
    header[8..12].copy_from_slice(&stamp.cmin.to_le_bytes());
    header[18..20].copy_from_slice(&(columns as u16).to_le_bytes());
    header[20..22].copy_from_slice(&infomask.to_le_bytes());
    header[22] = data as u8;
}

/// Bytes of the tuple that [`append`] makes of `row`.
pub fn length(row: &Row, kinds: &[Kind]) -> usize {
    let bitmap = if row.values.contains(&Value::Null) { row.values.len().div_ceil(8) } else { 0 };
    let mut at = (FIXED_HEADER + bitmap).next_multiple_of(8);
    for (value, kind) in row.values.iter().zip(kinds) {
        at = match *value {
            Value::Null => at,
            Value::Int4(_) => at.next_multiple_of(4) + 4,
            Value::Int8(_) | Value::Float8(_) => at.next_multiple_of(8) + 8,
            Value::Text(..) => match width(*value, *kind) {
                n if n as u64 <= SHORT_VARLENA + 1 => at + n,
                n => at.next_multiple_of(4) + n,
            },
            Value::Numeric(_) => at + width(*value, *kind),
        };
    }
    at
}

/// Bytes of a value in a tuple, a varlena's header included.
#[inline]
pub fn width(value: Value, kind: Kind) -> usize {
    match value {
        Value::Null => 0,
        Value::Int4(_) => 4,
        Value::Int8(_) | Value::Float8(_) => 8,
        Value::Text(first, end) => match padded(end - first, kind) {
            n if n as u64 <= SHORT_VARLENA => 1 + n,
            n => 4 + n,
        },
        Value::Numeric(v) => numeric_length(Digits::of(v, kind.scale()).count),
    }
}

/// Appends the values of `row`, aligned as in a tuple that begins at `start`; returns whether one is of varying width. So they
/// stand in heap tuples and in index tuples alike.
#[inline]
pub fn values(row: &Row, kinds: &[Kind], start: usize, out: &mut Vec<u8>) -> bool {
    let mut varies = false;
    for (value, kind) in row.values.iter().zip(kinds) {
        match *value {
            Value::Null => {}
            Value::Int4(v) => fixed(out, start, &v.to_le_bytes()),
            Value::Int8(v) => fixed(out, start, &v.to_le_bytes()),
            Value::Float8(v) => fixed(out, start, &v.to_bits().to_le_bytes()),
            Value::Text(first, end) => {
                varies = true;
                text(out, start, row.bytes(first, end), *kind);
            }
            Value::Numeric(v) => {
                varies = true;
                numeric(out, v, kind.scale());
            }
        }
    }
    varies
}

/// Writes a tuple's own address into it.
#[inline]
pub fn set_address(tuple: &mut [u8], block: u32, offset: u16) {
    tuple[CTID..CTID + 6].copy_from_slice(&item_pointer(block, offset));
}

#[inline]
fn align(out: &mut Vec<u8>, start: usize, to: usize) {
    let end = start + (out.len() - start).next_multiple_of(to);
    out.resize(end, 0);
}

#[inline]
fn fixed(out: &mut Vec<u8>, start: usize, bytes: &[u8]) {
    align(out, start, bytes.len());
    out.extend_from_slice(bytes);
}

/// Appends a numeric with the short header of `numeric.c` and a one-byte varlena header. The short header holds weights
/// from -64 to 63 and scales up to 63.
#[inline]
fn numeric(out: &mut Vec<u8>, value: i64, scale: u8) {
    const SHORT: u16 = 0x8000;
    const NEGATIVE: u16 = 0x2000;
    const SCALE_SHIFT: u16 = 7;
    const WEIGHT_BITS: u16 = 0x7f;
    let d = Digits::of(value, scale);
    let sign = if d.negative { NEGATIVE } else { 0 };
    let header = SHORT | sign | u16::from(scale) << SCALE_SHIFT | (d.weight as u16 & WEIGHT_BITS);
    let length = numeric_length(d.count);
    out.push(((length << 1) | 1) as u8);
    out.extend_from_slice(&header.to_le_bytes());
    d.digits[..d.count].iter().for_each(|digit| out.extend_from_slice(&digit.to_le_bytes()));
}

/// Returns the length of a numeric in bytes, both headers included.
#[inline]
fn numeric_length(digits: usize) -> usize {
    1 + 2 + 2 * digits
}

/// Bytes of a text of `length`, which `char(n)` pads.
#[inline]
fn padded(length: usize, kind: Kind) -> usize {
    if let Kind::Char(n) = kind { length.max(usize::from(n)) } else { length }
}

#[inline]
fn text(out: &mut Vec<u8>, start: usize, bytes: &[u8], kind: Kind) {
    let length = padded(bytes.len(), kind);
    if length as u64 <= SHORT_VARLENA {
        out.push((((length + 1) << 1) | 1) as u8);
    } else {
        align(out, start, 4);
        out.extend_from_slice(&(((length + 4) as u32) << 2).to_le_bytes());
    }
    out.extend_from_slice(bytes);
    out.resize(out.len() + length - bytes.len(), b' ');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tuple_is_as_long_as_is_said() {
        let texts = [0, 1, 24, 126, 127, 500];
        for text in texts {
            for number in [0, 7, -10_000, 123_456_789, i64::MAX] {
                for null in [false, true] {
                    let kinds = [
                        Kind::Int4,
                        Kind::Char(2),
                        Kind::Numeric(12, 2),
                        Kind::Int8,
                        Kind::Varchar(500),
                        Kind::Numeric(12, 4),
                    ];
                    let mut row = Row::default();
                    row.push(Value::Int4(1));
                    row.text(if null { b"" } else { b"OE" });
                    row.push(Value::Numeric(number));
                    row.push(if null { Value::Null } else { Value::Int8(2) });
                    row.text(&vec![b'x'; text]);
                    row.push(Value::Numeric(number / 3));
                    let mut out = vec![0; 16];
                    append(&row, &kinds, Stamp::default(), &mut out);
                    assert_eq!(length(&row, &kinds), out.len() - 16, "{row:?}");
                }
            }
        }
    }
}
