//! `receive` and `send` of a request, which serve again.
//!
//! Most applications keep neither beyond their answer; then the next request gets the same two, and the
//! conversation they lead. Invariant: what a request gets is known to nothing but the server, by strong or weak reference,
//! and its conversation holds nothing of the request before; a call between two requests is refused.

use std::sync::{Arc, Mutex};

use citius_http::{FAST_PATHS, Head};
use citius_reactor::Reply;
use pyo3::intern;
use pyo3::prelude::*;

use crate::gateway::asgi::conversation::{Common, Conversation};
use crate::ownership::{is_known_only, references};
use crate::reactor_handle::ReactorHandle;
use crate::sync::lock;

/// What an application is called with besides the scope.
pub(super) struct Callables {
    pub(super) conversation: Py<Conversation>,
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
        common: &Arc<Common>,
        head: &Head,
        body_ended: bool,
        reply: &Reply<'_>,
    ) -> PyResult<Callables> {
        // Other code may have found them since they were given back.
        let spare = lock(&self.0).take().filter(|spare| spare.are_ours(py));
        let callables = match spare {
            Some(spare) => spare,
            None => Callables::new(Bound::new(py, Conversation::new(handle, common))?)?,
        };
        callables.conversation.get().begin(head, body_ended, reply);
        Ok(callables)
    }

    /// Takes back the callables of a request whose application has been stepped, if it has kept none. Whether anything
    /// else knows them is asked when they are [taken](Self::take).
    #[inline]
    pub(super) fn give(&self, py: Python<'_>, callables: Callables) {
        if FAST_PATHS && callables.are_free(py) {
            callables.conversation.get().forget();
            let replaced = lock(&self.0).replace(callables);
            drop(replaced);
        }
    }
}

impl Callables {
    /// Whether nothing refers to them. Both callables know the conversation.
    #[inline]
    fn are_free(&self, py: Python<'_>) -> bool {
        references(py, &self.receive) == 1
            && references(py, &self.send) == 1
            && references(py, &self.conversation) == 3
    }

    /// Whether nothing else can use them.
    #[inline]
    fn are_ours(&self, py: Python<'_>) -> bool {
        is_known_only(py, &self.receive, 1)
            && is_known_only(py, &self.send, 1)
            && is_known_only(py, &self.conversation, 3)
    }

    #[cold]
    fn new(conversation: Bound<'_, Conversation>) -> PyResult<Self> {
        let py = conversation.py();
        Ok(Self {
            receive: conversation.getattr(intern!(py, "receive"))?.unbind(),
            send: conversation.getattr(intern!(py, "send"))?.unbind(),
            conversation: conversation.unbind(),
        })
    }
}
