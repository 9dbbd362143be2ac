//! `citius.go` below Python: one kind of channel for threads, gevent's greenlets and coroutines.
//!
//! `citius-chan` says who gets which value; here is how one waits. An operation is an [`ask::Ask`]. Where
//! a loop runs it becomes a [`wait::Wait`], to be awaited; elsewhere it blocks ([`place`] finds out how):
//! a greenlet switches ([`green`]), a thread parks without the GIL ([`thread`]). Whoever is woken on a
//! hub or loop goes through that one's queue of the ready, which one callback serves in batches, so that
//! a wake-up costs no turn of the loop.
//!
//! No lock is held while Python code can run, and nothing relies on the GIL for being atomic.

pub(crate) mod ask;
mod chan;
mod event_loop;
mod green;
mod group;
pub(crate) mod place;
mod thread;
mod wait;

use std::sync::Arc;

use pyo3::prelude::*;

/// What travels through a channel.
pub(crate) type Value = Py<PyAny>;
pub(crate) type Channel = citius_chan::Channel<Value, Waker>;
pub(crate) type Ticket = citius_chan::Ticket<Value, Waker>;
pub(crate) type Case = citius_chan::Case<Value, Waker>;
pub(crate) type Outcome = citius_chan::Outcome<Value>;

/// How whoever waits is woken.
pub(crate) enum Waker {
    Thread(thread::Parker),
    Green(green::Berth),
    Task(wait::Sleeper),
}

impl citius_chan::Wake<Value> for Waker {
    #[inline]
    fn wake(ticket: Arc<Ticket>) {
        match ticket.waker() {
            Self::Thread(parker) => parker.unpark(),
            Self::Green(_) => green::wake(ticket),
            Self::Task(_) => event_loop::wake(ticket),
        }
    }
}

/// Adds the classes and functions.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    thread::prepare(module.py())?;
    module.add_class::<chan::Chan>()?;
    module.add_class::<group::WaitGroup>()?;
    module.add_function(wrap_pyfunction!(chan::select, module)?)?;
    module.add_function(wrap_pyfunction!(place::whereabouts, module)?)
}
