//! Intervals.

use crate::errors;
use crate::histogram::Histogram;
use pgdyno_record as record;
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// Events of an interval of time.
#[pyclass(frozen, module = "pgdyno._core")]
pub struct Interval {
    inner: record::Interval,
}

impl From<record::Interval> for Interval {
    fn from(inner: record::Interval) -> Interval {
        Interval { inner }
    }
}

type ScriptOutcomes = (u64, BTreeMap<String, u64>, u64, u64, u64);

/// Failures by SQLSTATE.
fn named(outcomes: &record::Outcomes) -> BTreeMap<String, u64> {
    outcomes.failed.iter().map(|(code, n)| (String::from_utf8_lossy(code).into_owned(), *n)).collect()
}

fn wrap(h: &record::Histogram) -> Histogram {
    Histogram { inner: h.clone() }
}

#[pymethods]
impl Interval {
    /// Adds another interval of the same workload: a copy with both.
    fn merged(&self, other: &Interval) -> Interval {
        let mut inner = self.inner.clone();
        inner.merge(&other.inner);
        Interval { inner }
    }

    /// Returns the interval for some scripts and their commands alone. Each range includes its first number and
    /// excludes its end.
    ///
    /// Data not counted by script stays unchanged, except that statements are shared out by committed transactions.
    fn of_scripts(&self, scripts: (usize, usize), commands: (usize, usize)) -> PyResult<Interval> {
        let within = |(first, end): (usize, usize), n: usize| first <= end && end <= n;
        if !within(scripts, self.inner.scripts.len()) || !within(commands, self.inner.command_latency.len()) {
            return Err(errors::other("there are no such scripts or commands"));
        }
        Ok(Interval { inner: self.inner.of_scripts(scripts.0..scripts.1, commands.0..commands.1) })
    }

    #[getter]
    fn index(&self) -> u64 {
        self.inner.slice.index
    }

    /// Returns the turn of a duet that the interval lies in, from 0.
    #[getter]
    fn turn(&self) -> u64 {
        self.inner.slice.turn
    }

    #[getter]
    fn phase(&self) -> &'static str {
        self.inner.slice.phase.name()
    }

    #[getter]
    fn start_ns(&self) -> u64 {
        self.inner.slice.start.0
    }

    #[getter]
    fn end_ns(&self) -> u64 {
        self.inner.slice.end.0
    }

    #[getter]
    fn scheduled(&self) -> u64 {
        self.inner.outcomes.scheduled
    }

    #[getter]
    fn committed(&self) -> u64 {
        self.inner.outcomes.committed
    }

    /// Failures by SQLSTATE.
    #[getter]
    fn failed(&self) -> BTreeMap<String, u64> {
        named(&self.inner.outcomes)
    }

    #[getter]
    fn skipped(&self) -> u64 {
        self.inner.outcomes.skipped
    }

    #[getter]
    fn unknown(&self) -> u64 {
        self.inner.outcomes.unknown
    }

    #[getter]
    fn unfinished(&self) -> u64 {
        self.inner.outcomes.unfinished
    }

    #[getter]
    fn retried(&self) -> u64 {
        self.inner.outcomes.retried
    }

    /// Returns the number of transaction retries.
    #[getter]
    fn retries(&self) -> u64 {
        self.inner.outcomes.retries
    }

    /// Committed transactions above the latency limit.
    #[getter]
    fn late(&self) -> u64 {
        self.inner.late
    }

    /// Clients that ended early.
    #[getter]
    fn aborted(&self) -> u64 {
        self.inner.aborted
    }

    /// Returns the outcomes by script: committed, failed by SQLSTATE, skipped, retried, retries.
    #[getter]
    fn by_script(&self) -> Vec<ScriptOutcomes> {
        let of = |o: &record::Outcomes| (o.committed, named(o), o.skipped, o.retried, o.retries);
        self.inner.by_script.iter().map(of).collect()
    }

    /// Errors by command: number, failures, retries.
    #[getter]
    fn command_errors(&self) -> Vec<(usize, u64, u64)> {
        self.inner.command_errors.iter().map(|(n, e)| (*n, e.failures, e.retries)).collect()
    }

    /// Returns the connection times, if connecting is part of the run.
    #[getter]
    fn connect(&self) -> Histogram {
        wrap(&self.inner.connect)
    }

    #[getter]
    fn statements(&self) -> u64 {
        self.inner.statements
    }

    #[getter]
    fn lost(&self) -> u64 {
        self.inner.lost
    }

    #[getter]
    fn reconnects(&self) -> u64 {
        self.inner.reconnects
    }

    #[getter]
    fn disconnected(&self) -> u64 {
        self.inner.disconnected
    }

    #[getter]
    fn cpu_ns(&self) -> u64 {
        self.inner.cpu.0
    }

    #[getter]
    fn busiest_cpu_ns(&self) -> u64 {
        self.inner.busiest.0
    }

    /// Time that the workers' threads were ready to run and waited for a CPU: of all, and of the one that waited longest.
    #[getter]
    fn run_delay_ns(&self) -> u64 {
        self.inner.run_delay.0
    }

    #[getter]
    fn most_delayed_ns(&self) -> u64 {
        self.inner.most_delayed.0
    }

    /// Returns the CPU time plus the time waiting for a CPU, for the worker with the least idle time.
    #[getter]
    fn least_rest_ns(&self) -> u64 {
        self.inner.least_rest.0
    }

    /// Returns the delays of worker wake-ups that only a timer caused.
    #[getter]
    fn wakeup_delay(&self) -> Histogram {
        wrap(&self.inner.wakeup_delay)
    }

    /// Connections given up because the server did not keep to the protocol.
    #[getter]
    fn violations(&self) -> u64 {
        self.inner.violations
    }

    /// Beginning of the longest time without an answer to any client, in nanoseconds since the run began.
    #[getter]
    fn silent_from_ns(&self) -> u64 {
        self.inner.silence.start.0
    }

    /// Length of that time.
    #[getter]
    fn silent_ns(&self) -> u64 {
        self.inner.silence.length().0
    }

    /// Committed transactions, all scripts.
    #[getter]
    fn latency(&self) -> Histogram {
        Histogram { inner: self.inner.latency() }
    }

    #[getter]
    fn lag(&self) -> Histogram {
        wrap(&self.inner.lag)
    }

    /// Committed transactions, by script.
    #[getter]
    fn scripts(&self) -> Vec<Histogram> {
        self.inner.scripts.iter().map(wrap).collect()
    }

    /// Commands that succeeded, by command.
    #[getter]
    fn command_latency(&self) -> Vec<Histogram> {
        self.inner.command_latency.iter().map(wrap).collect()
    }

    /// Executions that found or changed no row, by command.
    #[getter]
    fn command_empty(&self) -> Vec<u64> {
        self.inner.command_empty.clone()
    }

    /// Scheduled less all ends.
    #[getter]
    fn balance(&self) -> i64 {
        self.inner.outcomes.balance() as i64
    }
}
