//! `citius.go` below Python: one kind of channel for threads, gevent's greenlets and coroutines.
//!
//! `citius-chan` decides who gets which value; here is how a caller waits. An operation is an [`operation::Operation`]. On a
//! running event loop it becomes an [`awaitable::ChannelAwaitable`]; elsewhere it blocks ([`caller`] finds out how): a greenlet
//! switches ([`greenlet`]), a thread parks without the GIL ([`thread`]). Each hub and each loop has a queue of ready tickets.
//! No lock is held while Python code can run, and nothing relies on the GIL for atomicity. Tests: `tests/go/`.

mod awaitable;
pub mod caller;
pub mod chan;
pub(crate) mod element;
mod event_loop;
mod greenlet;
pub(crate) mod group;
pub(crate) mod operation;
pub(crate) mod thread;

use pyo3::prelude::*;

/// Adds the classes and functions.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    thread::prepare(module.py())?;
    module.add_class::<chan::Chan>()?;
    module.add_class::<group::WaitGroup>()?;
    module.add_function(wrap_pyfunction!(chan::select, module)?)?;
    module.add_function(wrap_pyfunction!(caller::set_serial, module)?)?;
    module.add_function(wrap_pyfunction!(caller::whereabouts, module)?)
}
