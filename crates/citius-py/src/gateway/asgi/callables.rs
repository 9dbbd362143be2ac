//! `receive` and `send` of a request, reused by the next request if the application keeps neither.
//!
//! In: a request head. Out: two callables and the [`HttpCycle`] behind them. Invariant (I18): nothing outside the server
//! refers to what a request gets, and its cycle holds nothing of an earlier request; a call between two requests raises.
//! Tests: `tests/asgi/test_isolation.py`.

use std::sync::{Arc, Mutex};

use citius_http::{FAST_PATHS, Head};
use citius_reactor::Reply;
use pyo3::intern;
use pyo3::prelude::*;

use crate::gateway::asgi::http_cycle::{Constants, HttpCycle};
use crate::ownership::{is_known_only, references};
use crate::reactor_handle::ReactorHandle;
use crate::sync::lock;

/// What an application is called with besides the scope.
pub(super) struct Callables {
    pub(super) cycle: Py<HttpCycle>,
    pub(super) receive: Py<PyAny>,
    pub(super) send: Py<PyAny>,
}

/// The callables for the next request; one pair is enough, for requests come one after the other.
#[derive(Default)]
pub(super) struct Spare(Mutex<Option<Callables>>);

impl Spare {
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
        // Other code may have found them since they were given back.
        let spare = lock(&self.0).take().filter(|spare| spare.are_ours(py));
        let callables = match spare {
            Some(spare) => spare,
            None => Callables::new(Bound::new(py, HttpCycle::new(handle, constants))?)?,
        };
        callables.cycle.get().begin(head, body_ended, reply);
        Ok(callables)
    }

    /// Takes back the callables of a request whose application has been stepped, if it has kept none. Whether anything
    /// else knows them is asked when they are [taken](Self::take).
    #[inline]
    pub(super) fn give(&self, py: Python<'_>, callables: Callables) {
        if FAST_PATHS && callables.are_free(py) {
            callables.cycle.get().reset();
            let replaced = lock(&self.0).replace(callables);
            drop(replaced);
        }
    }
}

impl Callables {
    /// Whether nothing refers to them. Both callables refer to the cycle.
    #[inline]
    fn are_free(&self, py: Python<'_>) -> bool {
        references(py, &self.receive) == 1
            && references(py, &self.send) == 1
            && references(py, &self.cycle) == 3
    }

    /// Whether nothing else can use them.
    #[inline]
    fn are_ours(&self, py: Python<'_>) -> bool {
        is_known_only(py, &self.receive, 1)
            && is_known_only(py, &self.send, 1)
            && is_known_only(py, &self.cycle, 3)
    }

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
