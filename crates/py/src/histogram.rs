//! Latency histograms.

use crate::errors::other;
use pgdyno_base::Nanos;
use pgdyno_record as record;
use pyo3::prelude::*;

/// Nanoseconds, 3 significant digits, mergeable.
#[pyclass(module = "pgdyno._core")]
#[derive(Clone, Default)]
pub struct Histogram {
    pub inner: record::Histogram,
}

#[pymethods]
impl Histogram {
    #[new]
    fn new() -> Histogram {
        Histogram::default()
    }

    /// Reads HdrHistogram's V2 encoding, compressed or not.
    #[staticmethod]
    fn decode(data: &[u8]) -> PyResult<Histogram> {
        Ok(Histogram { inner: record::Histogram::decode(data).map_err(other)? })
    }

    /// HdrHistogram's V2 compressed encoding.
    fn encode(&self) -> Vec<u8> {
        self.inner.encode()
    }

    fn record(&mut self, nanos: u64) {
        self.inner.record(Nanos(nanos));
    }

    fn merge(&mut self, other: &Histogram) {
        self.inner.merge(&other.inner);
    }

    /// Returns the histogram without the values of another one, all of which this one has.
    fn without(&self, other: &Histogram) -> Histogram {
        Histogram { inner: self.inner.without(&other.inner) }
    }

    #[getter]
    fn count(&self) -> u64 {
        self.inner.count()
    }

    #[getter]
    fn clipped(&self) -> u64 {
        self.inner.clipped()
    }

    fn percentile(&self, percent: f64) -> u64 {
        self.inner.percentile(percent).0
    }

    #[getter]
    fn min(&self) -> u64 {
        self.inner.min().0
    }

    #[getter]
    fn max(&self) -> u64 {
        self.inner.max().0
    }

    #[getter]
    fn mean(&self) -> f64 {
        self.inner.mean()
    }

    #[getter]
    fn stddev(&self) -> f64 {
        self.inner.stddev()
    }

    /// The exact sum and sum of squares.
    #[getter]
    fn sums(&self) -> (f64, f64) {
        let (sum, squares) = self.inner.sums();
        (sum as f64, squares)
    }

    /// Returns, for each of these values, the number of recorded values that do not exceed it. The comparison has 3
    /// significant digits.
    fn count_up_to(&self, values: Vec<u64>) -> Vec<u64> {
        values.into_iter().map(|v| self.inner.count_up_to(Nanos(v))).collect()
    }

    fn buckets(&self) -> Vec<(u64, u64)> {
        self.inner.buckets().into_iter().map(|(v, n)| (v.0, n)).collect()
    }

    fn __len__(&self) -> usize {
        self.inner.count() as usize
    }
}

/// Returns the histograms of a tag from files of merged histograms, in their order; None where a file cannot be read,
/// lacks the tag or is damaged.
#[pyfunction]
pub fn read_merged(py: Python<'_>, paths: Vec<std::path::PathBuf>, tag: &str) -> Vec<Option<Histogram>> {
    let found = py.detach(|| record::merged::read_all(&paths, tag));
    found.into_iter().map(|h| h.map(|inner| Histogram { inner })).collect()
}
