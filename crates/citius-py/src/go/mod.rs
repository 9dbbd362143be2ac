//! `citius.go` below Python: one kind of channel for threads, gevent's greenlets and coroutines.
//!
//! `citius-chan` decides who gets which value; here is how a caller waits. An operation is an [`operation::Operation`]. On a
//! running event loop it becomes an [`awaitable::ChannelAwaitable`]; elsewhere it blocks ([`caller`] finds out how): a greenlet
//! switches ([`greenlet`]), a thread parks without the GIL ([`thread`]). Each hub and each loop has a queue of ready tickets.
//! No lock is held while Python code can run, and nothing relies on the GIL for atomicity. Tests: `tests/go/`.

mod awaitable;
pub(crate) mod caller;
pub(crate) mod chan;
pub(crate) mod channel;
pub(crate) mod element;
mod event_loop;
mod greenlet;
pub(crate) mod group;
pub(crate) mod operation;
pub(crate) mod thread;

use std::sync::Arc;

use citius_goroutine::{Goroutine, LocalHere, LocalHome};
use pyo3::prelude::*;

pub(crate) use self::channel::Channel;
use crate::native::packed::Packed;

/// What travels through a channel.
pub(crate) enum Value {
    Object(Py<PyAny>),
    Packed(Packed),
}

impl Value {
    /// It was not sent, and stays the sender's.
    pub(crate) fn keep(self) {
        if let Self::Packed(mut packed) = self {
            packed.release();
        }
    }
}

pub(crate) type RawChannel = citius_chan::Channel<Value, Waker>;
pub(crate) type Ticket = citius_chan::Ticket<Value, Waker>;
pub(crate) type Resident = citius_chan::Resident<Value, Waker>;
pub(crate) type Case = citius_chan::Case<Channel, Value>;
pub(crate) type Outcome = citius_chan::Outcome<Value>;

/// How the waiting goroutine, thread, greenlet or task is woken.
pub(crate) enum Waker {
    Goroutine(Goroutine),
    Thread(thread::Parker),
    Greenlet(greenlet::GreenletWaker),
    Coroutine(awaitable::TaskWaker),
}

impl citius_chan::Wake<Value> for Waker {
    type Home = LocalHome;
    type Here = LocalHere;

    #[inline]
    fn wake(ticket: Arc<Ticket>) {
        match ticket.waker() {
            Self::Goroutine(goroutine) => goroutine.unpark(),
            Self::Thread(parker) => parker.unpark(),
            Self::Greenlet(_) => greenlet::wake(ticket),
            Self::Coroutine(_) => event_loop::wake(ticket),
        }
    }

    fn unsent(value: Value) {
        value.keep();
    }

    fn home(here: &LocalHere) -> LocalHome {
        here.home()
    }

    fn wake_resident(home: &LocalHome, number: u64) {
        home.unpark(number);
    }

    #[inline]
    fn wake_here(here: &LocalHere, number: u64) {
        here.unpark(number);
    }
}

/// Adds the classes and functions.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    thread::prepare(module.py())?;
    module.add_class::<chan::Chan>()?;
    module.add_class::<group::WaitGroup>()?;
    module.add_function(wrap_pyfunction!(chan::select, module)?)?;
    module.add_function(wrap_pyfunction!(chan::share, module)?)?;
    module.add_function(wrap_pyfunction!(caller::set_serial, module)?)?;
    module.add_function(wrap_pyfunction!(caller::whereabouts, module)?)
}
