//! Transaction logs in pgbench's formats (`pgbench -l`): a line for each transaction, or a line for each interval.

use crate::histogram::Histogram;
use pgdyno_base::{Nanos, Prng};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was committed.
    Committed,
    /// It was due too long ago to be begun.
    Skipped,
    /// SQLSTATE 40001.
    Serialization,
    /// SQLSTATE 40P01.
    Deadlock,
    /// Any other error.
    Other,
}

/// One transaction.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its client.
    pub client: usize,
    /// Its number among the client's transactions, from 1.
    pub number: u64,
    /// Its script.
    pub script: usize,
    /// How it ended.
    pub ending: Ending,
    /// How long it took, from when it was due; of committed transactions.
    pub latency: Nanos,
    /// How late it was begun.
    pub lag: Nanos,
    /// How often it was begun again.
    pub retries: u64,
    /// When it ended, since 1970.
    pub at: Nanos,
}

/// What goes into the log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Format {
    /// The share of transactions that is logged; 0: all.
    pub sampling_rate: f64,
    /// Seconds in a line; 0: a line for each transaction.
    pub aggregate: u64,
    /// The run has a rate: schedule lag is written.
    pub throttled: bool,
    /// The run has a latency limit: skipped transactions are counted.
    pub limited: bool,
    /// Transactions may be tried more than once.
    pub retries: bool,
    /// Failures are told apart.
    pub detailed: bool,
    /// A third column of failures: those that are neither serialization failures nor deadlocks (pgbench 19).
    pub other_failures: bool,
    /// Percentiles of latency that are written at the end of an aggregated line, in microseconds.
    pub percentiles: Vec<f64>,
}

/// Count, sum, sum of squares and range, in microseconds: pgbench's columns.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    count: u64,
    sum: f64,
    sum_of_squares: f64,
    min: f64,
    max: f64,
}

impl Moments {
    fn add(&mut self, value: f64) {
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = if self.count == 0 { value } else { self.max.max(value) };
        self.count += 1;
        self.sum += value;
        self.sum_of_squares += value * value;
    }
}

#[derive(Clone, Debug, Default)]
struct Aggregate {
    /// Seconds since 1970.
    start: u64,
    committed: u64,
    latency: Moments,
    lag: Moments,
    histogram: Histogram,
    skipped: u64,
    retried: u64,
    retries: u64,
    serialization: u64,
    deadlock: u64,
    other: u64,
}

/// The log of one worker.
pub struct TransactionLog {
    out: BufWriter<File>,
    format: Format,
    sample: Prng,
    aggregate: Aggregate,
}

fn micros(t: Nanos) -> u64 {
    t.0 / 1_000
}

impl TransactionLog {
    /// Makes the file, or empties it. `sample` decides which transactions are logged.
    pub fn create(path: &Path, format: Format, sample: Prng) -> io::Result<TransactionLog> {
        Ok(TransactionLog { out: BufWriter::new(File::create(path)?), format, sample, aggregate: Aggregate::default() })
    }

    /// The run begins at `at`, since 1970. The first interval begins with that whole second, as pgbench's does.
    pub fn begin(&mut self, at: Nanos) {
        self.aggregate.start = at.0 / 1_000_000_000;
    }

    /// Adds a transaction.
    pub fn add(&mut self, entry: &Entry) -> io::Result<()> {
        if self.format.sampling_rate != 0.0 && self.sample.f64() > self.format.sampling_rate {
            return Ok(());
        }
        if self.format.aggregate == 0 { self.line(entry) } else { self.aggregated(entry) }
    }

    fn line(&mut self, e: &Entry) -> io::Result<()> {
        let out = &mut self.out;
        write!(out, "{} {} ", e.client, e.number)?;
        match (e.ending, self.format.detailed) {
            (Ending::Committed, _) => write!(out, "{}", micros(e.latency))?,
            (Ending::Skipped, _) => out.write_all(b"skipped")?,
            (_, false) => out.write_all(b"failed")?,
            (Ending::Serialization, true) => out.write_all(b"serialization")?,
            (Ending::Deadlock, true) => out.write_all(b"deadlock")?,
            (Ending::Other, true) => out.write_all(b"other")?,
        }
        let at = micros(e.at);
        write!(out, " {} {} {}", e.script, at / 1_000_000, at % 1_000_000)?;
        if self.format.throttled {
            write!(out, " {}", if e.ending == Ending::Committed { micros(e.lag) } else { 0 })?;
        }
        if self.format.retries {
            write!(out, " {}", e.retries)?;
        }
        out.write_all(b"\n")
    }

    fn aggregated(&mut self, e: &Entry) -> io::Result<()> {
        // A line for each interval that is over, also for those in which nothing ended.
        while (self.aggregate.start + self.format.aggregate) * 1_000_000_000 <= e.at.0 {
            let next = Aggregate { start: self.aggregate.start + self.format.aggregate, ..Aggregate::default() };
            let done = std::mem::replace(&mut self.aggregate, next);
            self.write(&done)?;
        }
        let a = &mut self.aggregate;
        if e.ending != Ending::Skipped && e.retries > 0 {
            a.retried += 1;
            a.retries += e.retries;
        }
        match e.ending {
            Ending::Committed => {
                a.committed += 1;
                a.latency.add(micros(e.latency) as f64);
                if self.format.throttled {
                    a.lag.add(micros(e.lag) as f64);
                }
                if !self.format.percentiles.is_empty() {
                    a.histogram.record(e.latency);
                }
            }
            Ending::Skipped => a.skipped += 1,
            Ending::Serialization => a.serialization += 1,
            Ending::Deadlock => a.deadlock += 1,
            Ending::Other => a.other += 1,
        }
        Ok(())
    }

    fn write(&mut self, a: &Aggregate) -> io::Result<()> {
        let (f, out) = (&self.format, &mut self.out);
        write!(out, "{} {}", a.start, a.committed)?;
        for m in [&a.latency, &a.lag] {
            write!(out, " {:.0} {:.0} {:.0} {:.0}", m.sum, m.sum_of_squares, m.min, m.max)?;
        }
        let when = |wanted: bool, n: u64| if wanted { n } else { 0 };
        write!(out, " {}", when(f.limited, a.skipped))?;
        write!(out, " {} {}", when(f.retries, a.retried), when(f.retries, a.retries))?;
        write!(out, " {} {}", when(f.detailed, a.serialization), when(f.detailed, a.deadlock))?;
        if f.other_failures {
            write!(out, " {}", when(f.detailed, a.other))?;
        }
        for percent in &f.percentiles {
            write!(out, " {}", micros(a.histogram.percentile(*percent)))?;
        }
        out.write_all(b"\n")
    }

    /// Writes out what has been added.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// The run is over at `at`: writes the last interval, whole or not.
    pub fn finish(&mut self, at: Nanos) -> io::Result<()> {
        if self.format.aggregate > 0 {
            while (self.aggregate.start + self.format.aggregate) * 1_000_000_000 <= at.0 {
                let next = Aggregate { start: self.aggregate.start + self.format.aggregate, ..Aggregate::default() };
                let done = std::mem::replace(&mut self.aggregate, next);
                self.write(&done)?;
            }
            let done = std::mem::take(&mut self.aggregate);
            self.write(&done)?;
        }
        self.out.flush()
    }
}
