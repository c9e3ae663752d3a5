//! Intervals and statements.

use crate::histogram::Histogram;
use pgdyno_engine::workload::StatementInfo;
use pgdyno_record as record;
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// A statement of the workload.
#[pyclass(frozen, get_all, module = "pgdyno._core")]
#[derive(Clone)]
pub struct Statement {
    text: String,
    script: usize,
    line: usize,
}

impl From<&StatementInfo> for Statement {
    fn from(s: &StatementInfo) -> Statement {
        Statement { text: s.text.clone(), script: s.script, line: s.line }
    }
}

/// What happened in a stretch of time.
#[pyclass(frozen, module = "pgdyno._core")]
pub struct Interval {
    inner: record::Interval,
}

impl From<record::Interval> for Interval {
    fn from(inner: record::Interval) -> Interval {
        Interval { inner }
    }
}

fn wrap(h: &record::Histogram) -> Histogram {
    Histogram { inner: h.clone() }
}

#[pymethods]
impl Interval {
    #[getter]
    fn index(&self) -> u64 {
        self.inner.slice.index
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
        let named = |(code, n): (&[u8; 5], &u64)| (String::from_utf8_lossy(code).into_owned(), *n);
        self.inner.outcomes.failed.iter().map(named).collect()
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

    /// Statements that succeeded, by statement.
    #[getter]
    fn statement_latency(&self) -> Vec<Histogram> {
        self.inner.statement_latency.iter().map(wrap).collect()
    }

    /// Scheduled less all ends.
    #[getter]
    fn balance(&self) -> i64 {
        self.inner.outcomes.balance() as i64
    }
}
