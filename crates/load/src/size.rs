//! How large a table and its primary key will be, to the byte, before they are made: the arithmetic of PostgreSQL's heap
//! (`heap_multi_insert`) and of its B-tree build (`_bt_buildadd`), for rows that are all of one shape.
//!
//! Pages of 8 kB, 64-bit machines. The result is what `pg_relation_size` says of a table filled by COPY in key order, and of
//! a key made afterwards.

/// Bytes of a page.
pub const PAGE: u64 = 8192;
const PAGE_HEADER: u64 = 24;
const LINE_POINTER: u64 = 4;
/// A heap tuple's header without a null bitmap, which for up to 8 columns fits into its padding.
const TUPLE_HEADER: u64 = 24;
const INDEX_TUPLE_HEADER: u64 = 8;
/// `sizeof(BTPageOpaqueData)`, at the end of each page of an index.
const BTREE_SPECIAL: u64 = 16;
/// The longest text with a header of one byte, which needs no alignment.
pub const SHORT_VARLENA: u64 = 126;
/// Percent of an inner page that a B-tree build fills: `BTREE_NONLEAF_FILLFACTOR`.
const INNER_FILLFACTOR: u64 = 70;
/// Percent of a leaf: the default of an index's `fillfactor`.
const LEAF_FILLFACTOR: u64 = 90;
/// The most tuples that a heap page takes: `MaxHeapTuplesPerPage`.
const MAX_TUPLES: u64 = (PAGE - PAGE_HEADER) / (TUPLE_HEADER + LINE_POINTER);

fn aligned(bytes: u64) -> u64 {
    bytes.next_multiple_of(8)
}

/// The width of a column's value in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// So many bytes, aligned to as many (1, 2, 4 or 8).
    Fixed(u64),
    /// A text of so many bytes.
    Text(u64),
    /// NULL.
    Null,
}

/// Bytes that a row's values take behind the tuple's header.
pub fn data_length(columns: &[Width]) -> u64 {
    columns.iter().fold(0, |at, column| match column {
        Width::Null => at,
        Width::Fixed(n) => at.next_multiple_of(*n) + n,
        Width::Text(n) if *n <= SHORT_VARLENA => at + 1 + n,
        Width::Text(n) => at.next_multiple_of(4) + 4 + n,
    })
}

/// Rows of this shape on a heap page that is filled to `fillfactor` percent.
pub fn rows_on_page(columns: &[Width], fillfactor: u64) -> u64 {
    let tuple = aligned(TUPLE_HEADER + data_length(columns));
    let reserve = PAGE * (100 - fillfactor) / 100;
    let mut rows = 1;
    while rows < MAX_TUPLES {
        let free = PAGE - PAGE_HEADER - rows * (tuple + LINE_POINTER);
        if free < LINE_POINTER + tuple + reserve {
            break;
        }
        rows += 1;
    }
    rows
}

/// Pages of a heap of `rows` rows.
pub fn heap_pages(rows: u64, columns: &[Width], fillfactor: u64) -> u64 {
    rows.div_ceil(rows_on_page(columns, fillfactor))
}

/// Pages and height of a B-tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BTree {
    /// All pages, the meta page included.
    pub pages: u64,
    /// The root's level, as `bt_metap` says it: 0 when the root is a leaf.
    pub level: u32,
}

/// Entries that a full page of a build keeps. A page is full when the next entry does not fit or when it is filled to its
/// factor; its last entry then becomes its high key and goes on to the next page.
fn entries_on_page(entry: u64, first: u64, leaf: bool, fill: u64) -> u64 {
    let reserve = PAGE * (100 - fill) / 100;
    // The high key's line pointer is there from the beginning. A leaf keeps room for a high key with a row's address.
    let room = PAGE - PAGE_HEADER - BTREE_SPECIAL - LINE_POINTER;
    let tie_breaker = if leaf { 8 } else { 0 };
    let mut used = first + LINE_POINTER;
    let mut entries = 1;
    loop {
        let free = room - used - LINE_POINTER;
        if free < entry + tie_breaker || (free < reserve && entries > 1) {
            return entries - 1;
        }
        used += entry + LINE_POINTER;
        entries += 1;
    }
}

/// Entries that a full leaf keeps, for keys of `key` bytes.
pub fn entries_on_leaf(key: u64) -> u64 {
    let entry = aligned(INDEX_TUPLE_HEADER + key);
    entries_on_page(entry, entry, true, LEAF_FILLFACTOR)
}

/// Entries that a leaf keeps which is filled to its end, for keys of `key` bytes.
pub fn entries_on_full_leaf(key: u64) -> u64 {
    let entry = aligned(INDEX_TUPLE_HEADER + key);
    entries_on_page(entry, entry, true, 100)
}

/// Entries that a full inner page keeps. The first has no key.
pub fn entries_on_inner_page(key: u64) -> u64 {
    entries_on_page(aligned(INDEX_TUPLE_HEADER + key), INDEX_TUPLE_HEADER, false, INNER_FILLFACTOR)
}

/// The B-tree of a unique key of `key` bytes over `rows` rows, built by CREATE INDEX.
pub fn btree(rows: u64, key: u64) -> BTree {
    let mut pages = pages_of_level(rows, entries_on_leaf(key));
    let (mut all, mut level) = (pages, 0);
    if rows == 0 {
        return BTree { pages: 1, level: 0 };
    }
    while pages > 1 {
        pages = pages_of_level(pages, entries_on_inner_page(key));
        all += pages;
        level += 1;
    }
    BTree { pages: all + 1, level }
}

/// A page that is full hands its last entry on, so the last page of a level has at least two.
fn pages_of_level(entries: u64, on_page: u64) -> u64 {
    entries.saturating_sub(1).div_ceil(on_page).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// pgbench_accounts: its filler is 84 blanks.
    fn accounts(aid: u64) -> [Width; 4] {
        [Width::Fixed(aid), Width::Fixed(4), Width::Fixed(4), Width::Text(84)]
    }

    #[test]
    fn a_unit_of_scale_is_as_large_as_everybody_knows() {
        assert_eq!(rows_on_page(&accounts(4), 100), 61);
        assert_eq!(heap_pages(100_000, &accounts(4), 100), 1640);
        assert_eq!(btree(100_000, 4), BTree { pages: 276, level: 1 });
    }

    /// Seed 000: 100 billion rows; its catalogue printed 2,092 GB for the key, level 4, and 12 TB for the table.
    #[test]
    fn a_hundred_billion_rows_agree_with_the_published_catalogue() {
        let rows = 100_000_000_000;
        let key = btree(rows, 8);
        let gib = (key.pages * PAGE) as f64 / f64::from(1 << 30);
        assert!((gib - 2092.0).abs() < 1.0, "{gib}");
        assert_eq!(key.level, 4);
        let tib = (heap_pages(rows, &accounts(8), 100) * PAGE) as f64 / (1u64 << 40) as f64;
        assert!((12.0..12.5).contains(&tib), "{tib}");
    }

    #[test]
    fn empty_and_tiny_tables() {
        assert_eq!(heap_pages(0, &accounts(4), 100), 0);
        assert_eq!(btree(0, 4), BTree { pages: 1, level: 0 });
        assert_eq!(btree(1, 4), BTree { pages: 2, level: 0 });
        assert_eq!(btree(367, 4), BTree { pages: 2, level: 0 });
        assert_eq!(btree(368, 4), BTree { pages: 4, level: 1 });
    }
}
