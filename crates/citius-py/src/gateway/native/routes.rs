//! The routes of a native application: made by Python before it serves, looked up for each request.
//!
//! In: method and path. Out: a [`Route`] with all that its call needs. Nothing is added while the application serves.
//! Tests: `tests/gateway/`.

use std::borrow::Cow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use citius_base::passing::{Direct, DirectForward};
use citius_base::reactor_handle::ReactorHandle;
use citius_base::report::Subject;
use citius_base::sync::lock;
use citius_http::coding::Coding;
use citius_http::{FAST_PATHS, Head, Method};
use citius_route::{Captures, Converter, Found, Param, Pattern, Router};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use smallvec::SmallVec;

use crate::declared::DeclaredResponse;
use crate::form::FormSettings;
use crate::gateway::compiled::handler::Handler;
use crate::gateway::compiled::object::CompiledHandler;
use crate::gateway::compiled::{CallSite, Pool};
use crate::gateway::rpc::{Decoders, Procedure, Procedures};
use crate::route::{Kind, RouteInfo};
use crate::settings::coding_from;

/// Where a positional argument of a handler comes from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Argument {
    /// What the request came with: it, or the socket that was made of it.
    Request,
    /// The path parameter at this place.
    Param(usize, Converter),
}

/// What calling a handler takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A `def` handler without arguments, at a path without parameters: a call is all it takes.
    Bare,
    /// A `def` handler whose only argument is the request, at a path without parameters.
    Alone,
    /// Something else.
    Any,
}

impl Shape {
    pub(super) fn of(kind: Kind, arguments: &[Argument], params: &[Param]) -> Self {
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
    pub(in crate::gateway) info: Arc<RouteInfo>,
    pub(super) kind: Kind,
    pub(super) arguments: SmallVec<[Argument; 4]>,
    pub(super) shape: Shape,
    /// The native code, which is called in place of `handler`.
    pub(in crate::gateway) compiled: Option<Arc<Handler>>,
    /// Where it is called.
    pub(in crate::gateway) site: CallSite,
    /// How its responses are compressed, if not as the server's others: at these levels, or not at all.
    pub(super) compression: Option<Vec<(Coding, u8)>>,
    /// What passes requests on without its handler.
    pub(super) direct: Option<Arc<dyn Direct>>,
    /// What its requests are counted and logged under: its pattern's place among the labels.
    pub(super) class: u16,
    /// Its place among the routes, from 1; 0 for what is none.
    pub(super) place: u32,
}

/// Everything a reactor needs to know of an application; fixed when the reactor is made.
#[derive(Clone, Default)]
pub(crate) struct Routes {
    pub(super) router: Router<Arc<Route>>,
    /// Those of the router by their places, for heads that come again.
    pub(super) known: Vec<Arc<Route>>,
    /// Those of WebSockets, all of the method GET.
    pub(super) sockets: Router<Arc<Route>>,
    pub(super) has_sockets: bool,
    /// Those of WebTransport sessions, all of the method CONNECT.
    pub(super) sessions: Router<Arc<Route>>,
    pub(super) has_sessions: bool,
    /// Where calls on connections of QUIC without HTTP/3 go.
    pub(super) rpc_path: Option<String>,
    /// Whether a path that exists with another slash at its end is redirected there.
    pub(super) redirects_slashes: bool,
    pub(super) unmatched: Option<Arc<Route>>,
    /// What may be called by name, where procedures are.
    pub(super) procedures: Arc<Procedures>,
    pub(super) labels: Vec<String>,
    /// The classes that are remote procedures over HTTP.
    pub(super) rpc_classes: Vec<u16>,
}

/// The native gateway of one application.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct Native {
    pub(super) routes: Mutex<Routes>,
    pub(crate) app: Py<PyAny>,
    pub(crate) on_error: Py<PyAny>,
    pub(crate) submit: Option<Py<PyAny>>,
    /// For compiled handlers that take long.
    pub(super) pool: Arc<Pool>,
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
        citius_native::pool::set_threads(compiled_threads);
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
        body_bytes_max = None, compress = None, form = None, declared = None, app = None, forwards = false,
        direct = None
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
        form: Option<FormSettings>,
        declared: Option<Py<DeclaredResponse>>,
        app: Option<Py<PyAny>>,
        forwards: bool,
        direct: Option<&Bound<'_, DirectForward>>,
    ) -> PyResult<()> {
        let reads = (stream, body_bytes_max, form);
        let of = (handler, name, app);
        let (parsed, mut route) = self.route(py, pattern, of, kind, args, reads)?;
        if let Some(info) = Arc::get_mut(&mut route.info)
            && declared.is_some()
        {
            info.declared = declared;
            // The short ways do not ask for it.
            route.shape = Shape::Any;
        }
        if let Some(info) = Arc::get_mut(&mut route.info) {
            info.forwards = forwards;
        }
        if let Some(levels) = compress {
            let of = |(name, level): (String, u8)| Ok((coding_from(&name)?, level));
            route.compression = Some(levels.into_iter().map(of).collect::<PyResult<_>>()?);
            // Nor for this.
            route.shape = Shape::Any;
        }
        route.direct = direct
            .filter(|_| FAST_PATHS)
            .map(|direct| Arc::clone(&direct.get().0));
        let mut routes = lock(&self.routes);
        route.place = u32::try_from(routes.known.len() + 1).unwrap_or(0);
        let route = Arc::new(route);
        let added = routes.router.insert(method, &parsed, Arc::clone(&route));
        added.map_err(pattern_error)?;
        routes.known.push(route);
        Ok(())
    }

    #[pyo3(signature = (
        pattern, handler, *, kind, name = "", args = SmallNames::default(), app = None
    ))]
    #[expect(
        clippy::too_many_arguments,
        reason = "keyword arguments of a Python method"
    )]
    fn add_websocket(
        &self,
        py: Python<'_>,
        pattern: &str,
        handler: Py<PyAny>,
        kind: &str,
        name: &str,
        args: SmallNames,
        app: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let reads = (false, None, None);
        let of = (handler, name, app);
        let (parsed, route) = self.route(py, pattern, of, kind, args, reads)?;
        let mut routes = lock(&self.routes);
        routes.has_sockets = true;
        routes
            .sockets
            .insert("GET", &parsed, Arc::new(route))
            .map_err(pattern_error)
    }

    /// A handler of sessions gets the session alone, and is a coroutine function.
    #[pyo3(signature = (pattern, handler, *, name = "", app = None))]
    fn add_webtransport(
        &self,
        py: Python<'_>,
        pattern: &str,
        handler: Py<PyAny>,
        name: &str,
        app: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let reads = (false, None, None);
        let of = (handler, name, app);
        let args = SmallNames(vec![None]);
        let (parsed, route) = self.route(py, pattern, of, "async", args, reads)?;
        let mut routes = lock(&self.routes);
        routes.has_sessions = true;
        routes
            .sessions
            .insert("CONNECT", &parsed, Arc::new(route))
            .map_err(pattern_error)
    }

    /// Sessions at `path` are also connections of QUIC without HTTP/3.
    fn offer_rpc(&self, path: String) {
        let earlier = lock(&self.routes).rpc_path.replace(path);
        drop(earlier);
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

    /// What calls of the procedure are counted under, on whatever they come.
    fn class_of_procedure(&self, name: &str) -> u16 {
        lock(&self.routes).class_of(name)
    }

    /// Count calls of the route with this pattern by their codes.
    fn mark_procedure(&self, pattern: &str) {
        let mut routes = lock(&self.routes);
        let class = routes.class_of(pattern);
        routes.rpc_classes.push(class);
    }

    fn redirect_slashes(&self) {
        lock(&self.routes).redirects_slashes = true;
    }

    #[pyo3(signature = (handler, *, kind))]
    fn set_unmatched(&self, handler: Py<PyAny>, kind: &str) -> PyResult<()> {
        let info = RouteInfo {
            handler,
            params: Vec::new(),
            streams_body: false,
            forwards: false,
            body_bytes_max: None,
            form: None,
            declared: None,
            app: None,
            label: "no route".into(),
        };
        let route = Route {
            info: Arc::new(info),
            kind: Kind::from_name(kind)?,
            arguments: SmallVec::new(),
            shape: Shape::Any,
            compiled: None,
            site: CallSite::Here,
            compression: None,
            direct: None,
            class: 0,
            place: 0,
        };
        let replaced = lock(&self.routes).unmatched.replace(Arc::new(route));
        drop(replaced);
        Ok(())
    }
}

impl Routes {
    /// What the log says of the request that a handler was called for last: with its method and target if one of
    /// `heads`, those of the requests that were answered last, led to the same route.
    #[cold]
    pub(in crate::gateway) fn latest<'a>(
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
                return Some(Subject::new(handle.names(), head, Some(&route.info.label)));
            }
        }
        Some(Subject::named(format!("a request ({})", route.info.label)))
    }

    /// The route that a head with this memo led to before.
    #[inline]
    pub(super) fn recall(&self, memo: u32) -> Option<&Arc<Route>> {
        self.known.get((memo as usize).wrapping_sub(1))
    }

    /// The route of a request, with its path parameters.
    pub(super) fn find(&self, head: &mut Head, captures: &mut Captures) -> Found<'_, Arc<Route>> {
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

    pub(in crate::gateway) fn has_sessions(&self) -> bool {
        self.has_sessions
    }

    pub(in crate::gateway) fn rpc_path(&self) -> Option<&str> {
        self.rpc_path.as_deref()
    }

    pub(in crate::gateway) fn procedures(&self) -> &Procedures {
        &self.procedures
    }

    pub(in crate::gateway) fn labels(&self) -> (&[String], &[u16]) {
        (&self.labels, &self.rpc_classes)
    }

    /// The class of a pattern: 1 for the first, 0 for those that find no room.
    pub(super) fn class_of(&mut self, pattern: &str) -> u16 {
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
pub(super) fn pattern_error(error: citius_route::PatternError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

impl Native {
    /// A route with its pattern, not entered yet.
    pub(super) fn route(
        &self,
        py: Python<'_>,
        pattern: &str,
        (handler, name, app): (Py<PyAny>, &str, Option<Py<PyAny>>),
        kind: &str,
        args: SmallNames,
        (streams_body, body_bytes_max, form): (bool, Option<u64>, Option<FormSettings>),
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
            Kind::Compiled | Kind::Pooled | Kind::Goroutine | Kind::PooledGoroutine => {
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
            forwards: false,
            body_bytes_max,
            form,
            declared: None,
            app,
            label: format!("route {pattern}, handler {name}").into(),
        };
        let route = Route {
            info: Arc::new(info),
            kind,
            shape: Shape::of(kind, &arguments, &parsed.params),
            arguments,
            compiled,
            compression: None,
            direct: None,
            site: self.site_of(kind),
            class: lock(&self.routes).class_of(pattern),
            place: 0,
        };
        Ok((parsed, route))
    }

    /// Where handlers of a kind run.
    fn site_of(&self, kind: Kind) -> CallSite {
        match kind {
            Kind::Pooled => CallSite::Threads(Arc::clone(&self.pool)),
            Kind::Goroutine => CallSite::Goroutine,
            Kind::PooledGoroutine => CallSite::PooledGoroutine,
            _ => CallSite::Here,
        }
    }

    pub(crate) fn routes(&self) -> Routes {
        lock(&self.routes).clone()
    }
}

/// Names of arguments, as `tuple[str | None, ...]`.
#[derive(Default, FromPyObject)]
#[pyo3(transparent)]
pub(super) struct SmallNames(Vec<Option<String>>);
