//! Python functions and classes of the framework that Rust calls, imported when they are first used.
//!
//! Late imports keep msgspec and the parsers out of a process that never needs them. Tests: `tests/unit/test_request_values.py`.

use citius_base::support::Function;
use pyo3::prelude::*;

pub(crate) static ENCODE_JSON: Function =
    Function::new("citius.web.declarations.codecs", "encode_json");
pub(crate) static IS_LEAF: Function =
    Function::new("citius.web.responses.declared.plain_parts", "is_leaf");
pub(crate) static IS_PLAIN: Function =
    Function::new("citius.web.responses.declared.plain_parts", "is_plain");
static ENCODE_OTHERWISE: Function =
    Function::new("citius.web.declarations.codecs", "encode_otherwise");
pub(crate) static EVENT: Function = Function::new("citius.web.realtime.events", "Event");
pub(crate) static ENCODE_EVENT: Function =
    Function::new("citius.web.realtime.events", "encode_event");
pub(crate) static ENCODE_MSGPACK: Function =
    Function::new("citius.web.declarations.codecs", "encode_msgpack");
pub(crate) static DECODE_JSON: Function =
    Function::new("citius.web.declarations.codecs", "decode_json");
pub(crate) static DECODE_MSGPACK: Function =
    Function::new("citius.web.declarations.codecs", "decode_msgpack");
pub(crate) static REFUSE_STATUS: Function =
    Function::new("citius.web.declarations.checks", "refuse_status");
pub(crate) static QUERY: Function = Function::new("citius.web.binding.headers", "QueryParams");
pub(crate) static COOKIES: Function = Function::new("citius.web.binding.cookies", "cookies");
pub(crate) static FORM: Function = Function::new("citius.web.binding.forms", "form_of");
pub(crate) static FORM_REFUSED: Function = Function::new("citius.web.binding.forms", "refused");
pub(crate) static HEADERS: Function = Function::new("citius.web.binding.headers", "Headers");
pub(crate) static MUTABLE_HEADERS: Function =
    Function::new("citius.web.binding.headers", "MutableHeaders");
pub(crate) static STATE: Function = Function::new("types", "SimpleNamespace");
pub(crate) static BODY_STREAM: Function = Function::new("citius.web.binding.bodies", "BodyStream");
pub(crate) static READ: Function = Function::new("citius.web.binding.bodies", "read");
pub(crate) static PUMP_ASYNC: Function =
    Function::new("citius.web.responses.streaming", "pump_async");
pub(crate) static DEFER_ALL: Function =
    Function::new("citius.web.execution.background", "defer_all");
pub(crate) static RPC_ERROR: Function =
    Function::new("citius.web.routing.rpc.procedures", "error_of");
pub(crate) static SERVE_ASGI_SESSION: Function =
    Function::new("citius.serving.webtransport", "serve_session");
pub(crate) static PUMP_BLOCKING: Function =
    Function::new("citius.web.responses.streaming", "pump_blocking");

/// What an encoder makes of a value; the error says which part of the value it refused.
#[inline]
pub(crate) fn encoded<'py>(
    py: Python<'py>,
    encode: &'static Function,
    value: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    encode
        .call1(py, value)
        .or_else(|error| encode_otherwise(py, encode, value, error))
}

#[cold]
fn encode_otherwise<'py>(
    py: Python<'py>,
    encode: &'static Function,
    value: &Bound<'py, PyAny>,
    error: PyErr,
) -> PyResult<Bound<'py, PyAny>> {
    let raised = error.into_value(py);
    ENCODE_OTHERWISE
        .get(py)?
        .call1((encode.name(), value, raised))
}
