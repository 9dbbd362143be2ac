//! The native gateway: a request in, its route, a call with the arguments that the handler declares.
//!
//! What the handler returns goes to `respond.rs`, a coroutine to `task.rs`. A Python object of the request exists only if the
//! handler asks for it or the request outlives the turn. Tests: `tests/gateway/`.

use std::borrow::Cow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use citius_http::coding::Coding;
use citius_http::{Action, FAST_PATHS, Fault, Fields, Head, Method, Payload, ResponseHead, Status};
use citius_reactor::Reply;
use citius_reactor::ws::{Opening, Refusal, Transport};
use citius_route::{Captures, Converter, Found, Param, Pattern, Router};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;

use crate::exchange::{Exchange, LazySubject, Role};
use crate::gateway::body_limit::BodyLimit;
use crate::gateway::compiled::{self, CompiledHandler, Handler, Pool};
use crate::gateway::rpc::{Decoders, Procedure, Procedures};
use crate::gateway::turn::Turn;
use crate::gateway::ws::{self, Session, WebSocket};
use crate::reactor_handle::ReactorHandle;
use crate::report::Subject;
use crate::request::Request;
use crate::respond::{self, NativeRequest, RequestContext, complete_in_turn, convert};
use crate::route::{Kind, RouteInfo};
use crate::settings::coding_from;
use crate::sync::lock;
use crate::task::{CompletionHandler as _, Next};

/// Where a positional argument of a handler comes from.
#[derive(Clone, Copy, Debug)]
enum Argument {
    /// What the request came with: it, or the socket that was made of it.
    Request,
    /// The path parameter at this place.
    Param(usize, Converter),
}

/// What calling a handler takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// A `def` handler without arguments, at a path without parameters: a call is all it takes.
    Bare,
    /// The same with the request for its only argument.
    Alone,
    /// Something else.
    Any,
}

impl Shape {
    fn of(kind: Kind, arguments: &[Argument], params: &[Param]) -> Self {
        match arguments {
            _ if !FAST_PATHS => Self::Any,
            [] if kind == Kind::Def && params.is_empty() => Self::Bare,
            [Argument::Request] if kind == Kind::Def && params.is_empty() => Self::Alone,
            _ => Self::Any,
        }
    }
}

/// A route, ready to be called.
pub(crate) struct Route {
    pub(super) info: Arc<RouteInfo>,
    kind: Kind,
    arguments: SmallVec<[Argument; 4]>,
    shape: Shape,
    /// The native code, which is called in place of `handler`.
    pub(super) compiled: Option<Arc<Handler>>,
    /// Where it is called, if not on the reactor's thread.
    pub(super) pool: Option<Arc<Pool>>,
    /// How its responses are compressed, if not as the server's others: at these levels, or not at all.
    compression: Option<Vec<(Coding, u8)>>,
    /// What its requests are counted and logged under: its pattern's place among the labels.
    class: u16,
    /// Its place among the routes, from 1; 0 for what is none.
    place: u32,
}

/// An open exchange whose handler is called when the body is complete.
struct AwaitsBody {
    request: Py<Request>,
    route: Arc<Route>,
}

impl Role for AwaitsBody {
    fn on_disconnect(self: Box<Self>, py: Python<'_>) -> bool {
        self.request.get().break_body(py);
        true
    }

    fn subject(&self, py: Python<'_>, _handle: &ReactorHandle) -> Option<LazySubject> {
        let request = self.request.clone_ref(py);
        Some(Box::new(move |_| request.get().subject()))
    }
}

/// Everything a reactor needs to know of an application; fixed when the reactor is made.
#[derive(Clone, Default)]
pub(crate) struct Routes {
    router: Router<Arc<Route>>,
    /// Those of the router by their places, for heads that come again.
    known: Vec<Arc<Route>>,
    /// Those of WebSockets, all of the method GET.
    sockets: Router<Arc<Route>>,
    has_sockets: bool,
    unmatched: Option<Arc<Route>>,
    /// What may be called by name, where procedures are.
    procedures: Arc<Procedures>,
    labels: Vec<String>,
}

/// The native gateway of one application.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct Native {
    routes: Mutex<Routes>,
    pub(crate) app: Py<PyAny>,
    pub(crate) on_error: Py<PyAny>,
    pub(crate) submit: Option<Py<PyAny>>,
    /// For compiled handlers that take long.
    pool: Arc<Pool>,
}

#[pymethods]
impl Native {
    #[new]
    #[pyo3(signature = (*, app, on_error, submit = None, compiled_threads = 1, compiled_queue_max = 0))]
    fn new(
        app: Py<PyAny>,
        on_error: Py<PyAny>,
        submit: Option<Py<PyAny>>,
        compiled_threads: usize,
        compiled_queue_max: usize,
    ) -> Self {
        Self {
            routes: Mutex::default(),
            app,
            on_error,
            submit,
            pool: Arc::new(Pool::new(compiled_threads, compiled_queue_max)),
        }
    }

    #[pyo3(signature = (
        method, pattern, handler, *, kind, name = "", args = SmallNames::default(), stream = false,
        body_bytes_max = None, compress = None
    ))]
    #[expect(
        clippy::too_many_arguments,
        reason = "keyword arguments of a Python method"
    )]
    fn add(
        &self,
        py: Python<'_>,
        method: &str,
        pattern: &str,
        handler: Py<PyAny>,
        kind: &str,
        name: &str,
        args: SmallNames,
        stream: bool,
        body_bytes_max: Option<u64>,
        compress: Option<Vec<(String, u8)>>,
    ) -> PyResult<()> {
        let reads = (stream, body_bytes_max);
        let (parsed, mut route) = self.route(py, pattern, (handler, name), kind, args, reads)?;
        if let Some(levels) = compress {
            let of = |(name, level): (String, u8)| Ok((coding_from(&name)?, level));
            route.compression = Some(levels.into_iter().map(of).collect::<PyResult<_>>()?);
            // The short ways do not ask for it.
            route.shape = Shape::Any;
        }
        let mut routes = lock(&self.routes);
        route.place = u32::try_from(routes.known.len() + 1).unwrap_or(0);
        let route = Arc::new(route);
        let added = routes.router.insert(method, &parsed, Arc::clone(&route));
        added.map_err(pattern_error)?;
        routes.known.push(route);
        Ok(())
    }

    #[pyo3(signature = (pattern, handler, *, kind, name = "", args = SmallNames::default()))]
    fn add_websocket(
        &self,
        py: Python<'_>,
        pattern: &str,
        handler: Py<PyAny>,
        kind: &str,
        name: &str,
        args: SmallNames,
    ) -> PyResult<()> {
        let (parsed, route) =
            self.route(py, pattern, (handler, name), kind, args, (false, None))?;
        let mut routes = lock(&self.routes);
        routes.has_sockets = true;
        routes
            .sockets
            .insert("GET", &parsed, Arc::new(route))
            .map_err(pattern_error)
    }

    #[pyo3(signature = (name, handler, *, kind, takes_nothing, decoders, call_ms = None, handler_name = ""))]
    #[expect(
        clippy::too_many_arguments,
        reason = "keyword arguments of a Python method"
    )]
    fn add_procedure(
        &self,
        name: &str,
        handler: Py<PyAny>,
        kind: &str,
        takes_nothing: bool,
        decoders: Decoders,
        call_ms: Option<u64>,
        handler_name: &str,
    ) -> PyResult<()> {
        let mut routes = lock(&self.routes);
        let procedure = Procedure {
            handler,
            kind: Kind::from_name(kind)?,
            takes_nothing,
            decoders,
            class: routes.class_of(name),
            call_ms,
            name: name.into(),
            handler_name: handler_name.into(),
        };
        let procedures = Arc::get_mut(&mut routes.procedures)
            .ok_or_else(|| PyRuntimeError::new_err("the application is being served"))?;
        procedures.insert(name.as_bytes().to_vec(), Arc::new(procedure));
        Ok(())
    }

    #[pyo3(signature = (handler, *, kind))]
    fn set_unmatched(&self, handler: Py<PyAny>, kind: &str) -> PyResult<()> {
        let info = RouteInfo {
            handler,
            params: Vec::new(),
            streams_body: false,
            body_bytes_max: None,
            label: "no route".into(),
        };
        let route = Route {
            info: Arc::new(info),
            kind: Kind::from_name(kind)?,
            arguments: SmallVec::new(),
            shape: Shape::Any,
            compiled: None,
            pool: None,
            compression: None,
            class: 0,
            place: 0,
        };
        let replaced = lock(&self.routes).unmatched.replace(Arc::new(route));
        drop(replaced);
        Ok(())
    }
}

/// How long the body of an open exchange may be.
#[cold]
pub(super) fn body_limit(handle: &ReactorHandle, exchange: &Exchange) -> BodyLimit {
    let of_request = |request: &Py<Request>| request.get().route().map(Arc::clone);
    let route = if let Some(awaits) = exchange.role::<compiled::AwaitsBody>() {
        Some(Arc::clone(&awaits.route.info))
    } else if let Some(awaits) = exchange.role::<AwaitsBody>() {
        Some(Arc::clone(&awaits.route.info))
    } else {
        let role = exchange.role::<NativeRequest>();
        role.and_then(|role| of_request(&role.request))
    };
    match route {
        Some(route) => route.body_limit(&handle.limits),
        None => BodyLimit::held(&handle.limits, None),
    }
}

impl Routes {
    /// What the log says of the request that a handler was called for last: with its method and target if one of
    /// `heads`, those of the requests that were answered last, led to the same route.
    #[cold]
    pub(super) fn latest<'a>(
        &self,
        handle: &ReactorHandle,
        heads: impl Iterator<Item = &'a Head>,
    ) -> Option<Subject> {
        let place = handle.latest_route.load(Ordering::Relaxed);
        let route = self.recall(place)?;
        for head in heads {
            let method = String::from_utf8_lossy(head.slice(head.method_span));
            let found = self
                .router
                .find(&method, head.path(), &mut Captures::default());
            if matches!(found, Found::Route(found) if Arc::ptr_eq(found, route)) {
                return Some(Subject::new(handle, head, Some(&route.info.label)));
            }
        }
        Some(Subject::named(format!("a request ({})", route.info.label)))
    }

    /// The route that a head with this memo led to before.
    #[inline]
    fn recall(&self, memo: u32) -> Option<&Arc<Route>> {
        self.known.get((memo as usize).wrapping_sub(1))
    }

    /// The route of a request, with its path parameters.
    fn find(&self, head: &mut Head, captures: &mut Captures) -> Found<'_, Arc<Route>> {
        let method = match head.method {
            Method::Get => Cow::Borrowed("GET"),
            _ => String::from_utf8_lossy(head.slice(head.method_span)),
        };
        let found = self.router.find(&method, head.path(), captures);
        if let Found::Route(route) = found
            && route.info.params.is_empty()
        {
            head.app_tag = route.place;
        }
        found
    }

    pub(super) fn procedures(&self) -> &Procedures {
        &self.procedures
    }

    pub(super) fn labels(&self) -> &[String] {
        &self.labels
    }

    /// The class of a pattern: 1 for the first, 0 for those that find no room.
    fn class_of(&mut self, pattern: &str) -> u16 {
        let known = self.labels.iter().position(|label| label == pattern);
        let place = known.unwrap_or_else(|| {
            self.labels.push(pattern.to_owned());
            self.labels.len() - 1
        });
        let class = place + 1;
        u16::try_from(class)
            .ok()
            .filter(|_| class < citius_observe::slot::CLASSES_MAX)
            .unwrap_or(0)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "as map_err calls it")]
fn pattern_error(error: citius_route::PatternError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

impl Native {
    /// A route with its pattern, not entered yet.
    fn route(
        &self,
        py: Python<'_>,
        pattern: &str,
        (handler, name): (Py<PyAny>, &str),
        kind: &str,
        args: SmallNames,
        (streams_body, body_bytes_max): (bool, Option<u64>),
    ) -> PyResult<(Pattern, Route)> {
        let parsed = Pattern::parse(pattern).map_err(pattern_error)?;
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
        let kind = Kind::from_name(kind)?;
        let compiled = match kind {
            Kind::Compiled | Kind::Pooled => {
                let handler = handler.bind(py).cast::<CompiledHandler>()?;
                Some(Arc::clone(&handler.get().handler))
            }
            _ => None,
        };
        let arguments: SmallVec<[Argument; 4]> =
            args.0.into_iter().map(argument).collect::<PyResult<_>>()?;
        let info = RouteInfo {
            handler,
            params: parsed.params.clone(),
            streams_body,
            body_bytes_max,
            label: format!("route {pattern}, handler {name}").into(),
        };
        let route = Route {
            info: Arc::new(info),
            kind,
            shape: Shape::of(kind, &arguments, &parsed.params),
            arguments,
            compiled,
            compression: None,
            pool: (kind == Kind::Pooled).then(|| Arc::clone(&self.pool)),
            class: lock(&self.routes).class_of(pattern),
            place: 0,
        };
        Ok((parsed, route))
    }

    pub(crate) fn routes(&self) -> Routes {
        lock(&self.routes).clone()
    }
}

/// Names of arguments, as `tuple[str | None, ...]`.
#[derive(Default, FromPyObject)]
#[pyo3(transparent)]
struct SmallNames(Vec<Option<String>>);

/// Status and `Allow` that the application's own response to an unmatched request is asked for.
type Unmatched<'a> = Option<(u16, &'a str)>;

/// A request head is complete: finds its route and calls the handler now or when the body is there.
#[inline]
pub(super) fn request(
    turn: &mut Turn<'_, '_>,
    routes: &Routes,
    head: Box<Head>,
    ended: bool,
    reply: &mut Reply<'_>,
) {
    let (mut head, mut captures) = (head, Captures::new());
    let route = if let Some(route) = routes.recall(head.app_tag) {
        route
    } else {
        turn.handle.latest_route.store(0, Ordering::Relaxed);
        let found = find_route(turn, routes, head, &mut captures, ended, reply);
        let Some((route, found_for)) = found else {
            return;
        };
        head = found_for;
        route
    };
    turn.handle
        .latest_route
        .store(route.place, Ordering::Relaxed);
    reply.classify(route.class);
    if ended {
        match route.shape {
            Shape::Bare => return call_bare(turn, route, head, reply),
            Shape::Alone => return call_alone(turn, route, head, reply),
            Shape::Any => {}
        }
    } else if refuses_body(turn, route, &head, reply) {
        return reply.recycle(head);
    }
    if let Some(levels) = &route.compression {
        if levels.is_empty() {
            reply.keep_as_is();
        }
        reply.set_compression_levels(levels);
    }
    let mut context = RequestContext::new(reply.id(), reply.peer(), turn.handle, head);
    context.captures = captures;
    context.route = Some(&route.info);
    if route.compiled.is_some() {
        return compiled::request(turn, route, context, ended, reply);
    }
    if ended {
        call(turn, route, None, &mut context, true, reply);
    } else {
        await_body(turn, route, context, reply);
    }
}

/// Holds a body to the limit of its route; `true`: it is announced longer, and the request is answered.
#[inline(never)]
fn refuses_body(turn: &Turn<'_, '_>, route: &Route, head: &Head, reply: &mut Reply<'_>) -> bool {
    let limit = route.info.body_limit(&turn.handle.limits);
    limit.enforce(turn.py, turn.handle, head, Some(&route.info.label), reply)
}

/// The route of a head that is not known yet, and the head; `None` if it is answered without one.
#[inline(never)]
fn find_route<'a>(
    turn: &mut Turn<'_, '_>,
    routes: &'a Routes,
    mut head: Box<Head>,
    captures: &mut Captures,
    ended: bool,
    reply: &mut Reply<'_>,
) -> Option<(&'a Arc<Route>, Box<Head>)> {
    if routes.has_sockets
        && let Some(transport) = Opening::transport(&head)
    {
        let mut context = RequestContext::new(reply.id(), reply.peer(), turn.handle, head);
        if open_socket(turn, routes, transport, &mut context, ended, reply) {
            return None;
        }
        head = context.head.take().expect("there is no socket to take it");
    }
    let allow = match routes.find(&mut head, captures) {
        Found::Route(route) => return Some((route, head)),
        Found::MethodNotAllowed(allow) => Some(allow),
        Found::Nothing => None,
    };
    let mut context = RequestContext::new(reply.id(), reply.peer(), turn.handle, head);
    respond_unmatched(turn, routes, allow, &mut context, ended, reply);
    None
}

/// Calls a handler that wants to know nothing of its request; most return text or bytes, and nothing else has to be made.
#[inline]
fn call_bare(turn: &mut Turn<'_, '_>, route: &Arc<Route>, head: Box<Head>, reply: &mut Reply<'_>) {
    turn.tasks.enter_shared(turn.py);
    let result = route.info.handler.bind(turn.py).call0();
    if respond_plain_value(&result, reply) {
        return reply.recycle(head);
    }
    let mut context = RequestContext::new(reply.id(), reply.peer(), turn.handle, head);
    context.route = Some(&route.info);
    complete_in_turn(turn.py, result, &mut context, reply, turn.tasks);
}

/// Calls a handler that wants its request and nothing else.
#[inline]
fn call_alone(turn: &mut Turn<'_, '_>, route: &Arc<Route>, head: Box<Head>, reply: &mut Reply<'_>) {
    let py = turn.py;
    turn.tasks.enter_shared(py);
    let made = Request::alone(reply.id(), reply.peer(), turn.handle, &route.info, head);
    let request = match Bound::new(py, made) {
        Ok(request) => request,
        Err(error) => {
            let mut context =
                RequestContext::new(reply.id(), reply.peer(), turn.handle, Box::default());
            return complete_in_turn(py, Err(error), &mut context, reply, turn.tasks);
        }
    };
    let result = route.info.handler.bind(py).call1((&request,));
    if respond_plain_value(&result, reply) {
        return;
    }
    let mut context = RequestContext::of_request(&request);
    complete_in_turn(py, result, &mut context, reply, turn.tasks);
}

/// Answers with what a handler returned, if that takes nothing but to write it.
#[inline]
fn respond_plain_value(result: &PyResult<Bound<'_, PyAny>>, reply: &mut Reply<'_>) -> bool {
    let Ok(value) = result else {
        return false;
    };
    let plain = respond::plain_response(value).ok().flatten();
    plain.is_some_and(|plain| reply.respond(plain))
}

/// A piece of the body.
pub(super) fn data(turn: &mut Turn<'_, '_>, bytes: &[u8], reply: &mut Reply<'_>) {
    turn.tasks.enter_shared(turn.py);
    let py = turn.py;
    let take = |exchange: &mut Exchange| {
        if let Some(awaits) = exchange.role_mut::<compiled::AwaitsBody>() {
            awaits.push(bytes);
            return None;
        }
        let request = match exchange.role::<AwaitsBody>() {
            Some(awaits) => &awaits.request,
            None => &exchange.role::<NativeRequest>()?.request,
        };
        Some(request.clone_ref(py))
    };
    if let Some(request) = turn.handle.with(reply.id(), take).flatten() {
        request.get().push_body(py, bytes);
    }
}

/// The body is complete.
pub(super) fn end(turn: &mut Turn<'_, '_>, trailers: Fields, reply: &mut Reply<'_>) {
    let (py, id) = (turn.py, reply.id());
    turn.tasks.enter_shared(py);
    if let Some(awaits) = turn.handle.take_role::<AwaitsBody>(id) {
        let AwaitsBody { request, route } = *awaits;
        request.get().end_body(py, trailers);
        let mut context = RequestContext::of_request(request.bind(py));
        return call(turn, &route, None, &mut context, true, reply);
    }
    if let Some(awaits) = turn.handle.take_role::<compiled::AwaitsBody>(id) {
        return compiled::end(turn, *awaits, reply);
    }
    let request = |role: &mut NativeRequest| role.request.clone_ref(py);
    match turn.handle.with_role(id, request) {
        Some(request) => request.get().end_body(py, trailers),
        None => ws::end(turn, reply),
    }
}

/// There is room for more of a streamed response.
pub(super) fn writable(turn: &mut Turn<'_, '_>, reply: &mut Reply<'_>) {
    turn.tasks.enter_shared(turn.py);
    let py = turn.py;
    let stream = |role: &mut NativeRequest| role.stream.as_ref().map(|kept| kept.clone_ref(py));
    if let Some(stream) = turn.handle.with_role(reply.id(), stream).flatten() {
        stream.get().has_room(py);
    }
}

/// Calls for the body, and calls the handler now or when that is complete.
fn await_body(
    turn: &mut Turn<'_, '_>,
    route: &Arc<Route>,
    mut context: RequestContext<'_>,
    reply: &mut Reply<'_>,
) {
    let request = match context.request(turn.py, false) {
        Ok(request) => request.clone().unbind(),
        Err(error) => {
            respond::send_internal_error(turn.py, &error, &mut context, reply);
            return;
        }
    };
    if route.info.streams_body {
        request.get().set_streamed();
        let stream = None;
        turn.handle
            .enter(reply.id(), NativeRequest { request, stream });
        call(turn, route, None, &mut context, false, reply);
    } else {
        let route = Arc::clone(route);
        turn.handle.enter(reply.id(), AwaitsBody { request, route });
        reply.want(u64::MAX);
    }
}

/// Whether there is a socket where nothing else is.
#[cold]
fn is_socket_path(py: Python<'_>, routes: &Routes, context: &RequestContext<'_>) -> bool {
    context.with_head(py, |head| {
        let mut captures = citius_route::Captures::new();
        let found = routes.sockets.find("GET", head.path(), &mut captures);
        head.method == Method::Get && matches!(found, Found::Route(_))
    })
}

/// Makes a socket of a request for one and calls its handler; `false` if there is none at its path.
#[inline(never)]
fn open_socket<'a>(
    turn: &mut Turn<'_, '_>,
    routes: &'a Routes,
    transport: Transport,
    context: &mut RequestContext<'a>,
    ended: bool,
    reply: &mut Reply<'_>,
) -> bool {
    let py = turn.py;
    let head = context.head.as_deref().expect("it was put there just now");
    let found = routes
        .sockets
        .find("GET", head.path(), &mut context.captures);
    let Found::Route(route) = found else {
        context.captures.clear();
        return false;
    };
    reply.classify(route.class);
    let Some(opening) = ws::opening(head, transport, ended, reply) else {
        return true;
    };
    context.route = Some(&route.info);
    let session = Arc::new(Session::new(context.id, turn.handle, opening));
    let made = context.request(py, true).and_then(|request| {
        let socket = WebSocket::new(Arc::clone(&session), request.clone().unbind());
        Bound::new(py, socket)
    });
    let socket = match made {
        Ok(socket) => socket,
        Err(error) => {
            respond::send_internal_error(py, &error, context, reply);
            return true;
        }
    };
    ws::enter(turn, &session, true);
    let mut completion = ws::socket::SocketCompletion::new(&socket, None);
    let arguments = match socket_arguments(&socket, route) {
        Ok(arguments) => arguments,
        Err(error) => {
            completion.fail(py, &error, reply);
            return true;
        }
    };
    let handler = route.info.handler.bind(py);
    if route.kind != Kind::Async {
        turn.tasks.enter_shared(py);
        submit_socket(turn, &socket, handler, &arguments, reply);
        return true;
    }
    match handler.call1(arguments) {
        Ok(coroutine) => turn
            .tasks
            .step(py, coroutine.unbind(), &mut completion, reply),
        Err(error) => {
            if let Next::Coroutine(coroutine) = completion.on_result(py, Err(error), reply) {
                turn.tasks.step(py, coroutine, &mut completion, reply);
            }
        }
    }
    true
}

/// The positional arguments of a socket's handler.
fn socket_arguments<'py>(
    socket: &Bound<'py, WebSocket>,
    route: &Route,
) -> PyResult<Bound<'py, PyTuple>> {
    let py = socket.py();
    let params = socket
        .get()
        .request
        .bind(py)
        .getattr(pyo3::intern!(py, "path_params"))?;
    let argument = |argument: &Argument| match *argument {
        Argument::Request => Ok(socket.clone().into_any()),
        Argument::Param(at, _) => params.get_item(route.info.params[at].name.as_str()),
    };
    let arguments = route.arguments.iter().map(argument);
    PyTuple::new(py, arguments.collect::<PyResult<Vec<_>>>()?)
}

/// Hands a socket to the thread pool, or whatever waits in its place.
fn submit_socket(
    turn: &Turn<'_, '_>,
    socket: &Bound<'_, WebSocket>,
    handler: &Bound<'_, PyAny>,
    arguments: &Bound<'_, PyTuple>,
    reply: &mut Reply<'_>,
) {
    let py = turn.py;
    let submitted = turn
        .handle
        .callbacks
        .submit
        .as_ref()
        .ok_or_else(|| PyRuntimeError::new_err("there is no thread pool for `def` handlers"))
        .and_then(|submit| {
            submit
                .bind(py)
                .call1((socket, handler, arguments))?
                .is_truthy()
        });
    // A pool's thread may have begun already; what it says now leaves with this turn.
    let mut completion = ws::socket::SocketCompletion::new(socket, None);
    completion.flush(py, reply);
    match submitted {
        Ok(true) => {}
        Ok(false) => {
            socket.get().session.refuse();
            drop(turn.handle.take(reply.id()));
            respond::send_fault(py, Fault::Overloaded, reply);
        }
        Err(error) => completion.fail(py, &error, reply),
    }
}

/// Answers a request that no route takes: by the application's own handler, or plainly.
///
/// Its body is not read.
#[cold]
fn respond_unmatched(
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
        return ws::refuse(Refusal::Expected, reply);
    }
    let (status, allow) = match allow {
        Some(allow) if is_options => (204, Some(allow)),
        Some(allow) => (405, Some(allow)),
        None if is_star => (204, Some(routes.router.allow_all())),
        None => (404, None),
    };
    if let Some(route) = &routes.unmatched {
        let unmatched = Some((status, allow.as_deref().unwrap_or_default()));
        return call(turn, route, unmatched, context, ended, reply);
    }
    let status = Status::new(status).expect("one of the three above");
    respond_plainly(status, allow.as_deref(), context, reply);
}

fn respond_plainly(
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
    let (content_type, body) = if status == Status::NO_CONTENT {
        (None, "")
    } else {
        (Some(&b"text/plain; charset=utf-8"[..]), status.reason())
    };
    let response = ResponseHead {
        status,
        content_type,
        fields: &fields,
    };
    // Refused only when the connection is being cut already.
    let _ = reply.send(Action::Respond(response, Payload::Copied(body.as_bytes())));
    if let Some(head) = context.head.take() {
        reply.recycle(head);
    }
}

/// Calls the handler.
#[inline]
fn call(
    turn: &mut Turn<'_, '_>,
    route: &Route,
    unmatched: Unmatched<'_>,
    context: &mut RequestContext<'_>,
    body_ended: bool,
    reply: &mut Reply<'_>,
) {
    let py = turn.py;
    let handler = route.info.handler.bind(py);
    if route.kind != Kind::Async {
        turn.tasks.enter_shared(py);
    }
    let arguments = match unmatched {
        Some(unmatched) => unmatched_arguments(py, unmatched, context, body_ended),
        None => arguments(py, route, context, body_ended),
    };
    let arguments = match arguments {
        Ok(arguments) => arguments,
        Err(error) => return finish(turn, Err(error), Kind::Def, context, reply),
    };
    if route.kind == Kind::Blocking {
        return submit(turn, handler, &arguments, context, body_ended, reply);
    }
    // As far as possible without a tuple, which costs as much as the call.
    let result = match arguments.as_slice() {
        [] => handler.call0(),
        [one] => handler.call1((one,)),
        [one, two] => handler.call1((one, two)),
        [one, two, three] => handler.call1((one, two, three)),
        more => PyTuple::new(py, more).and_then(|arguments| handler.call1(arguments)),
    };
    finish(turn, result, route.kind, context, reply);
}

#[inline]
fn finish(
    turn: &mut Turn<'_, '_>,
    result: PyResult<Bound<'_, PyAny>>,
    kind: Kind,
    context: &mut RequestContext<'_>,
    reply: &mut Reply<'_>,
) {
    match result {
        Ok(coroutine) if kind == Kind::Async => {
            turn.tasks.step(turn.py, coroutine.unbind(), context, reply);
        }
        result => complete_in_turn(turn.py, result, context, reply, turn.tasks),
    }
}

/// Hands a request to the thread pool.
fn submit<'py>(
    turn: &mut Turn<'_, 'py>,
    handler: &Bound<'_, PyAny>,
    arguments: &[Bound<'py, PyAny>],
    context: &mut RequestContext<'_>,
    body_ended: bool,
    reply: &mut Reply<'_>,
) {
    let py = turn.py;
    let submitted = context
        .request(py, body_ended)
        .cloned()
        .and_then(|request| {
            let submit = turn.handle.callbacks.submit.as_ref().ok_or_else(|| {
                PyRuntimeError::new_err("there is no thread pool for blocking handlers")
            })?;
            // Before `submit`, for the pool's thread may respond before that returns.
            let role = NativeRequest {
                request: request.clone().unbind(),
                stream: None,
            };
            turn.handle.enter(reply.id(), role);
            let arguments = PyTuple::new(py, arguments)?;
            submit
                .bind(py)
                .call1((request, handler, arguments))?
                .is_truthy()
        });
    match submitted {
        Ok(true) => {}
        Ok(false) => {
            drop(turn.handle.take(reply.id()));
            respond::send_fault(py, Fault::Overloaded, reply);
        }
        Err(error) => {
            drop(turn.handle.take(reply.id()));
            complete_in_turn(py, Err(error), context, reply, turn.tasks);
        }
    }
}

/// The positional arguments of a call.
type Arguments<'py> = SmallVec<[Bound<'py, PyAny>; 4]>;

/// The arguments of a handler of a route.
#[inline]
fn arguments<'py>(
    py: Python<'py>,
    route: &Route,
    context: &mut RequestContext<'_>,
    body_ended: bool,
) -> PyResult<Arguments<'py>> {
    let mut arguments = Arguments::new();
    // Parameters first: making the request takes the captures along.
    for argument in &route.arguments {
        arguments.push(match *argument {
            Argument::Param(at, converter) => param(py, route, at, converter, context)?,
            Argument::Request => py.None().into_bound(py),
        });
    }
    for (value, argument) in arguments.iter_mut().zip(&route.arguments) {
        if let Argument::Request = argument {
            *value = context.request(py, body_ended)?.clone().into_any();
        }
    }
    Ok(arguments)
}

/// The path parameter at place `at` of a route.
fn param<'py>(
    py: Python<'py>,
    route: &Route,
    at: usize,
    converter: Converter,
    context: &RequestContext<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    match (&context.request, context.captures.get(at)) {
        (None, Some(text)) => convert(py, converter, text),
        (Some(request), _) => {
            let params = request.bind(py).getattr(pyo3::intern!(py, "path_params"))?;
            params.get_item(route.info.params[at].name.as_str())
        }
        (None, None) => Ok(py.None().into_bound(py)),
    }
}

/// The arguments of the handler of requests that no route takes.
#[cold]
fn unmatched_arguments<'py>(
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
