//! `wsgi.input`: the request body as a file (PEP 3333, "Input and Error Streams").
//!
//! In: the body in memory, in a temporary file, or still arriving; only the last one waits, in a thread or a greenlet. It ends
//! where the body ends, chunked or not (`wsgi.input_terminated`). Tests: `tests/wsgi/`.

use std::sync::{Arc, Mutex};

use citius_base::sync::lock;
use citius_http::{BodyLength, Head};
use pyo3::exceptions::PyStopIteration;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use super::call::Call;
use super::spool::Spool;

/// The body of one request, read from its front to its end.
#[pyclass(frozen, module = "citius._core", name = "WsgiInput")]
pub(crate) struct Input {
    unread: Mutex<Unread>,
    source: Source,
    /// What has come is given out, at least a byte, without waiting for as much as was asked for.
    is_message_stream: bool,
}

/// Where more comes from.
enum Source {
    Nowhere,
    Client(Arc<Call>),
    File(Spool),
}

#[derive(Default)]
struct Unread {
    bytes: Vec<u8>,
    /// Bytes that have been read; they go when there are many of them.
    start: usize,
}

impl Unread {
    fn rest(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    fn take<'py>(&mut self, py: Python<'py>, count: usize) -> Bound<'py, PyBytes> {
        let taken = PyBytes::new(py, &self.rest()[..count]);
        self.start += count;
        if self.start == self.bytes.len() {
            *self = Self::default();
        }
        taken
    }

    fn append(&mut self, more: &[u8]) {
        if self.start > 0 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(more);
    }
}

impl Input {
    /// Of a body that is complete.
    pub(super) fn complete(bytes: Vec<u8>) -> Self {
        let unread = Unread { bytes, start: 0 };
        Self {
            unread: Mutex::new(unread),
            source: Source::Nowhere,
            is_message_stream: false,
        }
    }

    /// Of a body that is complete, in a file.
    pub(super) fn spooled(spool: Spool) -> Self {
        Self {
            unread: Mutex::default(),
            source: Source::File(spool),
            is_message_stream: false,
        }
    }

    /// Of a body that `call` goes on receiving.
    pub(super) fn arriving(call: &Arc<Call>, head: &Head) -> Self {
        Self {
            unread: Mutex::default(),
            source: Source::Client(Arc::clone(call)),
            is_message_stream: is_message_stream(head),
        }
    }

    /// Bytes that are here; asked before any is read.
    pub(super) fn unread_bytes(&self) -> u64 {
        let in_file = match &self.source {
            Source::File(spool) => spool.size(),
            _ => 0,
        };
        in_file + lock(&self.unread).rest().len() as u64
    }

    /// Waits for more; `false` if there is none.
    fn fetch(&self, py: Python<'_>) -> PyResult<bool> {
        match &self.source {
            Source::Nowhere => Ok(false),
            Source::Client(call) => {
                let Some(more) = call.next_piece(py)? else {
                    return Ok(false);
                };
                lock(&self.unread).append(&more);
                Ok(true)
            }
            Source::File(spool) => {
                let more = spool.read(py)?;
                lock(&self.unread).append(more.as_bytes());
                Ok(!more.as_bytes().is_empty())
            }
        }
    }

    fn take<'py>(&self, py: Python<'py>, most: usize) -> Bound<'py, PyBytes> {
        let mut unread = lock(&self.unread);
        let count = unread.rest().len().min(most);
        unread.take(py, count)
    }

    fn line<'py>(&self, py: Python<'py>, most: usize) -> PyResult<Bound<'py, PyBytes>> {
        let mut seen = 0;
        loop {
            {
                let mut unread = lock(&self.unread);
                let rest = unread.rest();
                let end = rest[seen.min(rest.len())..]
                    .iter()
                    .position(|&byte| byte == b'\n');
                let end = end.map(|at| seen + at + 1);
                seen = rest.len();
                if end.is_some() || seen >= most {
                    let count = end.unwrap_or(most).min(most);
                    return Ok(unread.take(py, count));
                }
            }
            if !self.fetch(py)? {
                return Ok(self.take(py, most));
            }
        }
    }
}

/// Whether the body is messages that may be answered while more of them come. Their applications take what has come, while
/// others want the length of a chunked body, which is known at its end.
pub(super) fn is_message_stream(head: &Head) -> bool {
    const TYPES: [&[u8]; 2] = [b"application/grpc", b"application/connect+"];
    let starts_with = |value: &[u8], kind: &[u8]| {
        let start = value.get(..kind.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(kind))
    };
    head.body == BodyLength::Chunked
        && head
            .field(b"content-type")
            .is_some_and(|value| TYPES.iter().any(|kind| starts_with(value, kind)))
}

/// A size as Python's files take it: absent, `None` or negative means all.
fn most(size: Option<isize>) -> usize {
    size.and_then(|size| usize::try_from(size).ok())
        .unwrap_or(usize::MAX)
}

#[pymethods]
impl Input {
    #[pyo3(signature = (size = None, /))]
    fn read<'py>(&self, py: Python<'py>, size: Option<isize>) -> PyResult<Bound<'py, PyBytes>> {
        let most = most(size);
        let enough = match size {
            Some(1..) if self.is_message_stream => 1,
            _ => most,
        };
        while lock(&self.unread).rest().len() < enough && self.fetch(py)? {}
        Ok(self.take(py, most))
    }

    #[pyo3(signature = (size = None, /))]
    fn readline<'py>(&self, py: Python<'py>, size: Option<isize>) -> PyResult<Bound<'py, PyBytes>> {
        self.line(py, most(size))
    }

    #[pyo3(signature = (hint = None, /))]
    fn readlines<'py>(&self, py: Python<'py>, hint: Option<isize>) -> PyResult<Bound<'py, PyList>> {
        let (lines, mut total) = (PyList::empty(py), 0);
        // As `io.IOBase.readlines`: no hint, or one that is not positive, means all.
        let enough = most(hint.filter(|&hint| hint > 0));
        while total < enough {
            let line = self.line(py, usize::MAX)?;
            if line.as_bytes().is_empty() {
                break;
            }
            total += line.as_bytes().len();
            lines.append(line)?;
        }
        Ok(lines)
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let line = self.line(py, usize::MAX)?;
        if line.as_bytes().is_empty() {
            return Err(PyStopIteration::new_err(()));
        }
        Ok(line)
    }
}
