//! Exceptions. `python/pgdyno/errors.py` turns them into the package's own.

use pgdyno_engine::EngineError;
use pgdyno_load::LoadError;
use pgdyno_protocol::SqlState;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(_core, CoreError, PyException, "Something went wrong; the message says what.");
create_exception!(
    _core,
    ScriptError,
    CoreError,
    "A mistake in a script: the message with file:line:column and a caret, and the same as pgbench puts it."
);
create_exception!(_core, ConnectError, CoreError, "No connection or no session: why, and the same in libpq's words.");
create_exception!(_core, StoppedError, CoreError, "The caller asked to stop.");

/// Gives an exception what programs decide by; its message is for people.
fn with(error: PyErr, kind: &str, sqlstate: Option<SqlState>, errno: Option<i32>) -> PyErr {
    Python::attach(|py| {
        let value = error.value(py);
        // An exception of ours takes any attribute; one that does not stays as it is.
        let _ = value.setattr("kind", kind);
        let _ = value.setattr("sqlstate", sqlstate.map(|s| s.to_string()));
        let _ = value.setattr("errno", errno);
    });
    error
}

/// The exception for an engine's error.
pub fn engine(e: &EngineError) -> PyErr {
    let text = e.to_string();
    let error = match e {
        EngineError::Connect { classic, .. } | EngineError::Session { classic, .. } => {
            ConnectError::new_err((text, classic.clone()))
        }
        EngineError::Script(e) => script(e),
        _ => CoreError::new_err(text),
    };
    with(error, e.kind(), e.sqlstate(), e.errno())
}

/// The exception for a mistake in a script.
pub fn script(e: &pgdyno_script::ScriptError) -> PyErr {
    with(ScriptError::new_err((e.to_string(), e.classic.to_string())), "script", None, None)
}

/// The exception for a loader's error.
pub fn load(e: &LoadError) -> PyErr {
    let text = e.to_string();
    let error = match e {
        LoadError::Connect { .. } => ConnectError::new_err(text),
        LoadError::Interrupted => StoppedError::new_err(text),
        _ => CoreError::new_err(text),
    };
    with(error, e.kind(), e.sqlstate(), e.errno())
}

/// Any other text as an exception.
pub fn other(e: impl ToString) -> PyErr {
    with(CoreError::new_err(e.to_string()), "other", None, None)
}
