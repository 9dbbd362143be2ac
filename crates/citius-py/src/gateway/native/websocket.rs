//! Requests for WebSockets of native applications: a request in, a call of the handler with its socket.
//!
//! Tests: `tests/gateway/test_websocket.py`, `tests/server/test_websocket.py`.

use std::sync::Arc;

use citius_base::task::CompletionHandler as _;
use citius_base::task::Next;
use citius_http::{Fault, Method};
use citius_reactor::Reply;
use citius_reactor::ws::Transport;
use citius_route::Found;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::calling::find_handled;
use super::routes::{Argument, Route, Routes};
use crate::gateway::turn::Turn;
use crate::gateway::ws::{self, Session, WebSocket};
use crate::request::Request;
use crate::request_context::RequestContext;
use crate::route::Kind;
use crate::{completion, respond};

/// Whether there is a socket where nothing else is.
#[cold]
pub(super) fn is_socket_path(
    py: Python<'_>,
    routes: &Routes,
    context: &RequestContext<'_>,
) -> bool {
    context.with_head(py, |head| {
        let mut captures = citius_route::Captures::new();
        let found = routes.sockets.find("GET", head.path(), &mut captures);
        head.method == Method::Get && matches!(found, Found::Route(_))
    })
}

/// Makes a socket of a request for one and calls its handler; `false` if there is none at its path.
#[inline(never)]
pub(super) fn open_socket<'a>(
    turn: &mut Turn<'_, '_>,
    routes: &'a Routes,
    transport: Transport,
    context: &mut RequestContext<'a>,
    ended: bool,
    reply: &mut Reply<'_>,
) -> bool {
    let py = turn.py;
    let Some(route) = find_handled(&routes.sockets, "GET", context, reply) else {
        return false;
    };
    let head = context.head.as_deref().expect("it was put there just now");
    let Some(opening) = ws::opening(head, transport, ended, reply) else {
        return true;
    };
    let session = Arc::new(Session::new(context.id, turn.handle, opening));
    let made = context.request(py, true).and_then(|request| {
        // No response follows that deferred calls could wait for.
        Request::end_handler(request, false);
        let socket = WebSocket::new(Arc::clone(&session), request.clone().unbind());
        Bound::new(py, socket)
    });
    let socket = match made {
        Ok(socket) => socket,
        Err(error) => {
            completion::send_internal_error(py, &error, context, reply);
            return true;
        }
    };
    ws::enter(turn, &session, true);
    let mut completion = ws::completion::SocketCompletion::new(&socket, None);
    let arguments = match socket_arguments(&socket, route) {
        Ok(arguments) => arguments,
        Err(error) => {
            completion.fail(py, &error, reply);
            return true;
        }
    };
    if route.kind != Kind::Async {
        turn.tasks.enter_shared(py);
        submit_socket(turn, &socket, route, &arguments, reply);
        return true;
    }
    let coroutine = match route.info.handler.bind(py).call1(arguments) {
        Ok(coroutine) => Some(coroutine.unbind()),
        Err(error) => match completion.on_result(py, Err(error), reply) {
            Next::Coroutine(coroutine) => Some(coroutine),
            Next::Done(_) => None,
        },
    };
    if let Some(coroutine) = coroutine {
        turn.tasks.step(py, coroutine, &mut completion, reply);
    }
    true
}

/// The positional arguments of a socket's handler.
pub(super) fn socket_arguments<'py>(
    socket: &Bound<'py, WebSocket>,
    route: &Route,
) -> PyResult<Bound<'py, PyTuple>> {
    let py = socket.py();
    let params = socket
        .get()
        .request
        .bind(py)
        .getattr(pyo3::intern!(py, "path_params"))?;
    let argument = |argument: &Argument| match *argument {
        Argument::Request => Ok(socket.clone().into_any()),
        Argument::Param(at, _) => params.get_item(route.info.params[at].name.as_str()),
    };
    let arguments = route.arguments.iter().map(argument);
    PyTuple::new(py, arguments.collect::<PyResult<Vec<_>>>()?)
}

/// Hands a socket to the thread pool, or whatever waits in its place.
pub(super) fn submit_socket(
    turn: &Turn<'_, '_>,
    socket: &Bound<'_, WebSocket>,
    route: &Route,
    arguments: &Bound<'_, PyTuple>,
    reply: &mut Reply<'_>,
) {
    let py = turn.py;
    let submitted = turn
        .handle
        .callbacks
        .submit
        .as_ref()
        .ok_or_else(|| PyRuntimeError::new_err("there is no thread pool for `def` handlers"))
        .and_then(|submit| {
            submit
                .bind(py)
                .call1((socket, &route.info.handler, arguments))?
                .is_truthy()
        });
    // A pool's thread may have begun already; what it has sent leaves with this turn.
    let mut completion = ws::completion::SocketCompletion::new(socket, None);
    completion.flush(py, reply);
    match submitted {
        Ok(true) => {}
        Ok(false) => {
            let request = socket.get().request.bind(py).clone();
            let format = RequestContext::of_request(&request).error_format(py);
            socket.get().session.refuse();
            drop(turn.handle.take(reply.id()));
            respond::send_fault(py, Fault::Overloaded, format, reply);
        }
        Err(error) => completion.fail(py, &error, reply),
    }
}
