//! What follows the handler of a WebSocket or of a WebTransport session: the end of it, or a response in its place.
//!
//! Tests: `tests/server/test_websocket.py`, `tests/http3/test_webtransport.py`.

use std::sync::Arc;

use citius_base::exchange::{Exchange, Role};
use citius_base::reactor_handle::ReactorHandle;
use citius_base::report::{LEVEL_ERROR, Subject};
use citius_base::sink::Sink;
use citius_base::support;
use citius_base::task::{
    CompletionHandler, Entry, LateStep, Next, Progress, Resume, Suspended, is_cancellation,
};
use citius_http::{Action, Fault, Payload, ResponseHead, Status};
use citius_reactor::{Reply, StreamId};
use pyo3::PyClass;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::completion;
use crate::request::Request;
use crate::request_context::SendOutcome;
use crate::request_context::{HandlerStage, NativeRequest, RequestContext};
use crate::respond;

/// How a handler has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandlerEnd {
    Returned,
    Cancelled,
    Failed,
}

/// What a handler gets in place of a request, and accepts or refuses.
pub(crate) trait Handled:
    PyClass<Frozen = pyo3::pyclass::boolean_struct::True> + Send + Sync
{
    /// What messages call it.
    const CALLED: &'static str;
    /// What its exchange is entered in.
    type Role: Role;

    fn request(&self) -> &Py<Request>;

    fn exchange(&self) -> (&Arc<ReactorHandle>, StreamId);

    /// It is neither accepted nor over.
    fn is_undecided(&self) -> bool;

    fn is_over(&self) -> bool;

    /// The request is answered in another way.
    fn refuse(&self, py: Python<'_>);

    /// Its handler has ended, after it was accepted.
    fn end(&self, py: Python<'_>, ending: HandlerEnd);

    /// There is nothing to cancel any more.
    fn release(&self);

    /// Sends what was queued in a step.
    ///
    /// # Errors
    /// What the protocol has refused of it.
    fn flush(&self, _py: Python<'_>, _reply: &mut Reply<'_>) -> Result<(), Fault> {
        Ok(())
    }
}

/// Takes the result of the handler of a WebSocket or of a session.
pub(crate) struct SocketCompletion<'a, 'py, T> {
    socket: &'a Bound<'py, T>,
    /// Set once the request is answered in another way, and how far that is.
    handler_stage: Option<HandlerStage>,
}

impl<'a, 'py, T: Handled> SocketCompletion<'a, 'py, T> {
    pub(crate) fn new(socket: &'a Bound<'py, T>, handler_stage: Option<HandlerStage>) -> Self {
        Self {
            socket,
            handler_stage,
        }
    }

    /// The handler is done with a socket that it has accepted.
    fn end(&self, py: Python<'_>, error: Option<&PyErr>) {
        let socket = self.socket.get();
        let ending = match error {
            None => HandlerEnd::Returned,
            Some(error) if is_cancellation(py, error) => HandlerEnd::Cancelled,
            Some(error) => {
                if !(socket.is_over() && support::is_disconnection(py, error)) {
                    self.report(py, error);
                }
                HandlerEnd::Failed
            }
        };
        socket.end(py, ending);
    }

    #[cold]
    fn report(&self, py: Python<'_>, error: &PyErr) {
        self.subject(py).exception(py, " failed", error);
    }

    /// The handler is done with a request that it has not accepted: what it returned or raised is the response.
    fn refuse<S: Sink>(
        &mut self,
        py: Python<'_>,
        result: PyResult<Bound<'_, PyAny>>,
        sink: &mut S,
    ) -> Next {
        let socket = self.socket.get();
        let (handle, id) = socket.exchange();
        if self.handler_stage.is_none() {
            socket.refuse(py);
            // From here on it is a request like others.
            let role = Box::new(NativeRequest::new(socket.request().clone_ref(py)));
            let change = |exchange: &mut Exchange| exchange.change_role::<T::Role>(role);
            drop(handle.with(id, change));
        }
        let request = socket.request().bind(py).clone();
        let mut context = RequestContext::of_request(&request);
        context.stage = self.handler_stage.unwrap_or(HandlerStage::Handler);
        let outcome = match result {
            Ok(value) if value.is_none() => {
                answer_forbidden(py, sink);
                SendOutcome::Sent
            }
            Err(error) if is_cancellation(py, &error) => {
                respond::send_fault(py, Fault::HandlerFailed, context.error_format(py), sink);
                drop(handle.take(id));
                return Next::Done(Some(error));
            }
            result => completion::send_result(py, result, &mut context, sink),
        };
        // The stream of a refusal is driven by the task of the socket, whose steps do not end here.
        context.leave_step(py, sink);
        self.handler_stage = Some(context.stage);
        match outcome {
            SendOutcome::Sent => {
                drop(handle.take(id));
                Next::Done(None)
            }
            SendOutcome::Streaming => Next::Done(None),
            SendOutcome::Coroutine(coroutine) => Next::Coroutine(coroutine),
        }
    }
}

/// The response for a handler that neither accepts nor responds.
fn answer_forbidden<S: Sink>(py: Python<'_>, sink: &mut S) {
    let status = Status::new(403).expect("a status");
    let response = ResponseHead::text(status);
    let body = Payload::Copied(status.reason().as_bytes());
    // Refused only when the connection is being cut already.
    let _ = sink.send(py, Action::Respond(response, body));
}

/// A socket whose coroutine waits.
struct Waiting<T> {
    socket: Py<T>,
    handler_stage: Option<HandlerStage>,
}

impl<T: Handled> Resume for Waiting<T> {
    fn resume(&mut self, py: Python<'_>, step: LateStep<'_>) -> Progress {
        let mut completion = SocketCompletion::new(self.socket.bind(py), self.handler_stage);
        let progress = step.run(py, &mut completion);
        self.handler_stage = completion.handler_stage;
        progress
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.socket)
    }
}

impl<T: Handled> CompletionHandler for SocketCompletion<'_, '_, T> {
    fn exchange(&self) -> (&Arc<ReactorHandle>, StreamId) {
        self.socket.get().exchange()
    }

    fn subject(&self, py: Python<'_>) -> Subject {
        let request = self.socket.get().request();
        request.bind(py).get().subject().named_as(T::CALLED)
    }

    fn on_result<S: Sink>(
        &mut self,
        py: Python<'_>,
        result: PyResult<Bound<'_, PyAny>>,
        sink: &mut S,
    ) -> Next {
        if self.socket.get().is_undecided() || self.handler_stage.is_some() {
            return self.refuse(py, result, sink);
        }
        let error = result.err();
        self.end(py, error.as_ref());
        self.socket.get().release();
        Next::Done(error.filter(|error| is_cancellation(py, error)))
    }

    fn on_suspend(&mut self, _py: Python<'_>) -> PyResult<Suspended> {
        let waiting = Waiting {
            socket: self.socket.clone().unbind(),
            handler_stage: self.handler_stage,
        };
        Ok(Suspended {
            entry: Entry::Known,
            resume: Box::new(waiting),
        })
    }

    fn flush(&mut self, py: Python<'_>, reply: &mut Reply<'_>) {
        let socket = self.socket.get();
        if let Err(fault) = socket.flush(py, reply) {
            let what = format!(": {} ({})", fault.text(), fault.spec());
            let (handle, _) = socket.exchange();
            self.subject(py).log(py, handle, LEVEL_ERROR, &what);
        }
    }

    fn fail(&mut self, py: Python<'_>, error: &PyErr, reply: &mut Reply<'_>) {
        let socket = self.socket.get();
        let request = socket.request().bind(py);
        socket.refuse(py);
        completion::send_internal_error(py, error, &mut RequestContext::of_request(request), reply);
        let (handle, id) = socket.exchange();
        drop(handle.take(id));
    }
}
