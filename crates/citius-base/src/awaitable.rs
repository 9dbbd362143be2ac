//! Awaitable objects without a coroutine behind them: each step polls some state.
//!
//! In: a class that implements [`PollAwaitable`]. Out: an object with the methods of `collections.abc.Coroutine`, as
//! `asyncio.create_task` wants them. [`install_slots`] gives an `await` of [`Done`] C functions in place of those that
//! `PyO3` makes from the methods. Nothing here waits. Tests: `tests/asgi/`, `tests/gateway/`.

use std::ptr;

use pyo3::exceptions::{PyBaseException, PyStopIteration};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use pyo3::{PyClass, PyTypeInfo, ffi};

/// What a look at the state brings.
pub enum Poll {
    /// It is over, with this value.
    Ready(Py<PyAny>),
    /// Something to wait for.
    Pending(Py<PyAny>),
}

impl Poll {
    /// What `__next__` returns: `None` ends an `await` without an exception object, where there is no value.
    #[inline]
    pub fn into_next(self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        match self {
            Self::Pending(awaited) => Ok(Some(awaited)),
            Self::Ready(value) if value.is_none(py) => Ok(None),
            Self::Ready(value) => Err(stop_iteration(py, value)),
        }
    }

    /// What `send` returns.
    pub fn into_sent(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self {
            Self::Pending(awaited) => Ok(awaited),
            Self::Ready(value) => Err(stop_iteration(py, value)),
        }
    }
}

fn stop_iteration(py: Python<'_>, value: Py<PyAny>) -> PyErr {
    let bound = value.bind(py);
    // These would be taken for the arguments, or for the exception itself. Others need no tuple of arguments.
    if bound.is_instance_of::<PyTuple>() || bound.is_instance_of::<PyBaseException>() {
        return PyStopIteration::new_err((value,));
    }
    PyStopIteration::new_err(value)
}

/// An object that is awaited by looking.
pub trait PollAwaitable: PyClass<Frozen = pyo3::pyclass::boolean_struct::True> + Sync {
    /// Looks at the state once.
    fn poll(&self, py: Python<'_>) -> PyResult<Poll>;
}

/// Makes a class that is [`PollAwaitable`] such an object.
#[macro_export]
macro_rules! impl_awaitable {
    ($class:ident) => {
        #[pyo3::pymethods]
        impl $class {
            fn __await__(slf: pyo3::Py<Self>) -> pyo3::Py<Self> {
                slf
            }

            fn __iter__(slf: pyo3::Py<Self>) -> pyo3::Py<Self> {
                slf
            }

            fn __next__(
                &self,
                py: pyo3::Python<'_>,
            ) -> pyo3::PyResult<Option<pyo3::Py<pyo3::PyAny>>> {
                $crate::awaitable::PollAwaitable::poll(self, py)?.into_next(py)
            }

            fn send(
                &self,
                py: pyo3::Python<'_>,
                _value: &pyo3::Bound<'_, pyo3::PyAny>,
            ) -> pyo3::PyResult<pyo3::Py<pyo3::PyAny>> {
                $crate::awaitable::PollAwaitable::poll(self, py)?.into_sent(py)
            }

            #[pyo3(signature = (error, *_rest))]
            fn throw(
                &self,
                error: pyo3::Bound<'_, pyo3::PyAny>,
                _rest: &pyo3::Bound<'_, pyo3::types::PyTuple>,
            ) -> pyo3::PyResult<pyo3::Py<pyo3::PyAny>> {
                Err(pyo3::PyErr::from_value(error))
            }

            fn close(&self) {}
        }
    };
}

pub use crate::impl_awaitable;

/// Returned by a `send` that has nothing to wait for; there is one.
#[pyclass(frozen, module = "citius._core", name = "_Done")]
pub struct Done;

impl Done {
    /// The one there is.
    pub fn get(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        static ONE: PyOnceLock<Py<Done>> = PyOnceLock::new();
        let one = ONE.get_or_try_init(py, || Py::new(py, Self))?;
        Ok(one.bind(py).clone().into_any())
    }
}

impl PollAwaitable for Done {
    #[inline]
    fn poll(&self, py: Python<'_>) -> PyResult<Poll> {
        Ok(Poll::Ready(py.None()))
    }
}

impl_awaitable!(Done);

/// Gives [`Done`] the slots that `await` takes: what an ASGI application awaits twice in each request. Once, before
/// there is the object.
pub(crate) fn install_slots(py: Python<'_>) {
    let class = Done::type_object_raw(py);
    // SAFETY: a class of ours that lives for ever and has no objects yet.
    unsafe { (*class).tp_iternext = Some(next_of_done) };
    // SAFETY: a class of ours that lives for ever.
    let slots = unsafe { (*class).tp_as_async };
    // SAFETY: the class has a method `__await__`, therefore these slots.
    unsafe { (*slots).am_await = Some(await_of_done) };
}

/// As `__await__`: the object itself.
unsafe extern "C" fn await_of_done(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the interpreter calls this with a live object, attached to the thread.
    unsafe { ffi::Py_NewRef(object) }
}

/// As `__next__`: at its end, without a value and without an exception.
unsafe extern "C" fn next_of_done(_object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    ptr::null_mut()
}
