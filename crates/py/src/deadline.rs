//! An end for calls that nothing can interrupt: a C library that computes while it holds the interpreter's lock.

use pyo3::prelude::*;
use std::ffi::c_int;
use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

unsafe extern "C" {
    // Ends the process without its exit handlers: a library's would take away what the call under way works with.
    safe fn _exit(code: c_int) -> !;
}

/// Ends the process with a message and an exit code unless it is closed in time.
#[pyclass(frozen, module = "pgdyno._core")]
pub struct Deadline {
    open: Mutex<Option<Sender<()>>>,
}

#[pymethods]
impl Deadline {
    #[new]
    fn new(seconds: f64, message: String, exit_code: i32) -> PyResult<Deadline> {
        let patience =
            Duration::try_from_secs_f64(seconds).map_err(|e| pyo3::exceptions::PyValueError::new_err(e.to_string()))?;
        let (open, closed) = channel();
        std::thread::Builder::new().name("pgdyno-deadline".into()).spawn(move || {
            if closed.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                let _ = writeln!(std::io::stderr(), "{message}");
                _exit(exit_code)
            }
        })?;
        Ok(Deadline { open: Mutex::new(Some(open)) })
    }

    fn close(&self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
