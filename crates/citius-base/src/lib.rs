//! What every part of the extension module `citius._core` stands on: the clients of other servers (`citius-clients`) and the gateways
//! (`citius-py`) use it, and it knows neither.
//!
//! Reading order: [`reactor_handle`] (how late responses come back to a reactor), [`exchange`] (an open request), [`task`] (how a
//! coroutine is stepped), [`waiter`] (how it waits), [`go`] (channels, and how threads and greenlets wait), [`interpreter`] (what
//! the runtime of compiled code asks of Python), [`upstream`] (a connection to another server below its protocol), [`passing`]
//! (what passes between a client and another server). Tests: `tests/` of the repository; `tests/` here for what names nothing of
//! Python's.
//!
//! Locks: a `Mutex` here is never held while Python code can run, so a thread that holds the GIL never waits for one
//! ([`sync`]).
#![allow(
    unsafe_code,
    reason = "reference counts, slots, PyIter_Send, contexts, interpreters and forks have no safe binding \
              (reuse/, awaitable.rs, context.rs, task/, object.rs, interpreter/, descriptor/)"
)]
#![allow(
    clippy::missing_errors_doc,
    reason = "a `PyErr` is an exception that Python code has raised or that the caller raises; other errors are documented"
)]

use citius_http::FAST_PATHS;
use pyo3::prelude::*;

pub mod awaitable;
pub mod client_metrics;
pub mod context;
pub mod data_types;
pub mod deferrals;
pub mod descriptor;
pub mod exchange;
pub mod fork;
pub mod go;
pub mod host_loop;
pub mod interpreter;
pub mod logging;
pub mod object;
pub mod passing;
pub mod process;
pub mod progress;
mod ration;
pub mod reactor_handle;
pub mod report;
pub mod reuse;
pub mod serial;
pub mod sink;
pub mod support;
pub mod sync;
pub mod task;
pub mod upstream;
pub mod upstreams;
pub mod waiter;

/// Adds the classes and functions of this crate to the module `citius._core`.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    if FAST_PATHS {
        awaitable::install_slots(module.py());
    }
    interpreter::install();
    fork::register(module)?;
    go::register(module)?;
    module.add_class::<client_metrics::ClientMetrics>()?;
    module.add_class::<client_metrics::ClientOperation>()?;
    module.add_class::<passing::Relay>()?;
    module.add_class::<passing::DirectForward>()?;
    module.add_class::<upstream::Carrier>()?;
    module.add_class::<upstream::tls::ClientTls>()?;
    module.add_class::<upstream::tls::ClientTlsStream>()?;
    module.add_class::<task::Driver>()
}
