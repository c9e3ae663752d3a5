//! Sessions that Python programs serve: the workers in which users' drivers run.

use crate::errors;
use pgdyno_postgres::served::{self, Rows, Run, WHOLE, Work};
use pgdyno_protocol::{Given, QueryMode};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyList, PyNone, PyString, PyTuple};

/// The server's side of a connection of the engine's.
#[pyclass(module = "pgdyno._core")]
#[derive(Default)]
pub struct ServedSession {
    inner: served::Served,
}

fn name_of(mode: QueryMode) -> &'static str {
    match mode {
        QueryMode::Simple => "simple",
        QueryMode::Extended => "extended",
        QueryMode::Prepared => "prepared",
    }
}

/// Returns a value of a script as Python's.
fn value<'py>(py: Python<'py>, kind: Given, text: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let text = std::str::from_utf8(text).map_err(|_| errors::other("a value that is not UTF-8"))?;
    let bad = |_| errors::other(format!("{text:?} is not a number"));
    Ok(match kind {
        Given::Null => PyNone::get(py).to_owned().into_any(),
        Given::Boolean => PyBool::new(py, text.starts_with(['t', 'T', '1'])).to_owned().into_any(),
        Given::Integer => PyInt::new(py, text.parse::<i64>().map_err(|e| bad(e.to_string()))?).into_any(),
        Given::Double => PyFloat::new(py, text.parse::<f64>().map_err(|e| bad(e.to_string()))?).into_any(),
        Given::Text => PyString::new(py, text).into_any(),
    })
}

/// Appends a value of a row as PostgreSQL's text; false: it is NULL.
fn append(value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> PyResult<bool> {
    if value.is_none() {
        return Ok(false);
    }
    if let Ok(text) = value.cast::<PyString>() {
        out.extend_from_slice(text.to_str()?.as_bytes());
    } else if let Ok(flag) = value.cast::<PyBool>() {
        out.push(if flag.is_true() { b't' } else { b'f' });
    } else if let Ok(bytes) = value.cast::<PyBytes>() {
        out.extend_from_slice(b"\\x");
        out.extend(bytes.as_bytes().iter().flat_map(|b| format!("{b:02x}").into_bytes()));
    } else {
        out.extend_from_slice(value.str()?.to_str()?.as_bytes());
    }
    Ok(true)
}

#[pymethods]
impl ServedSession {
    #[new]
    fn new() -> ServedSession {
        ServedSession::default()
    }

    /// Takes bytes that arrived.
    fn feed(&mut self, bytes: &[u8]) {
        self.inner.feed(bytes);
    }

    /// Returns what is to be sent.
    fn take<'py>(&mut self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.inner.take())
    }

    /// Returns "begin", "end", a list of (statement, mode, values), or `None` until more has arrived.
    fn next<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let work = self.inner.work().map_err(|e| errors::other(e.to_string()))?;
        Ok(match work {
            None => None,
            Some(Work::Begin) => Some(PyString::intern(py, "begin").into_any()),
            Some(Work::End) => Some(PyString::intern(py, "end").into_any()),
            Some(Work::Group(runs)) => {
                let list = PyList::empty(py);
                for Run { statement, mode, values, .. } in runs {
                    let values = values.iter().map(|(kind, text)| value(py, *kind, text));
                    let values = PyTuple::new(py, values.collect::<PyResult<Vec<_>>>()?)?;
                    let statement = (statement != WHOLE).then_some(statement);
                    list.append((statement, PyString::intern(py, name_of(mode)), values))?;
                }
                Some(list.into_any())
            }
        })
    }

    /// Returns the text of a statement; `None` stands for the last one that came with its values in it.
    #[pyo3(signature = (statement=None))]
    fn text(&self, statement: Option<usize>) -> Option<&str> {
        self.inner.text(statement.unwrap_or(WHOLE))
    }

    /// Answers that the session has begun.
    fn began(&mut self, version: &str, process: u32) {
        self.inner.began(version, process);
    }

    /// Answers with a result: the names of its columns, its rows, and its tag.
    #[pyo3(signature = (columns, rows, tag, is_last=true))]
    fn result(
        &mut self,
        columns: Option<Vec<String>>,
        rows: &Bound<'_, PyAny>,
        tag: &str,
        is_last: bool,
    ) -> PyResult<()> {
        let write = |out: &mut Rows<'_>| -> PyResult<()> {
            for row in rows.try_iter()? {
                let row = row?.try_iter()?.collect::<PyResult<Vec<_>>>()?;
                out.row(row.len(), |n, o| append(&row[n], o))?;
            }
            Ok(())
        };
        self.inner.result(columns.as_deref(), tag, is_last, write)
    }

    /// Answers that a statement, or the beginning of the session, failed.
    #[pyo3(signature = (code, text, is_fatal=false))]
    fn failed(&mut self, code: &str, text: &str, is_fatal: bool) {
        self.inner.failed(code, text, is_fatal);
    }

    /// Ends a group of statements; `status` is I, T or E, or `None` where the driver does not tell.
    #[pyo3(signature = (status=None))]
    fn end_group(&mut self, status: Option<char>) {
        self.inner.end_group(status.map(|c| c as u8));
    }
}
