//! `CompiledHandler`: what Python holds of a compiled handler, and how Python code calls one. Tests: `tests/compiled/`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32};

use citius_base::go::chan::Chan;
use citius_base::object;
use citius_base::support::latin;
use citius_goroutine::Failure;
use citius_http::fields::is_value;
use citius_native::context::Context;
use citius_native::{Channel, Element, local};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use super::abi::{self, Entry, HandlerResponse};
use super::arguments::{Argument, Given};
use super::handler::{Handler, HandlerOutcome, keep_response, take_response, with_response};
use crate::request::Request;
use crate::response::Response;

/// Native code that handles requests.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct CompiledHandler {
    pub(crate) handler: Arc<Handler>,
}

#[pymethods]
impl CompiledHandler {
    #[new]
    #[pyo3(signature = (address, *, name, arguments = Vec::new(), content_type = None, keep = None))]
    fn new(
        address: usize,
        name: String,
        arguments: Vec<Argument>,
        content_type: Option<String>,
        keep: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        if address == 0 {
            return Err(PyValueError::new_err("a handler's address is not 0"));
        }
        let content_type = content_type.unwrap_or_default();
        if !is_value(content_type.as_bytes()) {
            return Err(PyValueError::new_err(format!(
                "the content type {content_type:?} has a control character"
            )));
        }
        // A thread may be in the middle of it whatever becomes of its route: code is kept for good.
        std::mem::forget(keep);
        // SAFETY: `compiled=` takes addresses of functions that are written against our header; that they
        // are cannot be seen from here.
        let entry = unsafe { std::mem::transmute::<usize, Entry>(address) };
        Ok(Self {
            handler: Arc::new(Handler {
                entry,
                name,
                arguments,
                content_type: content_type.into_bytes(),
                calls: AtomicU32::new(0),
                is_long: AtomicBool::new(false),
                logged_ms: AtomicU32::new(0),
            }),
        })
    }

    /// Calls it for a request that has its Python object already; without the GIL.
    fn __call__(&self, py: Python<'_>, request: &Bound<'_, Request>) -> PyResult<Py<Response>> {
        let context = request.get();
        let body = context.body(py)?;
        let given = Given {
            head: context.head(),
            captures: context.captures(),
            body: body.as_bytes(),
        };
        with_response(|response| {
            let limits = &context.handle.limits;
            let (outcome, mistake) =
                self.handler
                    .make(given, limits, response, |request, response| {
                        self.handler.enter_detached(py, request, response)
                    });
            response_object(py, &self.handler, &outcome, mistake, response)
        })
    }

    /// Calls it in a goroutine: of the threads if `pooled`, otherwise of this thread's reactor.
    fn start(
        &self,
        py: Python<'_>,
        request: &Bound<'_, Request>,
        pooled: bool,
    ) -> PyResult<CompiledCall> {
        let call = CompiledCall {
            result: Channel::new(1, Element::Object),
            context: Context::new(None, None),
        };
        let body = request.get().body(py)?.as_bytes().to_vec();
        let (request, handler) = (request.clone().unbind(), Arc::clone(&self.handler));
        let (result, failed) = (call.result.clone(), call.result.clone());
        let name = self.handler.name.clone();
        let on_failure = move |failure| {
            Python::attach(|py| deliver(&failed, Err(failure_of(&name, &failure, py))));
        };
        let code = move || {
            let context = request.get();
            let given = Given {
                head: context.head(),
                captures: context.captures(),
                body: &body,
            };
            let limits = &context.handle.limits;
            let mut response = take_response();
            let (outcome, mistake) =
                handler.make(given, limits, &mut response, |request, response| {
                    handler.enter(request, response)
                });
            // Python needs more stack than a goroutine has.
            citius_goroutine::on_thread_stack(|| {
                Python::attach(|py| {
                    let made = response_object(py, &handler, &outcome, mistake, &response);
                    deliver(&result, made.map(Py::into_any));
                });
            });
            keep_response(response);
        };
        let started = if pooled {
            local::start_in_pool(Some(Arc::clone(&call.context)), Box::new(on_failure), code)
        } else {
            local::start(Some(Arc::clone(&call.context)), Box::new(on_failure), code)
        };
        started.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        Ok(call)
    }

    fn __repr__(&self) -> String {
        format!("<CompiledHandler {}>", self.handler.name)
    }
}

/// A call in a goroutine.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct CompiledCall {
    result: Channel,
    context: Arc<Context>,
}

#[pymethods]
impl CompiledCall {
    /// The channel that receives a response or an exception.
    #[getter]
    fn result(&self) -> Chan {
        Chan {
            channel: self.result.clone(),
        }
    }

    /// Ends the waits of the handler: nothing wants its response any more.
    fn cancel(&self) {
        self.context.cancel();
    }
}

/// Sends a result to the code that waits for it.
fn deliver(result: &Channel, made: PyResult<Py<PyAny>>) {
    Python::attach(|py| {
        let object = made.unwrap_or_else(|error| error.into_value(py).into_any());
        let _ = result.try_send(object::value(object));
    });
}

fn failure_of(name: &str, failure: &Failure, _py: Python<'_>) -> PyErr {
    let what = match failure {
        Failure::Overflowed => {
            "has overflowed the stack of its goroutine; raise --goroutine-stack-bytes"
        }
        Failure::Panicked(_) => "panicked",
        Failure::Abandoned => "was abandoned",
    };
    PyRuntimeError::new_err(format!("the compiled handler {name} {what}"))
}

/// What a handler has written as a response of Python's.
fn response_object(
    py: Python<'_>,
    handler: &Handler,
    outcome: &HandlerOutcome,
    mistake: Option<String>,
    response: &HandlerResponse,
) -> PyResult<Py<Response>> {
    if let Some(mistake) = mistake {
        return Err(PyRuntimeError::new_err(format!(
            "the compiled handler {}: {mistake}",
            handler.name
        )));
    }
    let options = PyDict::new(py);
    let body = match outcome {
        // It has no way to send pieces where middleware calls it, and was told so.
        HandlerOutcome::Rest { .. } => PyBytes::new(py, b""),
        HandlerOutcome::Text {
            status,
            media,
            body,
        } => {
            options.set_item("status_code", status.code())?;
            options.set_item("content_type", latin(py, media))?;
            PyBytes::new(py, body.as_bytes())
        }
        HandlerOutcome::Whole { status, size } => {
            options.set_item("status_code", status.code())?;
            let media = handler.media(response, *size);
            options.set_item("content_type", media.map(|media| latin(py, media)))?;
            let fields = response.fields.iter();
            let pairs: Vec<_> = fields
                .map(|(name, value)| (latin(py, name), latin(py, value)))
                .collect();
            options.set_item("headers", PyList::new(py, pairs)?)?;
            PyBytes::new(py, response.body(*size))
        }
    };
    let outcome = py.get_type::<Response>().call((body,), Some(&options))?;
    Ok(outcome.cast_into::<Response>()?.unbind())
}

/// Adds the capsule that `citius.h` names, and what numba's linker has to know.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    use std::ptr::NonNull;

    use pyo3::types::{PyCapsule, PyDict};

    let py = module.py();
    let first = NonNull::from(&abi::API_1).cast();
    // SAFETY: the table is static, and so is its name.
    let capsule = unsafe { PyCapsule::new_with_pointer(py, first, c"citius._core._C_API") }?;
    module.add("_C_API", capsule)?;
    let table = NonNull::from(&abi::API).cast();
    // SAFETY: the table is static, and so is its name.
    let capsule = unsafe { PyCapsule::new_with_pointer(py, table, c"citius._core._C_API_2") }?;
    module.add("_C_API_2", capsule)?;
    module.add("C_ABI_VERSION", abi::VERSION)?;
    module.add("C_ABI_VERSIONS", abi::VERSIONS)?;
    module.add("C_API_ADDRESS", &raw const abi::API as usize)?;
    let symbols = PyDict::new(py);
    for (name, address) in abi::symbols() {
        symbols.set_item(name, address)?;
    }
    module.add("C_SYMBOLS", symbols)?;
    module.add_class::<CompiledCall>()?;
    module.add_class::<CompiledHandler>()
}
