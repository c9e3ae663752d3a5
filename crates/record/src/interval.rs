//! Stretches of time and what happened in them.

use crate::histogram::Histogram;
use crate::outcome::Outcomes;
use pgdyno_base::Nanos;

/// What part of a run an interval belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Before the measurement; recorded, not counted.
    Warmup,
    /// The measurement.
    Measure,
    /// Behind the measurement: transactions that began in time, or were due in time, are brought to their end.
    Drain,
}

impl Phase {
    /// As files and reports write it.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Warmup => "warmup",
            Phase::Measure => "measure",
            Phase::Drain => "drain",
        }
    }
}

/// Where a run's intervals begin and end; the same for all workers. Times count from the run's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// Length of the warm-up; may be zero.
    pub warmup: Nanos,
    /// Length of the measurement; [`Nanos::MAX`] when the number of transactions ends it.
    pub duration: Nanos,
    /// Length of an interval; the last of a phase may be shorter.
    pub interval: Nanos,
}

/// One interval of a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Counted from zero.
    pub index: u64,
    /// The phase that it lies in.
    pub phase: Phase,
    /// Its beginning.
    pub start: Nanos,
    /// Its end; [`Nanos::MAX`] for the drain.
    pub end: Nanos,
}

impl Timeline {
    /// Where the measurement ends.
    pub fn end(&self) -> Nanos {
        self.warmup + self.duration
    }

    /// The first interval.
    pub fn first(&self) -> Slice {
        if self.warmup == Nanos::ZERO {
            self.slice(0, Phase::Measure, Nanos::ZERO)
        } else {
            self.slice(0, Phase::Warmup, Nanos::ZERO)
        }
    }

    /// The interval behind `slice`. Behind the drain comes nothing: it has no end.
    pub fn after(&self, slice: Slice) -> Slice {
        let start = slice.end;
        let phase = if start < self.warmup {
            Phase::Warmup
        } else if start < self.end() {
            Phase::Measure
        } else {
            Phase::Drain
        };
        self.slice(slice.index + 1, phase, start)
    }

    /// The drain, when the number of transactions ended the measurement at `now`, within `slice`.
    pub fn drain_from(&self, slice: Slice, now: Nanos) -> Slice {
        Slice { index: slice.index + 1, phase: Phase::Drain, start: now, end: Nanos::MAX }
    }

    fn slice(&self, index: u64, phase: Phase, start: Nanos) -> Slice {
        let limit = match phase {
            Phase::Warmup => self.warmup,
            Phase::Measure => self.end(),
            Phase::Drain => Nanos::MAX,
        };
        let end = if phase == Phase::Drain { Nanos::MAX } else { Nanos((start + self.interval).0.min(limit.0)) };
        Slice { index, phase, start, end }
    }
}

/// What happened in one interval: counts and distributions that are added across workers, never averaged.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Where it lies. The end of a drain is the time it was closed.
    pub slice: Slice,
    /// What became of transactions that became due or ended in it.
    pub outcomes: Outcomes,
    /// SQL statements of committed transactions, BEGIN and END included.
    pub statements: u64,
    /// Latency of committed transactions, by script: from when it was due (open loop) or begun (closed loop).
    pub scripts: Vec<Histogram>,
    /// Latency of statements that succeeded, by statement of the workload: from sending to ReadyForQuery.
    pub statement_latency: Vec<Histogram>,
    /// Open loop: how late transactions were begun.
    pub lag: Histogram,
    /// Connections lost.
    pub lost: u64,
    /// Connections made again.
    pub reconnects: u64,
    /// CPU time that the workers' threads used.
    pub cpu: Nanos,
    /// CPU time of the worker that used most: over 90% of the interval, the client may be what limits.
    pub busiest: Nanos,
    /// Clients without a connection when the interval ended.
    pub disconnected: u64,
}

impl Interval {
    /// An empty interval for a workload of so many scripts and statements.
    pub fn new(slice: Slice, scripts: usize, statements: usize) -> Interval {
        Interval {
            slice,
            outcomes: Outcomes::default(),
            statements: 0,
            scripts: vec![Histogram::default(); scripts],
            statement_latency: vec![Histogram::default(); statements],
            lag: Histogram::default(),
            lost: 0,
            reconnects: 0,
            cpu: Nanos::ZERO,
            busiest: Nanos::ZERO,
            disconnected: 0,
        }
    }

    /// Adds what another worker recorded in the same interval.
    pub fn join(&mut self, other: &Interval) {
        let busiest = self.busiest.max(other.busiest);
        self.merge(other);
        self.busiest = busiest;
    }

    /// Adds what came in another interval of the same workload.
    pub fn merge(&mut self, other: &Interval) {
        self.busiest += other.busiest;
        self.outcomes.merge(&other.outcomes);
        self.statements += other.statements;
        for (mine, theirs) in self.scripts.iter_mut().zip(&other.scripts) {
            mine.merge(theirs);
        }
        for (mine, theirs) in self.statement_latency.iter_mut().zip(&other.statement_latency) {
            mine.merge(theirs);
        }
        self.lag.merge(&other.lag);
        self.lost += other.lost;
        self.reconnects += other.reconnects;
        self.cpu += other.cpu;
        self.disconnected += other.disconnected;
        self.slice.end = self.slice.end.max(other.slice.end);
    }

    /// Latency of committed transactions over all scripts.
    pub fn latency(&self) -> Histogram {
        let mut all = Histogram::default();
        self.scripts.iter().for_each(|h| all.merge(h));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeline_has_no_gaps_and_no_overlaps() {
        let t = Timeline {
            warmup: Nanos::from_millis(1500),
            duration: Nanos::from_millis(2300),
            interval: Nanos::from_secs(1),
        };
        let mut slices = vec![t.first()];
        while slices.last().unwrap().phase != Phase::Drain {
            slices.push(t.after(*slices.last().unwrap()));
        }
        let ends: Vec<u64> = slices.iter().map(|s| s.end.0 / 1_000_000).collect();
        assert_eq!(&ends[..5], &[1000, 1500, 2500, 3500, 3800]);
        assert!(slices.windows(2).all(|w| w[0].end == w[1].start && w[0].index + 1 == w[1].index));
        assert_eq!(slices.iter().filter(|s| s.phase == Phase::Warmup).count(), 2);
        assert_eq!(slices.iter().filter(|s| s.phase == Phase::Measure).count(), 3);
    }
}
