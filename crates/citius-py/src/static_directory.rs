//! `citius._core.StaticDirectory`: a static mount whose files are bodies of responses (`file_body.rs`).

use citius_static::{Found, Mount};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::file_body::FileBody;
use crate::request::Request;
use crate::settings::mount_from;

/// A static mount whose responses pass middleware.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct StaticDirectory {
    mount: Mount,
}

#[pymethods]
impl StaticDirectory {
    #[new]
    fn new(mount: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self {
            mount: mount_from(mount)?,
        })
    }

    /// The file of a request; `None` if there is none, `True` for a directory whose path lacks its slash.
    fn find(&self, py: Python<'_>, request: &Request) -> PyResult<Py<PyAny>> {
        let found = self
            .mount
            .look_up(request.head().path(), &request.handle.files);
        match found {
            Found::Asset(asset) => Ok(Py::new(py, FileBody::of_asset(asset))?.into_any()),
            Found::Directory => Ok(true.into_pyobject(py)?.to_owned().into_any().unbind()),
            Found::Nothing => Ok(py.None()),
            Found::Failed(error) => Err(PyOSError::new_err((
                error.raw_os_error(),
                error.to_string(),
            ))),
        }
    }
}
