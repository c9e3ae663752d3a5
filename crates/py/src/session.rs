//! Sessions of administration on MySQL and MariaDB.

use crate::config::MySqlConfig;
use crate::errors;
use pgdyno_load::LoadError;
use pgdyno_load::session::{Rows, Session};
use pgdyno_mysql::MySql;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

/// Interval between checks for signals.
const TICK: Duration = Duration::from_millis(50);

type Shared = Arc<Mutex<Option<Session<MySql>>>>;

/// A session that does one thing after the other.
#[pyclass(frozen, module = "pgdyno._core")]
pub struct MySqlSession {
    session: Shared,
    interrupt: Arc<AtomicBool>,
}

#[pymethods]
impl MySqlSession {
    /// Connects within `timeout_s` seconds.
    #[new]
    #[pyo3(signature = (config, timeout_s=10.0))]
    fn new(py: Python<'_>, config: &MySqlConfig, timeout_s: f64) -> PyResult<MySqlSession> {
        let (config, interrupt) = (Arc::new(config.inner.clone()), Arc::new(AtomicBool::new(false)));
        let timeout = Duration::try_from_secs_f64(timeout_s).map_err(errors::other)?;
        let session = py.detach(|| Session::connect(&config, timeout, &interrupt)).map_err(|e| errors::load(&e))?;
        Ok(MySqlSession { session: Arc::new(Mutex::new(Some(session))), interrupt })
    }

    /// Returns the names of the columns and the rows of a query; values as text, None for NULL. What takes longer than
    /// `patience_s`, or until a signal, is cancelled, and the session is over.
    #[pyo3(signature = (sql, patience_s=3600.0))]
    #[allow(clippy::type_complexity)]
    fn query(&self, py: Python<'_>, sql: &str, patience_s: f64) -> PyResult<(Vec<String>, Vec<Vec<Option<String>>>)> {
        let deadline = Instant::now() + Duration::try_from_secs_f64(patience_s).map_err(errors::other)?;
        let (sender, answers) = mpsc::channel();
        let (session, text) = (self.session.clone(), sql.to_owned());
        std::thread::spawn(move || {
            let mut guard = session.lock().unwrap_or_else(|e| e.into_inner());
            let found = guard.as_mut().map(|session| session.rows("query", &text));
            let _ = sender.send(found);
        });
        let answers = Mutex::new(answers);
        let mut raised: Option<PyErr> = None;
        let found: Option<Result<Rows, LoadError>> = loop {
            let next = py
                .detach(|| answers.lock().map_or(Err(mpsc::RecvTimeoutError::Disconnected), |a| a.recv_timeout(TICK)));
            match next {
                Ok(found) => break found,
                Err(mpsc::RecvTimeoutError::Disconnected) => break None,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
            if raised.is_none() {
                raised = py.check_signals().err().or_else(|| {
                    (Instant::now() > deadline).then(|| errors::other(format!("no answer within {patience_s} s")))
                });
            }
            if raised.is_some() {
                self.interrupt.store(true, Ordering::Relaxed);
            }
        };
        if let Some(raised) = raised {
            self.close(py);
            return Err(raised);
        }
        let found = found.ok_or_else(|| errors::other("the session is closed"))?.map_err(|e| errors::load(&e))?;
        Ok((found.columns, found.rows))
    }

    /// Ends the session; a second call does nothing.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.session.lock().unwrap_or_else(|e| e.into_inner()).take()));
    }
}
