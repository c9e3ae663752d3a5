//! Loading by COPY: any server that can be connected to.

use crate::error::LoadError;
use crate::rows::Dataset;
use crate::session::Session;
use pgdyno_base::Nanos;
use pgdyno_wire::{Config, copy, frontend};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Bytes that are sent at a time.
const CHUNK: usize = 256 * 1024;
/// Rows in one CopyData message: the message's header costs nothing, and no message is large.
const ROWS_A_MESSAGE: u64 = 256;

/// How far loading is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// `create`, `generate`, `primary keys`, `vacuum`.
    pub phase: &'static str,
    /// The table at hand, or nothing.
    pub table: &'static str,
    /// Rows sent, of all tables.
    pub rows: u64,
    /// Rows to be sent.
    pub total_rows: u64,
}

/// How long loading took, by phase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Rows sent.
    pub rows: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Phases with their time, in order.
    pub phases: Vec<(&'static str, Nanos)>,
}

/// Makes the dataset's tables and fills them, in one transaction; then VACUUMs and ANALYZEs. Tables of the same names
/// are dropped first when `replace` is set. `watch` is called several times a second. When `interrupt` becomes true, everything is
/// rolled back.
pub fn load(
    config: Config,
    dataset: &dyn Dataset,
    replace: bool,
    timeout: Duration,
    interrupt: &Arc<AtomicBool>,
    watch: &mut dyn FnMut(&Progress),
) -> Result<Loaded, LoadError> {
    let mut session = Session::connect(&Arc::new(config), timeout, interrupt)?;
    let mut loaded = Loaded::default();
    let total_rows = dataset.tables().iter().map(|t| t.rows).sum();
    let mut progress = Progress { phase: "create", table: "", rows: 0, total_rows };
    let mut clock = Instant::now();
    let mut lap = |loaded: &mut Loaded, phase| {
        loaded.phases.push((phase, clock.elapsed().into()));
        clock = Instant::now();
    };

    session.execute("begin", "begin")?;
    // What is dropped and what is made lies in one schema, whatever else the search path names.
    let only_here = "select set_config('search_path', quote_ident(current_schema()), true)";
    session.execute("choose the schema", only_here)?;
    for table in dataset.tables() {
        if replace {
            session.execute(&format!("drop table {}", table.name), &format!("drop table if exists {}", table.name))?;
        }
        let sql = format!("create table {} ({}) {}", table.name, table.columns, table.with);
        session.execute(&format!("create table {}", table.name), &sql)?;
        let sql = format!("comment on table {} is '{}'", table.name, unfinished(dataset));
        session.execute(&format!("comment on table {}", table.name), &sql)?;
    }
    lap(&mut loaded, "create");

    progress.phase = "generate";
    for (i, table) in dataset.tables().iter().enumerate().filter(|(_, t)| t.rows > 0) {
        progress.table = table.name;
        copy_table(&mut session, dataset, i, &mut progress, &mut loaded, interrupt, watch)?;
    }
    lap(&mut loaded, "generate");

    progress.phase = "primary keys";
    for table in dataset.tables() {
        let Some(key) = table.key else { continue };
        progress.table = table.name;
        watch(&progress);
        let sql = format!("alter table {} add primary key ({key})", table.name);
        session.execute(&format!("primary key of {}", table.name), &sql)?;
    }
    session.execute("commit", "commit")?;
    lap(&mut loaded, "primary keys");

    progress.phase = "vacuum";
    for table in dataset.tables() {
        progress.table = table.name;
        watch(&progress);
        session.execute(&format!("vacuum {}", table.name), &format!("vacuum analyze {}", table.name))?;
    }
    // Only now is it what a run may find and use: without statistics its figures would be others.
    for table in dataset.tables() {
        let sql = format!("comment on table {} is '{}'", table.name, dataset.mark());
        session.execute(&format!("comment on table {}", table.name), &sql)?;
    }
    lap(&mut loaded, "vacuum");
    loaded.rows = progress.rows;
    Ok(loaded)
}

/// The mark of tables that are loaded but not vacuumed yet: ours, and not to be used.
fn unfinished(dataset: &dyn Dataset) -> String {
    format!("{} (not vacuumed yet)", dataset.mark())
}

fn copy_table(
    session: &mut Session,
    dataset: &dyn Dataset,
    index: usize,
    progress: &mut Progress,
    loaded: &mut Loaded,
    interrupt: &AtomicBool,
    watch: &mut dyn FnMut(&Progress),
) -> Result<(), LoadError> {
    let table = &dataset.tables()[index];
    let sql = format!("copy {} from stdin (format binary, freeze on)", table.name);
    let mut next = 0;
    let mut header = true;
    let mut told = Instant::now();
    session.copy_in(&format!("load {}", table.name), &sql, |out| {
        if header {
            frontend::copy_data(out, |o| o.extend_from_slice(copy::HEADER));
            header = false;
        }
        while out.len() < CHUNK && next < table.rows {
            let end = (next + ROWS_A_MESSAGE).min(table.rows);
            frontend::copy_data(out, |o| (next..end).for_each(|row| dataset.write_row(index, row, o)));
            progress.rows += end - next;
            next = end;
        }
        if next == table.rows {
            frontend::copy_data(out, |o| o.extend_from_slice(copy::TRAILER));
        }
        loaded.bytes += out.len() as u64;
        if told.elapsed() >= Duration::from_millis(100) {
            told = Instant::now();
            watch(progress);
            if interrupt.load(Ordering::Relaxed) {
                return Err(LoadError::Interrupted);
            }
        }
        Ok(next < table.rows)
    })
}
