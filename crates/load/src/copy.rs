//! Loading by COPY or LOAD DATA, and all else that is done over connections: jobs of SQL and data, carried out by several sessions at a
//! time. Which jobs, is the caller's to say.

use crate::binary;
use crate::crew::together;
use crate::error::LoadError;
use crate::lines;
use crate::rows::{Dataset, Kind, Row};
use crate::session::Session;
use pgdyno_mysql::MySql;
use pgdyno_postgres::{Postgres, copy};
use pgdyno_protocol::{Conversation as _, Dialect};
use std::ops::Range;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Bytes that are sent at a time.
const CHUNK: usize = 256 * 1024;
/// Rows in one CopyData message: the message's header costs nothing, and no message is large.
const ROWS_A_MESSAGE: u64 = 256;
/// Interval between progress reports to the caller.
const LOOK: Duration = Duration::from_millis(20);

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A command; its results are thrown away.
    Sql(String),
    /// COPY … FROM STDIN (FORMAT binary), or LOAD DATA LOCAL, of rows of a table.
    Copy {
        /// The command.
        sql: String,
        /// The table's number in the dataset.
        table: usize,
        /// Which rows.
        rows: Range<u64>,
    },
}

/// Steps of one session, run one after the other. The first error ends the job.
pub type Job = Vec<Step>;

/// Options for running jobs.
pub struct Options {
    /// Sessions at a time.
    pub connections: usize,
    /// For connecting.
    pub timeout: Duration,
}

/// Returns the beginning of a statement, for use in messages.
fn beginning(sql: &str) -> &str {
    const MOST: usize = 200;
    let end = (0..=MOST.min(sql.len())).rev().find(|n| sql.is_char_boundary(*n));
    &sql[..end.unwrap_or(0)]
}

/// Carries out all jobs, in the order given, as many at a time as there are connections; `watch` is told of rows and bytes sent so
/// far. The first error cancels what the other sessions are doing. So does `interrupt`.
pub fn carry_out<P: Bulk>(
    config: P::Config,
    dataset: &dyn Dataset,
    jobs: &[Job],
    options: &Options,
    interrupt: &AtomicBool,
    watch: &mut dyn FnMut(u64, u64),
) -> Result<(u64, u64), LoadError> {
    let config = Arc::new(config);
    let stop = Arc::new(AtomicBool::new(false));
    let failed: Mutex<Option<LoadError>> = Mutex::new(None);
    let next = AtomicUsize::new(0);
    let (rows, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
    let sessions = options.connections.clamp(1, jobs.len().max(1));
    let work = || -> Result<(), LoadError> {
        let mut session = Session::<P>::connect(&config, options.timeout, &stop)?;
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            for step in job {
                match step {
                    Step::Sql(sql) => session.execute(beginning(sql), sql)?,
                    Step::Copy { sql, table, rows: range } => {
                        let mut next = range.clone();
                        let count = |r, b| {
                            rows.fetch_add(r, Ordering::Relaxed);
                            bytes.fetch_add(b, Ordering::Relaxed);
                        };
                        copy_rows(&mut session, sql, dataset, *table, &mut next, &stop, count)?;
                    }
                }
            }
        }
        Ok(())
    };
    let guarded = || {
        let mut guard = Stops { stop: &stop, armed: true };
        match work() {
            Ok(()) => guard.armed = false,
            // First the cause is noted; then the others end as interrupted, because of it.
            Err(e) => {
                if let Ok(mut failed) = failed.lock() {
                    failed.get_or_insert(e);
                }
            }
        }
    };
    together(sessions, LOOK, guarded, || {
        watch(rows.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed));
        if interrupt.load(Ordering::Relaxed) {
            stop.store(true, Ordering::Relaxed);
        }
    });
    match failed.into_inner() {
        Ok(None) if next.into_inner() >= jobs.len() => Ok((rows.into_inner(), bytes.into_inner())),
        Ok(Some(e)) => Err(e),
        _ => Err(LoadError::Wire("a loading thread has crashed".into())),
    }
}

/// Stops the other sessions when this one fails, or panics.
struct Stops<'a> {
    stop: &'a AtomicBool,
    armed: bool,
}

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// A product's own way to take many rows.
pub trait Bulk: Dialect {
    /// Writes rows `range` of table `table`; `is_first`: nothing has been written before, `is_last`: nothing will be.
    fn write(
        conversation: &mut Self::Conversation<()>,
        out: &mut Vec<u8>,
        ends: (bool, bool),
        rows: impl FnMut(&mut dyn FnMut(&Row)),
        kinds: &[Kind],
    );
}

impl Bulk for Postgres {
    #[inline]
    fn write(
        conversation: &mut Self::Conversation<()>,
        out: &mut Vec<u8>,
        (is_first, is_last): (bool, bool),
        mut rows: impl FnMut(&mut dyn FnMut(&Row)),
        kinds: &[Kind],
    ) {
        if is_first {
            conversation.data(out, |o| o.extend_from_slice(copy::HEADER));
        }
        conversation.data(out, |o| rows(&mut |row| binary::append(row, kinds, o)));
        if is_last {
            conversation.data(out, |o| o.extend_from_slice(copy::TRAILER));
        }
    }
}

impl Bulk for MySql {
    #[inline]
    fn write(
        conversation: &mut Self::Conversation<()>,
        out: &mut Vec<u8>,
        _: (bool, bool),
        mut rows: impl FnMut(&mut dyn FnMut(&Row)),
        kinds: &[Kind],
    ) {
        conversation.data(out, |o| rows(&mut |row| lines::append(row, kinds, o)));
    }
}

fn copy_rows<P: Bulk>(
    session: &mut Session<P>,
    sql: &str,
    dataset: &dyn Dataset,
    table: usize,
    left: &mut Range<u64>,
    stop: &AtomicBool,
    count: impl Fn(u64, u64),
) -> Result<(), LoadError> {
    let mut is_first = true;
    let mut row = Row::default();
    let kinds = dataset.tables()[table].kinds();
    session.copy_in(sql, sql, |conversation, out| {
        let before = left.start;
        while out.len() < CHUNK && (is_first || left.start < left.end) {
            let end = (left.start + ROWS_A_MESSAGE).min(left.end);
            let numbers = left.start..end;
            let rows = |take: &mut dyn FnMut(&Row)| {
                for number in numbers.clone() {
                    dataset.row(table, number, &mut row);
                    take(&row);
                }
            };
            P::write(conversation, out, (is_first, end == left.end), rows, &kinds);
            is_first = false;
            left.start = end;
        }
        count(left.start - before, out.len() as u64);
        if stop.load(Ordering::Relaxed) {
            return Err(LoadError::Interrupted);
        }
        Ok(left.start < left.end)
    })
}
