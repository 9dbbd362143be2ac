//! `citius._core.FileBody`: files as bodies of responses that pass an application's code.
//!
//! A body is an open file. What of it is sent, and with which fields, is decided when the response is sent, by
//! the same code that serves static mounts (`citius-static`): conditions, ranges, precompressed variants.

use std::path::PathBuf;
use std::sync::Arc;

use citius_base::reactor_handle::ReactorHandle;
use citius_http::{Head, Status};
use citius_reactor::Errno;
use citius_static::{
    Asset, Outlet, Said, open_anywhere, open_beneath, respond_whole, respond_with,
};
use pyo3::exceptions::{PyFileNotFoundError, PyOSError};
use pyo3::prelude::*;

/// A file as the body of a response; it may be sent many times.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct FileBody {
    source: Source,
}

enum Source {
    /// Opened, and known to no reactor yet.
    Open {
        file: std::fs::File,
        path: PathBuf,
    },
    Asset(Arc<Asset>),
}

#[pymethods]
impl FileBody {
    #[new]
    #[pyo3(signature = (path, root = None))]
    fn new(path: PathBuf, root: Option<PathBuf>) -> PyResult<Self> {
        let is_foreign = root.is_some();
        let opened = root.map_or_else(
            || open_anywhere(&path),
            |root| open_beneath(&root, path.as_os_str().as_encoded_bytes()),
        );
        let file = opened.map_err(|error| failed_to_open(error, is_foreign, &path))?;
        let source = Source::Open { file, path };
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
            Source::Open { file, path } => {
                let ours = file
                    .try_clone()
                    .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::MFILE))?;
                let file = handle.files.adopt(ours, &path.to_string_lossy())?;
                let name = path.as_os_str().as_encoded_bytes();
                Ok(Arc::new(Asset::of_file(file, name, &handle.files)?))
            }
        }
    }

    /// Sends it, or what of it the client asks for in `head`.
    pub(crate) fn send(
        &self,
        handle: &ReactorHandle,
        head: &Head,
        status: Status,
        said: Said<'_>,
        outlet: &mut impl Outlet,
    ) -> PyResult<()> {
        let asset = self
            .asset(handle)
            .map_err(|error| PyOSError::new_err((error.raw_os_error(), error.to_string())))?;
        if status == Status::OK {
            respond_with(&asset, head, said, outlet);
        } else {
            respond_whole(&asset, status, said, outlet);
        }
        Ok(())
    }

    pub(crate) fn of_asset(asset: Arc<Asset>) -> Self {
        Self {
            source: Source::Asset(asset),
        }
    }
}
