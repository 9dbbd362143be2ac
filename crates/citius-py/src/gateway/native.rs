//! The native gateway: routes, and handlers called with as little as they ask for.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use citius_http::{Action, Answer, Fault, Fields, Head, Method, Payload, Status};
use citius_reactor::{ConnectionId, Reply, Service, StreamId};
use citius_route::{Converter, Found, Param, Pattern, Router};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;

use crate::answer::{self, Asked, conclude_in_turn, convert};
use crate::link::{Exchange, LEVEL_DEBUG, LEVEL_ERROR, Link, lock};
use crate::request::Request;
use crate::task::Tasks;

/// How a handler wants to be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// On the reactor's thread; what it returns is the answer.
    Def,
    /// On the reactor's thread; what it returns is a coroutine.
    Async,
    /// On a thread of the pool.
    Blocking,
}

impl Kind {
    fn from_name(name: &str) -> PyResult<Self> {
        match name {
            "def" => Ok(Self::Def),
            "async" => Ok(Self::Async),
            "blocking" => Ok(Self::Blocking),
            _ => Err(PyValueError::new_err(format!(
                "kind is \"def\", \"async\" or \"blocking\", not {name:?}"
            ))),
        }
    }
}

/// Where a positional argument of a handler comes from.
#[derive(Clone, Copy, Debug)]
enum Argument {
    Request,
    /// The path parameter at this place.
    Param(usize, Converter),
}

/// A route, ready to be called.
pub(crate) struct Route {
    handler: Py<PyAny>,
    kind: Kind,
    arguments: SmallVec<[Argument; 4]>,
    pub(crate) params: Vec<Param>,
    streams_body: bool,
}

/// Everything a reactor needs to know of an application; fixed when the reactor is made.
#[derive(Clone, Default)]
pub(crate) struct Routes {
    router: Router<Arc<Route>>,
    unmatched: Option<Arc<Route>>,
}

/// The native gateway of one application.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct Native {
    routes: Mutex<Routes>,
    pub(crate) app: Py<PyAny>,
    pub(crate) on_error: Py<PyAny>,
    pub(crate) submit: Option<Py<PyAny>>,
}

#[pymethods]
impl Native {
    #[new]
    #[pyo3(signature = (*, app, on_error, submit = None))]
    fn new(app: Py<PyAny>, on_error: Py<PyAny>, submit: Option<Py<PyAny>>) -> Self {
        Self {
            routes: Mutex::default(),
            app,
            on_error,
            submit,
        }
    }

    #[pyo3(signature = (method, pattern, handler, *, kind, args = SmallNames::default(), stream = false))]
    fn add(
        &self,
        method: &str,
        pattern: &str,
        handler: Py<PyAny>,
        kind: &str,
        args: SmallNames,
        stream: bool,
    ) -> PyResult<()> {
        let value_error =
            |error: citius_route::PatternError| PyValueError::new_err(error.to_string());
        let parsed = Pattern::parse(pattern).map_err(value_error)?;
        let argument = |name: Option<String>| match name {
            None => Ok(Argument::Request),
            Some(name) => {
                let place = parsed.params.iter().position(|param| param.name == name);
                place
                    .map(|at| Argument::Param(at, parsed.params[at].converter))
                    .ok_or_else(|| {
                        PyValueError::new_err(format!(
                            "route pattern {pattern:?} has no parameter {name:?}"
                        ))
                    })
            }
        };
        let route = Route {
            handler,
            kind: Kind::from_name(kind)?,
            arguments: args.0.into_iter().map(argument).collect::<PyResult<_>>()?,
            params: parsed.params.clone(),
            streams_body: stream,
        };
        lock(&self.routes)
            .router
            .insert(method, &parsed, Arc::new(route))
            .map_err(value_error)
    }

    #[pyo3(signature = (handler, *, kind))]
    fn set_unmatched(&self, handler: Py<PyAny>, kind: &str) -> PyResult<()> {
        let route = Route {
            handler,
            kind: Kind::from_name(kind)?,
            arguments: SmallVec::new(),
            params: Vec::new(),
            streams_body: false,
        };
        lock(&self.routes).unmatched = Some(Arc::new(route));
        Ok(())
    }
}

impl Native {
    pub(crate) fn routes(&self) -> Routes {
        lock(&self.routes).clone()
    }
}

/// Names of arguments, as `tuple[str | None, ...]`.
#[derive(Default, FromPyObject)]
#[pyo3(transparent)]
struct SmallNames(Vec<Option<String>>);

/// The service of one turn: the gateway with the GIL in hand.
pub(crate) struct Turn<'a, 'py> {
    pub(crate) py: Python<'py>,
    pub(crate) routes: &'a Routes,
    pub(crate) link: &'a Arc<Link>,
    pub(crate) tasks: &'a mut Tasks,
}

/// Status and `Allow` that the application's own answer to an unmatched request is asked for.
type Unmatched<'a> = Option<(u16, &'a str)>;

impl Service for Turn<'_, '_> {
    fn request(&mut self, head: Box<Head>, ended: bool, reply: &mut Reply<'_>) {
        self.link.return_heads(reply);
        let mut asked = Asked::new(reply.id(), reply.peer(), self.link, head);
        let found = {
            let head = asked.head.as_deref().expect("it was put there just now");
            let method = match head.method {
                Method::Get => Cow::Borrowed("GET"),
                _ => String::from_utf8_lossy(head.slice(head.method_span)),
            };
            self.routes
                .router
                .find(&method, head.path(), &mut asked.captures)
        };
        let route = match found {
            Found::Route(route) => route,
            Found::MethodNotAllowed(allow) => {
                return self.answer_unmatched(Some(allow), &mut asked, ended, reply);
            }
            Found::Nothing => return self.answer_unmatched(None, &mut asked, ended, reply),
        };
        asked.route = Some(route);
        if ended {
            self.call(route, None, &mut asked, true, reply);
        } else {
            self.await_body(route, asked, reply);
        }
    }

    fn data(&mut self, bytes: &[u8], reply: &mut Reply<'_>) {
        self.tasks.stand(self.py);
        if let Some(request) = self.request_of(reply.id()) {
            request.get().push_body(self.py, bytes);
        }
    }

    fn end(&mut self, trailers: Fields, reply: &mut Reply<'_>) {
        self.tasks.stand(self.py);
        let Some(request) = self.request_of(reply.id()) else {
            return;
        };
        request.get().end_body(self.py, trailers);
        let route = self.link.with(reply.id(), |exchange| exchange.route.take());
        if let Some(route) = route.flatten() {
            drop(self.link.take(reply.id()));
            let mut asked = Asked::of_request(request.bind(self.py));
            self.call(&route, None, &mut asked, true, reply);
        }
    }

    fn broken(&mut self, id: StreamId, fault: Fault) {
        let link = self.link;
        link.log(
            self.py,
            LEVEL_DEBUG,
            &format!("request {}: {}", id.stream, fault.text()),
        );
        if let Some(exchange) = link.take(id) {
            self.abandon(exchange);
        }
    }

    fn room(&mut self, reply: &mut Reply<'_>) {
        self.tasks.stand(self.py);
        let py = self.py;
        let out = |exchange: &mut Exchange| exchange.out.as_ref().map(|out| out.clone_ref(py));
        if let Some(out) = self.link.with(reply.id(), out).flatten() {
            out.get().has_room(py);
        }
    }

    fn gone(&mut self, connection: ConnectionId) {
        for exchange in self.link.take_all(connection) {
            self.abandon(exchange);
        }
    }

    fn refused(&mut self, id: StreamId, fault: Fault) {
        let message = format!("request {}: {} ({})", id.stream, fault.text(), fault.spec());
        self.link.log(self.py, LEVEL_ERROR, &message);
    }

    fn file_failed(&mut self, connection: ConnectionId, message: &str) {
        let message = format!("connection {}: {message}; it was cut", connection.index);
        self.link.log(self.py, LEVEL_ERROR, &message);
    }

    fn panicked(&mut self, connection: ConnectionId) {
        let message = format!(
            "connection {}: a defect of the server's; it was cut",
            connection.index
        );
        self.link.log(self.py, LEVEL_ERROR, &message);
    }
}

impl Turn<'_, '_> {
    /// Calls for the body, and calls the handler now or when that is complete.
    fn await_body(&mut self, route: &Arc<Route>, mut asked: Asked<'_>, reply: &mut Reply<'_>) {
        let request = match asked.request(self.py, false) {
            Ok(request) => request.clone().unbind(),
            Err(error) => {
                answer::conclude_plainly(self.py, &error, &mut asked, reply);
                return;
            }
        };
        let awaiting = (!route.streams_body).then(|| Arc::clone(route));
        let awaits_body = awaiting.is_some();
        if !awaits_body {
            request.get().set_streamed();
        }
        self.link.with_open(reply.id(), |exchange| {
            exchange.request = Some(request);
            exchange.route = awaiting;
        });
        if awaits_body {
            reply.want(u64::MAX);
        } else {
            self.call(route, None, &mut asked, false, reply);
        }
    }

    /// Answers a request that no route takes: by the application's own handler, or plainly.
    ///
    /// Nobody asks for its body.
    #[cold]
    fn answer_unmatched(
        &mut self,
        allow: Option<String>,
        asked: &mut Asked<'_>,
        ended: bool,
        reply: &mut Reply<'_>,
    ) {
        let (is_options, is_star) = asked.with_head(self.py, |head| {
            (head.method == Method::Options, head.path() == b"*")
        });
        let (status, allow) = match allow {
            Some(allow) if is_options => (204, Some(allow)),
            Some(allow) => (405, Some(allow)),
            None if is_star => (204, Some(self.routes.router.allow_all())),
            None => (404, None),
        };
        if let Some(route) = &self.routes.unmatched {
            let unmatched = Some((status, allow.as_deref().unwrap_or_default()));
            return self.call(route, unmatched, asked, ended, reply);
        }
        let status = Status::new(status).expect("one of the three above");
        self.answer_plainly(status, allow.as_deref(), asked, reply);
    }

    fn answer_plainly(
        &mut self,
        status: Status,
        allow: Option<&str>,
        asked: &mut Asked<'_>,
        reply: &mut Reply<'_>,
    ) {
        let mut fields = Fields::default();
        if let Some(allow) = allow {
            fields
                .push(b"allow", allow.as_bytes())
                .expect("methods are tokens");
        }
        let (content_type, body) = if status == Status::NO_CONTENT {
            (None, "")
        } else {
            (Some(&b"text/plain; charset=utf-8"[..]), status.reason())
        };
        let answer = Answer {
            status,
            content_type,
            fields: &fields,
        };
        asked.record(self.py, status, body.len() as u64);
        // Refused only when the connection is being cut already.
        let _ = reply.send(Action::Respond(answer, Payload::Copied(body.as_bytes())));
        if let Some(head) = asked.head.take() {
            reply.recycle(head);
        }
    }

    /// Calls the handler.
    #[inline]
    fn call(
        &mut self,
        route: &Route,
        unmatched: Unmatched<'_>,
        asked: &mut Asked<'_>,
        body_ended: bool,
        reply: &mut Reply<'_>,
    ) {
        let py = self.py;
        let handler = route.handler.bind(py);
        if route.kind != Kind::Async {
            self.tasks.stand(py);
        }
        if route.arguments.is_empty() && unmatched.is_none() && route.kind != Kind::Blocking {
            return self.finish(handler.call0(), route.kind, asked, reply);
        }
        let arguments = match unmatched {
            Some((status, allow)) => asked
                .request(py, body_ended)
                .and_then(|request| (request.clone(), status, allow).into_pyobject(py)),
            None => arguments(py, route, asked, body_ended),
        };
        let arguments = match arguments {
            Ok(arguments) => arguments,
            Err(error) => return self.finish(Err(error), Kind::Def, asked, reply),
        };
        if route.kind == Kind::Blocking {
            return self.submit(handler, &arguments, asked, body_ended, reply);
        }
        self.finish(handler.call1(arguments), route.kind, asked, reply);
    }

    #[inline]
    fn finish(
        &mut self,
        result: PyResult<Bound<'_, PyAny>>,
        kind: Kind,
        asked: &mut Asked<'_>,
        reply: &mut Reply<'_>,
    ) {
        match result {
            Ok(coroutine) if kind == Kind::Async => {
                self.tasks.step(self.py, coroutine.unbind(), asked, reply);
            }
            result => conclude_in_turn(self.py, result, asked, reply, self.tasks),
        }
    }

    /// Hands a request to the thread pool.
    fn submit(
        &mut self,
        handler: &Bound<'_, PyAny>,
        arguments: &Bound<'_, PyTuple>,
        asked: &mut Asked<'_>,
        body_ended: bool,
        reply: &mut Reply<'_>,
    ) {
        let py = self.py;
        let submitted = asked.request(py, body_ended).cloned().and_then(|request| {
            let submit = self.link.callbacks.submit.as_ref().ok_or_else(|| {
                PyRuntimeError::new_err("there is no thread pool for blocking handlers")
            })?;
            // Before `submit`, for the pool's thread may answer before that returns.
            let kept = request.clone().unbind();
            drop(
                self.link
                    .with_open(reply.id(), |exchange| exchange.request.replace(kept)),
            );
            submit
                .bind(py)
                .call1((request, handler, arguments))?
                .is_truthy()
        });
        match submitted {
            Ok(true) => {}
            Ok(false) => {
                drop(self.link.take(reply.id()));
                answer::send_plain(py, Fault::Overloaded, asked, reply);
            }
            Err(error) => {
                drop(self.link.take(reply.id()));
                conclude_in_turn(py, Err(error), asked, reply, self.tasks);
            }
        }
    }

    fn request_of(&self, id: StreamId) -> Option<Py<Request>> {
        let py = self.py;
        let request = |exchange: &mut Exchange| exchange.request.as_ref().map(|r| r.clone_ref(py));
        self.link.with(id, request).flatten()
    }

    /// Nobody waits for this any more.
    fn abandon(&mut self, exchange: Exchange) {
        let py = self.py;
        self.tasks.stand(py);
        if let Some(request) = exchange.request {
            request.get().break_body(py);
        }
        if let Some(out) = exchange.out {
            out.get().gone(py);
        }
        if let Some(task) = exchange.task
            && let Err(error) = task.bind(py).call_method0(pyo3::intern!(py, "cancel"))
        {
            error.write_unraisable(py, Some(task.bind(py)));
        }
    }
}

/// The positional arguments of a handler.
fn arguments<'py>(
    py: Python<'py>,
    route: &Route,
    asked: &mut Asked<'_>,
    body_ended: bool,
) -> PyResult<Bound<'py, PyTuple>> {
    // Parameters first: making the request takes the captures along.
    let mut values: SmallVec<[Option<Bound<'py, PyAny>>; 4]> = SmallVec::new();
    for argument in &route.arguments {
        values.push(match *argument {
            Argument::Param(at, converter) => {
                let value = match (&asked.request, asked.captures.get(at)) {
                    (None, Some(text)) => convert(py, converter, text)?,
                    (Some(request), _) => {
                        let params = request.bind(py).getattr(pyo3::intern!(py, "path_params"))?;
                        params.get_item(route.params[at].name.as_str())?
                    }
                    (None, None) => py.None().into_bound(py),
                };
                Some(value)
            }
            Argument::Request => None,
        });
    }
    let mut objects: SmallVec<[Bound<'py, PyAny>; 4]> = SmallVec::new();
    for value in values {
        objects.push(match value {
            Some(value) => value,
            None => asked.request(py, body_ended)?.clone().into_any(),
        });
    }
    PyTuple::new(py, objects)
}
