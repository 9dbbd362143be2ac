//! `citius._core.FileBody` and `StaticDirectory`: files as bodies of responses that pass an application's code.
//!
//! A body is an open file. What of it is sent, and with which fields, is decided when the response is sent, by
//! the same code that serves static mounts (`citius-static`): conditions, ranges, precompressed variants.

use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use citius_http::{Action, Fields, Status};
use citius_reactor::Errno;
use citius_static::{
    Asset, Found, Mount, Outlet, Said, open_anywhere, open_beneath, respond_whole, respond_with,
};
use pyo3::exceptions::{PyFileNotFoundError, PyOSError};
use pyo3::prelude::*;

use crate::reactor_handle::ReactorHandle;
use crate::request::Request;
use crate::request_context::RequestContext;
use crate::respond::log_fault;
use crate::settings::mount_from;
use crate::sink::Sink;

/// A file as the body of a response; it may be sent many times.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct FileBody {
    source: Source,
}

enum Source {
    /// Opened, and known to no reactor yet.
    Open {
        descriptor: OwnedFd,
        path: PathBuf,
    },
    Asset(Arc<Asset>),
}

#[pymethods]
impl FileBody {
    #[new]
    #[pyo3(signature = (path, root = None))]
    fn new(path: PathBuf, root: Option<PathBuf>) -> PyResult<Self> {
        let opened = match &root {
            Some(root) => open_beneath(root, path.as_os_str().as_bytes()),
            None => open_anywhere(&path),
        };
        let descriptor = opened.map_err(|error| failed_to_open(error, root.is_some(), &path))?;
        let source = Source::Open { descriptor, path };
        Ok(Self { source })
    }
}

/// The exception for a file that cannot be opened. Of a path that a client may have made it does not say why: what
/// is not there, not allowed and outside are one and the same.
fn failed_to_open(error: Errno, is_foreign: bool, path: &std::path::Path) -> PyErr {
    if is_foreign && !matches!(error, Errno::NFILE | Errno::MFILE | Errno::IO) {
        return PyFileNotFoundError::new_err((
            Errno::NOENT.raw_os_error(),
            "there is no such file",
            path.to_owned(),
        ));
    }
    let reason = std::io::Error::from(error).to_string();
    PyOSError::new_err((error.raw_os_error(), reason, path.to_owned()))
}

impl FileBody {
    fn asset(&self, handle: &ReactorHandle) -> Result<Arc<Asset>, Errno> {
        match &self.source {
            Source::Asset(asset) => Ok(Arc::clone(asset)),
            Source::Open { descriptor, path } => {
                let ours = descriptor
                    .try_clone()
                    .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::MFILE))?;
                let file = handle.files.adopt(ours, &path.to_string_lossy())?;
                let name = path.as_os_str().as_bytes();
                Ok(Arc::new(Asset::of_file(file, name, &handle.files)?))
            }
        }
    }

    /// Sends it, or what of it the client asks for.
    pub(crate) fn send<S: Sink>(
        &self,
        py: Python<'_>,
        status: Status,
        media: Option<&[u8]>,
        fields: &Fields,
        context: &RequestContext<'_>,
        sink: &mut S,
    ) -> PyResult<()> {
        let asset = self
            .asset(context.handle)
            .map_err(|error| PyOSError::new_err((error.raw_os_error(), error.to_string())))?;
        let said = Said {
            content_type: media,
            fields,
        };
        let mut outlet = Way { py, context, sink };
        if status == Status::OK {
            context.with_head(py, |head| respond_with(&asset, head, said, &mut outlet));
        } else {
            respond_whole(&asset, status, said, &mut outlet);
        }
        Ok(())
    }
}

/// The way of a native response.
struct Way<'a, 'py, S> {
    py: Python<'py>,
    context: &'a RequestContext<'a>,
    sink: &'a mut S,
}

impl<S: Sink> Outlet for Way<'_, '_, S> {
    fn ranges_max(&self) -> u32 {
        self.context.handle.limits.ranges_max
    }

    fn send(&mut self, action: Action<'_>) {
        if let Err(fault) = self.sink.send(self.py, action) {
            log_fault(self.py, fault, self.context);
        }
    }
}

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
            Found::Asset(asset) => {
                let source = Source::Asset(asset);
                Ok(Py::new(py, FileBody { source })?.into_any())
            }
            Found::Directory => Ok(true.into_pyobject(py)?.to_owned().into_any().unbind()),
            Found::Nothing => Ok(py.None()),
            Found::Failed(error) => Err(PyOSError::new_err((
                error.raw_os_error(),
                error.to_string(),
            ))),
        }
    }
}
