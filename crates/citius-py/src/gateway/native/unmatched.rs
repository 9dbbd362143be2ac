//! Requests that no route takes: a call of the application's own handler, or a response with 404, 405, 204, 308 or 426.
//!
//! The body of such a request is not read. Tests: `tests/gateway/`.

use std::fmt::Write as _;

use citius_http::{Action, Fields, Head, Method, Payload, ResponseHead, Status};
use citius_reactor::Reply;
use citius_reactor::ws::Refusal;
use citius_route::{Captures, Found};
use pyo3::prelude::*;

use super::calling::{Arguments, call};
use super::routes::Routes;
use super::websocket::is_socket_path;
use crate::gateway::turn::Turn;
use crate::gateway::ws::{self};
use crate::negotiate::ErrorFormat;
use crate::request_context::RequestContext;

/// Status of the application's own response to an unmatched request, with its `Allow` or `Location`.
pub(super) type Unmatched<'a> = Option<(u16, &'a str)>;

/// Answers a request that no route takes: by the application's own handler, or plainly.
///
/// Its body is not read.
#[cold]
pub(super) fn respond_unmatched(
    turn: &mut Turn<'_, '_>,
    routes: &Routes,
    allow: Option<String>,
    context: &mut RequestContext<'_>,
    ended: bool,
    reply: &mut Reply<'_>,
) {
    let (is_options, is_star) = context.with_head(turn.py, |head| {
        (head.method == Method::Options, head.path() == b"*")
    });
    if routes.has_sockets && allow.is_none() && is_socket_path(turn.py, routes, context) {
        return match &routes.unmatched {
            Some(route) => call(turn, route, Some((426, "")), context, ended, reply),
            None => ws::refuse(Refusal::Expected, reply),
        };
    }
    let (status, allow) = match allow {
        Some(allow) if is_options => (204, Some(allow)),
        Some(allow) => (405, Some(allow)),
        None if is_star => (204, Some(routes.router.allow_all())),
        None => (404, None),
    };
    if status == 404
        && routes.redirects_slashes
        && let Some(location) = context.with_head(turn.py, |head| other_slash(routes, head))
    {
        return match &routes.unmatched {
            Some(route) => call(turn, route, Some((308, &location)), context, ended, reply),
            None => redirect(&location, context, reply),
        };
    }
    if let Some(route) = &routes.unmatched {
        let unmatched = Some((status, allow.as_deref().unwrap_or_default()));
        return call(turn, route, unmatched, context, ended, reply);
    }
    let status = Status::new(status).expect("one of the three above");
    let format = context.with_head(turn.py, |head| ErrorFormat::of(head.field(b"accept")));
    respond_plainly(format, status, allow.as_deref(), context, reply);
}

/// Where a request is redirected whose path exists with a slash at its end, or without the one that it has.
fn other_slash(routes: &Routes, head: &Head) -> Option<String> {
    let path = head.path();
    let other = match path.strip_suffix(b"/") {
        Some(without) => without.to_vec(),
        None => [path, b"/"].concat(),
    };
    let method = String::from_utf8_lossy(head.slice(head.method_span));
    let found = routes.router.find(&method, &other, &mut Captures::new());
    if matches!(found, Found::Nothing) {
        return None;
    }
    let mut location = String::new();
    for byte in head.other_slash() {
        if byte.is_ascii() {
            location.push(char::from(byte));
        } else {
            // A reference has ASCII alone (RFC 3986 §2).
            let _ = write!(location, "%{byte:02X}");
        }
    }
    Some(location)
}

fn redirect(location: &str, context: &mut RequestContext<'_>, reply: &mut Reply<'_>) {
    let mut fields = Fields::default();
    // A target that was accepted has no byte that a field value may not have.
    if fields.push(b"location", location.as_bytes()).is_ok() {
        let response = ResponseHead {
            status: Status::from_const(308),
            content_type: None,
            fields: &fields,
        };
        // Refused only when the connection is being cut already.
        let _ = reply.send(Action::Respond(response, Payload::Copied(b"")));
    }
    if let Some(head) = context.head.take() {
        reply.recycle(head);
    }
}

pub(super) fn respond_plainly(
    format: ErrorFormat,
    status: Status,
    allow: Option<&str>,
    context: &mut RequestContext<'_>,
    reply: &mut Reply<'_>,
) {
    let mut fields = Fields::default();
    if let Some(allow) = allow {
        fields
            .push(b"allow", allow.as_bytes())
            .expect("methods are tokens");
    }
    let body = if status == Status::NO_CONTENT {
        String::new()
    } else {
        fields.push(b"vary", b"accept").expect("a valid field");
        format.body(status)
    };
    let response = ResponseHead {
        status,
        content_type: (!body.is_empty()).then(|| format.media_type()),
        fields: &fields,
    };
    // Refused only when the connection is being cut already.
    let _ = reply.send(Action::Respond(response, Payload::Copied(body.as_bytes())));
    if let Some(head) = context.head.take() {
        reply.recycle(head);
    }
}

/// The arguments of the handler of requests that no route takes.
#[cold]
pub(super) fn unmatched_arguments<'py>(
    py: Python<'py>,
    (status, allow): (u16, &str),
    context: &mut RequestContext<'_>,
    body_ended: bool,
) -> PyResult<Arguments<'py>> {
    Ok([
        context.request(py, body_ended)?.clone().into_any(),
        status.into_pyobject(py)?.into_any(),
        allow.into_pyobject(py)?.into_any(),
    ]
    .into_iter()
    .collect())
}
