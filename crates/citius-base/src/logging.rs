//! What log messages say of a request, whichever reactor serves it.
//!
//! In: a head or a scope. Out: a [`Subject`], which is what is known of a request (method, target, route, handler with file and line,
//! request id), and messages of it. What a reactor logs is in `report.rs`. Tests: `tests/observe/test_failures.py`.

use citius_http::{Head, RefusedHead};
use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyBytes, PyDict};

use crate::support::Function;

/// What messages about all requests of a reactor have in common.
#[derive(Clone, Copy)]
pub struct Names<'a> {
    /// What they say of an application that has no routes here.
    pub(crate) application: Option<&'a str>,
    /// The field in which a request's id is, in lower case; `None` where requests have none.
    pub(crate) request_id_field: Option<&'a [u8]>,
}

static DESCRIBE: Function = Function::new("citius.web.declarations.checks", "describe");
static DESCRIBE_APPLICATION: Function =
    Function::new("citius.web.declarations.checks", "describe_application");
/// Logs an exception with a message, and counts it.
pub static LOG_EXCEPTION: Function = Function::new("citius.observability.logging", "log_exception");
static LOG_FAILURE: Function = Function::new("citius.observability.logging", "log_failure");

/// A request as log messages describe it.
#[derive(Clone)]
pub struct Subject {
    /// `GET /items?x=y`, as the client sent it.
    request: String,
    /// Route, handler and request id, as far as there are any.
    details: Vec<String>,
}

impl Subject {
    /// A request, and the label of the route that it has led to.
    #[cold]
    pub fn new(names: Names<'_>, head: &Head, route: Option<&str>) -> Self {
        let text = |span| printable(head.slice(span));
        let application = names.application;
        let mut details: Vec<String> = route
            .or(application)
            .map(str::to_owned)
            .into_iter()
            .collect();
        if let Some(name) = names.request_id_field
            && let Some(id) = head.field(name)
        {
            details.push(format!("request id {}", printable(id)));
        }
        Self {
            request: format!("{} {}", text(head.method_span), text(head.target)),
            details,
        }
    }

    /// A request whose header section was refused, as far as it was read.
    #[cold]
    pub(crate) fn refused(refused: &RefusedHead) -> Self {
        if refused.method.is_empty() {
            return Self::named("a request".to_owned());
        }
        let (method, target) = (printable(&refused.method), printable(&refused.target));
        Self::named(format!("{method} {target}"))
    }

    /// A call of a procedure, by the id that its client has given it.
    #[cold]
    pub fn of_call(procedure: &str, handler: &str, call_id: Option<u32>) -> Self {
        let mut details = vec![format!("handler {handler}")];
        details.extend(call_id.map(|id| format!("call id {id}")));
        Self {
            request: format!("CALL {procedure}"),
            details,
        }
    }

    /// One of which this name is all that is known.
    #[cold]
    pub fn named(name: String) -> Self {
        Self {
            request: name,
            details: Vec::new(),
        }
    }

    /// A request as its ASGI scope describes it; routers add its handler as `endpoint`. Applications may put
    /// anything there: what is of another type than ASGI wants is left out.
    #[cold]
    pub fn of_scope(names: Names<'_>, scope: &Bound<'_, PyDict>) -> Self {
        let item = |name: &str| scope.get_item(name).ok().flatten();
        let bytes = |name: &str| {
            let value = item(name)?.cast_into::<PyBytes>().ok()?;
            Some(printable(value.as_bytes()))
        };
        let method = item("method").and_then(|method| method.extract::<String>().ok());
        let method = method.map_or_else(String::new, |method| printable(method.as_bytes()));
        let mut target = bytes("raw_path").unwrap_or_default();
        if let Some(query) = bytes("query_string").filter(|query| !query.is_empty()) {
            target = format!("{target}?{query}");
        }
        let mut details = Vec::new();
        if let Some(endpoint) = item("endpoint") {
            details.push(format!("handler {}", describe(&endpoint)));
        } else if let Some(application) = names.application {
            details.push(application.to_string());
        }
        if let Some(id) = names.request_id_field.and_then(|name| {
            let pairs = item("headers")?.extract::<Vec<(Vec<u8>, Vec<u8>)>>().ok()?;
            pairs.into_iter().find(|(known, _)| **known == *name)
        }) {
            details.push(format!("request id {}", printable(&id.1)));
        }
        Self {
            request: format!("{method} {target}"),
            details,
        }
    }

    /// Marks the request as one that was to become a WebSocket, or something else of this `name`.
    #[must_use]
    pub fn named_as(mut self, name: &str) -> Self {
        let target = self
            .request
            .split_once(' ')
            .map_or("", |(_, target)| target);
        self.request = format!("{name} {target}");
        self
    }

    /// `GET /items failed [route /items, handler items (main.py:3), request id 5f]`.
    pub fn message(&self, what: &str) -> String {
        if self.details.is_empty() {
            return format!("{}{what}", self.request);
        }
        format!("{}{what} [{}]", self.request, self.details.join(", "))
    }

    /// Logs and counts an exception that the application has not handled.
    #[cold]
    pub fn exception(&self, py: Python<'_>, what: &str, error: &PyErr) {
        // By way of `into_value`, which puts the traceback where Python looks for it.
        let exception: Py<PyBaseException> = error.clone_ref(py).into_value(py);
        let told = LOG_EXCEPTION
            .get(py)
            .and_then(|log| log.call1((self.message(what), exception)));
        if let Err(error) = told {
            error.write_unraisable(py, None);
        }
    }
}

/// Logs and counts what a handler did in place of raising an exception.
#[cold]
pub fn failure(py: Python<'_>, message: &str) {
    let told = LOG_FAILURE.get(py).and_then(|log| log.call1((message,)));
    if let Err(error) = told {
        error.write_unraisable(py, None);
    }
}

/// Text of a client's: a line end in it would begin a line of the client's own.
fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if !text.contains(char::is_control) {
        return text.into_owned();
    }
    let escaped = text.chars().map(|char| match char {
        char if char.is_control() => char.escape_debug().to_string(),
        char => char.to_string(),
    });
    escaped.collect()
}

/// An application as messages call it: module, name, file and line.
#[cold]
pub(crate) fn describe_application(app: &Bound<'_, PyAny>) -> String {
    let described = DESCRIBE_APPLICATION
        .call1(app.py(), app)
        .and_then(|text| text.extract::<String>());
    let name = described.unwrap_or_else(|_| app.get_type().to_string());
    format!("application {name}")
}

/// A handler as messages call it: name, file and line.
#[cold]
pub(crate) fn describe(handler: &Bound<'_, PyAny>) -> String {
    let described = DESCRIBE
        .call1(handler.py(), handler)
        .and_then(|text| text.extract::<String>());
    described.unwrap_or_else(|_| handler.get_type().to_string())
}

/// Python's logging levels.
pub const LEVEL_ERROR: u8 = 40;
/// For what an operator may want to change.
pub const LEVEL_WARNING: u8 = 30;
/// For what an operator may want to know.
pub const LEVEL_INFO: u8 = 20;
/// For who looks for something.
pub const LEVEL_DEBUG: u8 = 10;
