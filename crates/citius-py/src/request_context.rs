//! One request as the code that responds to it sees it, with or without a Python object.
//!
//! It borrows what the turn has, so that a request with an immediate response counts no references. Tests: `tests/gateway/`.

use std::sync::Arc;

use citius_base::exchange::{LazySubject, Role, Tell};
use citius_base::logging::Names;
use citius_base::passing::Passing;
use citius_base::reactor_handle::ReactorHandle;
use citius_base::report::{LEVEL_ERROR, Subject};
use citius_base::sink::Sink;
use citius_http::{Fault, Head};
use citius_reactor::{Peer, StreamId};
use citius_route::Captures;
use pyo3::prelude::*;

use crate::declared::DeclaredResponse;
use crate::negotiate::ErrorFormat;
use crate::request::Request;
use crate::route::RouteInfo;
use crate::stream::Stream;

/// One request as its response needs it: with or without a Python object.
///
/// Borrows what the turn has, so that a request answered at once counts no references.
pub(crate) struct RequestContext<'a> {
    pub(crate) id: StreamId,
    pub(crate) peer: Peer,
    pub(crate) handle: &'a Arc<ReactorHandle>,
    pub(crate) route: Option<&'a Arc<RouteInfo>>,
    pub(crate) captures: Captures,
    pub(crate) head: Option<Box<Head>>,
    pub(crate) request: Option<Py<Request>>,
    pub(crate) stage: HandlerStage,
    /// What the trailer section is made of, if the response turns out to be streamed.
    pub(super) trailers: Option<Py<PyAny>>,
    /// The streamed response whose driver the turn steps.
    pub(super) in_step: Option<Py<Stream>>,
}

/// An open exchange whose native handler, or the stream that it has returned, is at work.
pub(crate) struct NativeRequest {
    pub(crate) request: Py<Request>,
    /// The streamed response, which is called when more can be written.
    pub(crate) stream: Option<Py<Stream>>,
    /// The response of another server that is passed on; the same.
    pub(crate) relaying: Option<Arc<dyn Passing>>,
}

impl NativeRequest {
    pub(crate) fn new(request: Py<Request>) -> Self {
        Self {
            request,
            stream: None,
            relaying: None,
        }
    }
}

impl Role for NativeRequest {
    fn on_disconnect(self: Box<Self>, py: Python<'_>) -> bool {
        self.request.get().break_body(py);
        if let Some(stream) = self.stream {
            stream.get().gone(py);
        }
        if let Some(relaying) = self.relaying {
            relaying.gone(py);
        }
        true
    }

    fn refuse_body(&self, py: Python<'_>) -> Option<Tell> {
        // Another server waits for what is passed on to it.
        if self.relaying.is_some() || self.request.get().is_passed_on() {
            return None;
        }
        let request = self.request.clone_ref(py);
        Some(Box::new(move |py| request.get().refuse_body(py)))
    }

    fn subject(&self, py: Python<'_>, _names: Names<'_>) -> Option<LazySubject> {
        let request = self.request.clone_ref(py);
        Some(Box::new(move |_| request.get().subject()))
    }
}

/// How far a response is.
pub(crate) enum SendOutcome {
    /// It is on its way.
    Sent,
    /// Its head is; a stream follows by itself.
    Streaming,
    /// This is to be stepped; what it returns concludes the request.
    Coroutine(Py<PyAny>),
}

/// How far the application's part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandlerStage {
    /// The handler is at work.
    Handler,
    /// The error handlers are: what they raise is not handed to them again.
    ErrorHandler,
    /// The head of a streamed response has been sent; its driver is at work.
    Streaming,
}

/// The stream that is the response to `request` has ended.
pub(crate) fn end_streamed(request: &Bound<'_, PyAny>, is_failed: bool) {
    if let Ok(request) = request.cast::<Request>() {
        Request::end_handler(request, is_failed);
    }
}

impl<'a> RequestContext<'a> {
    #[inline]
    pub(crate) fn new(
        id: StreamId,
        peer: Peer,
        handle: &'a Arc<ReactorHandle>,
        head: Box<Head>,
    ) -> Self {
        Self {
            id,
            peer,
            handle,
            route: None,
            captures: Captures::new(),
            head: Some(head),
            request: None,
            stage: HandlerStage::Handler,
            trailers: None,
            in_step: None,
        }
    }

    /// From a request that has its object already.
    pub(crate) fn of_request(request: &'a Bound<'_, Request>) -> Self {
        let this = request.get();
        Self {
            id: this.id,
            peer: this.peer(),
            handle: &this.handle,
            route: None,
            captures: Captures::new(),
            head: None,
            request: Some(request.clone().unbind()),
            stage: HandlerStage::Handler,
            trailers: None,
            in_step: None,
        }
    }

    /// The Python object, made now if there is none yet.
    pub(crate) fn request<'py>(
        &mut self,
        py: Python<'py>,
        body_ended: bool,
    ) -> PyResult<&Bound<'py, Request>> {
        if let Some(head) = self.head.take() {
            let request = Request::new(self, head, body_ended);
            self.request = Some(Py::new(py, request)?);
        }
        Ok(self
            .request
            .as_ref()
            .expect("a request without a head has an object")
            .bind(py))
    }

    /// The handler has ended: what it has deferred is called, or forgotten if it has failed.
    #[inline]
    pub(crate) fn end_handler(&self, py: Python<'_>, is_failed: bool) {
        if let Some(request) = &self.request {
            Request::end_handler(request.bind(py), is_failed);
        }
    }

    /// What the route declares of a value that its handler has returned.
    #[inline]
    pub(crate) fn declared(&self, py: Python<'_>) -> Option<Py<DeclaredResponse>> {
        if self.stage != HandlerStage::Handler {
            return None;
        }
        let route = match (self.route, &self.request) {
            (None, Some(request)) => request.get().route(),
            (route, _) => route,
        };
        route?
            .declared
            .as_ref()
            .map(|declared| declared.clone_ref(py))
    }

    /// Sends what the driver of a streamed response has sent in its step of this turn, if it is in one.
    pub(crate) fn leave_step<S: Sink>(&mut self, py: Python<'_>, sink: &mut S) {
        let Some(stream) = self.in_step.take() else {
            return;
        };
        let sent = stream.get().end_step(|command| sink.deliver(py, command));
        if let Err(fault) = sent {
            log_fault(py, fault, self);
        }
    }

    /// What messages say of it.
    #[cold]
    pub(crate) fn subject(&self, py: Python<'_>) -> Subject {
        match (&self.head, &self.request) {
            (Some(head), _) => Subject::new(
                self.handle.names(),
                head,
                self.route.map(|route| &*route.label),
            ),
            (None, Some(request)) => request.bind(py).get().subject(),
            (None, None) => Subject::named(format!("request {}", self.id.stream)),
        }
    }

    /// How an error of this request is written; `None` for applications of other interfaces, which have no form of
    /// errors.
    #[cold]
    pub(crate) fn error_format(&self, py: Python<'_>) -> Option<ErrorFormat> {
        let is_native = self.handle.callbacks.on_error.is_some();
        is_native.then(|| self.with_head(py, |head| ErrorFormat::of(head.field(b"accept"))))
    }

    pub(crate) fn with_head<R>(&self, py: Python<'_>, look: impl FnOnce(&Head) -> R) -> R {
        match (&self.head, &self.request) {
            (Some(head), _) => look(head),
            (None, Some(request)) => look(request.bind(py).get().head()),
            (None, None) => look(&Head::default()),
        }
    }
}

/// Logs what the protocol refused of an application's response.
#[cold]
pub(crate) fn log_fault(py: Python<'_>, fault: Fault, context: &RequestContext<'_>) {
    let what = format!(": {} ({})", fault.text(), fault.spec());
    context
        .subject(py)
        .log(py, context.handle, LEVEL_ERROR, &what);
}
