//! COPY's binary format.

/// Beginning of a binary COPY: signature, flags, length of the header's extension.
pub const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// End of a binary COPY.
pub const TRAILER: &[u8] = &[0xff, 0xff];

/// Begins a row of `fields` fields.
#[inline]
pub fn row(out: &mut Vec<u8>, fields: u16) {
    out.extend_from_slice(&fields.to_be_bytes());
}

/// An `int4` field.
#[inline]
pub fn int4(out: &mut Vec<u8>, v: i32) {
    out.extend_from_slice(&4u32.to_be_bytes());
    out.extend_from_slice(&v.to_be_bytes());
}

/// An `int8` field.
#[inline]
pub fn int8(out: &mut Vec<u8>, v: i64) {
    out.extend_from_slice(&8u32.to_be_bytes());
    out.extend_from_slice(&v.to_be_bytes());
}

/// A `text`, `varchar` or (padded by the caller) `char(n)` field.
#[inline]
pub fn text(out: &mut Vec<u8>, v: &[u8]) {
    out.extend_from_slice(&(v.len() as u32).to_be_bytes());
    out.extend_from_slice(v);
}

/// A NULL field.
#[inline]
pub fn null(out: &mut Vec<u8>) {
    out.extend_from_slice(&(-1i32).to_be_bytes());
}
