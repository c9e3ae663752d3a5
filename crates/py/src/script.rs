//! Compiled scripts.

use crate::errors::ScriptError;
use pgdyno_script::{Program, Value, Variables, compile};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A compiled script.
#[pyclass(frozen, module = "pgdyno._core")]
pub struct Script {
    pub program: Arc<Program>,
    pub weight: u64,
}

#[pymethods]
impl Script {
    /// Compiles `text`; `variables` are given as on pgbench's command line (`-D name=value`).
    #[new]
    #[pyo3(signature = (name, text, variables=None, weight=1))]
    fn new(name: &str, text: &str, variables: Option<BTreeMap<String, String>>, weight: u64) -> PyResult<Script> {
        let variables: Variables =
            variables.unwrap_or_default().into_iter().map(|(k, v)| (k, Value::from_text(&v))).collect();
        let program = compile(name, text, &variables).map_err(|e| ScriptError::new_err(e.to_string()))?;
        Ok(Script { program: Arc::new(program), weight })
    }

    #[getter]
    fn name(&self) -> &str {
        &self.program.name
    }

    #[getter]
    fn weight(&self) -> u64 {
        self.weight
    }

    /// Its SQL statements.
    #[getter]
    fn statements(&self) -> Vec<String> {
        self.program.statements.iter().map(|s| s.text.clone()).collect()
    }
}

/// PostgreSQL's name of an SQLSTATE, where pgdyno knows it.
#[pyfunction]
pub fn sqlstate_name(code: &str) -> Option<&'static str> {
    pgdyno_wire::SqlState::parse(code).name()
}
