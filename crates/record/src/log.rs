//! Transaction logs in pgbench's formats (`pgbench -l`): a line for each transaction, or a line for each interval.

use crate::histogram::Histogram;
use pgdyno_base::{Nanos, Prng};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Outcome of a transaction.
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
    /// Outcome of the transaction.
    pub ending: Ending,
    /// Latency of a committed transaction, from the time it was due.
    pub latency: Nanos,
    /// Delay of the transaction's start.
    pub lag: Nanos,
    /// Number of retries.
    pub retries: u64,
    /// End of the transaction, since 1970.
    pub at: Nanos,
}

/// Contents of the log.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u64, ending: Ending, at_ms: u64) -> Entry {
        Entry {
            client: 3,
            number,
            script: 1,
            ending,
            latency: Nanos::from_millis(2),
            lag: Nanos(300_500),
            retries: 1,
            at: Nanos::from_secs(1_700_000_000) + Nanos::from_millis(at_ms),
        }
    }

    fn written(format: Format, entries: &[Entry]) -> Vec<String> {
        use std::sync::atomic::{AtomicU32, Ordering};
        static N: AtomicU32 = AtomicU32::new(0);
        let n = N.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("pgdyno-log-{}-{n}", std::process::id()));
        let mut log = TransactionLog::create(&path, format, Prng::from_seed(1)).unwrap();
        log.begin(Nanos::from_secs(1_700_000_000) + Nanos::from_millis(700));
        entries.iter().for_each(|e| log.add(e).unwrap());
        log.finish(entries.last().unwrap().at).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn lines_have_pgbenchs_columns() {
        let all = [Ending::Committed, Ending::Skipped, Ending::Serialization, Ending::Deadlock, Ending::Other];
        let entries: Vec<Entry> = all.iter().map(|e| entry(7, *e, 12)).collect();
        let plain = written(Format::default(), &entries);
        assert_eq!(plain[0], "3 7 2000 1 1700000000 12000");
        assert_eq!(plain[1], "3 7 skipped 1 1700000000 12000");
        assert_eq!(plain[2], "3 7 failed 1 1700000000 12000");
        let format = Format { throttled: true, retries: true, detailed: true, ..Format::default() };
        let full = written(format, &entries);
        assert_eq!(full[0], "3 7 2000 1 1700000000 12000 300 1");
        assert_eq!(full[2], "3 7 serialization 1 1700000000 12000 0 1");
        assert_eq!(full[3], "3 7 deadlock 1 1700000000 12000 0 1");
        assert_eq!(full[4], "3 7 other 1 1700000000 12000 0 1");
    }

    #[test]
    fn a_sample_is_a_share() {
        let entries: Vec<Entry> = (0..10_000).map(|n| entry(n, Ending::Committed, n)).collect();
        let kept = written(Format { sampling_rate: 0.25, ..Format::default() }, &entries).len();
        // 2,500 expected, standard deviation 43.
        assert!((2_280..2_720).contains(&kept), "{kept}");
    }

    #[test]
    fn aggregates_are_sums_of_their_interval_and_none_is_left_out() {
        let format = Format { aggregate: 2, throttled: true, limited: true, retries: true, ..Format::default() };
        let format = Format { detailed: true, other_failures: true, percentiles: vec![50.0], ..format };
        let entries = [
            entry(1, Ending::Committed, 800),
            entry(2, Ending::Committed, 1_999),
            entry(3, Ending::Skipped, 1_999),
            // Nothing ends in 2 s to 4 s.
            entry(4, Ending::Deadlock, 4_100),
            entry(5, Ending::Other, 4_200),
        ];
        assert_eq!(
            written(format, &entries),
            [
                "1700000000 2 4000 8000000 2000 2000 600 180000 300 300 1 2 2 0 0 0 2000",
                "1700000002 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
                "1700000004 0 0 0 0 0 0 0 0 0 0 2 2 0 1 1 0",
            ]
        );
        // What was not asked for is zero, so that the columns stay.
        let lines = written(Format { aggregate: 2, ..Format::default() }, &entries);
        assert_eq!(lines[0], "1700000000 2 4000 8000000 2000 2000 0 0 0 0 0 0 0 0 0");
    }
}
