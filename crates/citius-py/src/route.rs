//! A native route apart from how its handler is called: parameters, limits, its name in log messages.

use citius_http::{Head, Limits};
use citius_route::{Converter, Param};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;

use crate::declared::DeclaredResponse;
use crate::form::{FormSettings, is_multipart};
use crate::gateway::body_limit::BodyLimit;

/// How a handler wants to be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// On the reactor's thread; what it returns is the response.
    Def,
    /// On the reactor's thread; what it returns is a coroutine.
    Async,
    /// On a thread of the pool.
    Blocking,
    /// Native code on the reactor's thread.
    Compiled,
    /// Native code on a thread without the GIL.
    Pooled,
    /// Native code in a goroutine of the reactor.
    Goroutine,
    /// Native code in a goroutine of the threads without the GIL.
    PooledGoroutine,
}

impl Kind {
    pub(crate) fn from_name(name: &str) -> PyResult<Self> {
        match name {
            "def" => Ok(Self::Def),
            "async" => Ok(Self::Async),
            "blocking" => Ok(Self::Blocking),
            "compiled" => Ok(Self::Compiled),
            "pooled" => Ok(Self::Pooled),
            "goroutine" => Ok(Self::Goroutine),
            "pooled_goroutine" => Ok(Self::PooledGoroutine),
            _ => Err(PyValueError::new_err(format!(
                "kind is def, async, blocking, compiled, pooled, goroutine or pooled_goroutine, not {name:?}"
            ))),
        }
    }
}

/// A route as requests, responses and messages know it.
pub(crate) struct RouteInfo {
    pub(crate) handler: Py<PyAny>,
    pub(crate) params: Vec<Param>,
    /// The handler reads the body piece by piece.
    pub(crate) streams_body: bool,
    /// The handler passes requests on to other servers.
    pub(crate) forwards: bool,
    /// How long a body may be, if the route says so.
    pub(crate) body_bytes_max: Option<u64>,
    /// The handler reads a form, of at most this.
    pub(crate) form: Option<FormSettings>,
    /// What the handler's values are made to be before they are sent.
    pub(crate) declared: Option<Py<DeclaredResponse>>,
    /// The application that `Request.app` is, where it is not the one that is served: a mounted one.
    pub(crate) app: Option<Py<PyAny>>,
    /// What messages say of it: pattern and handler.
    pub(crate) label: Box<str>,
}

impl RouteInfo {
    /// How long the body of a request with this head may be.
    pub(crate) fn body_limit(&self, limits: &Limits, head: &Head) -> BodyLimit {
        if self.streams_body {
            return BodyLimit::streamed(limits, self.body_bytes_max);
        }
        let held = BodyLimit::held(limits, self.body_bytes_max);
        match &self.form {
            Some(form) if !is_multipart(head) => {
                held.at_most(form.text_bytes_max(limits.body_bytes_max))
            }
            _ => held,
        }
    }
}

/// A path parameter as the handler sees it.
pub(crate) fn convert<'py>(
    py: Python<'py>,
    converter: Converter,
    value: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    static UUID: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let text = String::from_utf8_lossy(value);
    Ok(match converter {
        Converter::Int => text.parse::<i64>()?.into_pyobject(py)?.into_any(),
        Converter::Float => text.parse::<f64>()?.into_pyobject(py)?.into_any(),
        Converter::Uuid => {
            let kind = UUID.get_or_try_init(py, || {
                Ok::<_, PyErr>(py.import("uuid")?.getattr("UUID")?.unbind())
            })?;
            kind.bind(py).call1((text,))?
        }
        Converter::Str | Converter::Path => PyString::new(py, &text).into_any(),
    })
}
