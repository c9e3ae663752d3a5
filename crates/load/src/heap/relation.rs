//! One file of a table, as something that can say what is on any of its blocks.

use super::btree::{Keys, Layout};
use super::page::{self, ALL_VISIBLE, HEADER, LINE_POINTER, SIZE};
use super::tuple::{self, Stamp};
use super::visibility;
use crate::rows::{Dataset, Kind, Row, Table};
use crate::size::{heap_pages, rows_on_page};

/// Which file of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The heap's main fork.
    Heap,
    /// The heap's visibility map.
    Visibility,
    /// The main fork of the primary key's index.
    Key,
}

/// A file of a table.
pub struct Relation<'a> {
    dataset: &'a dyn Dataset,
    table: usize,
    part: Part,
    stamp: Stamp,
    kinds: Vec<Kind>,
    on_page: u64,
    heap_pages: u64,
    layout: Layout,
}

/// What building a page needs besides, used again and again.
#[derive(Default)]
pub struct Scratch {
    row: Row,
    tuple: Vec<u8>,
}

impl<'a> Relation<'a> {
    /// That part of table `table`.
    pub fn new(dataset: &'a dyn Dataset, table: usize, part: Part, stamp: Stamp) -> Relation<'a> {
        let t = &dataset.tables()[table];
        let on_page = rows_on_page(&t.widths, t.fillfactor);
        let rows = if part == Part::Key { t.count() } else { 0 };
        Relation {
            dataset,
            table,
            part,
            stamp,
            kinds: t.columns.iter().map(|c| c.kind).collect(),
            on_page,
            heap_pages: heap_pages(t.count(), &t.widths, t.fillfactor),
            layout: Layout::new(Keys { rows, width: t.key_width().unwrap_or(8), on_page }),
        }
    }

    fn table(&self) -> &Table {
        &self.dataset.tables()[self.table]
    }

    /// Pages of the file.
    pub fn pages(&self) -> u64 {
        match self.part {
            Part::Heap => self.heap_pages,
            Part::Visibility => visibility::pages(self.heap_pages),
            Part::Key => self.layout.pages(),
        }
    }

    /// Rows on the blocks before `block`, of a heap.
    pub fn rows_before(&self, block: u64) -> u64 {
        if self.part == Part::Heap { (block * self.on_page).min(self.table().count()) } else { 0 }
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
                let start = self.table().rows.start;
                self.layout.build(first, out, &|row| self.dataset.key(self.table, start + row));
            }
        }
    }

    fn heap_page(&self, block: u64, page: &mut [u8], scratch: &mut Scratch) {
        let rows = &self.table().rows;
        let first = rows.start + block * self.on_page;
        let mut filling = Filling::new(page, block as u32);
        for number in first..rows.end.min(first + self.on_page) {
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
