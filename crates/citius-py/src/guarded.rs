//! `citius._core.GuardedCall`: a handler, or a middleware, as a part of a chain without a coroutine.

use pyo3::exceptions::PyException;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::request::Request;
use crate::response::Response;

/// A function with what makes responses of its results and exceptions: what `_guard` and `_around` in `request_chain.py` do,
/// without a frame of Python.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct GuardedCall {
    function: Py<PyAny>,
    arguments: Arguments,
    /// `(request, value)`: the response of what is neither text nor a response.
    respond_with: Py<PyAny>,
    /// `(request, error)`: the response of an exception.
    respond_to: Py<PyAny>,
}

/// What the function is called with.
enum Arguments {
    None,
    Request,
    /// Of a middleware, with the chain inside it.
    RequestAndNext(Py<PyAny>),
}

#[pymethods]
impl GuardedCall {
    #[new]
    #[pyo3(signature = (function, respond_with, respond_to, takes_request = true, next = None))]
    fn new(
        function: Py<PyAny>,
        respond_with: Py<PyAny>,
        respond_to: Py<PyAny>,
        takes_request: bool,
        next: Option<Py<PyAny>>,
    ) -> Self {
        let arguments = match next {
            Some(next) => Arguments::RequestAndNext(next),
            None if takes_request => Arguments::Request,
            None => Arguments::None,
        };
        Self {
            function,
            arguments,
            respond_with,
            respond_to,
        }
    }

    fn respond<'py>(&self, request: &Bound<'py, Request>) -> PyResult<Bound<'py, PyAny>> {
        let py = request.py();
        match self.response_of(request) {
            Err(error) if error.is_instance_of::<PyException>(py) => {
                let error = error.into_value(py);
                self.respond_to.bind(py).call1((request, error))
            }
            response => response,
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.function)?;
        if let Arguments::RequestAndNext(next) = &self.arguments {
            visit.call(next)?;
        }
        visit.call(&self.respond_with)?;
        visit.call(&self.respond_to)
    }
}

impl GuardedCall {
    fn response_of<'py>(&self, request: &Bound<'py, Request>) -> PyResult<Bound<'py, PyAny>> {
        let py = request.py();
        let function = self.function.bind(py);
        let value = match &self.arguments {
            Arguments::None => function.call0(),
            Arguments::Request => function.call1((request,)),
            Arguments::RequestAndNext(next) => function.call1((request, next)),
        }?;
        if value.is_exact_instance_of::<PyString>() || value.is_exact_instance_of::<Response>() {
            request.get().own(value)
        } else {
            self.respond_with.bind(py).call1((request, value))
        }
    }
}
