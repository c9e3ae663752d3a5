//! Whose rights a thread has: a file that root opens below another account's folder is opened with that account's, so that
//! a link which the account lays there leads nowhere that it could not go by itself.

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use rustix::process::{Gid, Uid, getegid, geteuid, getgroups};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

/// Gives the calling thread, and those that it starts, the effective user, group and groups; returns what it had. Linux
/// keeps them by thread; the saved user stays, so that root can take its own rights back.
#[pyfunction]
pub fn thread_rights(uid: u32, gid: u32, groups: Vec<u32>) -> PyResult<(u32, u32, Vec<u32>)> {
    let failed = |e: rustix::io::Errno| PyOSError::new_err((e.raw_os_error(), e.to_string()));
    let before = (geteuid(), getegid(), getgroups().map_err(failed)?);
    let set = || {
        // Only root may set groups: it is root first, and last what it is to be.
        if !before.0.is_root() {
            set_thread_res_uid(None, Uid::ROOT, None)?;
        }
        set_thread_groups(&groups.iter().map(|g| Gid::from_raw(*g)).collect::<Vec<_>>())?;
        set_thread_res_gid(None, Gid::from_raw(gid), None)?;
        set_thread_res_uid(None, Uid::from_raw(uid), None)
    };
    set().map_err(failed)?;
    Ok((before.0.as_raw(), before.1.as_raw(), before.2.iter().map(|g| g.as_raw()).collect()))
}
