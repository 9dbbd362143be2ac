//! `receive` and `send` of a request, reused by the next request if the application keeps neither.
//!
//! In: a request head. Out: two callables and the [`HttpCycle`] behind them. Invariant (I18): nothing outside the server
//! refers to what a request gets, and its cycle holds nothing of an earlier request; a call between two requests raises.
//! Tests: `tests/asgi/test_isolation.py`.

use std::sync::{Arc, Mutex};

use citius_base::reactor_handle::ReactorHandle;
use citius_base::reuse::{Known, Reuse, Spare};
use citius_base::sync::lock;
use citius_http::{FAST_PATHS, Head};
use citius_reactor::Reply;
use pyo3::ffi::Py_ssize_t;
use pyo3::intern;
use pyo3::prelude::*;

use crate::gateway::asgi::http_cycle::{Constants, HttpCycle};

/// What an application is called with besides the scope.
pub(super) struct Callables {
    pub(super) cycle: Py<HttpCycle>,
    pub(super) receive: Py<PyAny>,
    pub(super) send: Py<PyAny>,
}

/// The callables for the next request; one pair is enough, for requests come one after the other.
#[derive(Default)]
pub(super) struct SpareCallables(Mutex<Spare<Callables>>);

impl SpareCallables {
    /// The callables of a request.
    #[inline]
    pub(super) fn take(
        &self,
        py: Python<'_>,
        handle: &Arc<ReactorHandle>,
        constants: &Arc<Constants>,
        head: &Head,
        body_ended: bool,
        reply: &Reply<'_>,
    ) -> PyResult<Callables> {
        let mut spare = std::mem::take(&mut *lock(&self.0));
        let callables = match spare.take(py) {
            Some(callables) => callables,
            None => Callables::new(Bound::new(py, HttpCycle::new(handle, constants))?)?,
        };
        callables.cycle.get().begin(head, body_ended, reply);
        Ok(callables)
    }

    /// Takes back the callables of a request whose application has been stepped, if it has kept none.
    #[inline]
    pub(super) fn give(&self, py: Python<'_>, mut callables: Callables) {
        if FAST_PATHS && callables.is_fresh(py, 0) {
            callables.cycle.get().reset();
            let replaced = std::mem::replace(&mut *lock(&self.0), Spare::new(callables));
            drop(replaced);
        }
    }
}

impl Reuse for Callables {
    #[inline]
    fn is_fresh(&mut self, py: Python<'_>, lent: Py_ssize_t) -> bool {
        Known::ASGI_RECEIVE.are_all(py, &self.receive, lent)
            && Known::ASGI_SEND.are_all(py, &self.send, lent)
            && Known::ASGI_CYCLE.are_all(py, &self.cycle, lent)
    }
}

impl Callables {
    #[cold]
    fn new(cycle: Bound<'_, HttpCycle>) -> PyResult<Self> {
        let py = cycle.py();
        Ok(Self {
            receive: cycle.getattr(intern!(py, "receive"))?.unbind(),
            send: cycle.getattr(intern!(py, "send"))?.unbind(),
            cycle: cycle.unbind(),
        })
    }
}
