//! A request body in a temporary file until the application is called on the reactor's thread, where nothing can wait for it.
//!
//! In: pieces of the body longer than a window. Out: a file made by Python's `tempfile`. The bytes of all files are limited.
//! Tests: `tests/wsgi/`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Bytes that are read from the file at once.
const PIECE_BYTES: usize = 64 * 1024;

/// Makes the files of one worker.
pub(super) struct Spools {
    /// Returns a file that is gone once it is closed.
    make: Py<PyAny>,
    /// Bytes in all of them.
    total: Arc<AtomicU64>,
}

impl Spools {
    pub(super) fn new(make: Py<PyAny>) -> Self {
        Self {
            make,
            total: Arc::default(),
        }
    }

    pub(super) fn open(&self, py: Python<'_>) -> PyResult<Spool> {
        Ok(Spool {
            file: self.make.call0(py)?,
            size: 0,
            total: Arc::clone(&self.total),
        })
    }
}

/// One body, or what has come of it.
pub(super) struct Spool {
    file: Py<PyAny>,
    size: u64,
    /// Bytes in all spools of the worker.
    total: Arc<AtomicU64>,
}

impl Spool {
    /// Appends bytes. `false`: with them all spools would have more than `total_max`, and nothing is done.
    pub(super) fn write(&mut self, py: Python<'_>, bytes: &[u8], total_max: u64) -> PyResult<bool> {
        let count = bytes.len() as u64;
        if self.total.load(Ordering::Relaxed).saturating_add(count) > total_max {
            return Ok(false);
        }
        self.file
            .call_method1(py, intern!(py, "write"), (PyBytes::new(py, bytes),))?;
        self.size += count;
        self.total.fetch_add(count, Ordering::Relaxed);
        Ok(true)
    }

    /// All has been written and is read from its beginning.
    pub(super) fn rewind(&self, py: Python<'_>) -> PyResult<()> {
        self.file.call_method1(py, intern!(py, "seek"), (0,))?;
        Ok(())
    }

    /// The next bytes; none at the end.
    pub(super) fn read<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let piece = self
            .file
            .bind(py)
            .call_method1(intern!(py, "read"), (PIECE_BYTES,))?;
        Ok(piece.cast_into()?)
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        self.total.fetch_sub(self.size, Ordering::Relaxed);
        Python::attach(|py| {
            if let Err(error) = self.file.call_method0(py, intern!(py, "close")) {
                error.write_unraisable(py, Some(self.file.bind(py)));
            }
        });
    }
}
