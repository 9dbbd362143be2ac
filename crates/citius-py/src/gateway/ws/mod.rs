//! WebSockets of every interface: received messages wait in a [`Session`], sent ones leave through it.
//!
//! `session.rs` is one socket, `completion.rs` what follows its handler, `receive.rs` the awaitable of a message, `room.rs` sends one message to many. `socket.rs` is
//! `citius.WebSocket`; `../asgi/socket.rs` has ASGI's messages. A coroutine that waits for a message is stepped within the turn
//! that brings it, and what it sends leaves in the same turn. Tests: `tests/server/test_websocket.py`.

use std::sync::Arc;

use citius_base::exchange::Role;
use citius_base::report::LEVEL_DEBUG;
use citius_http::{Fields, Head, Payload, ResponseHead};
use citius_reactor::Reply;
use citius_reactor::ws::{Close, Code, Fault, Kind, Opening, Refusal, Transport};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::gateway::turn::Turn;

pub(crate) mod completion;
pub(crate) mod members;
pub(crate) mod receive;
pub(crate) mod room;
pub(crate) mod session;
pub(crate) mod socket;

pub(crate) use session::Session;
pub(crate) use socket::WebSocket;

const OVERRUN: &str = "a WebSocket was closed with 1013: more bytes of messages than ws_queued_bytes_max wait for \
    the application, and more than its share for that socket";

/// An open exchange that is a WebSocket, whatever interface serves it.
pub(crate) struct SocketRole {
    session: Arc<Session>,
    /// A handler that is elsewhere when its client is lost is cancelled.
    cancels: bool,
}

impl Role for SocketRole {
    fn on_disconnect(self: Box<Self>, py: Python<'_>) -> bool {
        self.session.end(Close::abnormal());
        let was_awaited = self.session.wake_later(py);
        self.cancels && !was_awaited
    }
}

/// Reads a request for a WebSocket on `transport`; `None`: it is invalid, and its response was sent.
/// `ended`: the client's side of the stream has ended with the head, which is how requests of HTTP/1.1 look, too.
pub(crate) fn opening(
    head: &Head,
    transport: Transport,
    ended: bool,
    reply: &mut Reply<'_>,
) -> Option<Opening> {
    if ended && transport == Transport::Http2 {
        refuse(Refusal::Ended, reply);
        return None;
    }
    let permits_deflate = reply.limits().ws_deflate_bytes_min > 0;
    match Opening::read(head, transport, permits_deflate) {
        Err(refusal) => {
            refuse(refusal, reply);
            None
        }
        Ok(_) if !reply.hold() => {
            // What has come behind it would be taken for another request, or for frames before they were granted.
            refuse(Refusal::Pipelined, reply);
            None
        }
        Ok(opening) => Some(opening),
    }
}

/// Answers a request for a WebSocket that is none, or one without where there are only those.
#[cold]
pub(crate) fn refuse(refusal: Refusal, reply: &mut Reply<'_>) {
    let fields = refusal.fields();
    let response = ResponseHead {
        fields: &fields,
        ..ResponseHead::text(refusal.status())
    };
    let body = Payload::Copied(refusal.text().as_bytes());
    // Refused only when the connection is being cut already.
    let _ = reply.send(citius_http::Action::Respond(response, body));
}

/// Enters the exchange of a socket before its application is called.
pub(crate) fn enter(turn: &Turn<'_, '_>, session: &Arc<Session>, cancels: bool) {
    let role = SocketRole {
        session: Arc::clone(session),
        cancels,
    };
    turn.handle.enter(session.id, role);
}

fn session_of(turn: &Turn<'_, '_>, reply: &Reply<'_>) -> Option<Arc<Session>> {
    let session = |role: &mut SocketRole| Arc::clone(&role.session);
    turn.handle.with_role(reply.id(), session)
}

/// A message has come; whether another may.
pub(crate) fn message(
    turn: &mut Turn<'_, '_>,
    kind: Kind,
    bytes: &[u8],
    reply: &mut Reply<'_>,
) -> bool {
    let py = turn.py;
    let Some(session) = session_of(turn, reply) else {
        return true;
    };
    let message = match kind {
        // It has been checked to be UTF-8, so this cannot fail but for want of memory.
        Kind::Text => match std::str::from_utf8(bytes) {
            Ok(text) => PyString::new(py, text).into_any().unbind(),
            Err(_) => return true,
        },
        Kind::Binary => PyBytes::new(py, bytes).into_any().unbind(),
    };
    session.push(message, bytes.len());
    session.step(turn, reply);
    if session.is_overrun() {
        turn.handle.log(py, LEVEL_DEBUG, OVERRUN);
        reply.close_socket(&Close::new(Code::TRY_LATER, "too many messages wait"));
        return true;
    }
    session.may_push()
}

/// The socket is over.
pub(crate) fn closed(
    turn: &mut Turn<'_, '_>,
    close: Close,
    fault: Option<Fault>,
    reply: &mut Reply<'_>,
) {
    let id = reply.id();
    if let Some(fault) = fault {
        let message = format!(
            "WebSocket {}: {} ({})",
            id.stream,
            fault.text(),
            fault.spec()
        );
        turn.handle.log(turn.py, LEVEL_DEBUG, &message);
    }
    let Some(session) = session_of(turn, reply) else {
        return;
    };
    // Without a close frame the client is lost, and so is the work for it.
    let is_lost = close.code == Code::ABNORMAL || fault.is_some();
    session.end(close);
    let exchange = turn.handle.take(id);
    let was_awaited = session.step(turn, reply);
    if let Some(exchange) = exchange
        && is_lost
        && !was_awaited
        && exchange
            .role()
            .is_some_and(|role: &SocketRole| role.cancels)
    {
        exchange.cancel(turn.py);
    }
}

/// The client has ended its side of the stream before the WebSocket was accepted, so it never will be: the handler
/// is told as if the connection were lost. Nothing if the stream is no WebSocket.
pub(crate) fn end(turn: &mut Turn<'_, '_>, reply: &mut Reply<'_>) {
    if session_of(turn, reply).is_none() {
        return;
    }
    refuse(Refusal::Ended, reply);
    closed(turn, Close::abnormal(), None, reply);
}

/// The handler of a socket is done: there is nothing to cancel any more. The entry stays for the end of the socket,
/// which others may wait for.
pub(crate) fn release(session: &Session) {
    if session.closed_with().is_some() {
        return drop(session.handle.take(session.id));
    }
    session
        .handle
        .with_role(session.id, |role: &mut SocketRole| role.cancels = false);
    session.handle.set_task(session.id, None);
}

/// There is room for more; `false` if this is no socket.
pub(crate) fn writable(turn: &mut Turn<'_, '_>, reply: &mut Reply<'_>) -> bool {
    let Some(session) = session_of(turn, reply) else {
        return false;
    };
    session.has_room();
    session.step(turn, reply);
    true
}

/// The fields of a response from pairs that Python gave.
pub(crate) fn fields_from(pairs: Option<&Bound<'_, PyAny>>) -> PyResult<Fields> {
    let Some(pairs) = pairs else {
        return Ok(Fields::default());
    };
    let pairs = crate::response::pairs(pairs)?;
    crate::response::fields(&pairs)?.map_err(|fault| {
        pyo3::exceptions::PyValueError::new_err(format!("headers: {}", fault.text()))
    })
}
