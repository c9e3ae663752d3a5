//! Links between hosts that are slower than this machine's.

use pgdyno_relay as relay;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use rustix::fd::BorrowedFd;
use rustix::io::fcntl_dupfd_cloexec;
use std::net::Ipv4Addr;
use std::time::Duration;

/// Carries packets between TUN devices until it is closed.
#[pyclass(frozen, module = "pgdyno._core")]
pub struct Relay {
    running: std::sync::Mutex<Option<relay::Relay>>,
    hosts: usize,
}

#[pymethods]
impl Relay {
    /// `hosts`: the address of each, and the descriptor of its device, which stays the caller's.
    #[new]
    fn new(hosts: Vec<(String, i32)>) -> PyResult<Relay> {
        let count = hosts.len();
        let mut own = Vec::new();
        for (address, fd) in hosts {
            let address: Ipv4Addr = address.parse().map_err(|_| PyValueError::new_err("no address of IPv4"))?;
            if fd < 0 {
                return Err(PyValueError::new_err("a device has no descriptor"));
            }
            // SAFETY: it is not negative, and only looked at here: one that is closed is an error of the kernel's.
            let theirs = unsafe { BorrowedFd::borrow_raw(fd) };
            let device = fcntl_dupfd_cloexec(theirs, 0).map_err(|e| failed(e.into()))?;
            own.push(relay::Host { address, device });
        }
        let running = relay::Relay::start(own).map_err(failed)?;
        Ok(Relay { running: std::sync::Mutex::new(Some(running)), hosts: count })
    }

    /// Sets the delay and the rate for packets from one host to another from now on. A rate of `None`: packets leave at
    /// once.
    #[pyo3(signature = (from_host, to_host, delay_ns, bytes_per_s=None))]
    fn set(&self, from_host: usize, to_host: usize, delay_ns: u64, bytes_per_s: Option<u64>) -> PyResult<()> {
        if from_host >= self.hosts || to_host >= self.hosts || bytes_per_s == Some(0) {
            return Err(PyValueError::new_err("there is no such host, or no such link"));
        }
        let shape = relay::Shape { delay: Duration::from_nanos(delay_ns), bytes_per_s };
        if let Some(running) = self.lock().as_ref() {
            running.set(from_host, to_host, shape);
        }
        Ok(())
    }

    /// Packets and bytes that were carried, and packets that were dropped.
    fn counts(&self) -> (u64, u64, u64) {
        let counts = self.lock().as_ref().map(relay::Relay::counts).unwrap_or_default();
        (counts.packets, counts.bytes, counts.dropped)
    }

    /// Ends it; what is under way is lost.
    fn close(&self, py: Python<'_>) {
        let running = self.lock().take();
        py.detach(|| drop(running));
    }
}

impl Relay {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<relay::Relay>> {
        self.running.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn failed(e: std::io::Error) -> PyErr {
    PyOSError::new_err((e.raw_os_error(), e.to_string()))
}
