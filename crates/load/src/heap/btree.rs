//! A B-tree as CREATE INDEX builds it over keys in order, all of one width: `_bt_buildadd` and `_bt_uppershutdown` of
//! `nbtsort.c`, turned from a loop over entries into arithmetic on numbers.
//!
//! On each level a page holds `keep` entries, and the next one, which did not fit, is its high key and the first of the next
//! page. The last page of a level holds up to `keep + 1` and has no high key. A page gets its block when it is begun: a leaf
//! when the one before is full, and right after it, if that overflows, the page above, and so on. What overflows when the
//! right edge is closed comes last.

use super::page::{HEADER, LINE_POINTER, SIZE, header, item_pointer, line_pointer, put};
use crate::rows::Key;
use crate::size::{entries_on_inner_page, entries_on_leaf};

/// Where the special space begins.
const SPECIAL: usize = SIZE - 16;
const LEAF: u16 = 1;
const ROOT: u16 = 2;
const META: u16 = 8;
/// `t_tid` of this tuple is no row's address: `INDEX_ALT_TID_MASK`.
const PIVOT: u16 = 0x2000;
/// Bytes of an index tuple's header, and of a whole one without a key.
const TUPLE_HEADER: usize = 8;
const MAGIC: u32 = 0x0005_3162;
const VERSION: u32 = 4;

/// What the index is over: rows whose keys grow with their numbers.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    /// How many.
    pub rows: u64,
    /// Columns of the key.
    pub columns: usize,
    /// Bytes of a column's value: 4 or 8.
    pub width: u64,
}

impl Keys {
    fn bytes(&self) -> u64 {
        self.columns as u64 * self.width
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

/// Finds the entry of a row, by its number.
pub type Entries<'a> = dyn FnMut(u64) -> Entry + 'a;

/// Where everything is.
#[derive(Clone, Debug)]
pub struct Layout {
    keys: Keys,
    /// Bytes of an index tuple.
    tuple: usize,
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
            tuple: (TUPLE_HEADER + keys.bytes() as usize).next_multiple_of(8),
            leaf_keep: entries_on_leaf(keys.bytes()),
            inner_keep: entries_on_inner_page(keys.bytes()),
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
            length = if level > 0 && entry == first { TUPLE_HEADER } else { self.tuple };
            upper -= length;
            if level == 0 {
                self.leaf_tuple(&mut page[upper..], entries(entry));
            } else {
                self.downlink(&mut page[upper..], level, entry, entry == first, entries);
            }
            line_pointer(page, pointer, upper, length);
            pointer += 1;
        }
        let lower = HEADER + (pointer - 1) * LINE_POINTER;
        if last {
            // The build had kept the high key's place free and moved all pointers up; the last one still stands there.
            line_pointer(page, pointer, upper, length);
        } else {
            upper -= self.tuple;
            if level == 0 {
                let right = entries(end);
                self.pivot(&mut page[upper..], right.block, right.key);
            } else {
                self.downlink(&mut page[upper..], level, end, false, entries);
            }
            line_pointer(page, 1, upper, self.tuple);
        }
        let before = if number == 0 { 0 } else { self.block(level, number - 1) };
        let after = if last { 0 } else { self.block(level, number + 1) };
        let root = if level + 1 == self.levels.len() { ROOT } else { 0 };
        self.special(page, before, after, level as u32, root | if level == 0 { LEAF } else { 0 });
        header(page, 0, lower, upper, SPECIAL);
    }

    #[inline]
    fn put_key(&self, tuple: &mut [u8], key: Key) {
        let width = self.keys.width as usize;
        for (n, value) in key[..self.keys.columns].iter().enumerate() {
            put(tuple, TUPLE_HEADER + n * width, &value.to_le_bytes()[..width]);
        }
    }

    #[inline]
    fn leaf_tuple(&self, tuple: &mut [u8], entry: Entry) {
        put(tuple, 0, &item_pointer(entry.block, entry.offset));
        put(tuple, 6, &(self.tuple as u16).to_le_bytes());
        self.put_key(tuple, entry.key);
    }

    /// A tuple that only separates: a block, and all attributes of the key. The server's own build leaves out those at the
    /// end that separate nothing, which makes inner pages of several columns a little smaller; both are B-trees.
    fn pivot(&self, tuple: &mut [u8], block: u32, key: Key) {
        put(tuple, 0, &item_pointer(block, self.keys.columns as u16));
        put(tuple, 6, &(self.tuple as u16 | PIVOT).to_le_bytes());
        self.put_key(tuple, key);
    }

    /// Entry `entry` of an inner level: it leads to that page of the level below. The first of a page has no key.
    fn downlink(&self, tuple: &mut [u8], level: usize, entry: u64, first: bool, entries: &mut Entries<'_>) {
        let block = self.block(level - 1, entry) as u32;
        if first {
            put(tuple, 0, &item_pointer(block, 0));
            put(tuple, 6, &(TUPLE_HEADER as u16 | PIVOT).to_le_bytes());
            return;
        }
        let row = (1..level).fold(entry, |n, _| n * self.inner_keep) * self.leaf_keep;
        self.pivot(tuple, block, entries(row).key);
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
