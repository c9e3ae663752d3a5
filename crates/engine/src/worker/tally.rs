//! The books of a worker: the interval that is being recorded, and the log of transactions.

use super::Report;
use crate::client::Transaction;
use crate::error::EngineError;
use crate::events::Events;
use crate::plan::Plan;
use pgdyno_base::Nanos;
use pgdyno_protocol::SqlState;
use pgdyno_record::interval::{Silence, Slice};
use pgdyno_record::log::{Ending, Entry};
use pgdyno_record::{Interval, Phase, Timeline, TransactionLog};

/// Resources that a worker's thread has used, as reported by the driver.
#[derive(Clone, Copy, Default)]
pub(super) struct Used {
    /// CPU time.
    pub cpu: Nanos,
    /// Time that it was ready to run and had to wait for a CPU.
    pub run_delay: Nanos,
}

/// See the module.
pub(super) struct Tally {
    timeline: Timeline,
    pub interval: Interval,
    log: Option<TransactionLog>,
    latency_limit: Option<Nanos>,
    command_latency: bool,
    /// The driver's time of the run's start.
    pub origin: Nanos,
    /// Added to the driver's time it gives the time since 1970.
    wall_offset: Nanos,
    used: Used,
    /// The driver's time at which an answer came last.
    heard: Nanos,
}

impl Tally {
    pub fn new(plan: &Plan, scripts: usize, commands: usize) -> Tally {
        let timeline = plan.timeline();
        Tally {
            timeline,
            interval: Interval::new(timeline.first(), scripts, commands),
            log: None,
            latency_limit: plan.latency_limit,
            command_latency: plan.command_latency,
            origin: Nanos::ZERO,
            wall_offset: Nanos::ZERO,
            used: Used::default(),
            heard: Nanos::ZERO,
        }
    }

    pub fn log_to(&mut self, log: Option<TransactionLog>) {
        self.log = log;
    }

    /// The run begins at `origin`.
    pub fn begin(&mut self, origin: Nanos, now: Nanos, used: Used) {
        self.origin = origin;
        self.used = used;
        self.heard = now;
        self.wall_offset = since_1970() - now;
        if let Some(log) = &mut self.log {
            log.begin(origin + self.wall_offset);
        }
    }

    // ------------------------------------------------------------ intervals

    /// Returns the end of the current interval.
    pub fn interval_end(&self) -> Nanos {
        self.origin + self.interval.slice.end
    }

    /// The one behind it.
    pub fn next_slice(&self) -> Slice {
        self.timeline.after(self.interval.slice)
    }

    /// The interval at hand is over; `next` begins.
    pub fn turn(&mut self, next: Slice, used: Used, disconnected: usize, events: &mut Events) {
        let fresh = Interval::new(next, self.interval.scripts.len(), self.interval.command_latency.len());
        let mut done = std::mem::replace(&mut self.interval, fresh);
        let before = std::mem::replace(&mut self.used, used);
        done.cpu = used.cpu - before.cpu;
        done.busiest = done.cpu;
        done.run_delay = used.run_delay - before.run_delay;
        done.most_delayed = done.run_delay;
        done.least_rest = done.cpu + done.run_delay;
        done.disconnected = disconnected as u64;
        events.report(Report::Interval(Box::new(done)));
    }

    /// The run ends before its time: the interval is cut off, and what it is followed by.
    pub fn cut(&mut self, now: Nanos) -> Slice {
        let since = now - self.origin;
        self.interval.slice.end = since;
        self.timeline.drain_from(self.interval.slice, since)
    }

    /// The run is over: the last interval is as long as it was.
    pub fn close(&mut self, now: Nanos, measure_until_done: bool) -> Slice {
        let now = now - self.origin;
        // Ended by its transactions or by an error: the interval is as long as it was.
        let end = if measure_until_done { now } else { Nanos(self.interval.slice.end.0.min(now.0)) };
        self.interval.slice.end = end.max(self.interval.slice.start);
        self.timeline.drain_from(self.interval.slice, now)
    }

    pub fn is_draining(&self) -> bool {
        self.interval.slice.phase == Phase::Drain
    }

    // ------------------------------------------------------------ silence

    /// Returns the time of the last answer if none has come for longer than before in this interval.
    pub fn silent_since(&self, now: Nanos) -> Option<Nanos> {
        (now - self.heard > self.interval.silence.length()).then_some(self.heard)
    }

    /// No answer came from `start` to `end`, times of the driver.
    pub fn silent(&mut self, start: Nanos, end: Nanos) {
        let since = |t: Nanos| Nanos(t.0.saturating_sub(self.origin.0));
        let silence = Silence { start: since(start), end: since(end) };
        if silence.length() > self.interval.silence.length() {
            self.interval.silence = silence;
        }
    }

    /// Answers have come.
    pub fn heard(&mut self, now: Nanos) {
        self.heard = now;
    }

    // ------------------------------------------------------------ transactions

    #[inline]
    pub fn scheduled(&mut self, script: usize) {
        self.interval.count(script, |o| o.scheduled += 1);
    }

    #[inline]
    pub fn lagged(&mut self, lag: Nanos) {
        self.interval.lag.record(lag);
    }

    #[inline]
    pub fn committed(&mut self, who: Who, t: &Transaction, now: Nanos) -> Result<(), EngineError> {
        self.interval.count(t.script, |o| o.committed += 1);
        self.interval.statements += t.statements;
        let latency = now - t.due;
        self.interval.scripts[t.script].record(latency);
        if self.latency_limit.is_some_and(|limit| latency > limit) {
            self.interval.late += 1;
        }
        self.count_retries(t);
        self.write(who, t, Ending::Committed, now)
    }

    pub fn failed(&mut self, who: Who, t: &Transaction, code: SqlState, now: Nanos) -> Result<(), EngineError> {
        self.interval.count(t.script, |o| o.fail(code.0));
        self.count_retries(t);
        let ending = match &code.0 {
            b"40001" => Ending::Serialization,
            b"40P01" => Ending::Deadlock,
            _ => Ending::Other,
        };
        self.write(who, t, ending, now)
    }

    /// Nobody but the server knows what became of it.
    pub fn unknown(&mut self, who: Who, t: &Transaction, now: Nanos) -> Result<(), EngineError> {
        self.interval.count(t.script, |o| o.unknown += 1);
        self.count_retries(t);
        self.write(who, t, Ending::Other, now)
    }

    pub fn unfinished(&mut self, t: &Transaction) {
        self.interval.count(t.script, |o| o.unfinished += 1);
    }

    pub fn skipped(&mut self, who: Who, script: usize, now: Nanos) -> Result<(), EngineError> {
        self.interval.count(script, |o| {
            o.scheduled += 1;
            o.skipped += 1;
        });
        self.write(who, &Transaction { script, ..Transaction::default() }, Ending::Skipped, now)
    }

    /// Counts a transaction that was due before the end of an open loop and was never chosen. It counts as scheduled
    /// and skipped.
    pub fn never_begun(&mut self) {
        self.interval.outcomes.scheduled += 1;
        self.interval.outcomes.skipped += 1;
    }

    /// A command was carried out.
    #[inline]
    pub fn command(&mut self, command: usize, took: Nanos) {
        if self.command_latency {
            self.interval.command_latency[command].record(took);
        }
    }

    /// A command found or changed no row.
    #[inline]
    pub fn command_found_nothing(&mut self, command: usize) {
        self.interval.command_empty[command] += 1;
    }

    /// A command's error has led to another try, or to a failure.
    pub fn command_error(&mut self, command: usize, again: bool) {
        let errors = self.interval.command_errors.entry(command).or_default();
        if again {
            errors.retries += 1;
        } else {
            errors.failures += 1;
        }
    }

    fn count_retries(&mut self, t: &Transaction) {
        if t.retries > 0 {
            self.interval.count(t.script, |o| {
                o.retried += 1;
                o.retries += t.retries;
            });
        }
    }

    #[inline]
    fn write(&mut self, who: Who, t: &Transaction, ending: Ending, now: Nanos) -> Result<(), EngineError> {
        let Some(log) = &mut self.log else { return Ok(()) };
        let entry = Entry {
            client: who.client,
            number: who.begun,
            script: t.script,
            ending,
            latency: if ending == Ending::Committed { now - t.due } else { Nanos::ZERO },
            lag: t.lag,
            retries: t.retries,
            at: now + self.wall_offset,
        };
        log.add(&entry).map_err(cannot_log)
    }

    /// Writes what the log holds back.
    pub fn finish(&mut self, now: Nanos) -> Result<(), EngineError> {
        let at = now + self.wall_offset;
        self.log.as_mut().map_or(Ok(()), |log| log.finish(at)).map_err(cannot_log)
    }
}

/// A client, as the log names it.
#[derive(Clone, Copy)]
pub(super) struct Who {
    /// Its number within the run.
    pub client: usize,
    /// Its transactions so far, which are counted when they begin: the one at hand is the last.
    pub begun: u64,
}

fn cannot_log(e: std::io::Error) -> EngineError {
    EngineError::System(format!("cannot write the transaction log: {e}"))
}

fn since_1970() -> Nanos {
    Nanos::from(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default())
}
