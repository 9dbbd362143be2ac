//! `citius.Request`: a head in, Python objects out, each made when it is first asked for. Tests: `tests/gateway/`.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use citius_base::passing::{
    ClientRequest, Content, Inbound, Passable, Unsent, asks_for_websocket, find_requests_by,
};
use citius_base::reactor_handle::ReactorHandle;
use citius_base::report::Subject;
use citius_base::support;
use citius_base::support::{call_back, latin};
use citius_base::sync::lock;
use citius_http::origin::Client;
use citius_http::{Fields, Head, Status};
use citius_reactor::{Peer, ResponseAction, StreamCommand, StreamId};
use citius_route::{Captures, decode};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use smallvec::SmallVec;

use crate::form::{self, Fed, Form, FormSettings, FormState, Parts};
use crate::functions;
use crate::held_calls::{HandlerProgress, HeldCalls};
use crate::request_context::RequestContext;
use crate::response;
use crate::response::Response;
use crate::route::{RouteInfo, convert};
use crate::tls::TlsInfo;
use crate::urlencoded::parse_urlencoded;

/// One request; made by the server only.
#[pyclass(frozen, module = "citius._core", weakref)]
pub(crate) struct Request {
    /// `None` only while it is being dropped.
    head: Option<Box<Head>>,
    pub(crate) id: StreamId,
    peer: Peer,
    pub(crate) handle: Arc<ReactorHandle>,
    pub(crate) route: Option<Arc<RouteInfo>>,
    captures: Captures,
    body: Mutex<Body>,
    made: Mutex<Made>,
    progress: HandlerProgress,
}

/// The body as far as it has come.
#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one body"
)]
struct Body {
    bytes: Vec<u8>,
    /// The whole body, once it has been asked for.
    whole: Option<Py<PyBytes>>,
    ended: bool,
    /// Known once it has ended.
    trailers: Fields,
    broken: bool,
    /// No more of it is read.
    is_refused: bool,
    /// The handler reads it piece by piece.
    streamed: bool,
    /// Pieces of it have been handed out and are not kept.
    taken: bool,
    context: bool,
    on_change: Option<Py<PyAny>>,
    /// Where pieces go that come from now on: to another server.
    content: Option<Arc<dyn Content>>,
    /// Bytes that the client was asked for before.
    wanted: u64,
    /// What there is of a form in it.
    form: Option<Box<FormState>>,
}

/// Objects that are made once.
#[derive(Default)]
struct Made {
    path_params: Option<Py<PyDict>>,
    query: Option<Py<PyAny>>,
    headers: Option<Py<PyAny>>,
    cookies: Option<Py<PyAny>>,
    state: Option<Py<PyAny>>,
    /// The application, where it is not that of the route.
    app: Option<Py<PyAny>>,
    /// What marks the responses that are of this request alone; 0: there is none so far.
    number: u64,
}

/// The number that was given last.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

impl Request {
    pub(crate) fn new(context: &mut RequestContext<'_>, head: Box<Head>, body_ended: bool) -> Self {
        Self {
            head: Some(head),
            id: context.id,
            peer: context.peer,
            handle: Arc::clone(context.handle),
            route: context.route.cloned(),
            captures: std::mem::take(&mut context.captures),
            body: Mutex::new(Body {
                ended: body_ended,
                ..Body::default()
            }),
            made: Mutex::default(),
            progress: HandlerProgress::default(),
        }
    }

    /// One without a body, at a path without parameters.
    #[inline]
    pub(crate) fn alone(
        id: StreamId,
        peer: Peer,
        handle: &Arc<ReactorHandle>,
        route: &Arc<RouteInfo>,
        head: Box<Head>,
    ) -> Self {
        Self {
            head: Some(head),
            id,
            peer,
            handle: Arc::clone(handle),
            route: Some(Arc::clone(route)),
            captures: Captures::new(),
            body: Mutex::new(Body {
                ended: true,
                ..Body::default()
            }),
            made: Mutex::default(),
            progress: HandlerProgress::default(),
        }
    }

    /// The address of the client, if it has one that is known.
    pub(crate) fn client_ip(&self) -> Option<IpAddr> {
        socket_address(self.head(), self.peer).map(|address| address.ip())
    }

    /// `value` as a response of this request alone: a copy if it is a `Response` that has not gone through here for this request,
    /// and one with this body if it is anything else.
    ///
    /// An application may return one response for many requests, at the same time, too, and what middleware does to it is for one
    /// of them.
    pub(crate) fn own<'py>(&self, value: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = value.py();
        let mut made = lock(&self.made);
        if made.number == 0 {
            made.number = NUMBERS.fetch_add(1, Ordering::Relaxed) + 1;
        }
        let number = made.number;
        drop(made);
        let owned = match value.cast::<Response>() {
            Ok(response) => match response.get().owned_copy(py, number) {
                Some(copy) => copy,
                None => return Ok(value),
            },
            Err(_) => Response::owned(value.unbind(), number),
        };
        Ok(Bound::new(py, owned)?.into_any())
    }

    pub(crate) fn head(&self) -> &Head {
        self.head
            .as_deref()
            .expect("the head is there until the request is dropped")
    }

    /// What messages say of it.
    #[cold]
    pub(crate) fn subject(&self) -> Subject {
        Subject::new(
            self.handle.names(),
            self.head(),
            self.route.as_ref().map(|route| &*route.label),
        )
    }

    pub(crate) fn captures(&self) -> &Captures {
        &self.captures
    }

    pub(crate) fn route(&self) -> Option<&Arc<RouteInfo>> {
        self.route.as_ref()
    }

    pub(crate) fn peer(&self) -> Peer {
        self.peer
    }

    /// The handler has ended: what it has deferred is called, or forgotten if it has failed.
    #[inline]
    pub(crate) fn end_handler(slf: &Bound<'_, Self>, is_failed: bool) {
        let this = slf.get();
        this.progress.end(&this.handle, slf.as_any(), is_failed);
        this.end_reading(slf.py());
    }

    /// After the handler has ended no more bytes of a streamed body come: readers that still wait get `ClientDisconnected`.
    fn end_reading(&self, py: Python<'_>) {
        let mut body = lock(&self.body);
        if body.streamed && !body.ended {
            body.broken = true;
            Self::changed(py, body);
        }
    }

    /// The handler reads the body piece by piece.
    pub(crate) fn set_streamed(&self) {
        lock(&self.body).streamed = true;
    }

    /// The body is parsed as it comes if it is a form of several parts; says whether it is.
    pub(crate) fn expect_form(&self, settings: &FormSettings) -> bool {
        let head = self.head();
        let is_multipart = form::is_multipart(head);
        if is_multipart {
            let made = Form::new(head, settings, self.handle.limits.body_bytes_max);
            let state = Box::new(FormState::Coming(made));
            let replaced = lock(&self.body).form.replace(state);
            drop(replaced);
        }
        is_multipart
    }

    /// So many bytes of the body were asked for.
    pub(crate) fn note_wanted(&self, bytes: u64) {
        lock(&self.body).wanted = bytes;
    }

    /// A piece of the body has come; if it is one of a form, there is something to be done.
    pub(crate) fn push_body(&self, py: Python<'_>, bytes: &[u8]) -> Option<Fed> {
        let mut body = lock(&self.body);
        if let Some(content) = &body.content {
            let content = Arc::clone(content);
            drop(body);
            content.push(py, bytes);
            return None;
        }
        match body.form.as_deref_mut() {
            None => body.bytes.extend_from_slice(bytes),
            Some(FormState::Coming(form)) => {
                return Some(form.push(bytes, &self.handle.spooler, self.id));
            }
            // Bytes after the end of the form, or those of a broken one.
            Some(FormState::Made(_)) => return None,
        }
        Self::changed(py, body);
        None
    }

    /// Whether files of a form in the body are still being written.
    pub(crate) fn awaits_files(&self) -> bool {
        match lock(&self.body).form.as_deref() {
            Some(FormState::Coming(form)) => form.awaits_files(),
            _ => false,
        }
    }

    pub(crate) fn has_body_ended(&self) -> bool {
        lock(&self.body).ended
    }

    /// The body is complete.
    pub(crate) fn end_body(&self, py: Python<'_>, trailers: Fields) {
        let mut body = lock(&self.body);
        body.ended = true;
        if let Some(content) = &body.content {
            let content = Arc::clone(content);
            drop(body);
            return content.end(py, &trailers);
        }
        body.trailers = trailers;
        Self::changed(py, body);
    }

    /// The body will never be complete.
    pub(crate) fn break_body(&self, py: Python<'_>) {
        let mut body = lock(&self.body);
        body.broken = !body.ended;
        Self::changed(py, body);
    }

    /// No more of the body is read: it is longer than it may be, and the response has begun.
    pub(crate) fn refuse_body(&self, py: Python<'_>) {
        let mut body = lock(&self.body);
        body.is_refused = !body.ended;
        Self::changed(py, body);
    }

    /// Whether pieces of the body go to another server.
    pub(crate) fn is_passed_on(&self) -> bool {
        lock(&self.body).content.is_some()
    }

    /// Lets go of the body and calls back the code that waits for it.
    fn changed(py: Python<'_>, mut body: MutexGuard<'_, Body>) {
        let callback = body.on_change.take();
        drop(body);
        call_back(py, callback);
    }

    /// What `made` holds in `slot`, made by `make` if it is not there.
    fn once<'py, T>(
        &self,
        py: Python<'py>,
        slot: impl Fn(&mut Made) -> &mut Option<Py<T>>,
        make: impl FnOnce() -> PyResult<Bound<'py, T>>,
    ) -> PyResult<Bound<'py, T>> {
        if let Some(object) = slot(&mut lock(&self.made)) {
            return Ok(object.bind(py).clone());
        }
        let object = make()?;
        // Two threads may make it at once; the first to come back wins.
        let mut made = lock(&self.made);
        let kept = slot(&mut made).get_or_insert_with(|| object.clone().unbind());
        let kept = kept.bind(py).clone();
        drop(made);
        Ok(kept)
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if let Some(head) = self.head.take() {
            self.handle.keep_head(head);
        }
    }
}

impl Passable for Request {
    fn as_client(&self) -> ClientRequest<'_> {
        ClientRequest {
            head: self.head(),
            captures: &self.captures,
            peer: self.peer,
            params: self.route.as_ref().map_or(&[], |route| &route.params),
        }
    }

    fn inbound(&self) -> Inbound {
        Inbound {
            handle: Arc::clone(&self.handle),
            id: self.id,
            upgrades: asks_for_websocket(self.head()),
        }
    }

    fn whole_body<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let body = lock(&self.body);
        if body.content.is_some() || !body.ended && body.whole.is_none() {
            return Ok(None);
        }
        drop(body);
        self.body(py).map(Some)
    }

    fn take_unsent(&self, upgrades: bool) -> PyResult<Unsent> {
        let mut body = lock(&self.body);
        if let Some(before) = &body.content {
            return before.take_unsent().ok_or_else(|| {
                PyRuntimeError::new_err(
                    "the body of the request has been passed on already, and cannot be sent again",
                )
            });
        }
        if body.taken {
            return Err(PyRuntimeError::new_err(
                "the body of the request has been read piece by piece: what is left of it cannot be passed on",
            ));
        }
        if !body.streamed && !upgrades {
            return Err(PyRuntimeError::new_err(
                "the body of the request has not arrived: pass requests on in a route with stream=True",
            ));
        }
        let pieces = std::mem::take(&mut body.bytes);
        let given = pieces.len() as u64;
        Ok(Unsent {
            given,
            pieces,
            wanted: body.wanted.saturating_sub(given),
            end: None,
        })
    }

    fn pass_content_on(&self, content: Arc<dyn Content>) {
        let mut body = lock(&self.body);
        body.taken = true;
        let before = body.content.replace(content);
        drop(body);
        drop(before);
    }
}

/// What sends a response that is made outside of the turn.
pub(crate) type Complete = fn(&Bound<'_, Request>, PyResult<Bound<'_, PyAny>>);

/// Responses are made of what knows requests.
static COMPLETE: OnceLock<Complete> = OnceLock::new();

fn complete(request: &Bound<'_, Request>, result: PyResult<Bound<'_, PyAny>>) {
    if let Some(complete) = COMPLETE.get() {
        complete(request, result);
    }
}

/// Says how requests are found that are passed on, and how a response is sent outside of the turn.
pub(crate) fn prepare(complete: Complete) {
    let _ = COMPLETE.set(complete);
    find_requests_by(|object| {
        let request: &Request = object.cast::<Request>()?.get();
        Ok(request)
    });
}

#[pymethods]
impl Request {
    /// A message about it.
    fn _message(&self, what: &str) -> String {
        self.subject().message(what)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // A lock that is taken means that the request is in use: no garbage.
        if let Ok(made) = self.made.try_lock() {
            let Made {
                path_params,
                query,
                headers,
                cookies,
                state,
                app,
                number: _,
            } = &*made;
            visit.call(path_params)?;
            for object in [query, headers, cookies, state, app] {
                visit.call(object)?;
            }
        }
        self.progress.traverse(&visit)?;
        if let Ok(body) = self.body.try_lock() {
            visit.call(&body.on_change)?;
            if let Some(content) = &body.content {
                content.traverse(&visit)?;
            }
        }
        Ok(())
    }

    fn __clear__(&self) {
        let made = std::mem::take(&mut *lock(&self.made));
        let mut body = lock(&self.body);
        let cleared = (body.on_change.take(), body.content.take());
        drop(body);
        drop((made, cleared));
    }

    #[getter]
    fn method<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        let head = self.head();
        latin(py, head.slice(head.method_span))
    }

    #[getter]
    fn path<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        match decode(self.head().path()) {
            Cow::Borrowed(plain) => latin(py, plain),
            Cow::Owned(decoded) => PyString::new(py, &String::from_utf8_lossy(&decoded)),
        }
    }

    #[getter]
    fn raw_path<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.head().path())
    }

    #[getter]
    fn raw_query<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.head().query())
    }

    #[getter]
    fn target<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let head = self.head();
        PyBytes::new(py, head.slice(head.target))
    }

    /// As the observer has put it among the fields.
    #[getter]
    fn id<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyString>> {
        let name = self.handle.observed.request_id_field.as_deref()?;
        Some(latin(py, self.head().field(name)?))
    }

    #[getter]
    fn http_version(&self) -> &'static str {
        self.head().version.number()
    }

    #[getter]
    fn scheme(&self) -> &'static str {
        self.head().scheme().name()
    }

    #[getter]
    fn tls(&self) -> Option<TlsInfo> {
        self.head().tls.clone().map(TlsInfo)
    }

    #[getter]
    fn client(&self) -> Option<(String, u16)> {
        client_address(self.head(), self.peer)
    }

    #[getter]
    fn host<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        latin(py, self.head().field(b"host").unwrap_or_default())
    }

    #[getter]
    fn root_path<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        let origin = self.head().origin.as_deref();
        let prefix = origin.and_then(|origin| origin.prefix.as_deref());
        let decoded = decode(prefix.unwrap_or_default().as_bytes());
        PyString::new(py, &String::from_utf8_lossy(&decoded))
    }

    #[getter]
    fn path_params<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.once(
            py,
            |made| &mut made.path_params,
            || {
                let params = PyDict::new(py);
                if let Some(route) = &self.route {
                    for (param, value) in route.params.iter().zip(&self.captures) {
                        params.set_item(&param.name, convert(py, param.converter, value)?)?;
                    }
                }
                Ok(params)
            },
        )
    }

    #[getter]
    fn query<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.once(
            py,
            |made| &mut made.query,
            || functions::QUERY.call1(py, parse_urlencoded(py, self.head().query())?.as_any()),
        )
    }

    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.once(
            py,
            |made| &mut made.headers,
            || functions::HEADERS.call1(py, self.header_items(py)?.as_any()),
        )
    }

    #[getter]
    fn trailers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let trailers = lock(&self.body).trailers.clone();
        let items = trailers
            .iter()
            .map(|(name, value)| (latin(py, name), latin(py, value)));
        functions::HEADERS.call1(py, PyList::new(py, items.collect::<Vec<_>>())?.as_any())
    }

    #[getter]
    fn cookies<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.once(
            py,
            |made| &mut made.cookies,
            || {
                let cookies = self
                    .head()
                    .fields()
                    .filter(|(n, _)| n.eq_ignore_ascii_case(b"cookie"));
                let values =
                    PyList::new(py, cookies.map(|(_, v)| latin(py, v)).collect::<Vec<_>>())?;
                functions::COOKIES.call1(py, values.as_any())
            },
        )
    }

    #[getter]
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.once(
            py,
            |made| &mut made.state,
            || {
                let app = self.app(py);
                let of_lifespan = app.bind(py).getattr_opt(intern!(py, "_lifespan_state"))?;
                let given = of_lifespan.and_then(|state| state.cast_into::<PyDict>().ok());
                functions::STATE.get(py)?.call((), given.as_ref())
            },
        )
    }

    #[getter]
    fn app(&self, py: Python<'_>) -> Py<PyAny> {
        let of_route = || self.route.as_ref().and_then(|route| route.app.as_ref());
        let made = lock(&self.made);
        let app = made.app.as_ref().or_else(of_route);
        app.unwrap_or(&self.handle.callbacks.app).clone_ref(py)
    }

    #[getter]
    fn _served_app(&self, py: Python<'_>) -> Py<PyAny> {
        self.handle.callbacks.app.clone_ref(py)
    }

    fn _deferred_in_turn<'py>(
        &self,
        event_loop: &Bound<'py, PyAny>,
        of: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        let own = self.handle.event_loop.get();
        if own.is_some_and(|own| own.is(event_loop)) {
            self.handle.deferred.list_for(event_loop.py(), of)
        } else {
            Ok(None)
        }
    }

    /// Holds a call until the handler has ended: `False` if it has, `None` if `count_max` calls wait already.
    fn _hold_deferred(
        &self,
        of: &Bound<'_, HeldCalls>,
        function: Bound<'_, PyAny>,
        event_loop: Option<Bound<'_, PyAny>>,
        count_max: usize,
    ) -> PyResult<Option<bool>> {
        self.progress
            .hold(&self.handle, of, (function, event_loop), count_max)
    }

    fn _own<'py>(&self, value: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.own(value)
    }

    /// The handler has failed, and something else responds in its place.
    fn _forget_deferred(&self) {
        self.progress.forget();
    }

    /// The handler goes on without its client.
    fn _detach_deferred(&self) {
        self.progress.detach();
    }

    /// A handler that has gone on without its client has ended.
    fn _end_detached(slf: &Bound<'_, Self>, is_failed: bool) {
        let this = slf.get();
        this.progress
            .end_detached(&this.handle, slf.as_any(), is_failed);
    }

    fn _set_app(&self, app: Py<PyAny>) {
        let replaced = lock(&self.made).app.replace(app);
        drop(replaced);
    }

    #[pyo3(signature = (name, default = None))]
    fn header<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> Option<Bound<'py, PyAny>> {
        match self.head().field(name.as_bytes()) {
            Some(value) => Some(latin(py, value).into_any()),
            None => default,
        }
    }

    fn header_items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let items = self.head().fields().map(|(name, value)| {
            let mut lower = SmallVec::<[u8; 64]>::from_slice(name);
            lower.make_ascii_lowercase();
            (latin(py, &lower), latin(py, value))
        });
        PyList::new(py, items.collect::<SmallVec<[_; 16]>>())
    }

    pub(crate) fn body<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut body = lock(&self.body);
        if let Some(whole) = &body.whole {
            return Ok(whole.bind(py).clone());
        }
        if body.form.is_some() && body.bytes.is_empty() {
            return Err(PyRuntimeError::new_err(
                "the body has been parsed as a form while it came: use 'request.form()', or a route without \
                 form parameters",
            ));
        }
        if body.taken {
            return Err(PyRuntimeError::new_err(
                "the body has been read piece by piece, and its pieces are gone: keep them, or use \
                 'await request.read()' in place of 'request.stream()'",
            ));
        }
        if !body.ended {
            return Err(PyRuntimeError::new_err(
                "the body has not arrived: a handler with stream=True reads it with \
                 'await request.read()' or 'async for chunk in request.stream()'",
            ));
        }
        let whole = PyBytes::new(py, &std::mem::take(&mut body.bytes));
        body.whole = Some(whole.clone().unbind());
        Ok(whole)
    }

    /// The body, if its type is `application/json` without parameters, as most are.
    fn _json_body<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        match self.head().field(b"content-type") {
            Some(b"application/json") => self.body(py).map(Some),
            _ => Ok(None),
        }
    }

    fn read<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        functions::READ.call1(slf.py(), slf.as_any())
    }

    fn stream<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        functions::BODY_STREAM.call1(slf.py(), slf.as_any())
    }

    #[pyo3(signature = (r#type = None))]
    fn json<'py>(
        &self,
        py: Python<'py>,
        r#type: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        functions::DECODE_JSON
            .get(py)?
            .call1((r#type, self.body(py)?))
    }

    #[pyo3(signature = (r#type = None))]
    fn msgpack<'py>(
        &self,
        py: Python<'py>,
        r#type: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        functions::DECODE_MSGPACK
            .get(py)?
            .call1((r#type, self.body(py)?))
    }

    fn form<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        if let Some(FormState::Made(form)) = lock(&this.body).form.as_deref() {
            return Ok(form.bind(py).clone());
        }
        let form = functions::FORM.call1(py, slf.as_any())?;
        let made = Box::new(FormState::Made(form.clone().unbind()));
        let replaced = lock(&this.body).form.replace(made);
        drop(replaced);
        Ok(form)
    }

    /// Pairs and files of the form in the body, of at most what its route says, or `otherwise`.
    fn _form_parts<'py>(&self, py: Python<'py>, otherwise: FormSettings) -> PyResult<Parts<'py>> {
        let mut body = lock(&self.body);
        let coming = match body.form.as_deref_mut() {
            Some(FormState::Coming(form)) => Some(form.take()),
            _ => None,
        };
        drop(body);
        if let Some(taken) = coming {
            return form::parts(py, taken);
        }
        let content_type = self.head().field(b"content-type").unwrap_or_default();
        let content_type = String::from_utf8_lossy(content_type);
        let of_route = self.route.as_ref().and_then(|route| route.form);
        let whole = self.body(py)?;
        let settings = of_route.unwrap_or(otherwise);
        form::parse_form(py, &content_type, whole.as_bytes(), settings)
    }

    fn _next_chunk<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let mut body = lock(&self.body);
        if let Some(whole) = body.whole.take() {
            return Ok(Some(whole.into_bound(py)));
        }
        if !body.bytes.is_empty() {
            let bytes = std::mem::take(&mut body.bytes);
            body.taken = true;
            let wants_more = body.streamed && !body.ended;
            drop(body);
            if wants_more {
                self.handle
                    .post(py, self.id, StreamCommand::Want(bytes.len() as u64));
            }
            return Ok(Some(PyBytes::new(py, &bytes)));
        }
        if body.ended {
            return Ok(Some(PyBytes::new(py, b"")));
        }
        if body.broken {
            return Err(support::client_disconnected(py));
        }
        if body.is_refused {
            return Err(support::content_too_large(py));
        }
        let first = !std::mem::replace(&mut body.context, true);
        let streamed = body.streamed;
        drop(body);
        if first && streamed {
            let window = u64::from(self.handle.limits.body_window_bytes);
            self.handle.post(py, self.id, StreamCommand::Want(window));
        }
        Ok(None)
    }

    /// Keeps a body that was read piece by piece for `body`, `json` and the like.
    fn _set_body(&self, whole: Py<PyBytes>) {
        let mut body = lock(&self.body);
        let replaced = body.whole.replace(whole);
        body.ended = true;
        drop(body);
        drop(replaced);
    }

    fn _on_body(&self, py: Python<'_>, callback: Py<PyAny>) {
        let mut body = lock(&self.body);
        let replaced = body.on_change.replace(callback);
        if !body.bytes.is_empty() || body.ended || body.broken || body.is_refused {
            Self::changed(py, body);
        } else {
            drop(body);
        }
        drop(replaced);
    }

    /// Has `task.cancel()` called if the client goes before its response is complete.
    fn _set_task(&self, task: Py<PyAny>) {
        self.handle.set_task(self.id, Some(task));
    }

    /// Sends an informational response (1xx); the response itself comes later.
    fn _inform(&self, py: Python<'_>, status: u16, headers: &Bound<'_, PyAny>) -> PyResult<()> {
        let fields = response::fields(&response::pairs(headers)?)?
            .map_err(|fault| PyValueError::new_err(fault.text()))?;
        let status = Status::new(status)
            .filter(|status| status.code() < 200)
            .ok_or_else(|| PyValueError::new_err("expected a status of 100 to 199"))?;
        let action = ResponseAction::Inform { status, fields };
        self.handle.post(py, self.id, StreamCommand::Act(action));
        Ok(())
    }

    fn _is_open(&self) -> bool {
        self.handle.is_open(self.id)
    }

    fn _respond(slf: &Bound<'_, Self>, value: Bound<'_, PyAny>) {
        let this = slf.get();
        this.handle
            .guard(slf.py(), this.id, || complete(slf, Ok(value)));
    }

    fn _fail(slf: &Bound<'_, Self>, error: Bound<'_, PyAny>) {
        let this = slf.get();
        this.handle.guard(slf.py(), this.id, || {
            complete(slf, Err(PyErr::from_value(error)));
        });
    }

    fn __repr__(&self) -> String {
        let head = self.head();
        format!(
            "<Request {} {}>",
            String::from_utf8_lossy(head.slice(head.method_span)),
            String::from_utf8_lossy(head.slice(head.target))
        )
    }
}

/// Host and port of the client, as trusted proxies and the connection tell it.
pub(crate) fn client_address(head: &Head, peer: Peer) -> Option<(String, u16)> {
    let address = socket_address(head, peer);
    address.map(|address| (ip_text(address.ip()), address.port()))
}

fn socket_address(head: &Head, peer: Peer) -> Option<SocketAddr> {
    match head.origin.as_ref().and_then(|origin| origin.client) {
        None => peer.address(),
        Some(Client::Hidden) => None,
        Some(Client::Address(address)) => Some(address),
    }
}

/// An address as text. Most are of IPv4, and written without the machinery of formatting.
pub(crate) fn ip_text(ip: IpAddr) -> String {
    let IpAddr::V4(ip) = ip else {
        return ip.to_string();
    };
    let mut text = String::with_capacity(15);
    for (index, octet) in ip.octets().into_iter().enumerate() {
        if index > 0 {
            text.push('.');
        }
        if octet >= 100 {
            text.push(char::from(b'0' + octet / 100));
        }
        if octet >= 10 {
            text.push(char::from(b'0' + octet / 10 % 10));
        }
        text.push(char::from(b'0' + octet % 10));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_as_the_standard_library_writes_them() {
        for last in 0..=255 {
            let ip = IpAddr::from([last, 0, 255 - last, 10]);
            assert_eq!(ip_text(ip), ip.to_string());
        }
        let ip = IpAddr::from([0, 0, 0, 0, 0, 0xffff, 0x7f00, 1]);
        assert_eq!(ip_text(ip), ip.to_string());
    }
}
