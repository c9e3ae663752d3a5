//! What became of transactions.

use std::collections::BTreeMap;

/// An SQLSTATE.
pub type Code = [u8; 5];

/// Counts of transactions by what became of them. Over a whole run, drain included,
///
/// `scheduled = committed + failed + skipped + unknown + unfinished`
///
/// ([`Outcomes::balance`]); over one interval it need not hold, because a transaction is counted as scheduled when it
/// begins (skipped ones when the run ends) and as the rest when it ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcomes {
    /// Began, or was due and skipped.
    pub scheduled: u64,
    /// The server confirmed the last statement.
    pub committed: u64,
    /// The server refused, by SQLSTATE; a connection lost before the commit was sent counts as 08006.
    pub failed: BTreeMap<Code, u64>,
    /// Was due in an open loop and never begun.
    pub skipped: u64,
    /// The connection was lost while a statement that may have committed was under way: nobody but the server knows.
    pub unknown: u64,
    /// Was under way when the run was over and its answer was not waited for any longer.
    pub unfinished: u64,
    /// Transactions that were begun again at least once.
    pub retried: u64,
    /// Total number of transaction retries.
    pub retries: u64,
}

impl Outcomes {
    /// Failed, all codes together.
    pub fn failed_total(&self) -> u64 {
        self.failed.values().sum()
    }

    /// Counts a failure.
    pub fn fail(&mut self, code: Code) {
        *self.failed.entry(code).or_default() += 1;
    }

    /// Adds another's counts.
    pub fn merge(&mut self, other: &Outcomes) {
        self.scheduled += other.scheduled;
        self.committed += other.committed;
        self.skipped += other.skipped;
        self.unknown += other.unknown;
        self.unfinished += other.unfinished;
        self.retried += other.retried;
        self.retries += other.retries;
        for (code, n) in &other.failed {
            *self.failed.entry(*code).or_default() += n;
        }
    }

    /// Scheduled less all the ends that a transaction can have: zero over a whole run.
    pub fn balance(&self) -> i128 {
        let ends = self.committed + self.failed_total() + self.skipped + self.unknown + self.unfinished;
        i128::from(self.scheduled) - i128::from(ends)
    }
}
