//! Python's open files as response bodies that the kernel sends.
//!
//! In: a file object, a path or a descriptor. Out: a [`Payload`] over a duplicate of the descriptor, or `None` if the file
//! must be read by Python. Nothing is read here. Tests: `tests/asgi/`, `tests/wsgi/`, `tests/server/`.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use citius_base::descriptor::{Fd, duplicate};
use citius_base::reactor_handle::ReactorHandle;
use citius_http::Payload;
use citius_reactor::Errno;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// What is left of an open binary file, from its position on, and the file closed; `None` if `object` is
/// none or Python has to read it.
pub(crate) fn rest_of(
    handle: &ReactorHandle,
    object: &Bound<'_, PyAny>,
) -> PyResult<Option<Payload<'static>>> {
    let py = object.py();
    // A thread's iterators come wrapped (pool.py); what they would read need not be read at all.
    let wrapped = object.getattr_opt(pyo3::intern!(py, "_iterator"))?;
    let file = wrapped.as_ref().unwrap_or(object);
    if !is_binary_file(file)? || !file.call_method0("seekable")?.is_truthy()? {
        return Ok(None);
    }
    let position: u64 = file.call_method0("tell")?.extract()?;
    let descriptor: Fd = file.call_method0("fileno")?.extract()?;
    let payload = of_descriptor(handle, descriptor, position, None)?;
    if payload.is_some() {
        file.call_method0("close")?;
    }
    Ok(payload)
}

/// `count` bytes from `offset` on, or all that follow, of the file that `descriptor` stands for; it may be
/// closed afterwards.
///
/// `None` if Python has to read it: it is no regular file, it does not know its length (as in `/proc`), or
/// as many as may be are open already.
///
/// # Errors
/// `OSError`: it is no open descriptor, or it ends before `count`.
pub(crate) fn of_descriptor(
    handle: &ReactorHandle,
    descriptor: Fd,
    offset: u64,
    count: Option<u64>,
) -> PyResult<Option<Payload<'static>>> {
    let owned = duplicate(descriptor)?;
    let file = match handle.files.adopt(owned, "a file of the application's") {
        Ok(file) if !file.is_empty() => file,
        Ok(_) | Err(Errno::INVAL | Errno::NFILE) => return Ok(None),
        Err(error) => return Err(std::io::Error::from(error).into()),
    };
    let left = file.len().saturating_sub(offset);
    let count = count.unwrap_or(left);
    if count > left {
        return Err(PyOSError::new_err(format!(
            "the file has {left} bytes from {offset} on, but {count} are to be sent"
        )));
    }
    let payload = file.payload(offset, count).map_err(std::io::Error::from)?;
    Ok(Some(payload))
}

/// The whole file at `path`.
///
/// # Errors
/// `OSError`: it cannot be opened, or is no regular file.
pub(crate) fn of_path(handle: &ReactorHandle, path: &Path) -> PyResult<Payload<'static>> {
    let file = handle.files.open(path).map_err(|error| {
        let reason = std::io::Error::from(error);
        PyOSError::new_err((error.raw_os_error(), reason.to_string(), path.to_owned()))
    })?;
    Ok(file.payload(0, file.len()).map_err(std::io::Error::from)?)
}

/// As [`of_descriptor`], from the descriptor's own position on if `offset` is not given, and read
/// here and now where the kernel cannot send it by itself.
pub(crate) fn piece_of(
    handle: &ReactorHandle,
    py: Python<'_>,
    descriptor: Fd,
    offset: Option<u64>,
    count: Option<u64>,
) -> PyResult<Payload<'static>> {
    let mut file = duplicate(descriptor)?;
    // A pipe or a socket may have nothing to read for ever, and the loop's thread would wait for it.
    if !file.metadata()?.is_file() {
        return Err(PyValueError::new_err(
            "expected a regular file to send without copying; read a pipe, a socket or a device in the \
             application and send its bytes",
        ));
    }
    let position = offset.map_or_else(|| file.stream_position(), Ok)?;
    if let Some(payload) = of_descriptor(handle, descriptor, position, count)? {
        return Ok(payload);
    }
    py.detach(|| {
        if let Some(offset) = offset {
            file.seek(SeekFrom::Start(offset))?;
        }
        let mut bytes = Vec::new();
        file.take(count.unwrap_or(u64::MAX))
            .read_to_end(&mut bytes)?;
        Ok(Payload::Shared(bytes.into()))
    })
}

/// Whether `object` is what `open(…, "rb")` returns; text and compressed files are not sent as they lie.
pub(crate) fn is_binary_file(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    static KINDS: PyOnceLock<[Py<PyAny>; 2]> = PyOnceLock::new();
    let py = object.py();
    let kinds = KINDS.get_or_try_init(py, || {
        let io = py.import("io")?;
        let kind = |name| Ok::<_, PyErr>(io.getattr(name)?.unbind());
        Ok::<_, PyErr>([kind("BufferedReader")?, kind("FileIO")?])
    })?;
    Ok(kinds.iter().any(|kind| object.get_type().is(kind)))
}
