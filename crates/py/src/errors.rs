//! Exceptions. `python/pgdyno/errors.py` turns them into the package's own.

use pgdyno_engine::EngineError;
use pgdyno_load::LoadError;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(_core, CoreError, PyException, "Something went wrong; the message says what.");
create_exception!(
    _core,
    ScriptError,
    CoreError,
    "A mistake in a script; the message has file:line:column and a caret."
);
create_exception!(_core, ConnectError, CoreError, "No connection or no session.");
create_exception!(_core, StoppedError, CoreError, "The caller asked to stop.");

/// The exception for an engine's error.
pub fn engine(e: &EngineError) -> PyErr {
    let text = e.to_string();
    match e {
        EngineError::Connect { .. } | EngineError::Session { .. } => ConnectError::new_err(text),
        EngineError::Script(_) => ScriptError::new_err(text),
        _ => CoreError::new_err(text),
    }
}

/// The exception for a loader's error.
pub fn load(e: &LoadError) -> PyErr {
    let text = e.to_string();
    match e {
        LoadError::Connect { .. } => ConnectError::new_err(text),
        LoadError::Interrupted => StoppedError::new_err(text),
        _ => CoreError::new_err(text),
    }
}

/// Any other text as an exception.
pub fn other(e: impl ToString) -> PyErr {
    CoreError::new_err(e.to_string())
}
