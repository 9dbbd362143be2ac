//! Requests that are passed on without Python (`http/direct.rs`), as the server sees them.
//!
//! In: a request of a route that has a [`Direct`]. Out: an exchange in the role [`Forwarded`], or the request back. Its content goes
//! to the [`Content`] of the exchange as it comes.
//! Tests: `tests/http/gateway/test_direct.py`.

use std::sync::Arc;

use citius_base::exchange::{LazySubject, Role};
use citius_base::logging::Names;
use citius_base::passing::{ClientRequest, Content, Direct, Inbound, Passable, Underway};
use citius_base::reactor_handle::ReactorHandle;
use citius_base::report::Subject;
use citius_http::Head;
use citius_reactor::{Peer, Reply};
use citius_route::Captures;
use pyo3::prelude::*;

use super::calling::finish;
use super::routes::Route;
use crate::gateway::body_limit::BodyLimit;
use crate::gateway::turn::Turn;
use crate::request_context::{NativeRequest, RequestContext};
use crate::route::Kind;

/// An open exchange whose request is passed on.
pub(super) struct Forwarded {
    /// `None` when Python has it.
    head: Option<Box<Head>>,
    captures: Captures,
    peer: Peer,
    route: Arc<Route>,
    handle: Arc<ReactorHandle>,
    pub(super) underway: Arc<dyn Underway>,
    /// Where its content goes, if it has any.
    content: Option<Arc<dyn Content>>,
    /// All of its content has come.
    has_ended: bool,
}

impl Forwarded {
    /// Where a piece of its content goes.
    pub(super) fn content(&self) -> Option<Arc<dyn Content>> {
        self.content.clone()
    }

    /// Notes that all of its content has come, and returns the [`Content`] that has to be told so.
    pub(super) fn end(&mut self) -> Option<Arc<dyn Content>> {
        self.has_ended = true;
        self.content.clone()
    }

    pub(super) fn body_limit(&self) -> Option<BodyLimit> {
        let head = self.head.as_deref()?;
        Some(self.route.info.body_limit(&self.handle.limits, head))
    }
}

impl Role for Forwarded {
    fn on_disconnect(self: Box<Self>, py: Python<'_>) -> bool {
        self.underway.gone(py);
        false
    }

    fn subject(&self, _py: Python<'_>, names: Names<'_>) -> Option<LazySubject> {
        let subject = Subject::new(names, self.head.as_ref()?, Some(&self.route.info.label));
        Some(Box::new(move |_| subject))
    }
}

impl Drop for Forwarded {
    fn drop(&mut self) {
        if let Some(head) = self.head.take() {
            self.handle.keep_head(head);
        }
    }
}

/// Passes a request on; returns it if that is for Python.
pub(super) fn begin(
    turn: &mut Turn<'_, '_>,
    route: &Arc<Route>,
    direct: &Arc<dyn Direct>,
    (head, captures): (Box<Head>, Captures),
    ended: bool,
    reply: &mut Reply<'_>,
) -> Option<(Box<Head>, Captures)> {
    let (py, id, peer) = (turn.py, reply.id(), reply.peer());
    let inbound = Inbound {
        handle: Arc::clone(turn.handle),
        id,
        upgrades: false,
    };
    let request = ClientRequest {
        head: &head,
        captures: &captures,
        peer,
        params: &route.info.params,
    };
    // With `Expect: 100-continue` the client is asked for content when the other server has said so.
    let is_asked = !ended && !head.expects_continue;
    let window = u64::from(turn.handle.limits.body_window_bytes);
    let wanted = if is_asked { window } else { 0 };
    let content_wanted = (!ended).then_some(wanted);
    let prepared = Arc::clone(direct).prepare(py, &request, inbound, content_wanted);
    let Some((underway, content)) = prepared else {
        return Some((head, captures));
    };
    turn.tasks.enter_shared(py);
    if is_asked {
        reply.want(window);
    }
    let role = Forwarded {
        head: Some(head),
        captures,
        peer,
        route: Arc::clone(route),
        handle: Arc::clone(turn.handle),
        underway: Arc::clone(&underway),
        content,
        has_ended: ended,
    };
    turn.handle.enter(id, role);
    underway.start(py);
    None
}

/// There is room for more of the response, or Python is to go on with the request.
pub(super) fn writable(
    turn: &mut Turn<'_, '_>,
    underway: Arc<dyn Underway>,
    reply: &mut Reply<'_>,
) {
    if !underway.is_for_python() {
        return underway.has_room(turn.py);
    }
    let Some(mut role) = turn.handle.take_role::<Forwarded>(reply.id()) else {
        return;
    };
    let route = Arc::clone(&role.route);
    let Some(head) = role.head.take() else {
        return;
    };
    let mut context = RequestContext::new(reply.id(), role.peer, turn.handle, head);
    context.captures = std::mem::take(&mut role.captures);
    context.route = Some(&route.info);
    let request = context.request(turn.py, role.has_ended).cloned();
    if let (Ok(request), Some(content)) = (&request, role.content.take()) {
        request.get().set_streamed();
        request.get().pass_content_on(content);
        if !role.has_ended {
            let entered = NativeRequest::new(request.clone().unbind());
            turn.handle.enter(reply.id(), entered);
        }
    }
    let coroutine = request.and_then(|request| underway.to_python(request.as_any()));
    finish(turn, coroutine, Kind::Async, &mut context, reply);
}
