//! Timers of clients; each client has one at most.

use crate::client::Client;
use crate::driver::Token;
use pgdyno_base::Nanos;
use pgdyno_protocol::Dialect;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The next first: time, client, which of the client's timers.
#[derive(Default)]
pub(super) struct Timers(BinaryHeap<Reverse<(Nanos, Token, u64)>>);

impl Timers {
    /// Sets a client's timer, in place of the one that it has.
    pub fn set<P: Dialect>(&mut self, clients: &mut [Client<P>], i: Token, at: Nanos) {
        clients[i].timer += 1;
        self.0.push(Reverse((at, i, clients[i].timer)));
        // Timers that were overtaken stay until they are due; with a connection for each transaction they would pile up.
        if self.0.len() > 64 + 4 * clients.len() {
            self.0.retain(|Reverse((_, i, timer))| clients[*i].timer == *timer);
        }
    }

    /// Returns the time at which the next timer is due.
    pub fn next(&self) -> Option<Nanos> {
        self.0.peek().map(|Reverse((at, ..))| *at)
    }

    /// Takes those that are due. Only what was due when we came: a timer that is set on the way, even for now, has its
    /// turn after everything else.
    pub fn due(&mut self, now: Nanos) -> Vec<(Token, u64)> {
        let mut due = Vec::new();
        while self.next().is_some_and(|at| at <= now) {
            let Some(Reverse((_, i, timer))) = self.0.pop() else { break };
            due.push((i, timer));
        }
        due
    }
}
