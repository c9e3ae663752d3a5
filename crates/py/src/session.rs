//! Sessions of administration on MySQL and MariaDB.

use crate::config::MySqlConfig;
use crate::errors;
use pgdyno_load::session::Session;
use pgdyno_mysql::MySql;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A session that does one thing after the other.
#[pyclass(frozen, module = "pgdyno._core")]
pub struct MySqlSession {
    session: Mutex<Option<Session<MySql>>>,
    interrupt: Arc<AtomicBool>,
}

#[pymethods]
impl MySqlSession {
    /// Connects within so many seconds.
    #[new]
    #[pyo3(signature = (config, timeout_s=10.0))]
    fn new(py: Python<'_>, config: &MySqlConfig, timeout_s: f64) -> PyResult<MySqlSession> {
        let (config, interrupt) = (Arc::new(config.inner.clone()), Arc::new(AtomicBool::new(false)));
        let timeout = Duration::try_from_secs_f64(timeout_s).map_err(errors::other)?;
        let session = py.detach(|| Session::connect(&config, timeout, &interrupt)).map_err(|e| errors::load(&e))?;
        Ok(MySqlSession { session: Mutex::new(Some(session)), interrupt })
    }

    /// Returns the names of the columns and the rows of a query; values as text, None for NULL.
    #[allow(clippy::type_complexity)]
    fn query(&self, py: Python<'_>, sql: &str) -> PyResult<(Vec<String>, Vec<Vec<Option<String>>>)> {
        let found = py.detach(|| {
            let mut guard = self.session.lock().unwrap_or_else(|e| e.into_inner());
            guard.as_mut().map(|session| session.rows("query", sql))
        });
        let found = found.ok_or_else(|| errors::other("the session is closed"))?.map_err(|e| errors::load(&e))?;
        Ok((found.columns, found.rows))
    }

    /// Makes the statement that another thread waits for fail.
    fn cancel(&self) {
        self.interrupt.store(true, Ordering::Relaxed);
    }

    /// Ends the session; a second call does nothing.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.session.lock().unwrap_or_else(|e| e.into_inner()).take()));
    }
}
