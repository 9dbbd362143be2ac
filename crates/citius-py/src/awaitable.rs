//! Awaitable objects without a coroutine behind them: each step polls some state.
//!
//! In: a class that implements [`PollAwaitable`]. Out: an object with the methods of `collections.abc.Coroutine`, as
//! `asyncio.create_task` wants them. [`install_am_send_of`] gives the class the C slot by which `await` gets the value
//! without a `StopIteration`; other callers find the methods. Nothing here waits. Tests: `tests/asgi/`, `tests/gateway/`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use pyo3::{PyClass, PyTypeInfo, ffi};

/// What a look at the state brings.
pub(crate) enum Poll {
    /// It is over, with this value.
    Ready(Py<PyAny>),
    /// Something to wait for.
    Pending(Py<PyAny>),
}

/// An object that is awaited by looking.
pub(crate) trait PollAwaitable:
    PyClass<Frozen = pyo3::pyclass::boolean_struct::True> + Sync
{
    fn poll(&self, py: Python<'_>) -> PyResult<Poll>;

    /// The same by the object.
    #[inline]
    fn poll_object(slf: &Bound<'_, Self>) -> PyResult<Poll> {
        slf.get().poll(slf.py())
    }
}

/// Makes a class that is [`PollAwaitable`] such an object.
macro_rules! impl_awaitable {
    ($class:ident) => {
        impl $class {
            fn step(&self, py: pyo3::Python<'_>) -> pyo3::PyResult<pyo3::Py<pyo3::PyAny>> {
                match $crate::awaitable::PollAwaitable::poll(self, py)? {
                    $crate::awaitable::Poll::Pending(awaited) => Ok(awaited),
                    $crate::awaitable::Poll::Ready(value) => {
                        Err(pyo3::exceptions::PyStopIteration::new_err((value,)))
                    }
                }
            }
        }

        #[pyo3::pymethods]
        impl $class {
            fn __await__(slf: pyo3::Py<Self>) -> pyo3::Py<Self> {
                slf
            }

            fn __iter__(slf: pyo3::Py<Self>) -> pyo3::Py<Self> {
                slf
            }

            fn __next__(&self, py: pyo3::Python<'_>) -> pyo3::PyResult<pyo3::Py<pyo3::PyAny>> {
                self.step(py)
            }

            fn send(
                &self,
                py: pyo3::Python<'_>,
                _value: &pyo3::Bound<'_, pyo3::PyAny>,
            ) -> pyo3::PyResult<pyo3::Py<pyo3::PyAny>> {
                self.step(py)
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

pub(crate) use impl_awaitable;

/// Gives a class the short way. Once, before there is an object of it.
pub(crate) fn install_am_send_of<T: PollAwaitable>(py: Python<'_>) {
    set_slots(
        py,
        T::type_object_raw(py),
        am_send_by_polling::<T>,
        am_await,
    );
}

/// Gives the short way to [`Done`].
pub(crate) fn install_am_send_of_done(py: Python<'_>) {
    let class = Done::type_object_raw(py);
    set_slots(py, class, am_send_of_done, am_await);
    // SAFETY: a class of ours that has no objects yet.
    unsafe { (*class).tp_iternext = Some(iternext_of_done) };
}

fn set_slots(
    _py: Python<'_>,
    class: *mut ffi::PyTypeObject,
    send: ffi::sendfunc,
    await_: ffi::unaryfunc,
) {
    // SAFETY: classes live for ever, and this one has a method `__await__`.
    let slots = unsafe { (*class).tp_as_async };
    // SAFETY: the slots of a class of ours that has no objects yet.
    let slots = unsafe { &mut *slots };
    slots.am_send = Some(send);
    slots.am_await = Some(await_);
}

unsafe extern "C" fn am_await(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the interpreter calls this with a live object, in hand of the GIL.
    unsafe { ffi::Py_NewRef(object) }
}

/// At its end, without a value.
unsafe extern "C" fn iternext_of_done(_object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    ptr::null_mut()
}

unsafe extern "C" fn am_send_of_done(
    _object: *mut ffi::PyObject,
    _value: *mut ffi::PyObject,
    result: *mut *mut ffi::PyObject,
) -> ffi::PySendResult {
    // SAFETY: a constant's address.
    let none = unsafe { ffi::Py_None() };
    // SAFETY: None lives for ever, and the GIL is in hand.
    let none = unsafe { ffi::Py_NewRef(none) };
    // SAFETY: the interpreter gives a place for the result.
    unsafe { *result = none };
    ffi::PySendResult::PYGEN_RETURN
}

unsafe extern "C" fn am_send_by_polling<T: PollAwaitable>(
    object: *mut ffi::PyObject,
    _value: *mut ffi::PyObject,
    result: *mut *mut ffi::PyObject,
) -> ffi::PySendResult {
    let (sent, how) = Python::attach(|py| {
        // SAFETY: the interpreter calls this with a live object.
        let object = unsafe { Bound::from_borrowed_ptr(py, object) };
        // SAFETY: the slot is in this class alone, which has no subclasses.
        let object = unsafe { object.cast_unchecked::<T>() };
        let polled = catch_unwind(AssertUnwindSafe(|| T::poll_object(object)));
        let polled = polled.unwrap_or_else(|_| {
            Err(PyRuntimeError::new_err(
                "a defect of the server's: it panicked",
            ))
        });
        match polled {
            Ok(Poll::Ready(value)) => (value.into_ptr(), ffi::PySendResult::PYGEN_RETURN),
            Ok(Poll::Pending(awaited)) => (awaited.into_ptr(), ffi::PySendResult::PYGEN_NEXT),
            Err(error) => {
                error.restore(py);
                (ptr::null_mut(), ffi::PySendResult::PYGEN_ERROR)
            }
        }
    });
    // SAFETY: the interpreter gives a place for the result.
    unsafe { *result = sent };
    how
}

/// Returned by a `send` that has nothing to wait for; there is one.
#[pyclass(frozen, module = "citius._core", name = "_Done")]
pub(crate) struct Done;

impl Done {
    pub(crate) fn get(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        static ONE: PyOnceLock<Py<Done>> = PyOnceLock::new();
        let one = ONE.get_or_try_init(py, || Py::new(py, Self))?;
        Ok(one.bind(py).clone().into_any())
    }
}

#[pymethods]
#[expect(clippy::unused_self, reason = "the coroutine protocol's methods")]
impl Done {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self) -> Option<Py<PyAny>> {
        None
    }

    fn send(&self, _value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        Err(PyStopIteration::new_err(()))
    }

    #[pyo3(signature = (error, *_rest))]
    fn throw(&self, error: Bound<'_, PyAny>, _rest: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        Err(PyErr::from_value(error))
    }

    fn close(&self) {}
}
