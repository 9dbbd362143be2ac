//! The end of a handler: its result or exception in, a response, a stream or another coroutine out.
//!
//! An exception goes to the application's error handlers; one that they do not handle is logged and becomes a 500. An exception
//! is handed to them once. Tests: `tests/gateway/`, `tests/server/test_errors.py`.

use std::sync::Arc;

use citius_base::fork::{end_child, end_child_with};
use citius_base::reactor_handle::ReactorHandle;
use citius_base::report::Subject;
use citius_base::sink::{Late, Sink};
use citius_base::task::{
    CompletionHandler, Entry, LateStep, Next, Progress, Resume, Suspended, Tasks, is_cancellation,
};
use citius_http::{Action, Fault};
use citius_reactor::{Reply, StreamId};
use pyo3::exceptions::PyBaseException;
use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::request::Request;
use crate::request_context::{HandlerStage, NativeRequest, RequestContext, SendOutcome};
use crate::respond::{is_coroutine, send_declared, send_fault, send_value};

/// Sends what a handler returned or raised.
#[inline]
pub(crate) fn send_result<S: Sink>(
    py: Python<'_>,
    result: PyResult<Bound<'_, PyAny>>,
    context: &mut RequestContext<'_>,
    sink: &mut S,
) -> SendOutcome {
    let sent = result.and_then(|value| match context.declared(py) {
        None => send_value(py, &value, context, sink),
        Some(declared) => send_declared(py, declared.get(), &value, context, sink),
    });
    let outcome = sent.unwrap_or_else(|error| handle_exception(py, &error, context, sink));
    if let SendOutcome::Sent = outcome {
        context.end_handler(py, false);
    }
    outcome
}

/// Lets the error handlers make a response of an exception.
#[cold]
pub(super) fn handle_exception<S: Sink>(
    py: Python<'_>,
    error: &PyErr,
    context: &mut RequestContext<'_>,
    sink: &mut S,
) -> SendOutcome {
    end_child_with(py, context.handle, error);
    if context.stage == HandlerStage::ErrorHandler {
        return send_internal_error(py, error, context, sink);
    }
    context.stage = HandlerStage::ErrorHandler;
    // By way of `into_value`, which puts the traceback where Python looks for it.
    let exception: Py<PyBaseException> = error.clone_ref(py).into_value(py);
    let Some(on_error) = context.handle.callbacks.on_error.as_ref() else {
        return send_internal_error(py, error, context, sink);
    };
    let made = context
        .request(py, true)
        .cloned()
        .and_then(|request| on_error.bind(py).call1((request, exception)));
    match made.and_then(|value| {
        if is_coroutine(&value) {
            Ok(SendOutcome::Coroutine(value.unbind()))
        } else {
            send_value(py, &value, context, sink)
        }
    }) {
        Ok(outcome) => outcome,
        Err(error) => send_internal_error(py, &error, context, sink),
    }
}

/// The last resort: a logged error and a 500 without a word.
#[cold]
pub(crate) fn send_internal_error<S: Sink>(
    py: Python<'_>,
    error: &PyErr,
    context: &mut RequestContext<'_>,
    sink: &mut S,
) -> SendOutcome {
    let format = context.error_format(py);
    log_exception(py, error, context);
    context.end_handler(py, true);
    send_fault(py, Fault::HandlerFailed, format, sink);
    SendOutcome::Sent
}

/// Logs an exception that the application has not handled.
#[cold]
pub(crate) fn log_exception(py: Python<'_>, error: &PyErr, context: &RequestContext<'_>) {
    end_child_with(py, context.handle, error);
    let what = match context.stage {
        HandlerStage::Handler => " failed",
        HandlerStage::ErrorHandler => " failed in its error handler",
        HandlerStage::Streaming => " failed while its response was streamed",
    };
    context.subject(py).exception(py, what, error);
}

/// What a stream's driver lets through although it handles its own errors: logged, and the response cut.
#[cold]
pub(crate) fn abort_stream<S: Sink>(
    py: Python<'_>,
    error: Option<PyErr>,
    context: &RequestContext<'_>,
    sink: &mut S,
) {
    if let Some(error) = error {
        log_exception(py, &error, context);
    }
    context.end_handler(py, true);
    // Cutting what is cut already changes nothing.
    let _ = sink.send(py, Action::Abort);
}

/// A request whose coroutine waits.
pub(super) struct SuspendedHandler {
    pub(super) request: Py<Request>,
    pub(super) stage: HandlerStage,
}

impl Resume for SuspendedHandler {
    fn resume(&mut self, py: Python<'_>, step: LateStep<'_>) -> Progress {
        let mut context = RequestContext::of_request(self.request.bind(py));
        context.stage = self.stage;
        let progress = step.run(py, &mut context);
        self.stage = context.stage;
        progress
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.request)
    }
}

impl CompletionHandler for RequestContext<'_> {
    fn exchange(&self) -> (&Arc<ReactorHandle>, StreamId) {
        (self.handle, self.id)
    }

    #[inline]
    fn on_result<S: Sink>(
        &mut self,
        py: Python<'_>,
        result: PyResult<Bound<'_, PyAny>>,
        sink: &mut S,
    ) -> Next {
        if let Err(error) = &result
            && is_cancellation(py, error)
        {
            self.leave_step(py, sink);
            handle_cancellation(py, error, self, sink);
            return Next::Done(Some(error.clone_ref(py)));
        }
        if self.stage == HandlerStage::Streaming {
            // The stream's driver has sent everything itself.
            self.leave_step(py, sink);
            if let Err(error) = result {
                abort_stream(py, Some(error), self, sink);
            }
            drop(self.handle.take(self.id));
            return Next::Done(None);
        }
        match send_result(py, result, self, sink) {
            SendOutcome::Coroutine(next) => Next::Coroutine(next),
            SendOutcome::Streaming => Next::Done(None),
            SendOutcome::Sent => {
                // Without an object the request was never entered in the table.
                if self.request.is_some() {
                    drop(self.handle.take(self.id));
                }
                Next::Done(None)
            }
        }
    }

    fn on_suspend(&mut self, py: Python<'_>) -> PyResult<Suspended> {
        let request = self.request(py, true)?.clone().unbind();
        let role = NativeRequest::new(request.clone_ref(py));
        let stage = self.stage;
        Ok(Suspended {
            entry: Entry::As(Box::new(role)),
            resume: Box::new(SuspendedHandler { request, stage }),
        })
    }

    fn subject(&self, py: Python<'_>) -> Subject {
        RequestContext::subject(self, py)
    }

    #[inline]
    fn flush(&mut self, py: Python<'_>, reply: &mut Reply<'_>) {
        if let Some(head) = self.head.take() {
            reply.recycle(head);
        } else {
            self.leave_step(py, reply);
        }
    }

    fn fail(&mut self, py: Python<'_>, error: &PyErr, reply: &mut Reply<'_>) {
        // Before the head is given back.
        let format = self.error_format(py);
        self.flush(py, reply);
        log_exception(py, error, self);
        self.end_handler(py, true);
        send_fault(py, Fault::HandlerFailed, format, reply);
    }
}

/// A cancelled handler. With its client gone this goes nowhere; otherwise other code cancelled it, or it
/// waited for something cancelled, and a response is still expected.
#[cold]
pub(super) fn handle_cancellation<S: Sink>(
    py: Python<'_>,
    error: &PyErr,
    context: &RequestContext<'_>,
    sink: &mut S,
) {
    let was_open = context.handle.take(context.id).is_some();
    context.end_handler(py, true);
    if context.stage == HandlerStage::Streaming {
        abort_stream(py, None, context, sink);
    } else if was_open || S::IN_TURN {
        log_exception(py, error, context);
        let format = context.error_format(py);
        send_fault(py, Fault::HandlerFailed, format, sink);
    }
}

/// Concludes a request inside the turn and steps what has to be stepped.
pub(crate) fn complete_in_turn(
    py: Python<'_>,
    result: PyResult<Bound<'_, PyAny>>,
    context: &mut RequestContext<'_>,
    reply: &mut Reply<'_>,
    tasks: &mut Tasks,
) {
    match send_result(py, result, context, reply) {
        SendOutcome::Sent => {
            if let Some(head) = context.head.take() {
                reply.recycle(head);
            }
        }
        SendOutcome::Streaming => {}
        SendOutcome::Coroutine(coroutine) => tasks.step(py, coroutine, context, reply),
    }
}

/// A response from outside the turn.
pub(crate) fn complete_late(slf: &Bound<'_, Request>, result: PyResult<Bound<'_, PyAny>>) {
    let (py, request) = (slf.py(), slf.get());
    let mut context = RequestContext::of_request(slf);
    let mut late = Late {
        handle: &request.handle,
        id: request.id,
    };
    let outcome = send_result(py, result, &mut context, &mut late);
    end_child(py, &request.handle);
    match outcome {
        SendOutcome::Sent => drop(request.handle.take(request.id)),
        SendOutcome::Streaming => {}
        SendOutcome::Coroutine(coroutine) => {
            // Only the loop's thread may step coroutines; a handler in a pool's thread returned one by mistake.
            let _ = coroutine.bind(py).call_method0("close");
            let error = PyRuntimeError::new_err(
                "a coroutine or an async iterator cannot be answered from a blocking handler",
            );
            send_internal_error(py, &error, &mut context, &mut late);
            drop(request.handle.take(request.id));
        }
    }
}
