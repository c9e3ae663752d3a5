//! Requests: written to a buffer, and queued with what may answer them.

use crate::frontend;
use pgdyno_protocol::{Effect, Given};

/// The message that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Parse,
    Bind,
    Describe,
    Execute,
    Query,
    Sync,
}

/// A request that is not answered to its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<L> {
    pub what: What,
    /// Its rows are read.
    pub reads: bool,
    /// Rows may come: a Query has described them.
    pub described: bool,
    /// COPY is under way.
    pub copying: bool,
    /// A Query that has met an error.
    pub failed: bool,
    /// Results so far.
    pub results: u16,
    pub effect: Effect,
    pub label: L,
}

/// Requests that are not answered, in order. Its memory is used from the beginning again each time that all are: thousands of
/// connections share a cache.
#[derive(Debug)]
pub(crate) struct Queue<L> {
    items: Vec<Asked<L>>,
    /// Number of `items` that are answered.
    head: usize,
    /// Number of `items` that have been sent, counted from the first.
    sent: usize,
}

impl<L> Default for Queue<L> {
    fn default() -> Self {
        Queue { items: Vec::new(), head: 0, sent: 0 }
    }
}

impl<L: Copy> Queue<L> {
    #[inline]
    pub fn front(&self) -> Option<&Asked<L>> {
        self.items.get(self.head)
    }

    #[inline]
    pub fn front_mut(&mut self) -> Option<&mut Asked<L>> {
        self.items.get_mut(self.head)
    }

    #[inline]
    pub fn push_back(&mut self, asked: Asked<L>) {
        self.items.push(asked);
    }

    #[inline]
    pub fn pop_front(&mut self) {
        self.head += 1;
        if self.head >= self.items.len() {
            self.items.clear();
            (self.head, self.sent) = (0, 0);
        }
    }

    /// Marks all requests so far as sent.
    #[inline]
    pub fn mark_sent(&mut self) {
        self.sent = self.items.len();
    }

    /// Returns the unanswered requests that have been sent.
    pub fn sent(&self) -> impl Iterator<Item = &Asked<L>> {
        self.items[..self.sent].iter().skip(self.head)
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

/// Writes requests, and notes what answers them.
pub struct Ask<'a, L> {
    pub(crate) asked: &'a mut Queue<L>,
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) label: L,
}

impl<L: Copy> Ask<'_, L> {
    #[inline]
    fn note(&mut self, what: What, effect: Effect, reads: bool) {
        let label = self.label;
        self.asked.push_back(Asked {
            what,
            reads,
            described: false,
            copying: false,
            failed: false,
            results: 0,
            effect,
            label,
        });
    }

    /// Query, whose text `write` appends; `reads`: its rows become events.
    #[inline]
    pub fn query_with(&mut self, effect: Effect, reads: bool, write: impl FnOnce(&mut Vec<u8>)) {
        frontend::query_with(self.out, write);
        self.note(What::Query, effect, reads);
    }

    /// Query, whose rows nobody reads.
    pub fn query(&mut self, sql: &str) {
        self.query_with(Effect::of(sql), false, |o| o.extend_from_slice(sql.as_bytes()));
    }

    /// Parse; the server infers the parameters' types.
    pub fn parse(&mut self, name: &str, sql: &str) {
        frontend::parse(self.out, name, sql);
        self.note(What::Parse, Effect::STATEMENT, false);
    }

    /// Bind; see [`frontend::bind_of_kinds`].
    pub fn bind_of_kinds(
        &mut self,
        statement: &str,
        parameters: usize,
        reads: bool,
        write: impl FnMut(usize, &mut Vec<u8>) -> Given,
    ) {
        frontend::bind_of_kinds(self.out, statement, parameters, reads, write);
        self.note(What::Bind, Effect::STATEMENT, false);
    }

    /// Bind; see [`frontend::bind`].
    #[inline]
    pub fn bind(&mut self, statement: &str, parameters: usize, write: impl FnMut(usize, &mut Vec<u8>) -> bool) {
        frontend::bind(self.out, statement, parameters, write);
        self.note(What::Bind, Effect::STATEMENT, false);
    }

    /// Describe: the columns become an event.
    pub fn describe(&mut self) {
        frontend::describe(self.out);
        self.note(What::Describe, Effect::STATEMENT, true);
    }

    /// Execute, all rows; `reads`: they become events.
    #[inline]
    pub fn execute(&mut self, effect: Effect, reads: bool) {
        frontend::execute(self.out);
        self.note(What::Execute, effect, reads);
    }

    /// Sync.
    #[inline]
    pub fn sync(&mut self) {
        frontend::sync(self.out);
        self.note(What::Sync, Effect::STATEMENT, false);
    }
}
