//! The ASGI gateway: a request in, a call of `app(scope, receive, send)`, its messages out.
//!
//! A request with a complete or empty body is called at once; with a longer body, when what arrived with the head is taken
//! in. The first step runs in the turn. A disconnect cancels nothing: `receive` returns `http.disconnect`, `send` raises.
//! `message.rs` has the messages, `scope.rs` the scope, `http_cycle.rs` the state of a request. Tests: `tests/asgi/`.

use std::sync::Arc;

use citius_base::task::CompletionHandler as _;
use citius_http::{Fields, Head};
use citius_reactor::Reply;
use citius_reactor::ws::Opening;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::completion;
use crate::gateway::asgi::callables::Callables;
use crate::gateway::asgi::http_cycle::{HttpCompletion, HttpCycle, OpenCycle, PendingCall};
use crate::gateway::body_limit::BodyLimit;
use crate::gateway::turn::Turn;
use crate::gateway::ws;
use crate::request_context::RequestContext;

mod awaitables;
mod callables;
mod http_cycle;
mod message;
mod reusable_dict;
mod scope;
mod scope_headers;
mod session;
mod socket;

/// The ASGI gateway to one application.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct Asgi {
    app: Py<PyAny>,
    root_path: String,
    state: Py<PyDict>,
    is_debug: bool,
    offers_webtransport: bool,
}

#[pymethods]
impl Asgi {
    #[new]
    #[pyo3(signature = (app, *, root_path = "", state, debug = false, webtransport = false))]
    fn new(
        app: Py<PyAny>,
        root_path: &str,
        state: Py<PyDict>,
        debug: bool,
        webtransport: bool,
    ) -> Self {
        Self {
            app,
            root_path: root_path.to_owned(),
            state,
            is_debug: debug,
            offers_webtransport: webtransport,
        }
    }
}

/// What a reactor has of it.
pub(crate) struct Plan {
    pub(crate) app: Py<PyAny>,
    scopes: scope::ScopeFactory,
    constants: Arc<http_cycle::Constants>,
    spare: callables::SpareCallables,
    /// Clients are told that they may ask for WebTransport sessions.
    pub(crate) offers_webtransport: bool,
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
            scopes: scope::ScopeFactory::new(
                &self.root_path,
                self.state.clone_ref(py),
                self.is_debug,
            ),
            constants: Arc::new(http_cycle::Constants::new(py)?),
            spare: callables::SpareCallables::default(),
            offers_webtransport: self.offers_webtransport,
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
    if plan.offers_webtransport && citius_reactor::asks_session(&head) {
        return session::request(turn, plan, head, reply);
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
        .take(py, turn.handle, &plan.constants, &head, ended, reply);
    let callables = match taken {
        Ok(callables) => callables,
        Err(error) => return refuse(turn, &error, head, reply),
    };
    if ended {
        return call(turn, plan, callables, head, reply);
    }
    turn.handle
        .enter(reply.id(), OpenCycle(callables.cycle.clone_ref(py)));
    if awaits_consent {
        // RFC 9110 §10.1.1: the client is told to go on when the application asks for the body.
        return call(turn, plan, callables, head, reply);
    }
    let Callables {
        cycle,
        receive,
        send,
    } = callables;
    cycle.get().set_pending_call(PendingCall {
        head,
        receive,
        send,
    });
    cycle.get().want_window(reply);
    // Comes when what has arrived with the head has been taken in.
    reply.await_writable();
}

/// There is not even what a request is answered with: the error is logged, and the response is 500.
#[cold]
fn refuse(turn: &Turn<'_, '_>, error: &PyErr, head: Box<Head>, reply: &mut Reply<'_>) {
    let mut context = RequestContext::new(reply.id(), reply.peer(), turn.handle, head);
    completion::send_internal_error(turn.py, error, &mut context, reply);
    if let Some(head) = context.head.take() {
        reply.recycle(head);
    }
}

/// A piece of the body.
pub(crate) fn data(turn: &mut Turn<'_, '_>, bytes: &[u8], reply: &mut Reply<'_>) {
    if let Some(cycle) = of(turn, reply) {
        cycle.get().push_body(turn.py, bytes);
    }
}

/// The body is complete.
pub(crate) fn end(turn: &mut Turn<'_, '_>, plan: &Plan, trailers: Fields, reply: &mut Reply<'_>) {
    // ASGI has no message for a request's trailers.
    drop(trailers);
    let Some(cycle) = of(turn, reply) else {
        return ws::end(turn, reply);
    };
    cycle.get().end_body(turn.py);
    if let Some(pending_call) = cycle.get().take_pending_call() {
        call_late(turn, plan, cycle, pending_call, reply);
    }
}

/// What has arrived with a head has been taken in, or there is room for more of a response.
pub(crate) fn writable(turn: &mut Turn<'_, '_>, plan: &Plan, reply: &mut Reply<'_>) {
    let Some(cycle) = of(turn, reply) else {
        return;
    };
    match cycle.get().take_pending_call() {
        Some(pending_call) => call_late(turn, plan, cycle, pending_call, reply),
        None => cycle.get().on_writable(turn.py),
    }
}

/// Calls the application of a request whose body has come after its head.
fn call_late(
    turn: &mut Turn<'_, '_>,
    plan: &Plan,
    cycle: Bound<'_, HttpCycle>,
    pending_call: PendingCall,
    reply: &mut Reply<'_>,
) {
    let callables = Callables {
        cycle: cycle.unbind(),
        receive: pending_call.receive,
        send: pending_call.send,
    };
    call(turn, plan, callables, pending_call.head, reply);
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
    let cycle = callables.cycle.bind(py);
    let called = plan.scopes.make(py, &head, reply).and_then(|scope| {
        cycle.get().set_scope(scope.clone().unbind());
        let (receive, send) = (callables.receive.bind(py), callables.send.bind(py));
        plan.app.bind(py).call1((scope, receive, send))
    });
    reply.recycle(head);
    let mut completion = HttpCompletion::new(cycle);
    match called.and_then(|awaitable| awaitables::coroutine_of(&awaitable)) {
        Ok(coroutine) => turn.tasks.step(py, coroutine, &mut completion, reply),
        Err(error) => completion.fail(py, &error, reply),
    }
    plan.scopes.release(py);
    plan.spare.give(py, callables);
}

fn of<'py>(turn: &Turn<'_, 'py>, reply: &Reply<'_>) -> Option<Bound<'py, HttpCycle>> {
    let py = turn.py;
    let cycle = |role: &mut OpenCycle| role.0.clone_ref(py);
    let found = turn.handle.with_role(reply.id(), cycle);
    found.map(|cycle| cycle.into_bound(py))
}
