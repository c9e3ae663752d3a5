//! What all pages have in common: header, line pointers (`bufpage.h`, `itemid.h`).

/// Bytes of a page.
pub const SIZE: usize = 8192;
/// Bytes of a page's header.
pub const HEADER: usize = 24;
/// Bytes of a line pointer.
pub const LINE_POINTER: usize = 4;
/// All tuples on the page are visible to everyone: `PD_ALL_VISIBLE`.
pub const ALL_VISIBLE: u16 = 0x0004;
/// `LP_NORMAL`
const NORMAL: u32 = 1;
/// Page size and layout version 4 in one word: `pd_pagesize_version`.
const SIZE_AND_VERSION: u16 = SIZE as u16 | 4;

/// Writes `bytes` at `at`.
#[inline]
pub fn put(page: &mut [u8], at: usize, bytes: &[u8]) {
    page[at..at + bytes.len()].copy_from_slice(bytes);
}

/// The header of a page that was zeroes; `lower` and `upper` are the bounds of the free space, `special` is where the special
/// space begins. The LSN stays 0: the first change of the page after a checkpoint logs it whole.
pub fn header(page: &mut [u8], flags: u16, lower: usize, upper: usize, special: usize) {
    put(page, 10, &flags.to_le_bytes());
    put(page, 12, &(lower as u16).to_le_bytes());
    put(page, 14, &(upper as u16).to_le_bytes());
    put(page, 16, &(special as u16).to_le_bytes());
    put(page, 18, &SIZE_AND_VERSION.to_le_bytes());
}

/// Line pointer `number` (from 1), to an item of `length` bytes at `offset`.
#[inline]
pub fn line_pointer(page: &mut [u8], number: usize, offset: usize, length: usize) {
    let word = offset as u32 | NORMAL << 15 | (length as u32) << 17;
    put(page, HEADER + (number - 1) * LINE_POINTER, &word.to_le_bytes());
}

/// A row's address as `ItemPointerData`: block in two halves, offset.
#[inline]
pub fn item_pointer(block: u32, offset: u16) -> [u8; 6] {
    let (high, low) = ((block >> 16) as u16, block as u16);
    let mut out = [0; 6];
    out[..2].copy_from_slice(&high.to_le_bytes());
    out[2..4].copy_from_slice(&low.to_le_bytes());
    out[4..].copy_from_slice(&offset.to_le_bytes());
    out
}
