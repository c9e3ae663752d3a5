//! What a worker reports besides its intervals.

mod kinds;

pub use kinds::EventKind;
use pgdyno_base::Nanos;
use pgdyno_protocol::SqlState;
use pgdyno_record::Interval;

/// Something that happened at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEvent {
    /// Counted from the run's start.
    pub at: Nanos,
    /// Kind of the event.
    pub kind: EventKind,
    /// Which client.
    pub client: usize,
    /// Description of the event.
    pub text: String,
}

/// Report of a worker.
pub enum Report {
    /// An interval is over.
    Interval(Box<Interval>),
    /// Something happened.
    Event(RunEvent),
}

/// Events beyond this number are counted in the intervals but not reported one by one.
const MAX_EVENTS: u32 = 200;

/// Reports intervals and events, in the order that they happen.
pub(crate) struct Events {
    report: Box<dyn FnMut(Report) + Send>,
    /// pgbench's messages are wanted.
    classic: bool,
    /// The driver's time of the run's start.
    origin: Nanos,
    reported: u32,
    /// Codes of errors that were reported once.
    errors: Vec<SqlState>,
}

impl Events {
    pub fn new(report: Box<dyn FnMut(Report) + Send>, classic: bool) -> Events {
        Events { report, classic, origin: Nanos::ZERO, reported: 0, errors: Vec::new() }
    }

    /// pgbench's messages are wanted.
    pub fn is_classic(&self) -> bool {
        self.classic
    }

    /// Times count from here.
    pub fn begin(&mut self, origin: Nanos) {
        self.origin = origin;
    }

    pub fn report(&mut self, report: Report) {
        (self.report)(report);
    }

    fn event(&mut self, kind: EventKind, client: usize, now: Nanos, text: String) {
        (self.report)(Report::Event(RunEvent { at: now - self.origin, kind, client, text }));
    }

    /// Something happened to a client.
    pub fn happened(&mut self, kind: EventKind, client: usize, now: Nanos, text: String) {
        self.reported += 1;
        if self.reported <= MAX_EVENTS {
            self.event(kind, client, now, text);
        }
    }

    /// The first error of each code is reported; all are counted.
    pub fn first_error(&mut self, client: usize, now: Nanos, code: SqlState, text: &str) {
        if !self.errors.contains(&code) {
            self.errors.push(code);
            self.happened(EventKind::FirstError, client, now, text.to_owned());
        }
    }

    /// A message of pgbench's, by its level.
    pub fn say(&mut self, level: EventKind, client: usize, now: Nanos, text: String) {
        if self.classic {
            self.event(level, client, now, text);
        }
    }
}
