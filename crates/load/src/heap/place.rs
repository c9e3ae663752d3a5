//! Where rows of differing widths stand: which row begins each page of a heap.

use super::page::{HEADER, LINE_POINTER, SIZE};
use super::tuple;
use crate::rows::{Dataset, Row};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The number of the first row of each page of table `table`, and behind the last one the end of the table: rising, one
/// more than there are pages. Rows are made to find out how wide they are, on `threads` threads, between the
/// breaks of the table ([`crate::Table::breaks`]). Incomplete once `interrupt` is true.
pub fn pages(dataset: &dyn Dataset, table: usize, threads: usize, interrupt: &AtomicBool) -> Vec<u64> {
    let t = &dataset.tables()[table];
    let next = AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            let Some(first) = t.breaks.get(n).filter(|_| !interrupt.load(Ordering::Relaxed)) else { return found };
            let end = t.breaks.get(n + 1).copied().unwrap_or(t.rows.end);
            found.push((n, between(dataset, table, *first, end)));
        }
    };
    let mut parts: Vec<(usize, Vec<u64>)> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads.clamp(1, t.breaks.len().max(1))).map(|_| scope.spawn(work)).collect();
        handles.into_iter().flat_map(|h| h.join().unwrap_or_else(|e| std::panic::resume_unwind(e))).collect()
    });
    parts.sort_unstable_by_key(|(n, _)| *n);
    let mut all: Vec<u64> = parts.into_iter().flat_map(|(_, pages)| pages).collect();
    all.push(t.rows.end);
    all
}

/// The first rows of the pages of rows `first..end`.
fn between(dataset: &dyn Dataset, table: usize, first: u64, end: u64) -> Vec<u64> {
    let t = &dataset.tables()[table];
    let kinds = t.kinds();
    // As the server's own rule has it, with the fill factor.
    let reserve = SIZE * (100 - t.fillfactor as usize) / 100;
    let mut row = Row::default();
    row.draft = true;
    let (mut pages, mut free, mut number) = (Vec::new(), 0, first);
    while number < end {
        dataset.row(table, number, &mut row);
        let needs = tuple::length(&row, &kinds).next_multiple_of(8) + LINE_POINTER;
        let alike = (number + dataset.as_long(table, number, &mut row).max(1)).min(end);
        while number < alike {
            if pages.is_empty() || free < needs + reserve {
                pages.push(number);
                free = SIZE - HEADER;
            }
            // The first row of a page stands there even if the fill factor leaves no room for it.
            let fitting = (free.saturating_sub(reserve) / needs).max(1).min((alike - number) as usize);
            free -= fitting * needs;
            number += fitting as u64;
        }
    }
    pages
}
