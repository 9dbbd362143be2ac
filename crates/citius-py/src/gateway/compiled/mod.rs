//! Compiled handlers: native code called without a Python object.
//!
//! [`abi`] is the C header from this side, [`arguments`] makes arguments, [`handler`] calls one handler, [`pool`] runs long work,
//! [`object`] is the Python class. Tests: `tests/compiled/`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use citius_base::exchange::{LazySubject, Role};
use citius_base::logging::Names;
use citius_base::reactor_handle::ReactorHandle;
use citius_base::report::{self, LEVEL_ERROR, LEVEL_WARNING, Subject};
use citius_http::Head;
use citius_reactor::{Reply, StreamCommand, StreamId, coarse_ms};
use citius_route::Captures;
use pyo3::prelude::*;

use self::arguments::Given;
use self::handler::{Handler, response_command, send, with_response};
use crate::gateway::native::Route;
use crate::gateway::turn::Turn;
use crate::request_context::RequestContext;

pub(crate) mod abi;
mod arguments;
pub(crate) mod client_stream;
pub(super) mod goroutine;
pub(crate) mod handler;
pub(crate) mod object;
pub(crate) mod pool;
mod query;

/// An open exchange whose handler is called when the body is complete.
pub(crate) struct AwaitsBody {
    head: Box<Head>,
    captures: Captures,
    pub(super) route: Arc<Route>,
    body: Vec<u8>,
}

impl AwaitsBody {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
    }
}

impl Role for AwaitsBody {
    fn on_disconnect(self: Box<Self>, _py: Python<'_>) -> bool {
        false
    }

    fn subject(&self, _py: Python<'_>, names: Names<'_>) -> Option<LazySubject> {
        let subject = Subject::new(names, &self.head, Some(&self.route.info.label));
        Some(Box::new(move |_| subject))
    }
}

/// An open exchange that a thread works on, which looks here whether its client has gone.
struct InPool(Arc<AtomicBool>);

impl Role for InPool {
    fn on_disconnect(self: Box<Self>, _py: Python<'_>) -> bool {
        self.0.store(true, Ordering::Relaxed);
        false
    }

    fn subject(&self, _py: Python<'_>, _names: Names<'_>) -> Option<LazySubject> {
        Some(Box::new(|_| Subject::named(String::from("a request"))))
    }
}

/// A request on its way through a thread.
pub(crate) struct Job {
    handler: Arc<Handler>,
    route: Arc<Route>,
    handle: Arc<ReactorHandle>,
    id: StreamId,
    head: Box<Head>,
    captures: Captures,
    body: Vec<u8>,
    /// The client has left.
    is_disconnected: Arc<AtomicBool>,
}

/// Where requests are handled that take long.
pub(crate) type Pool = pool::Pool<Job>;

/// Where a handler is called.
pub(crate) enum CallSite {
    /// On the reactor's thread.
    Here,
    /// On a thread without the GIL.
    Threads(Arc<Pool>),
    /// In a goroutine of the reactor.
    Goroutine,
    /// In a goroutine of the threads without the GIL.
    PooledGoroutine,
}

impl pool::Job for Job {
    type OnPanic = (Arc<ReactorHandle>, StreamId);

    fn on_panic(&self) -> Self::OnPanic {
        (Arc::clone(&self.handle), self.id)
    }

    fn run(self, place: pool::Place<'_, Self>) {
        run_in_pool(self, place);
    }

    fn give_up((handle, id): Self::OnPanic) {
        handle.cut(id);
    }
}

/// `GET /x: the compiled handler NAME: WHAT [route /x, handler NAME, request id 5f]`.
fn complaint(handle: &ReactorHandle, route: &Route, head: &Head, what: &str) -> String {
    let name = route.compiled.as_ref().map_or("", |handler| &handler.name);
    let what = format!(": the compiled handler {name}: {what}");
    Subject::new(handle.names(), head, Some(&route.info.label)).message(&what)
}

/// A request for a compiled handler: calls it now, or when the body is there.
#[inline]
pub(super) fn request(
    turn: &mut Turn<'_, '_>,
    route: &Arc<Route>,
    mut context: RequestContext<'_>,
    ended: bool,
    reply: &mut Reply<'_>,
) {
    let Some(head) = context.head.take() else {
        return;
    };
    let captures = std::mem::take(&mut context.captures);
    if ended || route.info.streams_body {
        return call(turn, route, head, captures, Vec::new(), ended, reply);
    }
    let role = AwaitsBody {
        head,
        captures,
        route: Arc::clone(route),
        body: Vec::new(),
    };
    turn.handle.enter(reply.id(), role);
    reply.want(u64::MAX);
}

/// The body of a request is complete.
pub(super) fn end(turn: &mut Turn<'_, '_>, awaits: AwaitsBody, reply: &mut Reply<'_>) {
    let AwaitsBody {
        head,
        captures,
        route,
        body,
    } = awaits;
    call(turn, &route, head, captures, body, true, reply);
}

fn call(
    turn: &mut Turn<'_, '_>,
    route: &Arc<Route>,
    head: Box<Head>,
    captures: Captures,
    body: Vec<u8>,
    has_ended: bool,
    reply: &mut Reply<'_>,
) {
    let Some(handler) = &route.compiled else {
        return;
    };
    if !matches!(route.site, CallSite::Here) {
        let job = Job {
            handler: Arc::clone(handler),
            route: Arc::clone(route),
            handle: Arc::clone(turn.handle),
            id: reply.id(),
            head,
            captures,
            body,
            is_disconnected: Arc::default(),
        };
        return match &route.site {
            CallSite::Threads(pool) => submit(turn, pool, job, reply),
            CallSite::PooledGoroutine => goroutine::serve_in_pool(turn, job, has_ended, reply),
            CallSite::Goroutine | CallSite::Here => goroutine::serve(turn, job, has_ended, reply),
        };
    }
    turn.tasks.enter_shared(turn.py);
    let began_ms = coarse_ms();
    with_response(|response| {
        let given = Given {
            head: &head,
            captures: &captures,
            body: &body,
        };
        let py = turn.py;
        let (outcome, mistake) =
            handler.make(given, reply.limits(), response, |request, response| {
                handler.enter_in_turn(py, request, response)
            });
        let tell = |level, what: &str| {
            turn.handle
                .log(py, level, &complaint(turn.handle, route, &head, what));
        };
        if let Some(mistake) = mistake {
            report::failure(py, &complaint(turn.handle, route, &head, &mistake));
        }
        if let Err(fault) = send(py, handler, outcome, response, reply) {
            tell(LEVEL_ERROR, &format!("{} ({})", fault.text(), fault.spec()));
        }
        if let Some(what) = handler.long_run(began_ms, reply.limits()) {
            tell(LEVEL_WARNING, &what);
        }
    });
    reply.recycle(head);
}

/// Hands a request to the threads.
fn submit(turn: &mut Turn<'_, '_>, pool: &Pool, job: Job, reply: &mut Reply<'_>) {
    // Before the job is there for the taking: a thread may respond before this returns.
    turn.handle
        .enter(reply.id(), InPool(Arc::clone(&job.is_disconnected)));
    if let Err(job) = pool.submit(Box::new(job)) {
        drop(turn.handle.take(reply.id()));
        crate::respond::send_fault(turn.py, citius_http::Fault::Overloaded, None, reply);
        reply.recycle(job.head);
    }
}

/// What a thread of the pool does; `place` is given back before the client can know of it, so that a client with a
/// response finds room.
fn run_in_pool(job: Job, place: pool::Place<'_, Job>) {
    let Job {
        handler,
        route,
        handle,
        id,
        head,
        captures,
        body,
        is_disconnected,
    } = job;
    if is_disconnected.load(Ordering::Relaxed) {
        // The client has left while the request was queued.
        drop(place);
        return handle.keep_head(head);
    }
    let (command, mistake) = with_response(|response| {
        let given = Given {
            head: &head,
            captures: &captures,
            body: &body,
        };
        let (outcome, mistake) =
            handler.make(given, &handle.limits, response, |request, response| {
                handler.enter_on_thread(request, response)
            });
        (response_command(&handler, outcome, response), mistake)
    });
    if let Some(mistake) = mistake {
        handle.note_failure(complaint(&handle, &route, &head, &mistake));
    }
    drop(place);
    post(&handle, id, command);
    handle.keep_head(head);
}

fn post(handle: &ReactorHandle, id: StreamId, command: StreamCommand) {
    drop(handle.take(id));
    if handle.mailbox.post(id, command) {
        handle.mailbox.wake();
    }
}
