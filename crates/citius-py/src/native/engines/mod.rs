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
pub(crate) mod functions;
mod pg;
mod redis;

pub(crate) use engine::share;
