//! The visibility map: two bits for each page of the heap, here always "all visible" and "all frozen"
//! (`visibilitymap.h`).

use super::page::{HEADER, SIZE, header};

/// Pages of the heap that one page of the map speaks of.
pub const HEAP_PAGES: u64 = ((SIZE - HEADER) * 4) as u64;

/// Pages of the map of a heap.
pub fn pages(heap_pages: u64) -> u64 {
    heap_pages.div_ceil(HEAP_PAGES)
}

/// Page `number` of the map, into a page of zeroes.
pub fn build(page: &mut [u8], number: u64, heap_pages: u64) {
    header(page, 0, HEADER, SIZE, SIZE);
    let here = (heap_pages - number * HEAP_PAGES).min(HEAP_PAGES) as usize;
    page[HEADER..HEADER + here / 4].fill(0xff);
    if here % 4 != 0 {
        page[HEADER + here / 4] = (1 << (2 * (here % 4))) - 1;
    }
}
