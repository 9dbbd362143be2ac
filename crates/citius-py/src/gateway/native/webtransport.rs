//! Requests for WebTransport sessions of native applications: a request in, a call of the handler with its session.
//!
//! Tests: `tests/http3/test_webtransport.py`.

use citius_base::task::{CompletionHandler as _, Next};
use citius_reactor::Reply;
use pyo3::prelude::*;

use super::calling::find_handled;
use super::routes::Routes;
use crate::completion;
use crate::gateway::turn::Turn;
use crate::gateway::ws::completion::SocketCompletion;
use crate::gateway::wt::{self, WebTransport};
use crate::request::Request;
use crate::request_context::RequestContext;

/// Makes a session of a request for one and calls its handler; `false` if there is none at its path.
#[inline(never)]
pub(super) fn open_session<'a>(
    turn: &mut Turn<'_, '_>,
    routes: &'a Routes,
    context: &mut RequestContext<'a>,
    reply: &mut Reply<'_>,
) -> bool {
    let py = turn.py;
    let Some(route) = find_handled(&routes.sessions, "CONNECT", context, reply) else {
        return false;
    };
    let made = context.request(py, true).and_then(|request| {
        // No response follows that deferred calls could wait for.
        Request::end_handler(request, false);
        let session = WebTransport::new(turn.handle, request.clone().unbind(), reply);
        Bound::new(py, session)
    });
    let session = match made {
        Ok(session) => session,
        Err(error) => {
            completion::send_internal_error(py, &error, context, reply);
            return true;
        }
    };
    wt::enter(turn, &session);
    let mut completion = SocketCompletion::new(&session, None);
    let coroutine = match route.info.handler.bind(py).call1((&session,)) {
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
