//! `citius._core.TokenBuckets`: rate limits that hold over all workers.

use std::borrow::Cow;
use std::net::IpAddr;

use citius_observe::buckets::{BURST_MAX, Buckets, Rate, Taken};
use citius_reactor::exact_ns;
use pyo3::IntoPyObjectExt;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};

use crate::observe::shared_cells;
use crate::request::{Request, ip_text};
use crate::response::Response;

/// The buckets of one rate limit.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct TokenBuckets {
    buckets: Buckets,
    rate: Rate,
    /// What responses call the limit.
    label: String,
}

#[pymethods]
impl TokenBuckets {
    #[new]
    #[pyo3(signature = (buffer, name, interval_ns, burst, label = String::new()))]
    fn new(
        buffer: PyBuffer<u8>,
        name: &[u8],
        interval_ns: u64,
        burst: u64,
        label: String,
    ) -> PyResult<Self> {
        if interval_ns == 0 || burst == 0 || burst > BURST_MAX {
            return Err(PyValueError::new_err(format!(
                "expected an interval above 0 and a burst of 1 to {BURST_MAX}, got {interval_ns} ns and {burst}"
            )));
        }
        let buckets = Buckets::open(shared_cells(buffer)?, name)
            .ok_or_else(|| PyMemoryError::new_err("there is no room for one more rate limit"))?;
        let rate = Rate { interval_ns, burst };
        Ok(Self {
            buckets,
            rate,
            label,
        })
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

    /// Takes one token: the text of `RateLimit`, or, if there was none, nanoseconds until there is one.
    fn take_text<'py>(
        &self,
        key: &Bound<'py, PyString>,
        now_ns: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = key.py();
        let taken = if let Ok(text) = key.to_str() {
            self.buckets.take(text.as_bytes(), 1, self.rate, now_ns)
        } else {
            // A key of a client's may have surrogates.
            let encoded = key.call_method1("encode", ("utf-8", "surrogatepass"))?;
            let encoded = encoded.cast_into::<PyBytes>()?;
            self.buckets.take(encoded.as_bytes(), 1, self.rate, now_ns)
        };
        self.text(py, taken)
    }

    /// Takes one token for the client of `request`, as `take_text` does with the key that `by_client` gives, and the
    /// clock of `time.monotonic_ns`.
    fn take_for_client<'py>(
        &self,
        py: Python<'py>,
        request: &Bound<'py, Request>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let key = key_of(request.get().client_ip());
        self.text(
            py,
            self.buckets.take(key.as_bytes(), 1, self.rate, exact_ns()),
        )
    }
}

/// A limit by client around a chain without a coroutine: what `RateLimit` does in Python, in one call.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct LimitedChain {
    buckets: Py<TokenBuckets>,
    inner: Py<PyAny>,
    refuse: Py<PyAny>,
    policy: Py<PyTuple>,
}

#[pymethods]
impl LimitedChain {
    #[new]
    fn new(
        buckets: Py<TokenBuckets>,
        inner: Py<PyAny>,
        refuse: Py<PyAny>,
        policy: Py<PyTuple>,
    ) -> Self {
        Self {
            buckets,
            inner,
            refuse,
            policy,
        }
    }

    fn respond<'py>(&self, request: &Bound<'py, Request>) -> PyResult<Bound<'py, PyAny>> {
        let py = request.py();
        let left = self.buckets.get().take_for_client(py, request)?;
        if !left.is_exact_instance_of::<PyString>() {
            return self.refuse.bind(py).call1((request, left));
        }
        let response = self.inner.bind(py).call1((request,))?;
        let line = PyTuple::new(py, [intern!(py, "ratelimit").as_any(), &left])?;
        let lines = [line.into_any(), self.policy.bind(py).clone().into_any()];
        response.cast::<Response>()?.get().add_checked(py, lines)?;
        Ok(response)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.inner)?;
        visit.call(&self.refuse)
    }
}

impl TokenBuckets {
    fn text<'py>(&self, py: Python<'py>, taken: Taken) -> PyResult<Bound<'py, PyAny>> {
        if !taken.is_allowed {
            return taken.retry_ns.into_bound_py_any(py);
        }
        let full_s = taken.full_ns.div_ceil(1_000_000_000);
        // Without `format!`, which takes as long as all else here.
        let mut text = String::with_capacity(self.label.len() + 48);
        text.push('"');
        text.push_str(&self.label);
        text.push_str("\";r=");
        text.push_str(itoa::Buffer::new().format(taken.remaining));
        text.push_str(";t=");
        text.push_str(itoa::Buffer::new().format(full_s));
        Ok(PyString::new(py, &text).into_any())
    }
}

/// Adds the classes to the module.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<TokenBuckets>()?;
    module.add_class::<LimitedChain>()
}

/// The client as `citius.web.middleware.ratelimit.by_client` names it.
fn key_of(ip: Option<IpAddr>) -> Cow<'static, str> {
    let Some(ip) = ip else {
        return Cow::Borrowed("unknown");
    };
    let IpAddr::V6(v6) = ip else {
        return Cow::Owned(ip_text(ip));
    };
    if let Some(v4) = v6.to_ipv4_mapped() {
        return Cow::Owned(ip_text(IpAddr::V4(v4)));
    }
    let network = v6.to_bits() >> 64;
    Cow::Owned(format!("{network:016x}"))
}
