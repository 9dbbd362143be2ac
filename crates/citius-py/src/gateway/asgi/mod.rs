//! The ASGI gateway: `app(scope, receive, send)`, called and stepped inside the turn.
//!
//! A request whose body is complete or empty is called at once; one whose body follows is called when
//! what has arrived with it is taken in, so that a small body is there before the application asks.
//! What the application says while it is stepped is kept by its [`Conversation`] and leaves, in one
//! piece, when it ends or suspends; what it says later leaves as letters. Nobody cancels an application
//! whose client is gone: as ASGI has it, `receive` tells `http.disconnect` and `send` raises.
//!
//! Messages: `message.rs`; the dictionary of a request: `scope.rs`; what it is called with besides: `callables.rs`; what is
//! awaited: `waiting.rs`.

use std::sync::Arc;

use citius_http::{Fields, Head};
use citius_reactor::Reply;
use citius_reactor::ws::Opening;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::gateway::asgi::callables::Callables;
use crate::gateway::asgi::conversation::{Conversation, Talk, Uncalled};
use crate::gateway::body_limit::BodyLimit;
use crate::gateway::turn::Turn;
use crate::gateway::ws;
use crate::respond::{self, RequestContext};
use crate::task::CompletionHandler as _;

mod callables;
mod conversation;
mod fields;
mod heading;
mod message;
mod own;
mod scope;
mod socket;
mod waiting;

pub(crate) use waiting::install_am_send;

/// The ASGI gateway to one application.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct Asgi {
    app: Py<PyAny>,
    root_path: String,
    state: Py<PyDict>,
    is_debug: bool,
}

#[pymethods]
impl Asgi {
    #[new]
    #[pyo3(signature = (app, *, root_path = "", state, debug = false))]
    fn new(app: Py<PyAny>, root_path: &str, state: Py<PyDict>, debug: bool) -> Self {
        Self {
            app,
            root_path: root_path.to_owned(),
            state,
            is_debug: debug,
        }
    }
}

/// What a reactor has of it.
pub(crate) struct Plan {
    pub(crate) app: Py<PyAny>,
    scopes: scope::Scopes,
    common: Arc<conversation::Common>,
    spare: callables::Spare,
}

impl Asgi {
    /// # Errors
    /// `TypeError` without an event loop, for every ASGI application needs one.
    pub(crate) fn plan(&self, py: Python<'_>, event_loop: Option<&Py<PyAny>>) -> PyResult<Plan> {
        if event_loop.is_none() {
            return Err(PyTypeError::new_err(
                "an ASGI application needs an event loop, and loop is None",
            ));
        }
        Ok(Plan {
            app: self.app.clone_ref(py),
            scopes: scope::Scopes::new(&self.root_path, self.state.clone_ref(py), self.is_debug),
            common: Arc::new(conversation::Common::new(py)?),
            spare: callables::Spare::default(),
        })
    }
}

/// A request head is complete.
pub(crate) fn request(
    turn: &mut Turn<'_, '_>,
    plan: &Plan,
    head: Box<Head>,
    ended: bool,
    reply: &mut Reply<'_>,
) {
    let py = turn.py;
    if let Some(transport) = Opening::transport(&head) {
        return socket::request(turn, plan, head, transport, ended, reply);
    }
    if !ended
        && BodyLimit::streamed(&turn.handle.limits, None).enforce(
            py,
            turn.handle,
            &head,
            None,
            reply,
        )
    {
        return reply.recycle(head);
    }
    let awaits_consent = head.expects_continue;
    let taken = plan
        .spare
        .take(py, turn.handle, &plan.common, &head, ended, reply);
    let callables = match taken {
        Ok(callables) => callables,
        Err(error) => return refuse(turn, &error, head, reply),
    };
    if ended {
        return call(turn, plan, callables, head, reply);
    }
    turn.handle
        .enter(reply.id(), callables.conversation.clone_ref(py));
    if awaits_consent {
        // RFC 9110 §10.1.1: the client is told to go on when the application asks for the body.
        return call(turn, plan, callables, head, reply);
    }
    let Callables {
        conversation,
        receive,
        send,
    } = callables;
    conversation.get().keep_uncalled(Uncalled {
        head,
        receive,
        send,
    });
    conversation.get().want_window(reply);
    // Comes when what has arrived with the head has been taken in.
    reply.await_writable();
}

/// There is not even what a request is answered with: the error is logged, and the answer is 500.
#[cold]
fn refuse(turn: &Turn<'_, '_>, error: &PyErr, head: Box<Head>, reply: &mut Reply<'_>) {
    let mut context = RequestContext::new(reply.id(), reply.peer(), turn.handle, head);
    respond::send_internal_error(turn.py, error, &mut context, reply);
    if let Some(head) = context.head.take() {
        reply.recycle(head);
    }
}

/// A piece of the body.
pub(crate) fn data(turn: &mut Turn<'_, '_>, bytes: &[u8], reply: &mut Reply<'_>) {
    if let Some(conversation) = of(turn, reply) {
        conversation.get().push_body(turn.py, bytes);
    }
}

/// The body is complete.
pub(crate) fn end(turn: &mut Turn<'_, '_>, plan: &Plan, trailers: Fields, reply: &mut Reply<'_>) {
    // ASGI has no message for a request's trailers.
    drop(trailers);
    let Some(conversation) = of(turn, reply) else {
        return ws::end(turn, reply);
    };
    conversation.get().end_body(turn.py);
    if let Some(uncalled) = conversation.get().take_uncalled() {
        call_late(turn, plan, conversation, uncalled, reply);
    }
}

/// What has arrived with a head has been taken in, or there is room for more of an answer.
pub(crate) fn room(turn: &mut Turn<'_, '_>, plan: &Plan, reply: &mut Reply<'_>) {
    let Some(conversation) = of(turn, reply) else {
        return;
    };
    match conversation.get().take_uncalled() {
        Some(uncalled) => call_late(turn, plan, conversation, uncalled, reply),
        None => conversation.get().has_room(turn.py),
    }
}

/// Calls the application of a request whose body has come after its head.
fn call_late(
    turn: &mut Turn<'_, '_>,
    plan: &Plan,
    conversation: Bound<'_, Conversation>,
    uncalled: Uncalled,
    reply: &mut Reply<'_>,
) {
    let callables = Callables {
        conversation: conversation.unbind(),
        receive: uncalled.receive,
        send: uncalled.send,
    };
    call(turn, plan, callables, uncalled.head, reply);
}

/// Calls the application and steps it.
#[inline]
fn call(
    turn: &mut Turn<'_, '_>,
    plan: &Plan,
    callables: Callables,
    head: Box<Head>,
    reply: &mut Reply<'_>,
) {
    let py = turn.py;
    let conversation = callables.conversation.bind(py);
    let called = plan.scopes.make(py, &head, reply).and_then(|scope| {
        conversation.get().show(scope.clone().unbind());
        let (receive, send) = (callables.receive.bind(py), callables.send.bind(py));
        plan.app.bind(py).call1((scope, receive, send))
    });
    reply.recycle(head);
    let mut talk = Talk::new(conversation);
    match called.and_then(|awaitable| waiting::coroutine_of(&awaitable)) {
        Ok(coroutine) => turn.tasks.step(py, coroutine, &mut talk, reply),
        Err(error) => talk.fail(py, &error, reply),
    }
    plan.scopes.let_go(py);
    plan.spare.give(py, callables);
}

fn of<'py>(turn: &Turn<'_, 'py>, reply: &Reply<'_>) -> Option<Bound<'py, Conversation>> {
    let py = turn.py;
    let conversation = |role: &mut Py<Conversation>| role.clone_ref(py);
    let found = turn.handle.with_role(reply.id(), conversation);
    found.map(|conversation| conversation.into_bound(py))
}
