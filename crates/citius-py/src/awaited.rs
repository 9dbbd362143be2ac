//! Objects that are awaited like coroutines and have no code of their own: each step is a look at some state.
//!
//! They fulfil `collections.abc.Coroutine`, because applications hand them to `asyncio.create_task`. A look ends
//! with `StopIteration` and the value, or gives what is to be waited for before the next look.

/// Makes a class such an object. It has a method `look(&self, py: Python<'_>) -> PyResult<Py<PyAny>>`.
macro_rules! awaited_by_looking {
    ($class:ident) => {
        #[pyo3::pymethods]
        impl $class {
            fn __await__(slf: pyo3::Py<Self>) -> pyo3::Py<Self> {
                slf
            }

            fn __iter__(slf: pyo3::Py<Self>) -> pyo3::Py<Self> {
                slf
            }

            fn __next__(&self, py: pyo3::Python<'_>) -> pyo3::PyResult<pyo3::Py<pyo3::PyAny>> {
                self.look(py)
            }

            fn send(
                &self,
                py: pyo3::Python<'_>,
                _value: &pyo3::Bound<'_, pyo3::PyAny>,
            ) -> pyo3::PyResult<pyo3::Py<pyo3::PyAny>> {
                self.look(py)
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

pub(crate) use awaited_by_looking;
