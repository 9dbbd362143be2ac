//! The native gateway: a request in, its route, a call with the arguments that the handler declares.
//!
//! What the handler returns goes to `respond.rs`, a coroutine to `task/`. A Python object of the request exists only if the
//! handler asks for it or the request outlives the turn. `routes.rs` has the routes, `websocket.rs` requests for WebSockets,
//! `webtransport.rs` those for sessions,
//! `unmatched.rs` those that no route takes, `calling.rs` calls handlers. Tests: `tests/gateway/`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use citius_base::exchange::{Exchange, LazySubject, Role};
use citius_base::logging::Names;
use citius_base::passing::{Content, asks_for_websocket};
use citius_base::reactor_handle::ReactorHandle;
use citius_base::report;
use citius_http::coding::Coding;
use citius_http::{Action, Fields, Head, Method, Payload, ResponseHead, Status};
use citius_reactor::Reply;
use citius_reactor::ws::Opening;
use citius_route::{Captures, Found};
use pyo3::prelude::*;

use crate::completion::{self, complete_in_turn};
use crate::form::Fed;
use crate::gateway::body_limit::BodyLimit;
use crate::gateway::compiled::goroutine::InGoroutine;
use crate::gateway::turn::Turn;
use crate::gateway::{compiled, ws};
use crate::request::Request;
use crate::request_context::{NativeRequest, RequestContext};
use crate::respond;
use crate::stream::Stream;

use self::calling::call;
use self::direct::Forwarded;
use self::routes::Shape;
use self::unmatched::respond_unmatched;
use self::websocket::open_socket;
use self::webtransport::open_session;

mod calling;
mod direct;
mod routes;
mod unmatched;
mod websocket;
mod webtransport;

pub(crate) use self::routes::{Native, Route, Routes};

/// An open exchange whose handler is called when the body is complete.
struct AwaitsBody {
    request: Py<Request>,
    route: Arc<Route>,
}

impl Role for AwaitsBody {
    fn on_disconnect(self: Box<Self>, py: Python<'_>) -> bool {
        self.request.get().break_body(py);
        true
    }

    fn subject(&self, py: Python<'_>, _names: Names<'_>) -> Option<LazySubject> {
        let request = self.request.clone_ref(py);
        Some(Box::new(move |_| request.get().subject()))
    }
}

/// How long the body of an open exchange may be.
#[cold]
pub(super) fn body_limit(handle: &ReactorHandle, exchange: &Exchange) -> BodyLimit {
    let limits = &handle.limits;
    let of_request = |request: &Py<Request>| {
        let request = request.get();
        let route = request.route()?;
        Some(route.body_limit(limits, request.head()))
    };
    let limit = if let Some(awaits) = exchange.role::<compiled::AwaitsBody>() {
        Some(BodyLimit::held(limits, awaits.route.info.body_bytes_max))
    } else if let Some(awaits) = exchange.role::<AwaitsBody>() {
        of_request(&awaits.request)
    } else {
        let role = exchange.role::<NativeRequest>();
        let limit = role.and_then(|role| of_request(&role.request));
        limit.or_else(|| exchange.role::<Forwarded>()?.body_limit())
    };
    limit.unwrap_or_else(|| BodyLimit::held(limits, None))
}

/// A request head is complete: finds its route and calls the handler now or when the body is there.
#[inline]
pub(super) fn request(
    turn: &mut Turn<'_, '_>,
    routes: &Routes,
    head: Box<Head>,
    ended: bool,
    reply: &mut Reply<'_>,
) {
    let (mut head, mut captures) = (head, Captures::new());
    let route = if let Some(route) = routes.recall(head.app_tag) {
        route
    } else {
        turn.handle.latest_route.store(0, Ordering::Relaxed);
        let found = find_route(turn, routes, head, &mut captures, ended, reply);
        let Some((route, found_for)) = found else {
            return;
        };
        head = found_for;
        route
    };
    turn.handle
        .latest_route
        .store(route.place, Ordering::Relaxed);
    reply.classify(route.class);
    if ended {
        match route.shape {
            Shape::Bare => return call_bare(turn, route, head, reply),
            Shape::Alone => return call_alone(turn, route, head, reply),
            Shape::Any => {}
        }
    } else if refuses_body(turn, route, &head, reply) {
        return reply.recycle(head);
    }
    if let Some(levels) = &route.compression {
        let unused = compress_or_forward(turn, (route, levels), (head, captures), ended, reply);
        let Some(unused) = unused else { return };
        (head, captures) = unused;
    }
    let mut context = RequestContext::new(reply.id(), reply.peer(), turn.handle, head);
    context.captures = captures;
    context.route = Some(&route.info);
    if route.compiled.is_some() {
        return compiled::request(turn, route, context, ended, reply);
    }
    if ended {
        call(turn, route, None, &mut context, true, reply);
    } else {
        await_body(turn, route, context, reply);
    }
}

/// Sets how the response is compressed, and passes a request on whose route does that; returns a request that is for Python.
///
/// Never inlined: with it [`request`] is not either, which costs a plain request 57 instructions.
#[inline(never)]
fn compress_or_forward(
    turn: &mut Turn<'_, '_>,
    (route, levels): (&Arc<Route>, &[(Coding, u8)]),
    (head, captures): (Box<Head>, Captures),
    ended: bool,
    reply: &mut Reply<'_>,
) -> Option<(Box<Head>, Captures)> {
    if levels.is_empty() {
        reply.keep_as_is();
    }
    reply.set_compression_levels(levels);
    // Those that are passed on are never compressed here, so others are spared this question.
    if route.info.forwards && asks_for_websocket(&head) && !reply.hold() {
        refuse_pipelined(head, reply);
        return None;
    }
    match &route.direct {
        Some(direct) => direct::begin(turn, route, direct, (head, captures), ended, reply),
        None => Some((head, captures)),
    }
}

/// Answers a request for a WebSocket behind which another request has come, or before which a response is due.
#[cold]
fn refuse_pipelined(head: Box<Head>, reply: &mut Reply<'_>) {
    let response = ResponseHead::text(Status::BAD_REQUEST);
    let text = Payload::Copied(b"nothing may follow a request for a WebSocket before its response");
    // Refused only when the connection is being cut already.
    let _ = reply.send(Action::Respond(response, text));
    reply.recycle(head);
}

/// Holds a body to the limit of its route; `true`: it is announced longer, and the request is answered.
#[inline(never)]
fn refuses_body(turn: &Turn<'_, '_>, route: &Route, head: &Head, reply: &mut Reply<'_>) -> bool {
    let limit = route.info.body_limit(&turn.handle.limits, head);
    limit.enforce(turn.py, turn.handle, head, Some(&route.info.label), reply)
}

/// The route of a head that is not known yet, and the head; `None` if it is answered without one.
#[inline(never)]
fn find_route<'a>(
    turn: &mut Turn<'_, '_>,
    routes: &'a Routes,
    mut head: Box<Head>,
    captures: &mut Captures,
    ended: bool,
    reply: &mut Reply<'_>,
) -> Option<(&'a Arc<Route>, Box<Head>)> {
    if routes.has_sockets
        && let Some(transport) = Opening::transport(&head)
    {
        let mut context = RequestContext::new(reply.id(), reply.peer(), turn.handle, head);
        if open_socket(turn, routes, transport, &mut context, ended, reply) {
            return None;
        }
        head = context.head.take().expect("there is no socket to take it");
    }
    if routes.has_sessions && citius_reactor::asks_session(&head) {
        let mut context = RequestContext::new(reply.id(), reply.peer(), turn.handle, head);
        if open_session(turn, routes, &mut context, reply) {
            return None;
        }
        head = context.head.take().expect("there is no session to take it");
    }
    let is_connect = head.method == Method::Connect;
    let allow = match routes.find(&mut head, captures) {
        // An extended CONNECT (RFC 8441, RFC 9220) is no request but for routes that pass WebSockets on, whatever
        // methods the others have.
        Found::Route(route) if !is_connect || route.info.forwards && asks_for_websocket(&head) => {
            return Some((route, head));
        }
        Found::Route(_) => {
            head.app_tag = 0;
            captures.clear();
            None
        }
        Found::MethodNotAllowed(allow) => Some(allow),
        Found::Nothing => None,
    };
    let mut context = RequestContext::new(reply.id(), reply.peer(), turn.handle, head);
    respond_unmatched(turn, routes, allow, &mut context, ended, reply);
    None
}

/// Calls a handler that wants to know nothing of its request; most return text or bytes, and nothing else has to be made.
#[inline]
fn call_bare(turn: &mut Turn<'_, '_>, route: &Arc<Route>, head: Box<Head>, reply: &mut Reply<'_>) {
    turn.tasks.enter_shared(turn.py);
    let result = route.info.handler.bind(turn.py).call0();
    if respond_plain_value(&result, reply) {
        return reply.recycle(head);
    }
    let mut context = RequestContext::new(reply.id(), reply.peer(), turn.handle, head);
    context.route = Some(&route.info);
    complete_in_turn(turn.py, result, &mut context, reply, turn.tasks);
}

/// Calls a handler that wants its request and nothing else.
#[inline]
fn call_alone(turn: &mut Turn<'_, '_>, route: &Arc<Route>, head: Box<Head>, reply: &mut Reply<'_>) {
    let py = turn.py;
    turn.tasks.enter_shared(py);
    let made = Request::alone(reply.id(), reply.peer(), turn.handle, &route.info, head);
    let request = match Bound::new(py, made) {
        Ok(request) => request,
        Err(error) => {
            let mut context =
                RequestContext::new(reply.id(), reply.peer(), turn.handle, Box::default());
            return complete_in_turn(py, Err(error), &mut context, reply, turn.tasks);
        }
    };
    let result = route.info.handler.bind(py).call1((&request,));
    if respond_plain_value(&result, reply) {
        return Request::end_handler(&request, false);
    }
    let mut context = RequestContext::of_request(&request);
    complete_in_turn(py, result, &mut context, reply, turn.tasks);
}

/// Answers with what a handler returned, if that takes nothing but to write it.
#[inline]
fn respond_plain_value(result: &PyResult<Bound<'_, PyAny>>, reply: &mut Reply<'_>) -> bool {
    let Ok(value) = result else {
        return false;
    };
    let plain = respond::plain_response(value).ok().flatten();
    plain.is_some_and(|plain| reply.respond(plain))
}

/// What takes a piece of a body.
enum Taker {
    Request(Py<Request>),
    /// It goes to another server.
    Content(Arc<dyn Content>),
}

/// A piece of the body.
pub(super) fn data(turn: &mut Turn<'_, '_>, bytes: &[u8], reply: &mut Reply<'_>) {
    turn.tasks.enter_shared(turn.py);
    let py = turn.py;
    let take = |exchange: &mut Exchange| {
        if let Some(awaits) = exchange.role_mut::<compiled::AwaitsBody>() {
            awaits.push(bytes);
            return None;
        }
        let request = match exchange.role::<AwaitsBody>() {
            Some(awaits) => &awaits.request,
            None => {
                if let Some(role) = exchange.role::<NativeRequest>() {
                    &role.request
                } else if let Some(role) = exchange.role::<InGoroutine>() {
                    role.stream.push(bytes);
                    return None;
                } else {
                    return exchange.role::<Forwarded>()?.content().map(Taker::Content);
                }
            }
        };
        Some(Taker::Request(request.clone_ref(py)))
    };
    let request = match turn.handle.with(reply.id(), take).flatten() {
        Some(Taker::Request(request)) => request,
        Some(Taker::Content(content)) => return content.push(py, bytes),
        None => return,
    };
    match request.get().push_body(py, bytes) {
        None => {}
        Some(Fed::Want(bytes)) => reply.want(bytes),
        // The handler refuses it, as it refuses other mistakes.
        Some(Fed::Failed) => {
            if let Some(awaits) = turn.handle.take_role::<AwaitsBody>(reply.id()) {
                call_awaiting(turn, *awaits, reply);
            }
        }
    }
}

/// Calls a handler that waits for the body of its request, unless files of a form in it are still being written.
fn call_awaiting(turn: &mut Turn<'_, '_>, awaits: AwaitsBody, reply: &mut Reply<'_>) {
    if awaits.request.get().awaits_files() {
        return turn.handle.enter(reply.id(), awaits);
    }
    let AwaitsBody { request, route } = awaits;
    let mut context = RequestContext::of_request(request.bind(turn.py));
    call(turn, &route, None, &mut context, true, reply);
}

/// The body is complete.
pub(super) fn end(turn: &mut Turn<'_, '_>, trailers: Fields, reply: &mut Reply<'_>) {
    let (py, id) = (turn.py, reply.id());
    turn.tasks.enter_shared(py);
    if let Some(awaits) = turn.handle.take_role::<AwaitsBody>(id) {
        awaits.request.get().end_body(py, trailers);
        return call_awaiting(turn, *awaits, reply);
    }
    if let Some(awaits) = turn.handle.take_role::<compiled::AwaitsBody>(id) {
        return compiled::end(turn, *awaits, reply);
    }
    let request = |role: &mut NativeRequest| role.request.clone_ref(py);
    let stream = |role: &mut InGoroutine| Arc::clone(&role.stream);
    match turn.handle.with_role(id, request) {
        Some(request) => request.get().end_body(py, trailers),
        None => match turn.handle.with_role(id, stream) {
            Some(stream) => stream.end(),
            None => match turn.handle.with_role(id, Forwarded::end).flatten() {
                Some(content) => content.end(py, &trailers),
                None => ws::end(turn, reply),
            },
        },
    }
}

/// There is room for more of a streamed response.
pub(super) fn writable(turn: &mut Turn<'_, '_>, reply: &mut Reply<'_>) {
    turn.tasks.enter_shared(turn.py);
    let py = turn.py;
    let stream = |role: &mut NativeRequest| role.stream.as_ref().map(|kept| kept.clone_ref(py));
    if let Some(stream) = turn.handle.with_role(reply.id(), stream).flatten() {
        return offer_room(turn, stream.get(), reply);
    }
    let relaying = |role: &mut NativeRequest| role.relaying.clone();
    if let Some(relaying) = turn.handle.with_role(reply.id(), relaying).flatten() {
        return relaying.has_room(py);
    }
    let underway = |role: &mut Forwarded| Arc::clone(&role.underway);
    if let Some(underway) = turn.handle.with_role(reply.id(), underway) {
        return direct::writable(turn, underway, reply);
    }
    let stream = |role: &mut InGoroutine| Arc::clone(&role.stream);
    if let Some(stream) = turn.handle.with_role(reply.id(), stream) {
        return stream.has_room();
    }
    let ended = |awaits: &mut AwaitsBody| awaits.request.get().has_body_ended();
    // The files of a form are written.
    if turn.handle.with_role(reply.id(), ended) == Some(true)
        && let Some(awaits) = turn.handle.take_role::<AwaitsBody>(reply.id())
    {
        call_awaiting(turn, *awaits, reply);
    }
}

/// Lets the driver of a stream go on.
fn offer_room(turn: &Turn<'_, '_>, stream: &Stream, reply: &mut Reply<'_>) {
    stream.begin_step();
    stream.has_room(turn.py);
    if let Err(fault) = stream.end_step(|command| reply.deliver(command)) {
        report::action_refused(turn.py, turn.handle, reply.id(), fault);
    }
}

/// Calls for the body, and calls the handler now or when that is complete.
fn await_body(
    turn: &mut Turn<'_, '_>,
    route: &Arc<Route>,
    mut context: RequestContext<'_>,
    reply: &mut Reply<'_>,
) {
    let request = match context.request(turn.py, false) {
        Ok(request) => request.clone().unbind(),
        Err(error) => {
            completion::send_internal_error(turn.py, &error, &mut context, reply);
            return;
        }
    };
    if route.info.streams_body {
        request.get().set_streamed();
        if route.info.forwards && !request.get().head().expects_continue {
            // It leaves with the head.
            let window = u64::from(turn.handle.limits.body_window_bytes);
            request.get().note_wanted(window);
            reply.want(window);
        }
        turn.handle.enter(reply.id(), NativeRequest::new(request));
        call(turn, route, None, &mut context, false, reply);
    } else {
        let form = route.info.form.as_ref();
        let parses = form.is_some_and(|form| request.get().expect_form(form));
        let route = Arc::clone(route);
        turn.handle.enter(reply.id(), AwaitsBody { request, route });
        let window = u64::from(turn.handle.limits.body_window_bytes);
        reply.want(if parses { window } else { u64::MAX });
    }
}
