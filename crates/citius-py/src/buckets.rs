//! `citius._core.TokenBuckets`: rate limits that hold over all workers.

use citius_observe::buckets::{BURST_MAX, Buckets, Rate};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;

use crate::observe::shared_cells;

/// The buckets of one rate limit.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct TokenBuckets {
    buckets: Buckets,
    rate: Rate,
}

#[pymethods]
impl TokenBuckets {
    #[new]
    fn new(buffer: PyBuffer<u8>, name: &[u8], interval_ns: u64, burst: u64) -> PyResult<Self> {
        if interval_ns == 0 || burst == 0 || burst > BURST_MAX {
            return Err(PyValueError::new_err(format!(
                "expected an interval above 0 and a burst of 1 to {BURST_MAX}, got {interval_ns} ns and {burst}"
            )));
        }
        let buckets = Buckets::open(shared_cells(buffer)?, name)
            .ok_or_else(|| PyMemoryError::new_err("there is no room for one more rate limit"))?;
        let rate = Rate { interval_ns, burst };
        Ok(Self { buckets, rate })
    }

    /// Whether there were `count` tokens, how many are left, and nanoseconds until there are enough and until
    /// there are all.
    fn take(&self, key: &[u8], count: u64, now_ns: u64) -> (bool, u64, u64, u64) {
        let taken = self.buckets.take(key, count, self.rate, now_ns);
        (
            taken.is_allowed,
            taken.remaining,
            taken.retry_ns,
            taken.full_ns,
        )
    }
}
