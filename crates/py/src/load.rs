//! Loading datasets.

use crate::config::ConnConfig;
use crate::errors;
use pgdyno_load::tpcb::Tpcb;
use pgdyno_load::{Dataset, LoadError, Loaded, Progress};
use pgdyno_wire::copy;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

/// How often signals are looked for.
const TICK: Duration = Duration::from_millis(50);

type Phases = Vec<(&'static str, u64)>;

/// Loads `tpcb` at `scale`; returns rows, bytes, and nanoseconds by phase. `watch(phase, table, rows, total_rows)` is
/// called several times a second; an exception in it (KeyboardInterrupt) stops the load and is raised again.
#[pyfunction]
#[pyo3(signature = (config, scale, watch, *, replace=false, connect_timeout_s=10.0))]
pub fn load_tpcb(
    py: Python<'_>,
    config: &ConnConfig,
    scale: u32,
    watch: &Bound<'_, PyAny>,
    replace: bool,
    connect_timeout_s: f64,
) -> PyResult<(u64, u64, Phases)> {
    let interrupt = Arc::new(AtomicBool::new(false));
    let (tell, told) = mpsc::channel::<Progress>();
    let (config, flag) = (config.inner.clone(), interrupt.clone());
    // The load runs on its own thread, so that this one can look for signals whatever the server is doing.
    let thread = std::thread::spawn(move || -> Result<Loaded, LoadError> {
        let timeout = Duration::from_secs_f64(connect_timeout_s.clamp(0.1, 86_400.0));
        let mut watch = |p: &Progress| drop(tell.send(p.clone()));
        pgdyno_load::load(config, &Tpcb::new(scale), replace, timeout, &flag, &mut watch)
    });
    let told = Mutex::new(told);
    let mut raised = None;
    loop {
        let next =
            py.detach(|| told.lock().map_or(Err(mpsc::RecvTimeoutError::Disconnected), |t| t.recv_timeout(TICK)));
        let step = match next {
            Ok(p) => watch.call1((p.phase, p.table, p.rows, p.total_rows)).map(drop),
            Err(mpsc::RecvTimeoutError::Timeout) => py.check_signals(),
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
    let loaded = result
        .map_err(|_| errors::other("the loader has crashed; this is a defect of pgdyno"))?
        .map_err(|e| errors::load(&e))?;
    Ok((loaded.rows, loaded.bytes, loaded.phases.into_iter().map(|(name, t)| (name, t.0)).collect()))
}

/// The tables of `tpcb` at `scale`, as they will be: name, rows, bytes of the heap, bytes of the primary key, level of its
/// root.
#[pyfunction]
pub fn tpcb_sizes(scale: u32) -> Vec<(&'static str, u64, u64, u64, u32)> {
    let sized = |t: &pgdyno_load::Table| {
        let (heap, key) = t.size();
        (t.name, t.rows, heap, key.map_or(0, |k| k.pages * pgdyno_load::size::PAGE), key.map_or(0, |k| k.level))
    };
    Tpcb::new(scale).tables().iter().map(sized).collect()
}

/// Rows `first..end` (from 0) of table `table` of `tpcb` (0: branches, 1: tellers, 2: accounts) in COPY's binary format;
/// with its header when `first` is 0, and with its trailer when they are the last.
#[pyfunction]
pub fn tpcb_rows<'py>(
    py: Python<'py>,
    table: usize,
    scale: u32,
    first: u64,
    end: u64,
) -> PyResult<Bound<'py, pyo3::types::PyBytes>> {
    let dataset = Tpcb::new(scale);
    let total = dataset.tables().get(table).ok_or_else(|| errors::other("there is no such table"))?.rows;
    let end = end.min(total);
    let mut out = Vec::new();
    if first == 0 {
        out.extend_from_slice(copy::HEADER);
    }
    (first..end).for_each(|row| dataset.write_row(table, row, &mut out));
    if end == total {
        out.extend_from_slice(copy::TRAILER);
    }
    Ok(pyo3::types::PyBytes::new(py, &out))
}
