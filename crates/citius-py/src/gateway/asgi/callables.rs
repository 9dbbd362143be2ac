//! `receive` and `send` of a request, which serve again.
//!
//! Most applications keep neither beyond their answer; then the next request gets the same two, and the
//! conversation they lead. Invariant: what serves again is known to nobody but us, by strong or weak reference,
//! and its conversation holds nothing of the request before.

use std::sync::{Arc, Mutex};

use citius_http::Head;
use citius_reactor::Reply;
use pyo3::intern;
use pyo3::prelude::*;

use crate::gateway::asgi::conversation::{Common, Conversation};
use crate::link::{Link, lock};
use crate::ownership::{first_weak_reference, references};

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
        link: &Arc<Link>,
        common: &Arc<Common>,
        head: &Head,
        body_ended: bool,
        reply: &Reply<'_>,
    ) -> PyResult<Callables> {
        let spare = lock(&self.0).take();
        let callables = match spare {
            Some(spare) => spare,
            None => Callables::new(Bound::new(py, Conversation::new(link, common))?)?,
        };
        callables.conversation.get().begin(head, body_ended, reply);
        Ok(callables)
    }

    /// Takes back the callables of a request whose application has been stepped, if nobody has kept any.
    #[inline]
    pub(super) fn give(&self, py: Python<'_>, callables: Callables) {
        let Callables {
            conversation,
            receive,
            send,
        } = &callables;
        // Both callables know the conversation.
        let is_ours = references(py, receive) == 1
            && references(py, send) == 1
            && references(py, conversation) == 3
            && first_weak_reference(py, receive) == 0
            && first_weak_reference(py, send) == 0;
        if is_ours {
            conversation.get().forget();
            let replaced = lock(&self.0).replace(callables);
            drop(replaced);
        }
    }
}

impl Callables {
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
