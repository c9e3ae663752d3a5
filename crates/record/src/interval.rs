//! Stretches of time and what happened in them.

use crate::histogram::Histogram;
use crate::outcome::Outcomes;
use pgdyno_base::Nanos;
use std::collections::BTreeMap;
use std::ops::Range;

/// Part of a run that an interval belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Before the measurement; recorded, not counted.
    Warmup,
    /// The measurement.
    Measure,
    /// Beginning of a turn in a duet, during which the other side's transactions end; not counted.
    Transition,
    /// Behind the measurement: transactions that began in time, or were due in time, are brought to their end.
    Drain,
}

impl Phase {
    /// Returns the name used in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Warmup => "warmup",
            Phase::Measure => "measure",
            Phase::Transition => "transition",
            Phase::Drain => "drain",
        }
    }
}

/// Boundaries of a run's intervals, the same for all workers. Times count from the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// Length of the warm-up; may be zero.
    pub warmup: Nanos,
    /// Length of the measurement; [`Nanos::MAX`] when the number of transactions ends it.
    pub duration: Nanos,
    /// Length of an interval; the last of a phase may be shorter.
    pub interval: Nanos,
    /// Length of the transition that begins each turn of a duet. Zero: there are no turns.
    ///
    /// A turn, warm-up included, is a transition followed by an interval of length `interval`. The transition is an
    /// interval of its own.
    pub transition: Nanos,
}

/// One interval of a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Counted from zero.
    pub index: u64,
    /// Turn of a duet that the interval lies in, counted from zero.
    pub turn: u64,
    /// The phase that it lies in.
    pub phase: Phase,
    /// Its beginning.
    pub start: Nanos,
    /// Its end; [`Nanos::MAX`] for the drain.
    pub end: Nanos,
}

impl Timeline {
    /// Returns the end of the measurement.
    pub fn end(&self) -> Nanos {
        self.warmup + self.duration
    }

    /// The first interval.
    pub fn first(&self) -> Slice {
        let phase = if self.warmup > Nanos::ZERO {
            Phase::Warmup
        } else if self.transition > Nanos::ZERO {
            Phase::Transition
        } else {
            Phase::Measure
        };
        self.slice(0, 0, phase, Nanos::ZERO)
    }

    /// The interval behind `slice`. Behind the drain comes nothing: it has no end.
    pub fn after(&self, slice: Slice) -> Slice {
        let start = slice.end;
        // A turn is a transition and what is behind it.
        let begins = self.transition > Nanos::ZERO && slice.index % 2 == 1;
        let phase = if start < self.warmup {
            Phase::Warmup
        } else if start >= self.end() {
            Phase::Drain
        } else if begins {
            Phase::Transition
        } else {
            Phase::Measure
        };
        self.slice(slice.index + 1, slice.turn + u64::from(begins), phase, start)
    }

    /// The drain, when the number of transactions ended the measurement at `now`, within `slice`.
    pub fn drain_from(&self, slice: Slice, now: Nanos) -> Slice {
        Slice { index: slice.index + 1, turn: slice.turn, phase: Phase::Drain, start: now, end: Nanos::MAX }
    }

    fn slice(&self, index: u64, turn: u64, phase: Phase, start: Nanos) -> Slice {
        let limit = match phase {
            Phase::Warmup => self.warmup,
            Phase::Measure | Phase::Transition => self.end(),
            Phase::Drain => Nanos::MAX,
        };
        let begins = self.transition > Nanos::ZERO && index % 2 == 0;
        let length = if begins { self.transition } else { self.interval };
        let end = if phase == Phase::Drain { Nanos::MAX } else { Nanos((start + length).0.min(limit.0)) };
        Slice { index, turn, phase, start, end }
    }
}

/// Time in which answers were waited for and none came. Times count from the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Silence {
    /// Its beginning: the last answer, or the request that was waited for since.
    pub start: Nanos,
    /// Its end: the next answer, or the end of the interval.
    pub end: Nanos,
}

impl Silence {
    /// Returns how long it lasted.
    pub fn length(&self) -> Nanos {
        Nanos(self.end.0.saturating_sub(self.start.0))
    }

    /// Returns the longer of two.
    fn longer(self, other: Silence) -> Silence {
        if other.length() > self.length() { other } else { self }
    }

    /// Returns the part that two have in common; of length zero if there is none.
    fn common(self, other: Silence) -> Silence {
        let start = self.start.max(other.start);
        Silence { start, end: self.end.min(other.end).max(start) }
    }
}

/// Consequences of a command's errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandErrors {
    /// The transaction failed.
    pub failures: u64,
    /// The transaction was begun again.
    pub retries: u64,
}

/// Counts and distributions of one interval. They are added across workers, never averaged.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Position in the timeline. The end of a drain is the time it was closed.
    pub slice: Slice,
    /// Outcomes of transactions that became due or ended in the interval.
    pub outcomes: Outcomes,
    /// Outcomes by script. Skipped transactions that had no script yet are in none.
    pub by_script: Vec<Outcomes>,
    /// SQL statements of committed transactions, BEGIN and END included.
    pub statements: u64,
    /// Latency of committed transactions, by script: from when it was due (open loop) or begun (closed loop).
    pub scripts: Vec<Histogram>,
    /// Latency by command of the workload. SQL: from sending to the end of the answer, where that was success (in a
    /// pipeline: from being put into it). Meta-commands are timed only when that was asked for.
    pub command_latency: Vec<Histogram>,
    /// Executions that found or changed no row, by command.
    pub command_empty: Vec<u64>,
    /// Errors by command, of those that had any.
    pub command_errors: BTreeMap<usize, CommandErrors>,
    /// Open loop: how late transactions were begun.
    pub lag: Histogram,
    /// Connection times, if connecting is part of the run.
    pub connect: Histogram,
    /// Committed transactions above the latency limit.
    pub late: u64,
    /// Connections lost.
    pub lost: u64,
    /// Connections made again.
    pub reconnects: u64,
    /// Clients that ended early.
    pub aborted: u64,
    /// CPU time that the workers' threads used.
    pub cpu: Nanos,
    /// CPU time of the worker that used most: over 90% of the interval, the client may be what limits.
    pub busiest: Nanos,
    /// Time that the workers' threads were ready to run and waited for a CPU.
    pub run_delay: Nanos,
    /// Time that the thread of the longest-waiting worker was ready to run and waited for a CPU.
    pub most_delayed: Nanos,
    /// CPU time plus the time waiting for a CPU, for the worker with the least idle time.
    pub least_rest: Nanos,
    /// Delays of worker wake-ups that only a timer caused.
    pub wakeup_delay: Histogram,
    /// Clients without a connection when the interval ended; of several intervals, the most.
    pub disconnected: u64,
    /// Connections given up because the server did not keep to the protocol; they count as lost as well.
    pub violations: u64,
    /// Longest silence that ended in the interval. It may begin before.
    pub silence: Silence,
}

impl Interval {
    /// An empty interval for a workload of so many scripts and commands.
    pub fn new(slice: Slice, scripts: usize, commands: usize) -> Interval {
        Interval {
            slice,
            outcomes: Outcomes::default(),
            by_script: vec![Outcomes::default(); scripts],
            statements: 0,
            scripts: vec![Histogram::default(); scripts],
            command_latency: vec![Histogram::default(); commands],
            command_empty: vec![0; commands],
            command_errors: BTreeMap::new(),
            lag: Histogram::default(),
            connect: Histogram::default(),
            late: 0,
            lost: 0,
            reconnects: 0,
            aborted: 0,
            cpu: Nanos::ZERO,
            busiest: Nanos::ZERO,
            run_delay: Nanos::ZERO,
            most_delayed: Nanos::ZERO,
            least_rest: Nanos::ZERO,
            wakeup_delay: Histogram::default(),
            disconnected: 0,
            violations: 0,
            silence: Silence::default(),
        }
    }

    /// Adds what another worker recorded in the same interval.
    pub fn join(&mut self, other: &Interval) {
        let busiest = self.busiest.max(other.busiest);
        let most_delayed = self.most_delayed.max(other.most_delayed);
        let least_rest = self.least_rest.max(other.least_rest);
        let disconnected = self.disconnected + other.disconnected;
        // Nobody got an answer while no worker did.
        let silence = self.silence.common(other.silence);
        self.merge(other);
        self.silence = silence;
        (self.busiest, self.most_delayed, self.least_rest) = (busiest, most_delayed, least_rest);
        self.disconnected = disconnected;
    }

    /// Adds what came in another interval of the same workload.
    pub fn merge(&mut self, other: &Interval) {
        self.busiest += other.busiest;
        self.most_delayed += other.most_delayed;
        self.least_rest += other.least_rest;
        self.run_delay += other.run_delay;
        self.wakeup_delay.merge(&other.wakeup_delay);
        self.violations += other.violations;
        self.silence = self.silence.longer(other.silence);
        self.outcomes.merge(&other.outcomes);
        for (mine, theirs) in self.by_script.iter_mut().zip(&other.by_script) {
            mine.merge(theirs);
        }
        self.statements += other.statements;
        for (mine, theirs) in self.scripts.iter_mut().zip(&other.scripts) {
            mine.merge(theirs);
        }
        for (mine, theirs) in self.command_latency.iter_mut().zip(&other.command_latency) {
            mine.merge(theirs);
        }
        for (mine, theirs) in self.command_empty.iter_mut().zip(&other.command_empty) {
            *mine += theirs;
        }
        for (command, theirs) in &other.command_errors {
            let mine = self.command_errors.entry(*command).or_default();
            mine.failures += theirs.failures;
            mine.retries += theirs.retries;
        }
        self.lag.merge(&other.lag);
        self.connect.merge(&other.connect);
        self.late += other.late;
        self.lost += other.lost;
        self.reconnects += other.reconnects;
        self.aborted += other.aborted;
        self.cpu += other.cpu;
        // A gauge: clients that are without a connection for two intervals are not twice as many.
        self.disconnected = self.disconnected.max(other.disconnected);
        self.slice.end = self.slice.end.max(other.slice.end);
    }

    /// Counts something of a script's transaction, in all and by script.
    #[inline]
    pub fn count(&mut self, script: usize, what: impl Fn(&mut Outcomes)) {
        what(&mut self.outcomes);
        what(&mut self.by_script[script]);
    }

    /// Returns the interval for some scripts and their commands alone: outcomes of their transactions, and latencies.
    ///
    /// Data not counted by script stays unchanged, except that statements are shared out by committed transactions.
    pub fn of_scripts(&self, scripts: Range<usize>, commands: Range<usize>) -> Interval {
        let mut outcomes = Outcomes::default();
        self.by_script[scripts.clone()].iter().for_each(|o| outcomes.merge(o));
        let statements = (self.statements * outcomes.committed).checked_div(self.outcomes.committed).unwrap_or(0);
        let moved = |(command, errors): (&usize, &CommandErrors)| {
            commands.contains(command).then(|| (command - commands.start, *errors))
        };
        Interval {
            outcomes,
            statements,
            by_script: self.by_script[scripts.clone()].to_vec(),
            scripts: self.scripts[scripts].to_vec(),
            command_latency: self.command_latency[commands.clone()].to_vec(),
            command_empty: self.command_empty[commands.clone()].to_vec(),
            command_errors: self.command_errors.iter().filter_map(moved).collect(),
            ..self.clone()
        }
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
    fn gauges_are_not_added_over_time() {
        let timeline = Timeline {
            warmup: Nanos::ZERO,
            duration: Nanos::from_secs(3),
            interval: Nanos::from_secs(1),
            transition: Nanos::ZERO,
        };
        let of = |disconnected, busiest| Interval {
            disconnected,
            busiest: Nanos(busiest),
            ..Interval::new(timeline.first(), 1, 1)
        };
        // Of two workers in one interval: their clients together, the busier of the two.
        let mut joined = of(2, 30);
        joined.join(&of(3, 50));
        assert_eq!((joined.disconnected, joined.busiest), (5, Nanos(50)));
        // Of one worker over two intervals: clients that are away are not twice as many, time is.
        let mut merged = of(2, 30);
        merged.merge(&of(3, 50));
        assert_eq!((merged.disconnected, merged.busiest), (3, Nanos(80)));
    }

    #[test]
    fn silence_is_common_to_workers_and_the_longest_over_time() {
        let timeline = Timeline {
            warmup: Nanos::ZERO,
            duration: Nanos::from_secs(3),
            interval: Nanos::from_secs(1),
            transition: Nanos::ZERO,
        };
        let of = |start, end| Interval {
            silence: Silence { start: Nanos(start), end: Nanos(end) },
            ..Interval::new(timeline.first(), 1, 1)
        };
        let mut joined = of(10, 50);
        joined.join(&of(20, 60));
        assert_eq!(joined.silence, Silence { start: Nanos(20), end: Nanos(50) });
        joined.join(&of(55, 90));
        assert_eq!(joined.silence.length(), Nanos::ZERO);
        let mut merged = of(10, 50);
        merged.merge(&of(60, 90));
        merged.merge(&of(100, 160));
        assert_eq!(merged.silence, Silence { start: Nanos(100), end: Nanos(160) });
    }

    #[test]
    fn a_timeline_has_no_gaps_and_no_overlaps() {
        let t = Timeline {
            warmup: Nanos::from_millis(1500),
            duration: Nanos::from_millis(2300),
            interval: Nanos::from_secs(1),
            transition: Nanos::ZERO,
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
    #[test]
    fn turns_begin_with_a_transition() {
        let t = Timeline {
            warmup: Nanos::from_millis(600),
            duration: Nanos::from_millis(1200),
            interval: Nanos::from_millis(500),
            transition: Nanos::from_millis(100),
        };
        let mut slices = vec![t.first()];
        while slices.last().unwrap().phase != Phase::Drain {
            slices.push(t.after(*slices.last().unwrap()));
        }
        let seen: Vec<_> = slices.iter().map(|s| (s.turn, s.phase.name(), s.start.0 / 1_000_000)).collect();
        assert_eq!(
            seen,
            [
                (0, "warmup", 0),
                (0, "warmup", 100),
                (1, "transition", 600),
                (1, "measure", 700),
                (2, "transition", 1200),
                (2, "measure", 1300),
                (3, "drain", 1800)
            ]
        );
    }
}
