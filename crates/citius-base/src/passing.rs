//! What passes between a client and another server, as both sides know it: [`Inbound`], the request; [`Content`], where its content
//! goes; [`Source`], where the content of the response comes from; [`Passing`], which is told of the client; [`Relay`], the body of
//! a `Response`; and [`Direct`], which passes whole requests on that no Python code has to see. The server's side is `request.rs`,
//! `respond.rs` and `gateway/native/direct.rs`, the other one `http/`; neither knows the other.
//!
//! Tests: `tests/http/gateway/`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use citius_http::{Fields, Head, Method};
use citius_reactor::{Peer, StreamCommand, StreamId};
use citius_route::{Captures, Param};
use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::client_metrics::ClientMetrics;
use crate::reactor_handle::ReactorHandle;

/// What of a client's request the head for another server is made of.
pub struct ClientRequest<'a> {
    /// As it came.
    pub head: &'a Head,
    /// The values of the parameters of its path.
    pub captures: &'a Captures,
    /// Who has sent it.
    pub peer: Peer,
    /// Those of its route.
    pub params: &'a [Param],
}

/// A request of a client as Python hands it over to be passed on.
pub trait Passable {
    /// What the head for another server is made of.
    fn as_client(&self) -> ClientRequest<'_>;

    /// Where its response goes.
    fn inbound(&self) -> Inbound;

    /// Its content, if it is here and was not to be passed on as it comes.
    ///
    /// # Errors
    /// It has been read piece by piece.
    fn whole_body<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>>;

    /// What there is of content that is to be passed on as it comes.
    ///
    /// # Errors
    /// It has been read or passed on, or the handler gets it whole.
    fn take_unsent(&self, upgrades: bool) -> PyResult<Unsent>;

    /// What comes of the content from now on goes there.
    fn pass_content_on(&self, content: Arc<dyn Content>);
}

/// What finds the request in an object of Python's: the class of requests is the server's side's.
pub(crate) type FindRequest = for<'a, 'py> fn(&'a Bound<'py, PyAny>) -> PyResult<&'a dyn Passable>;

static FIND_REQUEST: OnceLock<FindRequest> = OnceLock::new();

/// Says how requests are found in objects of Python's, before any is passed on.
pub fn find_requests_by(find: FindRequest) {
    let _ = FIND_REQUEST.set(find);
}

/// The request that an object of Python's is.
///
/// # Errors
/// `TypeError`: it is none.
pub fn request_of<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<&'a dyn Passable> {
    let Some(find) = FIND_REQUEST.get() else {
        return Err(PyRuntimeError::new_err("there are no requests here"));
    };
    find(object)
}

/// A request of a client that is passed on to another server.
#[derive(Clone)]
pub struct Inbound {
    /// The reactor that serves its client.
    pub handle: Arc<ReactorHandle>,
    /// Its stream there.
    pub id: StreamId,
    /// It asks for a WebSocket.
    pub upgrades: bool,
}

impl Inbound {
    /// Posts a command for its stream.
    pub fn post(&self, py: Python<'_>, command: StreamCommand) {
        self.handle.post(py, self.id, command);
    }
}

/// Content that was to go to a server and has not: it may go to another one.
#[derive(Default)]
pub struct Unsent {
    /// All of it that has come.
    pub pieces: Vec<u8>,
    /// Bytes that have come in all.
    pub given: u64,
    /// Bytes that the client was asked for and that have not come.
    pub wanted: u64,
    /// There is no more; the trailer section.
    pub end: Option<Fields>,
}

/// Where the content of a request goes as it comes.
pub trait Content: Send + Sync {
    /// A piece has come.
    fn push(&self, py: Python<'_>, data: &[u8]);

    /// It is complete.
    fn end(&self, py: Python<'_>, trailers: &Fields);

    /// Takes what there is, if nothing has been sent.
    fn take_unsent(&self) -> Option<Unsent>;

    /// Visits the Python objects in it.
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError>;
}

/// A response that is passed on.
pub trait Passing: Send + Sync {
    /// The client's queue has room.
    fn has_room(self: Arc<Self>, py: Python<'_>);

    /// The client has gone.
    fn gone(&self, py: Python<'_>);
}

/// Where the content of a response comes from.
pub trait Source: Send + Sync {
    /// The content is bytes of another protocol, both ways.
    fn is_tunnel(&self) -> bool;

    /// How long the other server took to respond, if that is measured.
    fn upstream_us(&self) -> Option<u64>;

    /// All of the content, if it is there.
    fn take_whole(&self, py: Python<'_>) -> Option<Vec<u8>>;

    /// No content is wanted.
    fn leave(&self, py: Python<'_>);

    /// The head is about to be sent to this client.
    fn passing(&self, py: Python<'_>, inbound: Inbound) -> Arc<dyn Passing>;

    /// The head has been sent: what there is of the content follows, and then the rest.
    fn begin(&self, py: Python<'_>, passing: Arc<dyn Passing>);

    /// Pieces of the content for Python code, an asynchronous iterator.
    fn pieces(&self, py: Python<'_>) -> PyResult<Py<PyAny>>;

    /// Visits the Python objects in it.
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError>;
}

/// Passes requests on that no Python code has to see, to servers that Python has made known.
pub trait Direct: Send + Sync {
    /// Prepares to pass on a request; `None`: Python passes it on. `content_wanted`: bytes of its content that the client is asked
    /// for, if it has any.
    fn prepare(
        self: Arc<Self>,
        py: Python<'_>,
        request: &ClientRequest<'_>,
        inbound: Inbound,
        content_wanted: Option<u64>,
    ) -> Option<Prepared>;

    /// Makes known by which pool and to which origin requests go to one of the servers, what counts them, and what limits them.
    fn learn(
        &self,
        server: usize,
        pool: &Bound<'_, PyAny>,
        origin: &Bound<'_, PyAny>,
        metrics: Option<&Bound<'_, ClientMetrics>>,
        limits: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()>;

    /// Visits the Python objects in it.
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError>;
}

/// A request that is to be passed on, and where its content goes, if it has any.
pub type Prepared = (Arc<dyn Underway>, Option<Arc<dyn Content>>);

/// A request that is passed on without Python.
pub trait Underway: Passing {
    /// Sends it; the response comes by the mailbox. What it comes to that only Python decides is had by
    /// [`to_python`](Self::to_python) in the [`writable`](citius_reactor::Service::writable) that follows.
    fn start(self: Arc<Self>, py: Python<'_>);

    /// Whether Python goes on with it.
    fn is_for_python(&self) -> bool;

    /// The coroutine that does.
    fn to_python<'py>(&self, request: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>;
}

/// The content of a response of another server, as the body of a `Response`.
#[pyclass(frozen, module = "citius._core")]
pub struct Relay {
    source: Arc<dyn Source>,
    is_begun: AtomicBool,
}

impl Relay {
    /// The body that comes from `source`.
    pub fn new(source: Arc<dyn Source>) -> Self {
        Self {
            source,
            is_begun: AtomicBool::new(false),
        }
    }

    /// What it comes from, which is passed on once.
    pub fn begin(&self) -> PyResult<&Arc<dyn Source>> {
        if self.is_begun.swap(true, Ordering::Relaxed) {
            return Err(PyRuntimeError::new_err(
                "the content of another server's response is passed on once, and this one was",
            ));
        }
        Ok(&self.source)
    }
}

#[pymethods]
impl Relay {
    /// For code that reads the content itself, piece by piece.
    fn __aiter__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.begin()?.pieces(py)
    }

    /// Gives the response up.
    fn close(&self, py: Python<'_>) {
        self.source.leave(py);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.source.traverse(&visit)
    }
}

/// What passes the requests of a route on without Python.
#[pyclass(frozen, module = "citius._core")]
pub struct DirectForward(pub Arc<dyn Direct>);

#[pymethods]
impl DirectForward {
    /// Requests to the server at this place go by this pool and to this origin, where the loop of the pool runs.
    #[pyo3(signature = (server, pool, origin, metrics = None, limits = None))]
    fn learn(
        &self,
        server: usize,
        pool: &Bound<'_, PyAny>,
        origin: &Bound<'_, PyAny>,
        metrics: Option<&Bound<'_, ClientMetrics>>,
        limits: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.0.learn(server, pool, origin, metrics, limits)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // What routes hold as well is no garbage.
        if Arc::strong_count(&self.0) > 1 {
            return Ok(());
        }
        self.0.traverse(&visit)
    }
}

/// Whether a request asks for a WebSocket, by `Upgrade` or by an extended CONNECT.
pub fn asks_for_websocket(head: &Head) -> bool {
    let is_it = |value: &[u8]| value.trim_ascii().eq_ignore_ascii_case(b"websocket");
    match head.method {
        Method::Connect => head.field(b":protocol").is_some_and(is_it),
        Method::Get if head.asks_upgrade => head
            .fields()
            .filter(|(name, _)| name.eq_ignore_ascii_case(b"upgrade"))
            .any(|(_, value)| value.split(|&byte| byte == b',').any(is_it)),
        _ => false,
    }
}
