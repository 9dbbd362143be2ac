//! The `webtransport` scope: `citius.serving.webtransport` has ASGI's messages, on what a session of every interface is.
//!
//! Tests: `tests/asgi/test_webtransport.py`.

use citius_base::task::CompletionHandler as _;
use citius_http::Head;
use citius_reactor::Reply;
use pyo3::prelude::*;

use crate::completion;
use crate::functions;
use crate::gateway::asgi::Plan;
use crate::gateway::turn::Turn;
use crate::gateway::ws::completion::SocketCompletion;
use crate::gateway::wt::{self, WebTransport};
use crate::request::Request;
use crate::request_context::RequestContext;

/// A request for a session.
#[cold]
pub(super) fn request(
    turn: &mut Turn<'_, '_>,
    plan: &Plan,
    head: Box<Head>,
    reply: &mut Reply<'_>,
) {
    let py = turn.py;
    let scope = plan.scopes.make_session(py, &head, reply);
    plan.scopes.release(py);
    let mut context = RequestContext::new(reply.id(), reply.peer(), turn.handle, head);
    let made = scope.and_then(|scope| {
        let request = context.request(py, true)?;
        // No response follows that deferred calls could wait for.
        Request::end_handler(request, false);
        let request = request.clone().unbind();
        let session = Bound::new(py, WebTransport::new(turn.handle, request, reply))?;
        Ok((scope, session))
    });
    let (scope, session) = match made {
        Ok(made) => made,
        Err(error) => {
            completion::send_internal_error(py, &error, &mut context, reply);
            return;
        }
    };
    wt::enter(turn, &session);
    let mut completion = SocketCompletion::new(&session, None);
    let called = functions::SERVE_ASGI_SESSION
        .get(py)
        .and_then(|serve| serve.call1((&plan.app, scope, &session)));
    match called {
        Ok(coroutine) => turn
            .tasks
            .step(py, coroutine.unbind(), &mut completion, reply),
        Err(error) => completion.fail(py, &error, reply),
    }
}
