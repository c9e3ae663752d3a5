//! Whose turn it is: which script comes next, and in an open loop when, and on which of the free clients.

use crate::client::Client;
use crate::driver::Token;
use crate::plan::{Duet, Limit, Plan, Rate};
use crate::schedule::Arrivals;
use pgdyno_base::{Nanos, Prng};
use pgdyno_protocol::Dialect;
use std::collections::VecDeque;

/// Next action of a free client.
pub(super) enum Turn {
    /// It begins a transaction of this script, which was due then.
    Begin { script: usize, due: Nanos },
    /// One that was due is left out: it would be too late even if it took no time.
    Skip { script: usize },
    /// Nothing yet.
    Wait,
    /// Nothing any more.
    Finish,
}

/// The transactions to come.
pub(super) struct Turns {
    arrivals: Option<Arrivals>,
    /// Free clients, in the order that they became so.
    idle: VecDeque<Token>,
    choose: Prng,
    throttle: Prng,
    /// Number of the worker's first client within the run.
    first_client: usize,
    /// Side of a duet that is under load.
    side: Option<usize>,
}

impl Turns {
    pub fn new(first_client: usize, choose: Prng, throttle: Prng) -> Turns {
        Turns { arrivals: None, idle: VecDeque::new(), choose, throttle, first_client, side: None }
    }

    /// Switches a duet to the side of this turn. Returns the clients of that side that were waiting.
    pub fn take_turn(&mut self, duet: &Duet, turn: u64) -> Vec<Token> {
        if duet.together {
            return Vec::new();
        }
        let side = duet.side_of_turn(turn);
        self.side = Some(side);
        let (first, sides) = (self.first_client, duet.sides);
        let (go, wait) = self.idle.drain(..).partition(|i| (first + i) % sides == side);
        self.idle = wait;
        VecDeque::into(go)
    }

    /// Returns true if the client of a duet has to wait for its side's turn.
    fn is_others_turn(&self, plan: &Plan, i: Token) -> bool {
        let Some((duet, side)) = plan.duet.as_ref().zip(self.side) else { return false };
        (self.first_client + i) % duet.sides != side
    }

    /// Begins the schedule of an open loop; `share` of its rate is this worker's, and even arrivals begin after the part
    /// `turn` of their distance.
    pub fn begin(&mut self, plan: &Plan, share: f64, turn: f64, origin: Nanos) {
        let Some(rate) = plan.rate else { return };
        let rate = Rate { from: rate.from * share, to: rate.to * share, ..rate };
        self.arrivals = Some(Arrivals::shifted(rate, turn, origin, origin + plan.end(), self.throttle.clone()));
    }

    /// The next turn of a client that is free.
    pub fn next<P: Dialect>(
        &mut self,
        plan: &Plan,
        i: Token,
        client: &mut Client<P>,
        now: Nanos,
        is_over: bool,
        ending: bool,
    ) -> Turn {
        let all_begun = matches!(plan.limit, Limit::Transactions(n) if client.begun >= n);
        let closed = self.arrivals.is_none() || !plan.begin_what_was_due;
        if all_begun || (closed && is_over) {
            return Turn::Finish;
        }
        if self.is_others_turn(plan, i) {
            self.idle.push_back(i);
            return Turn::Wait;
        }
        let script = *client.chosen.get_or_insert_with(|| client.actor.begin(&mut self.choose));
        let Some(arrivals) = &mut self.arrivals else { return Turn::Begin { script, due: now } };
        let Some(due) = arrivals.take(now) else {
            // Also when nothing more is due: the measurement is as long as it was planned to be. Not so pgbench's.
            let nothing_more = !plan.begin_what_was_due && arrivals.peek().is_none();
            if ending || nothing_more {
                return Turn::Finish;
            }
            self.idle.push_back(i);
            return Turn::Wait;
        };
        if plan.latency_limit.is_some_and(|limit| due + limit < now) {
            return Turn::Skip { script };
        }
        Turn::Begin { script, due }
    }

    /// The loop is open: transactions are due when they are due.
    pub fn is_open(&self) -> bool {
        self.arrivals.is_some()
    }

    /// A free client for a transaction that is due at `now`.
    pub fn take_free(&mut self, now: Nanos) -> Option<Token> {
        let due = self.arrivals.as_ref()?.peek()?;
        if due <= now { self.idle.pop_front() } else { None }
    }

    /// Returns the time at which the next free client is needed.
    pub fn next_due(&self) -> Option<Nanos> {
        if self.idle.is_empty() { None } else { self.arrivals.as_ref()?.peek() }
    }

    /// The client is not free any more.
    pub fn forget(&mut self, i: Token) {
        self.idle.retain(|t| *t != i);
    }

    /// Nobody is free any more.
    pub fn forget_all(&mut self) {
        self.idle.clear();
    }

    /// Nothing is due from now on.
    pub fn stop(&mut self, now: Nanos) {
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.stop(now);
        }
    }

    /// Takes one that was due before it was stopped and was never begun.
    pub fn take_left(&mut self) -> bool {
        self.arrivals.as_mut().is_some_and(|a| a.take(Nanos::MAX).is_some())
    }
}
