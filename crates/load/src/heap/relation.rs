//! One file of a table, as something that can say what is on any of its blocks.

use super::btree::{Entry, Key, Keys, Layout};
use super::page::{self, ALL_VISIBLE, HEADER, LINE_POINTER, SIZE};
use super::tuple::{self, Stamp};
use super::{place, visibility};
use crate::error::LoadError;
use crate::rows::{Dataset, Kind, Row, Table};
use crate::size::{heap_pages, rows_on_page};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Which file of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The heap's main fork.
    Heap,
    /// The heap's visibility map.
    Visibility,
    /// The main fork of the primary key's index.
    Key,
    /// The main fork of one of the other indexes.
    Index(usize),
}

/// A file of a table.
pub struct Relation<'a> {
    dataset: &'a dyn Dataset,
    table: usize,
    part: Part,
    stamp: Stamp,
    /// Types of the row's columns, or of an index's columns.
    kinds: Vec<Kind>,
    places: Places,
    heap_pages: u64,
    layout: Layout,
}

/// Which rows stand on which page of a heap.
#[derive(Clone, Debug)]
pub enum Places {
    /// On all but the last so many, beginning with row `first`.
    Even {
        /// The table's first row.
        first: u64,
        /// Rows on a page.
        on_page: u64,
    },
    /// The first row of each page, and the end: see [`place::pages`].
    Listed(Arc<Vec<u64>>),
}

impl Places {
    /// Returns the places of the rows of table `table`.
    ///
    /// If the rows differ in width, this takes nearly as long as making all of them. It uses `threads` threads and
    /// stops when `interrupt` becomes true.
    pub fn of(
        dataset: &dyn Dataset,
        table: usize,
        threads: usize,
        interrupt: &AtomicBool,
    ) -> Result<Places, LoadError> {
        let t = &dataset.tables()[table];
        if t.breaks.is_empty() {
            return Ok(Places::Even { first: t.rows.start, on_page: rows_on_page(&t.widths, t.fillfactor) });
        }
        let pages = place::pages(dataset, table, threads, interrupt);
        if interrupt.load(Ordering::Relaxed) {
            return Err(LoadError::Interrupted);
        }
        Ok(Places::Listed(Arc::new(pages)))
    }

    /// Rows on a page.
    fn rows(&self, block: u64, end: u64) -> Range<u64> {
        match self {
            Places::Even { first, on_page } => {
                let first = (first + block * on_page).min(end);
                first..end.min(first + on_page)
            }
            Places::Listed(firsts) => firsts[block as usize]..firsts[block as usize + 1],
        }
    }

    fn pages(&self, table: &Table) -> u64 {
        match self {
            Places::Even { .. } => heap_pages(table.count(), &table.widths, table.fillfactor),
            Places::Listed(firsts) => firsts.len() as u64 - 1,
        }
    }

    /// The page of a row and its line pointer there. `near`: the page of a row before it, which helps to find it.
    #[inline]
    fn find(&self, row: u64, near: &mut usize) -> (u32, u16) {
        match self {
            Places::Even { first, on_page } => {
                let number = row - first;
                ((number / on_page) as u32, (number % on_page + 1) as u16)
            }
            Places::Listed(firsts) => {
                let here = |n: usize| firsts[n] <= row && row < firsts[n + 1];
                if !here(*near) {
                    let next = (*near + 1).min(firsts.len() - 2);
                    *near = if here(next) { next } else { firsts.partition_point(|f| *f <= row) - 1 };
                }
                (*near as u32, (row - firsts[*near] + 1) as u16)
            }
        }
    }
}

/// Additional buffers for building a page, reused for each page.
#[derive(Default)]
pub struct Scratch {
    row: Row,
    tuple: Vec<u8>,
}

impl<'a> Relation<'a> {
    /// Returns the relation for that part of table `table`, whose rows are at `places`.
    pub fn new(dataset: &'a dyn Dataset, table: usize, part: Part, stamp: Stamp, places: Places) -> Relation<'a> {
        let t = &dataset.tables()[table];
        let none = Keys { rows: 0, columns: 1, bytes: 8, vary: false, repeat: false };
        let (keys, kinds) = match part {
            Part::Heap | Part::Visibility => (none, t.kinds()),
            Part::Key => (t.keys().unwrap_or(none), t.kinds()),
            Part::Index(n) => {
                let index = &t.indexes[n];
                (t.index_keys(index), index.columns.iter().map(|c| t.columns[*c].kind).collect())
            }
        };
        Relation { dataset, table, part, stamp, kinds, heap_pages: places.pages(t), places, layout: Layout::new(keys) }
    }

    fn table(&self) -> &Table {
        &self.dataset.tables()[self.table]
    }

    /// It holds rows.
    pub fn is_heap(&self) -> bool {
        self.part == Part::Heap
    }

    /// Pages of the file.
    pub fn pages(&self) -> u64 {
        match self.part {
            Part::Heap => self.heap_pages,
            Part::Visibility => visibility::pages(self.heap_pages),
            Part::Key | Part::Index(_) => self.layout.pages(),
        }
    }

    /// Rows on the blocks before `block`, of a heap.
    pub fn rows_before(&self, block: u64) -> u64 {
        if self.part != Part::Heap {
            return 0;
        }
        let rows = &self.table().rows;
        match &self.places {
            Places::Even { on_page, .. } => (block * on_page).min(self.table().count()),
            Places::Listed(firsts) => firsts[(block as usize).min(firsts.len() - 1)] - rows.start,
        }
    }

    /// Makes the blocks from `first` on in `out`, less their checksums.
    pub fn build(&self, first: u64, out: &mut [u8], scratch: &mut Scratch) {
        out.fill(0);
        match self.part {
            Part::Heap => {
                for (block, page) in (first..).zip(out.chunks_exact_mut(SIZE)) {
                    self.heap_page(block, page, scratch);
                }
            }
            Part::Visibility => {
                for (number, page) in (first..).zip(out.chunks_exact_mut(SIZE)) {
                    visibility::build(page, number, self.heap_pages);
                }
            }
            Part::Key => {
                let table = self.table();
                let (start, columns) = (table.rows.start, table.key.len());
                let width = table.key_width().map_or(8, |bytes| bytes as usize / columns);
                let (row, mut near) = (&mut scratch.row, 0);
                self.layout.build(first, out, &mut |number| {
                    let key = self.dataset.key(self.table, start + number, row);
                    let (block, offset) = self.places.find(start + number, &mut near);
                    Entry { block, offset, key: Key::of_integers(&key[..columns], width) }
                });
            }
            Part::Index(index) => {
                let start = self.table().rows.start;
                let (row, image, mut near) = (&mut scratch.row, &mut scratch.tuple, 0);
                self.layout.build(first, out, &mut |place| {
                    let number = self.dataset.in_order(self.table, index, start + place, row);
                    image.clear();
                    tuple::values(row, &self.kinds, 0, image);
                    let (block, offset) = self.places.find(number, &mut near);
                    Entry { block, offset, key: Key::new(image) }
                });
            }
        }
    }

    fn heap_page(&self, block: u64, page: &mut [u8], scratch: &mut Scratch) {
        let mut filling = Filling::new(page, block as u32);
        for number in self.places.rows(block, self.table().rows.end) {
            self.dataset.row(self.table, number, &mut scratch.row);
            scratch.tuple.clear();
            tuple::append(&scratch.row, &self.kinds, self.stamp, &mut scratch.tuple);
            let fits = filling.add(&mut scratch.tuple);
            debug_assert!(fits, "the table's widths are not its rows'");
        }
        filling.end();
    }
}

/// A heap page that is being filled.
struct Filling<'a> {
    page: &'a mut [u8],
    block: u32,
    rows: u16,
    upper: usize,
}

impl<'a> Filling<'a> {
    /// A page of zeroes.
    fn new(page: &'a mut [u8], block: u32) -> Filling<'a> {
        Filling { page, block, rows: 0, upper: SIZE }
    }

    /// Puts a tuple on the page, if it fits.
    #[inline]
    fn add(&mut self, tuple: &mut [u8]) -> bool {
        let length = tuple.len();
        let lower = HEADER + usize::from(self.rows + 1) * LINE_POINTER;
        let Some(upper) = self.upper.checked_sub(length.next_multiple_of(8)).filter(|upper| *upper >= lower) else {
            return false;
        };
        self.rows += 1;
        self.upper = upper;
        tuple::set_address(tuple, self.block, self.rows);
        page::put(self.page, upper, tuple);
        page::line_pointer(self.page, usize::from(self.rows), upper, length);
        true
    }

    fn end(self) {
        page::header(self.page, ALL_VISIBLE, HEADER + usize::from(self.rows) * LINE_POINTER, self.upper, SIZE);
    }
}

/// Fills a page of zeroes with rows of any shapes; returns how many fit.
pub fn fill(page: &mut [u8], block: u32, kinds: &[Kind], stamp: Stamp, rows: &[Row]) -> usize {
    let mut filling = Filling::new(page, block);
    let mut tuple = Vec::new();
    let fitting = rows.iter().take_while(|row| {
        tuple.clear();
        tuple::append(row, kinds, stamp, &mut tuple);
        filling.add(&mut tuple)
    });
    let count = fitting.count();
    filling.end();
    count
}
