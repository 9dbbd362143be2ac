//! The native gateway: routes, and handlers called with as little as they ask for.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use citius_http::{Action, Answer, Fault, Fields, Head, Method, Payload, Status};
use citius_reactor::{ConnectionId, Reply, Service, StreamId};
use citius_route::{Captures, Converter, Found, Param, Pattern, Router};
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

/// What is called for a request, and with what.
struct Match<'a> {
    route: &'a Arc<Route>,
    /// Status and `Allow` for the application's own answer to a request that no route takes.
    unmatched: Option<(u16, String)>,
}

impl Service for Turn<'_, '_> {
    fn request(&mut self, head: Box<Head>, ended: bool, reply: &mut Reply<'_>) {
        self.link.return_heads(reply);
        let mut captures = Captures::new();
        let chosen = self.choose(&head, &mut captures);
        let mut asked = Asked::new(reply.id(), reply.peer(), self.link, head);
        let matched = match chosen {
            Ok(matched) => matched,
            Err(plain) => return self.answer_plainly(&plain, asked, reply),
        };
        asked.captures = captures;
        asked.route = Some(matched.route);
        if ended {
            return self.call(&matched, asked, true, reply);
        }
        // An unmatched request gets its answer before anybody asks for its body.
        if matched.unmatched.is_some() {
            return self.call(&matched, asked, false, reply);
        }
        let request = match asked.request(self.py, false) {
            Ok(request) => request.clone().unbind(),
            Err(error) => {
                answer::conclude_plainly(self.py, &error, &mut asked, reply);
                return;
            }
        };
        let route = (!matched.route.streams_body).then(|| Arc::clone(matched.route));
        let awaits_body = route.is_some();
        if !awaits_body {
            request.get().set_streamed();
        }
        self.link.with_open(reply.id(), |exchange| {
            exchange.request = Some(request);
            exchange.route = route;
        });
        if awaits_body {
            reply.want(u64::MAX);
        } else {
            self.call(&matched, asked, false, reply);
        }
    }

    fn data(&mut self, bytes: &[u8], reply: &mut Reply<'_>) {
        self.tasks.leave(self.py);
        if let Some(request) = self.request_of(reply.id()) {
            request.get().push_body(self.py, bytes);
        }
    }

    fn end(&mut self, _trailers: Fields, reply: &mut Reply<'_>) {
        self.tasks.leave(self.py);
        let Some(request) = self.request_of(reply.id()) else {
            return;
        };
        request.get().end_body(self.py);
        let route = self.link.with(reply.id(), |exchange| exchange.route.take());
        if let Some(route) = route.flatten() {
            drop(self.link.take(reply.id()));
            let asked = Asked::of_request(request.bind(self.py));
            let matched = Match {
                route: &route,
                unmatched: None,
            };
            self.call(&matched, asked, true, reply);
        }
    }

    fn broken(&mut self, id: StreamId, fault: Fault) {
        let link = Arc::clone(self.link);
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
        self.tasks.leave(self.py);
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

    fn panicked(&mut self, connection: ConnectionId) {
        let message = format!(
            "connection {}: a defect of the server's; it was cut",
            connection.index
        );
        self.link.log(self.py, LEVEL_ERROR, &message);
    }
}

/// An answer that needs no Python.
struct Plain {
    status: Status,
    allow: Option<String>,
}

impl<'a> Turn<'a, '_> {
    /// Finds what to call, or what to say without calling anything.
    #[inline]
    fn choose(&self, head: &Head, captures: &mut Captures) -> Result<Match<'a>, Plain> {
        let method = match head.method {
            Method::Get => Cow::Borrowed("GET"),
            _ => String::from_utf8_lossy(head.slice(head.method_span)),
        };
        let (status, allow) = match self.routes.router.find(&method, head.path()) {
            Found::Route(route, _, found) => {
                *captures = found;
                return Ok(Match {
                    route,
                    unmatched: None,
                });
            }
            Found::MethodNotAllowed(allow) if head.method == Method::Options => (204, Some(allow)),
            Found::MethodNotAllowed(allow) => (405, Some(allow)),
            Found::Nothing if head.path() == b"*" => (204, Some(self.routes.router.allow_all())),
            Found::Nothing => (404, None),
        };
        match &self.routes.unmatched {
            Some(route) => Ok(Match {
                route,
                unmatched: Some((status, allow.unwrap_or_default())),
            }),
            None => Err(Plain {
                status: Status::new(status).expect("one of the three above"),
                allow,
            }),
        }
    }

    #[cold]
    fn answer_plainly(&mut self, plain: &Plain, asked: Asked<'_>, reply: &mut Reply<'_>) {
        let mut fields = Fields::default();
        if let Some(allow) = &plain.allow {
            fields
                .push(b"allow", allow.as_bytes())
                .expect("methods are tokens");
        }
        let (media, body) = match plain.status.code() {
            204 => (None, ""),
            _ => (
                Some(&b"text/plain; charset=utf-8"[..]),
                plain.status.reason(),
            ),
        };
        let answer = Answer {
            status: plain.status,
            content_type: media,
            fields: &fields,
        };
        asked.record(self.py, plain.status, body.len());
        // Refused only when the connection is being cut already.
        let _ = reply.send(Action::Respond(answer, Payload::Copied(body.as_bytes())));
        if let Some(head) = asked.head {
            reply.recycle(head);
        }
    }

    /// Calls the handler.
    #[inline]
    fn call(
        &mut self,
        matched: &Match<'_>,
        mut asked: Asked<'_>,
        body_ended: bool,
        reply: &mut Reply<'_>,
    ) {
        let py = self.py;
        let route = &**matched.route;
        let handler = route.handler.bind(py);
        if route.kind != Kind::Async {
            self.tasks.leave(py);
        }
        if route.arguments.is_empty() && matched.unmatched.is_none() && route.kind != Kind::Blocking
        {
            return self.finish(handler.call0(), route.kind, asked, reply);
        }
        let arguments = match &matched.unmatched {
            Some((status, allow)) => asked.request(py, body_ended).and_then(|request| {
                let allow = allow.as_str();
                (request.clone(), *status, allow).into_pyobject(py)
            }),
            None => arguments(py, route, &mut asked, body_ended),
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
        asked: Asked<'_>,
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
        mut asked: Asked<'_>,
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
                answer::send_plain(py, Fault::Overloaded, &asked, reply);
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
        self.tasks.leave(py);
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
