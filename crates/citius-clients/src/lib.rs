//! Clients of other servers as Python sees them: `pg`, `redis` and `http`, and by [`engines`] the first two as compiled code
//! sees them.
//!
//! Each is a pool that shares calls among connections, a connection that is an [`Upstream`](citius_base::upstream::Upstream) with its
//! protocol, and a call that is awaited. The protocols themselves are crates without Python (`citius-pg`, `citius-redis`,
//! `citius-h1`, `citius-h2`); names, sockets and timers are Python (`python/citius/{pg,redis,http}/`). Tests: `tests/` of the
//! repository; `tests/` here for what names nothing of Python's.
//!
//! Any thread may hand over a call; one thread reads. Locks are never held while Python code can run.
#![allow(
    unsafe_code,
    reason = "functions of a C interface (engines/functions.rs)"
)]
#![allow(
    clippy::missing_errors_doc,
    reason = "a `PyErr` is an exception that Python code has raised or that the caller raises; other errors are documented"
)]

use pyo3::prelude::*;

pub mod engines;
mod http;
mod pg;
mod redis;

/// Adds the classes and functions of this crate to the module `citius._core`.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    engines::register(module)?;
    pg::register(module)?;
    redis::register(module)?;
    http::register(module)
}
