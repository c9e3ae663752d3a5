//! The native module: converts, releases the GIL, no logic.
//!
//! What Python sees of the crates: conversions, and the GIL released around everything that takes time. The types are
//! described in `python/pgdyno/_core.pyi`, which a test holds against this module.

mod config;
mod deadline;
mod errors;
mod histogram;
mod interval;
mod load;
#[cfg(target_os = "linux")]
mod relay;
mod rights;
mod run;
mod script;
mod served;
mod session;

use pyo3::prelude::*;

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add_class::<config::ConnConfig>()?;
    m.add_class::<config::MySqlConfig>()?;
    m.add_class::<deadline::Deadline>()?;
    m.add_class::<histogram::Histogram>()?;
    m.add_class::<interval::Interval>()?;
    m.add_class::<load::ColumnStatistics>()?;
    m.add_class::<load::Dataset>()?;
    m.add_class::<load::Table>()?;
    #[cfg(target_os = "linux")]
    m.add_class::<relay::Relay>()?;
    m.add_class::<run::Event>()?;
    m.add_class::<run::RunResult>()?;
    m.add_class::<script::Command>()?;
    m.add_class::<served::ServedSession>()?;
    m.add_class::<session::MySqlSession>()?;
    m.add_class::<script::Workload>()?;
    let base = m.py().get_type::<errors::CoreError>();
    // Where nothing else is set: it is not a server's error, and nothing that this machine refused.
    base.setattr("sqlstate", m.py().None())?;
    base.setattr("errno", m.py().None())?;
    m.add("CoreError", base)?;
    m.add("ScriptError", m.py().get_type::<errors::ScriptError>())?;
    m.add("ConnectError", m.py().get_type::<errors::ConnectError>())?;
    m.add("StoppedError", m.py().get_type::<errors::StoppedError>())?;
    m.add_function(wrap_pyfunction!(histogram::read_merged, m)?)?;
    m.add_function(wrap_pyfunction!(run::run, m)?)?;
    m.add_function(wrap_pyfunction!(run::event_kinds, m)?)?;
    m.add_function(wrap_pyfunction!(load::heap_page, m)?)?;
    m.add_function(wrap_pyfunction!(rights::thread_rights, m)?)?;
    m.add_function(wrap_pyfunction!(load::btree_pages, m)?)?;
    m.add_function(wrap_pyfunction!(load::page_checksum, m)?)?;
    m.add_function(wrap_pyfunction!(script::check_script, m)?)?;
    m.add_function(wrap_pyfunction!(script::sqlstate_name, m)?)?;
    m.add_function(wrap_pyfunction!(script::ledger_content, m)?)?;
    m.add_function(wrap_pyfunction!(script::tpcc_transactions, m)?)?;
    m.add_function(wrap_pyfunction!(script::tpcc_functions, m)?)?;
    m.add_function(wrap_pyfunction!(script::tpcc_constants, m)?)?;
    Ok(())
}
