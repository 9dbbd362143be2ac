//! Calls of compiled code to Redis and PostgreSQL, on the connections of clients that Python has opened and named
//! (`citius.go.share`).
//!
//! A call is one of `crate::redis` or `crate::pg`, so that pipelines, prepared statements, clusters, metrics and cancel requests are
//! those of Python's calls. It is started with the GIL, on the thread's own stack; then the goroutine waits for a signal as for any
//! other channel, without it, and takes the result with it again. The result is made of Rust's values: no function that reads
//! one needs the GIL.
//!
//! Reading order: [`engine`] (what has a name), [`redis`], [`pg`], [`failure`] (exceptions as codes), [`functions`] (those of the
//! header). Tests: `tests/goroutines/test_engines.py`.

mod engine;
mod failure;
pub mod functions;
mod pg;
mod redis;

use pyo3::prelude::*;

use citius_base::go::chan::Chan;

/// Adds the function.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(share, module)?)
}

/// Gives a channel, or a client of Redis or PostgreSQL, a name by which native code finds it; `None` takes the name away.
#[pyfunction]
#[pyo3(signature = (name, shared))]
fn share(py: Python<'_>, name: &str, shared: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let chan = shared.and_then(|shared| shared.cast::<Chan>().ok());
    let channel = match chan {
        Some(chan) => Some(chan.get().channel(py)?.clone()),
        None => None,
    };
    // A name is that of one thing.
    engine::share(name, shared.filter(|_| channel.is_none()))?;
    citius_native::names::set(name, channel);
    Ok(())
}
