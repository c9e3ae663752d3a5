//! Datasets: what is in them, and the ways to load them.

use crate::errors;
use crate::run::Server;
use pgdyno_load::copy::{self, Step};
use pgdyno_load::datasets::{feed::Feed, pk::Pk, tpcb::Tpcb};
use pgdyno_load::heap::btree::{Entry, Key, Keys, Layout};
use pgdyno_load::heap::checksum;
use pgdyno_load::heap::files;
use pgdyno_load::heap::page::SIZE;
use pgdyno_load::heap::relation::{self, Part, Places, Relation, Scratch};
use pgdyno_load::heap::tuple::Stamp;
use pgdyno_load::rows::{Kind, Value};
use pgdyno_load::size::PAGE;
use pgdyno_load::statistics::{Sampled, Statistics};
use pgdyno_load::{LoadError, binary};
use pgdyno_mysql::MySql;
use pgdyno_postgres::Postgres;
use pgdyno_tpcc::Tpcc;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

/// Interval between checks for signals.
const TICK: Duration = Duration::from_millis(50);

/// A table of a dataset, and how large it will be.
#[pyclass(frozen, get_all, module = "pgdyno._core")]
pub struct Table {
    name: String,
    columns: Vec<(&'static str, String, &'static str)>,
    first: u64,
    end: u64,
    key: Vec<&'static str>,
    indexes: Vec<(String, Vec<&'static str>, bool)>,
    brin: Option<&'static str>,
    /// Parent table, column, and lower and upper bound, if the table is a partition.
    partition: Option<(String, &'static str, Option<i64>, Option<i64>)>,
    even: bool,
    fillfactor: u64,
    query: String,
    heap_bytes: u64,
    key_bytes: u64,
    index_bytes: u64,
    key_level: u32,
}

/// Statistics that ANALYZE would find for a column. Values are int, float, or str for a text.
#[pyclass(frozen, get_all, module = "pgdyno._core")]
pub struct ColumnStatistics {
    column: &'static str,
    /// Type as returned by [`Kind::sql`].
    kind: String,
    null_fraction: f64,
    average_width: u32,
    distinct: f64,
    common: Vec<(PyDatum, f64)>,
    bounds: Vec<PyDatum>,
    correlation: Option<f64>,
}

/// A value on its way to Python.
#[derive(Clone, IntoPyObject)]
pub enum PyDatum {
    Integer(i64),
    Float(f64),
    Text(String),
}

/// A dataset: tables and their rows.
#[pyclass(frozen, module = "pgdyno._core")]
pub struct Dataset {
    inner: Arc<dyn pgdyno_load::Dataset>,
    /// Places of each table's rows, once computed.
    places: Arc<Known>,
}

type Known = Mutex<HashMap<usize, Places>>;

/// A step of a job: SQL, or COPY with a table's number and rows `first..end`.
#[derive(FromPyObject)]
pub enum PyStep {
    Copy((String, usize, u64, u64)),
    Sql(String),
}

#[pymethods]
impl Dataset {
    #[new]
    #[pyo3(signature = (kind, size, *, tables=1, partitions=0, fillfactor=100, seed=1))]
    fn new(kind: &str, size: u64, tables: u32, partitions: u32, fillfactor: u64, seed: u64) -> PyResult<Dataset> {
        if !(10..=100).contains(&fillfactor) {
            return Err(errors::other("fillfactor is 10 to 100"));
        }
        let inner: Arc<dyn pgdyno_load::Dataset> = match kind {
            "tpcb" => {
                let scale = u32::try_from(size).map_err(|_| errors::other("the scale is too large"))?;
                Arc::new(Tpcb::new(scale, fillfactor, partitions))
            }
            "pk" => Arc::new(Pk::new(size, fillfactor)),
            "feed" => Arc::new(Feed::new(size, tables, fillfactor)),
            "tpcc" => {
                let warehouses = u32::try_from(size).map_err(|_| errors::other("these are too many warehouses"))?;
                Arc::new(Tpcc::new(warehouses, tables, partitions, fillfactor, seed))
            }
            _ => return Err(errors::other(format!("there is no dataset \"{kind}\": tpcb, pk, feed, tpcc"))),
        };
        Ok(Dataset { inner, places: Arc::default() })
    }

    #[getter]
    fn tables(&self) -> Vec<Table> {
        let table = |t: &pgdyno_load::Table| {
            let (heap_bytes, key) = t.size();
            Table {
                name: t.name.clone(),
                columns: t.columns.iter().map(|c| (c.name, c.kind.sql(), c.constraint)).collect(),
                first: t.rows.start,
                end: t.rows.end,
                key: t.key.iter().map(|c| t.columns[*c].name).collect(),
                indexes: t
                    .indexes
                    .iter()
                    .map(|i| {
                        let columns = i.columns.iter().map(|c| t.columns[*c].name).collect();
                        (i.name.clone(), columns, t.index_keys(i).vary)
                    })
                    .collect(),
                index_bytes: t.indexes.iter().map(|i| Layout::new(t.index_keys(i)).pages() * PAGE).sum(),
                partition: t.partition.as_ref().map(|p| (p.parent.clone(), t.columns[p.column].name, p.from, p.to)),
                even: t.breaks.is_empty(),
                brin: t.brin.map(|c| t.columns[c].name),
                fillfactor: t.fillfactor,
                query: t.query.clone(),
                heap_bytes,
                key_bytes: key.map_or(0, |k| k.pages * PAGE),
                key_level: key.map_or(0, |k| k.level),
            }
        };
        self.inner.tables().iter().map(table).collect()
    }

    /// Returns the statistics that ANALYZE would find for a table's columns with `target` as
    /// `default_statistics_target`. They come from a sample of the table's rows. A numeric is in units of its last
    /// digit.
    fn statistics(&self, py: Python<'_>, table: usize, target: usize) -> PyResult<Vec<ColumnStatistics>> {
        self.range(table)?;
        let columns = &self.inner.tables()[table].columns;
        let found = py.detach(|| Sampled::of(self.inner.as_ref(), table, target));
        let datum = |value: Value| match value {
            Value::Null => PyDatum::Integer(0),
            Value::Int4(v) => PyDatum::Integer(v.into()),
            Value::Int8(v) | Value::Numeric(v) => PyDatum::Integer(v),
            Value::Float8(v) => PyDatum::Float(v),
            Value::Text(start, end) => PyDatum::Text(String::from_utf8_lossy(found.text(start, end)).into_owned()),
        };
        let column = |c: &Statistics| ColumnStatistics {
            column: columns[c.column].name,
            kind: columns[c.column].kind.sql(),
            null_fraction: c.null_fraction,
            average_width: c.average_width,
            distinct: c.distinct,
            common: c.common.iter().map(|(value, fraction)| (datum(*value), *fraction)).collect(),
            bounds: c.bounds.iter().copied().map(datum).collect(),
            correlation: c.correlation,
        };
        Ok(found.columns.iter().map(column).collect())
    }

    /// Rows `first..end` of a table, each in COPY's binary format.
    fn rows<'py>(&self, py: Python<'py>, table: usize, first: u64, end: u64) -> PyResult<Bound<'py, PyBytes>> {
        let there = self.range(table)?;
        if first > end || first < there.start || end > there.end {
            return Err(errors::other(format!("the table has the rows {there:?}, not {first}..{end}")));
        }
        let (mut row, mut out) = (pgdyno_load::Row::default(), Vec::new());
        let kinds = self.inner.tables()[table].kinds();
        for number in first..end {
            self.inner.row(table, number, &mut row);
            binary::append(&row, &kinds, &mut out);
        }
        Ok(PyBytes::new(py, &out))
    }

    /// Pages `first..first + count` of a part of a table ("heap", "visibility", "key", "index N"), as they would be written.
    #[pyo3(signature = (table, part, first, count, *, xmin=2, cmin=0, checksums=false))]
    #[expect(clippy::too_many_arguments, reason = "each is an argument in Python")]
    fn pages<'py>(
        &self,
        py: Python<'py>,
        table: usize,
        part: &str,
        first: u64,
        count: u64,
        xmin: u32,
        cmin: u32,
        checksums: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.range(table)?;
        let places = places(self.inner.as_ref(), &self.places, table, 1, &AtomicBool::new(false));
        let places = places.map_err(|e| errors::load(&e))?;
        let relation = Relation::new(self.inner.as_ref(), table, self.part(table, part)?, Stamp { xmin, cmin }, places);
        let count = count.min(relation.pages().saturating_sub(first));
        let mut out = vec![0; count as usize * SIZE];
        relation.build(first, &mut out, &mut Scratch::default());
        if checksums {
            (first..).zip(out.chunks_exact_mut(SIZE)).for_each(|(block, page)| checksum::seal(page, block as u32));
        }
        Ok(PyBytes::new(py, &out))
    }

    /// Finds out where the rows of all tables stand, which writing needs.
    fn place(&self, py: Python<'_>, threads: usize) -> PyResult<()> {
        let work = || {
            (0..self.inner.tables().len()).try_for_each(|table| {
                places(self.inner.as_ref(), &self.places, table, threads, &AtomicBool::new(false)).map(drop)
            })
        };
        py.detach(work).map_err(|e| errors::load(&e))
    }

    /// Carries out jobs, lists of steps, over `connections` sessions; returns rows and bytes sent. `watch(rows, bytes)` is called
    /// several times a second; an exception in it (KeyboardInterrupt) cancels everything and is raised again.
    #[pyo3(signature = (config, jobs, watch, *, connections=1, connect_timeout_s=10.0))]
    fn carry_out(
        &self,
        py: Python<'_>,
        config: Server<'_>,
        jobs: Vec<Vec<PyStep>>,
        watch: &Bound<'_, PyAny>,
        connections: usize,
        connect_timeout_s: f64,
    ) -> PyResult<(u64, u64)> {
        let step = |s| match s {
            PyStep::Sql(sql) => Step::Sql(sql),
            PyStep::Copy((sql, table, first, end)) => Step::Copy { sql, table, rows: first..end },
        };
        let jobs: Vec<copy::Job> = jobs.into_iter().map(|job| job.into_iter().map(step).collect()).collect();
        for s in jobs.iter().flatten() {
            if let Step::Copy { table, .. } = s {
                self.range(*table)?;
            }
        }
        let timeout = Duration::from_secs_f64(connect_timeout_s.clamp(0.1, 86_400.0));
        let (dataset, options) = (self.inner.clone(), copy::Options { connections, timeout });
        match config {
            Server::Postgres(config) => {
                let config = config.inner.clone();
                watched(py, watch, move |interrupt, sender| {
                    copy::carry_out::<Postgres>(config, dataset.as_ref(), &jobs, &options, interrupt, sender)
                })
            }
            Server::MySql(config) => {
                // The server may ask for the data of LOAD DATA LOCAL.
                let config = pgdyno_mysql::Config { sends_data: true, ..config.inner.clone() };
                watched(py, watch, move |interrupt, sender| {
                    copy::carry_out::<MySql>(config, dataset.as_ref(), &jobs, &options, interrupt, sender)
                })
            }
        }
    }

    /// Writes files: of each (table, part, path) all segments. Returns bytes and the files' paths. What `watch(bytes, rows)` raises
    /// stops it; the files then stay as they are.
    #[pyo3(signature = (parts, watch, *, threads=1, checksums=false, direct_io=true, mode=0o600))]
    #[expect(clippy::too_many_arguments, reason = "each is an argument in Python")]
    fn write(
        &self,
        py: Python<'_>,
        parts: Vec<(usize, String, std::path::PathBuf)>,
        watch: &Bound<'_, PyAny>,
        threads: usize,
        checksums: bool,
        direct_io: bool,
        mode: u32,
    ) -> PyResult<(u64, Vec<std::path::PathBuf>)> {
        let mut checked = Vec::new();
        for (table, part, path) in parts {
            self.range(table)?;
            checked.push((table, self.part(table, &part)?, path));
        }
        let (dataset, known) = (self.inner.clone(), self.places.clone());
        let options = files::Options { threads, checksums, direct_io, mode };
        // Frozen rows are nobody's: FrozenTransactionId.
        let stamp = Stamp { xmin: 2, cmin: 0 };
        let written = watched(py, watch, move |interrupt, sender| {
            let dataset = dataset.as_ref();
            let job = |(table, part, path)| {
                let places = places(dataset, &known, table, threads, interrupt)?;
                Ok(files::Job { relation: Relation::new(dataset, table, part, stamp, places), path })
            };
            let jobs = checked.into_iter().map(job).collect::<Result<Vec<_>, LoadError>>()?;
            files::write(&jobs, options, interrupt, sender)
        })?;
        Ok((written.bytes, written.files))
    }
}

impl Dataset {
    /// The part of a table that is called so: heap, visibility, key, or "index N", from 0.
    fn part(&self, table: usize, name: &str) -> PyResult<Part> {
        let indexes = self.inner.tables()[table].indexes.len();
        let index = name.strip_prefix("index ").and_then(|n| n.parse().ok()).filter(|n| *n < indexes);
        match (name, index) {
            ("heap", _) => Ok(Part::Heap),
            ("visibility", _) => Ok(Part::Visibility),
            ("key", _) => Ok(Part::Key),
            (_, Some(n)) => Ok(Part::Index(n)),
            _ => Err(errors::other(format!(
                "there is no part \"{name}\": heap, visibility, key, index N (of {indexes})"
            ))),
        }
    }

    fn range(&self, table: usize) -> PyResult<std::ops::Range<u64>> {
        let found = self.inner.tables().get(table).map(|t| t.rows.clone());
        found.ok_or_else(|| errors::other(format!("there is no table {table}")))
    }
}

/// Returns the places of a table's rows, which are computed once.
fn places(
    dataset: &dyn pgdyno_load::Dataset,
    known: &Known,
    table: usize,
    threads: usize,
    interrupt: &AtomicBool,
) -> Result<Places, LoadError> {
    if let Some(places) = known.lock().ok().and_then(|k| k.get(&table).cloned()) {
        return Ok(places);
    }
    let places = Places::of(dataset, table, threads, interrupt)?;
    if let Ok(mut known) = known.lock() {
        known.insert(table, places.clone());
    }
    Ok(places)
}

/// Does `work` on a thread of its own, so that this one can look for signals whatever the work is waiting for.
fn watched<T: Send + 'static>(
    py: Python<'_>,
    watch: &Bound<'_, PyAny>,
    work: impl FnOnce(&AtomicBool, &mut dyn FnMut(u64, u64)) -> Result<T, LoadError> + Send + 'static,
) -> PyResult<T> {
    let interrupt = Arc::new(AtomicBool::new(false));
    let (sender, progress) = mpsc::channel::<(u64, u64)>();
    let flag = interrupt.clone();
    // Nobody listens any more only when the thread is being given up.
    let thread = std::thread::spawn(move || work(&flag, &mut |a, b| sender.send((a, b)).unwrap_or_default()));
    let progress = Mutex::new(progress);
    let mut raised = None;
    loop {
        let next =
            py.detach(|| progress.lock().map_or(Err(mpsc::RecvTimeoutError::Disconnected), |t| t.recv_timeout(TICK)));
        let step = match next {
            Ok(progress) => watch.call1(progress).map(drop),
            Err(mpsc::RecvTimeoutError::Timeout) => Ok(()),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        };
        if let Err(e) = step.and_then(|()| py.check_signals()) {
            interrupt.store(true, Ordering::Relaxed);
            raised.get_or_insert(e);
        }
    }
    let result = py.detach(|| thread.join());
    if let Some(e) = raised {
        return Err(e);
    }
    result
        .map_err(|_| errors::other("the loader has crashed; this is a defect of pgdyno"))?
        .map_err(|e| errors::load(&e))
}

/// A value of a row that Python gives.
#[derive(FromPyObject)]
pub enum PyValue {
    Integer(i64),
    Float(f64),
    Text(String),
}

/// One heap page filled with `rows`, of columns `kinds` (int4, int8, float8, text, numeric2 of scale 2, or the n of a char(n)), as COPY FREEZE
/// would fill it; with the number of rows that fit. For tests.
#[pyfunction]
#[pyo3(signature = (kinds, rows, *, block=0, xmin=2, cmin=0))]
pub fn heap_page<'py>(
    py: Python<'py>,
    kinds: Vec<String>,
    rows: Vec<Vec<Option<PyValue>>>,
    block: u32,
    xmin: u32,
    cmin: u32,
) -> PyResult<(Bound<'py, PyBytes>, usize)> {
    let kind = |name: &String| match name.as_str() {
        "int4" => Ok(Kind::Int4),
        "int8" => Ok(Kind::Int8),
        "float8" => Ok(Kind::Float8),
        "text" => Ok(Kind::Text),
        n if n.starts_with("numeric") => {
            let scale = n.trim_start_matches("numeric").parse();
            scale.map(|s| Kind::Numeric(38, s)).map_err(|_| errors::other(format!("there is no kind \"{n}\"")))
        }
        n => n.parse().map(Kind::Char).map_err(|_| errors::other(format!("there is no kind \"{n}\""))),
    };
    let kinds = kinds.iter().map(kind).collect::<PyResult<Vec<_>>>()?;
    let mut made = Vec::new();
    for given in rows {
        if given.len() != kinds.len() {
            return Err(errors::other("a row has as many values as there are columns"));
        }
        let mut row = pgdyno_load::Row::default();
        for (value, kind) in given.into_iter().zip(&kinds) {
            match (value, kind) {
                (None, _) => row.push(Value::Null),
                (Some(PyValue::Integer(v)), Kind::Int4) => row.push(Value::Int4(v as i32)),
                (Some(PyValue::Integer(v)), Kind::Numeric(..)) => row.push(Value::Numeric(v)),
                (Some(PyValue::Integer(v)), _) => row.push(Value::Int8(v)),
                (Some(PyValue::Float(v)), _) => row.push(Value::Float8(v)),
                (Some(PyValue::Text(v)), _) => row.text(v.as_bytes()),
            }
        }
        made.push(row);
    }
    let mut page = vec![0; SIZE];
    let filled = relation::fill(&mut page, block, &kinds, Stamp { xmin, cmin }, &made);
    Ok((PyBytes::new(py, &page), filled))
}

/// Pages `first..first + count` of a B-tree over `rows` keys of `width` bytes (4 or 8), with `on_page` rows on a page of the
/// heap; fewer at the end. The keys are 1, 2, …; with `each`, so many rows have each. For tests.
#[pyfunction]
#[pyo3(signature = (rows, width, on_page, first, count, each=None))]
pub fn btree_pages<'py>(
    py: Python<'py>,
    rows: u64,
    width: u64,
    on_page: u64,
    first: u64,
    count: u64,
    each: Option<u64>,
) -> PyResult<Bound<'py, PyBytes>> {
    if !matches!(width, 4 | 8) || on_page == 0 || each == Some(0) {
        return Err(errors::other("keys are of 4 or 8 bytes, and a page has rows"));
    }
    let layout = Layout::new(Keys { rows, columns: 1, bytes: width, vary: false, repeat: each.is_some() });
    let mut out = vec![0; count.min(layout.pages().saturating_sub(first)) as usize * SIZE];
    layout.build(first, &mut out, &mut |row| Entry {
        block: (row / on_page) as u32,
        offset: (row % on_page + 1) as u16,
        key: Key::of_integers(&[(row / each.unwrap_or(1)) as i64 + 1], width as usize),
    });
    Ok(PyBytes::new(py, &out))
}

/// The checksum of a page, as it stands in its header when it is block `block` of its fork. For tests.
#[pyfunction]
pub fn page_checksum(page: &[u8], block: u32) -> PyResult<u16> {
    if page.len() != SIZE {
        return Err(errors::other(format!("a page has {SIZE} bytes")));
    }
    let mut copy = page.to_vec();
    copy[8..10].fill(0);
    Ok(checksum::checksum(&copy, block))
}
