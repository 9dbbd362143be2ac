//! `CompiledHandler`: what Python holds of a compiled handler, and how Python code calls one. Tests: `tests/compiled/`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32};

use citius_http::fields::is_value_byte;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use super::abi::{self, Entry};
use super::arguments::{Argument, Given};
use super::{Handler, HandlerOutcome, with_response};
use crate::request::{Request, latin};
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
        if !content_type.bytes().all(is_value_byte) {
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
            if let Some(mistake) = mistake {
                return Err(PyRuntimeError::new_err(format!(
                    "the compiled handler {}: {mistake}",
                    self.handler.name
                )));
            }
            let options = PyDict::new(py);
            let body = match &outcome {
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
                    let media = self.handler.media(response, *size);
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
        })
    }

    fn __repr__(&self) -> String {
        format!("<CompiledHandler {}>", self.handler.name)
    }
}

/// Adds the capsule that `citius.h` names, and what numba's linker has to know.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    use std::ptr::NonNull;

    use pyo3::types::{PyCapsule, PyDict};

    let py = module.py();
    let table = NonNull::from(&abi::API).cast();
    // SAFETY: the table is static, and so is its name.
    let capsule = unsafe { PyCapsule::new_with_pointer(py, table, c"citius._core._C_API") }?;
    module.add("_C_API", capsule)?;
    module.add("C_ABI_VERSION", abi::VERSION)?;
    let symbols = PyDict::new(py);
    for (name, address) in abi::symbols() {
        symbols.set_item(name, address)?;
    }
    module.add("C_SYMBOLS", symbols)?;
    module.add_class::<CompiledHandler>()
}
