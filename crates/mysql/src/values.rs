//! Values: parameters as the binary protocol has them, rows of both protocols as text.

use crate::packet::{self, Reader};
use pgdyno_protocol::{Given, ProtocolError};
use std::io::Write as _;

/// Types of columns and parameters ("Protocol::ColumnType").
mod kind {
    pub const DECIMAL: u8 = 0;
    pub const TINY: u8 = 1;
    pub const SHORT: u8 = 2;
    pub const LONG: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const DOUBLE: u8 = 5;
    pub const NULL: u8 = 6;
    pub const TIMESTAMP: u8 = 7;
    pub const LONGLONG: u8 = 8;
    pub const INT24: u8 = 9;
    pub const DATE: u8 = 10;
    pub const TIME: u8 = 11;
    pub const DATETIME: u8 = 12;
    pub const YEAR: u8 = 13;
    pub const VAR_STRING: u8 = 0xfd;
}
/// Flag of a column: its integers have no sign.
const UNSIGNED: u16 = 32;

/// A column of a result whose rows are read.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name.
    pub name: String,
    kind: u8,
    unsigned: bool,
    /// Digits of a time's seconds behind the point.
    decimals: u8,
}

impl Column {
    /// Reads "Protocol::ColumnDefinition41".
    pub fn read(payload: &[u8]) -> Result<Column, ProtocolError> {
        let mut r = Reader::new(payload);
        // Catalog, schema, table, original table.
        for _ in 0..4 {
            r.string()?;
        }
        let name = String::from_utf8_lossy(r.string()?).into_owned();
        r.string()?;
        r.length()?;
        // Character set, length.
        r.bytes(6)?;
        let kind = r.u8()?;
        let flags = r.u16()?;
        let decimals = r.u8()?;
        Ok(Column { name, kind, unsigned: flags & UNSIGNED != 0, decimals })
    }
}

/// Appends the body of COM_STMT_EXECUTE behind the statement's number: NULL bitmap, types, values. `value` appends a
/// parameter's value as text.
#[inline]
pub fn parameters(out: &mut Vec<u8>, count: usize, mut value: impl FnMut(usize, &mut Vec<u8>) -> Given) {
    // No cursor; one execution.
    out.extend_from_slice(&[0, 1, 0, 0, 0]);
    if count == 0 {
        return;
    }
    let bitmap = out.len();
    out.resize(bitmap + count.div_ceil(8), 0);
    // Types follow each time: whether a variable is a number may change.
    out.push(1);
    let types = out.len();
    out.resize(types + 2 * count, 0);
    let mut text = Vec::new();
    for n in 0..count {
        text.clear();
        let given = value(n, &mut text);
        let digits = || std::str::from_utf8(&text).unwrap_or_default();
        let kind = match given {
            Given::Null => {
                out[bitmap + n / 8] |= 1 << (n % 8);
                kind::NULL
            }
            Given::Boolean => {
                out.push(u8::from(text.as_slice() == b"true"));
                kind::TINY
            }
            Given::Integer => {
                out.extend_from_slice(&digits().parse::<i64>().unwrap_or_default().to_le_bytes());
                kind::LONGLONG
            }
            Given::Double => {
                out.extend_from_slice(&digits().parse::<f64>().unwrap_or_default().to_le_bytes());
                kind::DOUBLE
            }
            Given::Text => {
                packet::string(out, &text);
                kind::VAR_STRING
            }
        };
        out[types + 2 * n] = kind;
    }
}

/// Writes a row of the text protocol to `row`, as [`pgdyno_protocol::DataRow`] reads it.
pub fn text_row(payload: &[u8], columns: usize, row: &mut Vec<u8>) -> Result<(), ProtocolError> {
    begin(row, columns);
    let mut r = Reader::new(payload);
    for _ in 0..columns {
        put(row, r.string_or_null()?);
    }
    ended(&r)
}

/// Writes a row of the binary protocol to `row`, its values as text.
pub fn binary_row(payload: &[u8], columns: &[Column], row: &mut Vec<u8>) -> Result<(), ProtocolError> {
    begin(row, columns.len());
    let mut r = Reader::new(payload);
    r.u8()?;
    let nulls = r.bytes((columns.len() + 9) / 8)?;
    let mut text = Vec::new();
    for (n, column) in columns.iter().enumerate() {
        if nulls[(n + 2) / 8] & (1 << ((n + 2) % 8)) != 0 {
            put(row, None);
            continue;
        }
        text.clear();
        decode(&mut r, column, &mut text)?;
        put(row, Some(&text));
    }
    ended(&r)
}

fn begin(row: &mut Vec<u8>, columns: usize) {
    row.clear();
    row.extend_from_slice(&(columns as u16).to_be_bytes());
}

fn put(row: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        None => row.extend_from_slice(&(-1i32).to_be_bytes()),
        Some(value) => {
            row.extend_from_slice(&(value.len() as i32).to_be_bytes());
            row.extend_from_slice(value);
        }
    }
}

fn ended(r: &Reader<'_>) -> Result<(), ProtocolError> {
    if r.rest().is_empty() {
        Ok(())
    } else {
        Err(ProtocolError::Protocol("a row that is longer than its columns".into()))
    }
}

fn decode(r: &mut Reader<'_>, column: &Column, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
    let written = match (column.kind, column.unsigned) {
        (kind::TINY, false) => write!(out, "{}", r.u8()? as i8),
        (kind::TINY, true) => write!(out, "{}", r.u8()?),
        (kind::SHORT, false) => write!(out, "{}", r.u16()? as i16),
        (kind::SHORT | kind::YEAR, _) => write!(out, "{}", r.u16()?),
        (kind::LONG | kind::INT24, false) => write!(out, "{}", r.u32()? as i32),
        (kind::LONG | kind::INT24, true) => write!(out, "{}", r.u32()?),
        (kind::LONGLONG, false) => write!(out, "{}", r.u64()? as i64),
        (kind::LONGLONG, true) => write!(out, "{}", r.u64()?),
        (kind::FLOAT, _) => match f32::from_bits(r.u32()?) {
            v if is_far(f64::from(v)) => write!(out, "{v:e}"),
            v => write!(out, "{v}"),
        },
        (kind::DOUBLE, _) => match f64::from_bits(r.u64()?) {
            v if is_far(v) => write!(out, "{v:e}"),
            v => write!(out, "{v}"),
        },
        (kind::DATE | kind::DATETIME | kind::TIMESTAMP, _) => moment(r, column, out),
        (kind::TIME, _) => time(r, column, out),
        (kind::NULL, _) => Ok(()),
        // DECIMAL and all that is text or bytes.
        (kind::DECIMAL..=u8::MAX, _) => {
            out.extend_from_slice(r.string()?);
            Ok(())
        }
    };
    written.map_err(|e| match e.downcast::<ProtocolError>() {
        Ok(e) => e,
        Err(e) => ProtocolError::Protocol(e.to_string()),
    })
}

/// Returns true for values that are written with an exponent.
fn is_far(v: f64) -> bool {
    v != 0.0 && !(1e-5..1e15).contains(&v.abs())
}

/// A date, or a date and a time: 0, 4, 7 or 11 bytes.
fn moment(r: &mut Reader<'_>, column: &Column, out: &mut Vec<u8>) -> std::io::Result<()> {
    let mut parts = || -> Result<_, ProtocolError> {
        let length = r.u8()?;
        let (mut date, mut time, mut micros) = ((0, 0, 0), (0, 0, 0), 0);
        if length >= 4 {
            date = (r.u16()?, r.u8()?, r.u8()?);
        }
        if length >= 7 {
            time = (r.u8()?, r.u8()?, r.u8()?);
        }
        if length >= 11 {
            micros = r.u32()?;
        }
        Ok((date, time, micros))
    };
    let ((year, month, day), (hour, minute, second), micros) = parts().map_err(std::io::Error::other)?;
    write!(out, "{year:04}-{month:02}-{day:02}")?;
    if column.kind == kind::DATE {
        return Ok(());
    }
    write!(out, " {hour:02}:{minute:02}:{second:02}")?;
    fraction(column, micros, out);
    Ok(())
}

/// A span of time: 0, 8 or 12 bytes.
fn time(r: &mut Reader<'_>, column: &Column, out: &mut Vec<u8>) -> std::io::Result<()> {
    let mut parts = || -> Result<_, ProtocolError> {
        let length = r.u8()?;
        let (mut negative, mut days, mut time, mut micros) = (0, 0, (0, 0, 0), 0);
        if length >= 8 {
            negative = r.u8()?;
            days = r.u32()?;
            time = (r.u8()?, r.u8()?, r.u8()?);
        }
        if length >= 12 {
            micros = r.u32()?;
        }
        Ok((negative, days, time, micros))
    };
    let (negative, days, (hour, minute, second), micros) = parts().map_err(std::io::Error::other)?;
    let sign = if negative == 1 { "-" } else { "" };
    write!(out, "{sign}{:02}:{minute:02}:{second:02}", u64::from(days) * 24 + u64::from(hour))?;
    fraction(column, micros, out);
    Ok(())
}

/// Appends the digits behind the point that the column has, as the text protocol does.
fn fraction(column: &Column, micros: u32, out: &mut Vec<u8>) {
    let digits = usize::from(column.decimals.min(6));
    if digits > 0 {
        out.push(b'.');
        out.extend_from_slice(&format!("{micros:06}").as_bytes()[..digits]);
    }
}
