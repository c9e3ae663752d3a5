//! A B-tree as CREATE INDEX builds it over keys in order: `_bt_buildadd` and `_bt_uppershutdown` of `nbtsort.c`, turned from
//! a loop over entries into arithmetic on numbers.
//!
//! Keys of one width give the server's own pages. Where keys vary in width each page takes as many as there could be if all
//! were the longest, so the arithmetic is the same and pages are a little emptier than the server's.
//!
//! On each level a page holds `keep` entries, and the next one, which did not fit, is its high key and the first of the next
//! page. The last page of a level holds up to `keep + 1` and has no high key. A page gets its block when it is begun: a leaf
//! when the one before is full, and right after it, if that overflows, the page above, and so on. What overflows when the
//! right edge is closed comes last.

use super::page::{HEADER, LINE_POINTER, SIZE, header, item_pointer, line_pointer, put};
use crate::size::{entries_on_full_leaf, entries_on_inner_page, entries_on_leaf};

/// Offset of the special space in a page.
const SPECIAL: usize = SIZE - 16;
const LEAF: u16 = 1;
const ROOT: u16 = 2;
const META: u16 = 8;
/// `t_tid` of this tuple is no row's address: `INDEX_ALT_TID_MASK`.
const PIVOT: u16 = 0x2000;
/// Flag in `t_info`: some attribute has a variable width (`INDEX_VAR_MASK`).
const VARIES: u16 = 0x4000;
/// Flag in a pivot's attribute count (`BT_PIVOT_HEAP_TID_ATTR`). A row's address follows the attributes, in `ADDRESS`
/// bytes.
const HAS_ADDRESS: u16 = 0x1000;
const ADDRESS: usize = 8;
/// Bytes of an index tuple's header, and of a whole one without a key.
const TUPLE_HEADER: usize = 8;
const MAGIC: u32 = 0x0005_3162;
const VERSION: u32 = 4;

/// Bytes that a key has at most.
pub const KEY_BYTES: usize = 48;

/// Keys that an index covers.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    /// Number of keys.
    pub rows: u64,
    /// Columns of the key.
    pub columns: usize,
    /// Bytes of a key, at most [`KEY_BYTES`].
    pub bytes: u64,
    /// Keys have up to `bytes` bytes; otherwise all have as many.
    pub vary: bool,
    /// Some keys may be equal; otherwise each is there once.
    pub repeat: bool,
}

/// A key as it stands in an index tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    length: u8,
    bytes: [u8; KEY_BYTES],
}

impl Key {
    /// Returns a key of these bytes.
    #[inline]
    pub fn new(image: &[u8]) -> Key {
        let mut bytes = [0; KEY_BYTES];
        bytes[..image.len()].copy_from_slice(image);
        Key { length: image.len() as u8, bytes }
    }

    /// Returns a key of integers, each `width` bytes wide.
    #[inline]
    pub fn of_integers(values: &[i64], width: usize) -> Key {
        let mut bytes = [0; KEY_BYTES];
        for (n, value) in values.iter().enumerate() {
            bytes[n * width..(n + 1) * width].copy_from_slice(&value.to_le_bytes()[..width]);
        }
        Key { length: (values.len() * width) as u8, bytes }
    }

    #[inline]
    fn image(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// A row as the index sees it: where it is, and its key.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The heap's block.
    pub block: u32,
    /// Its line pointer there.
    pub offset: u16,
    /// Its key.
    pub key: Key,
}

/// Finds an entry by its place in the order of keys.
pub type Entries<'a> = dyn FnMut(u64) -> Entry + 'a;

/// Positions of all pages of an index.
#[derive(Clone, Debug)]
pub struct Layout {
    keys: Keys,
    leaf_keep: u64,
    inner_keep: u64,
    /// Pages of each level, leaves first.
    levels: Vec<u64>,
    /// Pages that were begun when the right edge was closed: level, number, block.
    late: Vec<(usize, u64, u64)>,
    pages: u64,
}

impl Layout {
    /// The layout of an index over `keys`.
    pub fn new(keys: Keys) -> Layout {
        let mut layout = Layout {
            keys,
            leaf_keep: if keys.vary { entries_on_full_leaf(keys.bytes) } else { entries_on_leaf(keys.bytes) },
            // Only where keys can be equal do inner pages need room for rows' addresses.
            inner_keep: entries_on_inner_page(keys.bytes + if keys.repeat { ADDRESS as u64 } else { 0 }),
            levels: Vec::new(),
            late: Vec::new(),
            pages: 1,
        };
        if keys.rows == 0 {
            return layout;
        }
        let mut pages = count(keys.rows, layout.leaf_keep);
        layout.levels.push(pages);
        while pages > 1 {
            pages = count(pages, layout.inner_keep);
            layout.levels.push(pages);
        }
        layout.close();
        layout
    }

    /// Gives blocks to what overflows at the end.
    fn close(&mut self) {
        let leaves = self.levels[0];
        let mut next = 1 + leaves + self.begun_above(leaves - 1);
        for level in 1..self.levels.len() {
            let (mut level, mut entry) = (level, self.levels[level - 1]);
            // The entry of the last page below; it may begin a page, whose predecessor's entry goes one level up.
            while let Some(page) = self.begins(entry) {
                self.late.push((level, page, next));
                next += 1;
                (level, entry) = (level + 1, page);
                if entry == 0 {
                    break;
                }
            }
        }
        self.pages = next;
    }

    /// The page of an inner level that its entry `entry` (from 1) begins, if it begins one.
    fn begins(&self, entry: u64) -> Option<u64> {
        match entry {
            0 => None,
            1 => Some(0),
            e if e >= self.inner_keep + 2 && (e - 2) % self.inner_keep == 0 => Some((e - 2) / self.inner_keep),
            _ => None,
        }
    }

    /// Inner pages that were begun by the first `entries` entries of level 1.
    fn begun_above(&self, mut entries: u64) -> u64 {
        let mut begun = 0;
        while entries > 0 {
            let overflows = entries.saturating_sub(2) / self.inner_keep;
            begun += 1 + overflows;
            entries = overflows;
        }
        begun
    }

    /// The block of page `number` of `level`.
    pub fn block(&self, level: usize, number: u64) -> u64 {
        if let Some((.., block)) = self.late.iter().find(|(l, n, _)| (*l, *n) == (level, number)) {
            return *block;
        }
        // It was begun right after a page of the level below.
        let (mut at, mut steps) = (number, 0);
        for _ in 0..level {
            at = if at == 0 { 1 } else { at * self.inner_keep + 2 };
            steps += 1;
        }
        1 + at + self.begun_above(at.saturating_sub(1)) + steps
    }

    /// Pages in all, the meta page included.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Makes the blocks from `first` on, each 8 kB of zeroes in `out`; `entries` finds the rows.
    pub fn build(&self, first: u64, out: &mut [u8], entries: &mut Entries<'_>) {
        let end = first + (out.len() / SIZE) as u64;
        if first == 0 && !out.is_empty() {
            self.meta(&mut out[..SIZE]);
        }
        for (level, &pages) in self.levels.iter().enumerate() {
            let mut number = partition_point(pages, |n| self.block(level, n) < first);
            while number < pages {
                let block = self.block(level, number);
                if block >= end {
                    break;
                }
                let at = (block - first) as usize * SIZE;
                self.page(level, number, &mut out[at..at + SIZE], entries);
                number += 1;
            }
        }
    }

    fn meta(&self, page: &mut [u8]) {
        let (root, level) = match self.levels.len() {
            0 => (0, 0),
            n => (self.block(n - 1, 0) as u32, n as u32 - 1),
        };
        for (i, word) in [MAGIC, VERSION, root, level, root, level].into_iter().enumerate() {
            put(page, HEADER + 4 * i, &word.to_le_bytes());
        }
        // No tuples were counted by a cleanup yet; equal keys have equal images.
        put(page, HEADER + 32, &(-1f64).to_le_bytes());
        page[HEADER + 40] = 1;
        self.special(page, 0, 0, 0, META);
        header(page, 0, HEADER + 48, SPECIAL, SPECIAL);
    }

    fn special(&self, page: &mut [u8], before: u64, after: u64, level: u32, flags: u16) {
        put(page, SPECIAL, &(before as u32).to_le_bytes());
        put(page, SPECIAL + 4, &(after as u32).to_le_bytes());
        put(page, SPECIAL + 8, &level.to_le_bytes());
        put(page, SPECIAL + 12, &flags.to_le_bytes());
    }

    fn page(&self, level: usize, number: u64, page: &mut [u8], entries: &mut Entries<'_>) {
        let (keep, all) = match level {
            0 => (self.leaf_keep, self.keys.rows),
            l => (self.inner_keep, self.levels[l - 1]),
        };
        let last = number + 1 == self.levels[level];
        let first = number * keep;
        let end = if last { all } else { first + keep };
        let mut upper = SPECIAL;
        // A page's first line pointer is its high key's, if it has one.
        let mut pointer = if last { 1 } else { 2 };
        let mut length = 0;
        for entry in first..end {
            if level == 0 {
                (upper, length) = self.leaf_tuple(page, upper, entries(entry));
            } else {
                (upper, length) = self.downlink(page, upper, level, entry, entry == first, entries);
            }
            line_pointer(page, pointer, upper, length);
            pointer += 1;
        }
        let lower = HEADER + (pointer - 1) * LINE_POINTER;
        if last {
            // The build had kept the high key's place free and moved all pointers up; the last one still stands there.
            line_pointer(page, pointer, upper, length);
        } else {
            if level == 0 {
                let block = entries(end).block;
                (upper, length) = self.pivot(page, upper, block, end, entries);
            } else {
                (upper, length) = self.downlink(page, upper, level, end, false, entries);
            }
            line_pointer(page, 1, upper, length);
        }
        let before = if number == 0 { 0 } else { self.block(level, number - 1) };
        let after = if last { 0 } else { self.block(level, number + 1) };
        let root = if level + 1 == self.levels.len() { ROOT } else { 0 };
        self.special(page, before, after, level as u32, root | if level == 0 { LEAF } else { 0 });
        header(page, 0, lower, upper, SPECIAL);
    }

    /// Puts a tuple in front of `upper`: six bytes of address, flags in its length, a key, and a row's address if there is one.
    /// Returns where it begins, and its length.
    #[inline]
    fn tuple(
        &self,
        page: &mut [u8],
        upper: usize,
        at: [u8; 6],
        flags: u16,
        key: &[u8],
        address: Option<[u8; 6]>,
    ) -> (usize, usize) {
        let length = (TUPLE_HEADER + key.len()).next_multiple_of(8) + address.map_or(0, |_| ADDRESS);
        let upper = upper - length;
        put(page, upper, &at);
        put(page, upper + 6, &(length as u16 | flags).to_le_bytes());
        put(page, upper + TUPLE_HEADER, key);
        if let Some(address) = address {
            put(page, upper + length - address.len(), &address);
        }
        (upper, length)
    }

    fn varies(&self) -> u16 {
        if self.keys.vary { VARIES } else { 0 }
    }

    #[inline]
    fn leaf_tuple(&self, page: &mut [u8], upper: usize, entry: Entry) -> (usize, usize) {
        self.tuple(page, upper, item_pointer(entry.block, entry.offset), self.varies(), entry.key.image(), None)
    }

    /// A tuple that only separates the entries before `row` from those from it on: a block, and all attributes of the key. The
    /// server's own build leaves out those at the end that separate nothing, which makes inner pages of several columns a
    /// little smaller; both are B-trees. Between equal keys the address of the last row before decides, as in `_bt_truncate`.
    fn pivot(&self, page: &mut [u8], upper: usize, block: u32, row: u64, entries: &mut Entries<'_>) -> (usize, usize) {
        let key = entries(row).key;
        let before = if self.keys.repeat { Some(entries(row - 1)).filter(|e| e.key == key) } else { None };
        let address = before.map(|e| item_pointer(e.block, e.offset));
        let attributes = self.keys.columns as u16 | address.map_or(0, |_| HAS_ADDRESS);
        self.tuple(page, upper, item_pointer(block, attributes), PIVOT | self.varies(), key.image(), address)
    }

    /// Entry `entry` of an inner level: it leads to that page of the level below. The first of a page has no key.
    fn downlink(
        &self,
        page: &mut [u8],
        upper: usize,
        level: usize,
        entry: u64,
        first: bool,
        entries: &mut Entries<'_>,
    ) -> (usize, usize) {
        let block = self.block(level - 1, entry) as u32;
        if first {
            return self.tuple(page, upper, item_pointer(block, 0), PIVOT, &[], None);
        }
        let row = (1..level).fold(entry, |n, _| n * self.inner_keep) * self.leaf_keep;
        self.pivot(page, upper, block, row, entries)
    }
}

/// Pages of a level with so many entries.
fn count(entries: u64, keep: u64) -> u64 {
    (entries - 1).div_ceil(keep).max(1)
}

/// The first of `0..end` for which `before` is false; it must be true up to there.
fn partition_point(end: u64, before: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, end);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
