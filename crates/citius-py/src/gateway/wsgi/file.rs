//! `wsgi.file_wrapper` (PEP 3333, "Optional Platform-Specific File Handling"). Tests: `tests/wsgi/`.

use citius_base::descriptor::Fd;
use pyo3::exceptions::PyStopIteration;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::file::is_binary_file;

/// A file as a response. What of it is a real file is sent by the kernel; anything else is read.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct FileWrapper {
    #[pyo3(get)]
    filelike: Py<PyAny>,
    #[pyo3(get)]
    blksize: usize,
}

#[pymethods]
impl FileWrapper {
    #[new]
    #[pyo3(signature = (filelike, blksize = 8192))]
    fn new(filelike: Py<PyAny>, blksize: usize) -> Self {
        Self { filelike, blksize }
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let block = self
            .filelike
            .bind(py)
            .call_method1(intern!(py, "read"), (self.blksize,))?;
        match block.cast::<PyBytes>() {
            Ok(bytes) if bytes.as_bytes().is_empty() => Err(PyStopIteration::new_err(())),
            _ => Ok(block),
        }
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if let Some(close) = self.filelike.bind(py).getattr_opt(intern!(py, "close"))? {
            close.call0()?;
        }
        Ok(())
    }
}

impl FileWrapper {
    /// Descriptor and position of what is a file of the system's and holds the bytes as they are; `None`
    /// for anything else, whose `read` is asked instead.
    ///
    /// The position is what `tell` says: a buffered file's descriptor is ahead of its reader. Files that
    /// decode or decompress have descriptors too, but their bytes are not those of the response.
    pub(super) fn place(&self, py: Python<'_>) -> PyResult<Option<(Fd, u64)>> {
        let file = self.filelike.bind(py);
        if !is_binary_file(file)? || !file.call_method0(intern!(py, "seekable"))?.is_truthy()? {
            return Ok(None);
        }
        let position = file.call_method0(intern!(py, "tell"))?.extract()?;
        let descriptor = file.call_method0(intern!(py, "fileno"))?.extract()?;
        Ok(Some((descriptor, position)))
    }
}
