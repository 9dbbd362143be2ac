//! Forms of native handlers: a body as it comes in, fields and files for Python out.
//!
//! In: pieces of a multipart body, for routes that read forms. Texts and small files are kept in memory; what is longer goes
//! to one temporary file of the form ([`Spooler`]), whose writes give the client leave to send more. Out: what `citius.web.binding.forms` makes a
//! `FormData` of. URL-encoded bodies, and bodies that are there as a whole, are parsed when they are asked for.
//! Tests: `tests/server/test_uploads.py`, `tests/unit/test_forms.py`.

use std::borrow::Cow;
use std::io::Error;
use std::mem;
use std::sync::{Arc, Mutex};

use citius_base::descriptor::{Fd, number_of};
use citius_base::sync::lock;
use citius_forms::{Event, Fault, Limits, Multipart, Part, urlencoded};
use citius_http::Head;
use citius_http::parameters::{self, Parameters};
use citius_reactor::{Pending, Slot, Spool, Spooler, StreamId, close};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::functions;

/// What a route's forms may have, as `citius.FormLimits` says it.
#[derive(Clone, Copy, Debug, FromPyObject)]
#[expect(
    clippy::struct_field_names,
    reason = "limits end in _max, as those of the server do"
)]
pub(crate) struct FormSettings {
    fields_max: u32,
    files_max: u32,
    part_head_bytes_max: u32,
    name_bytes_max: u32,
    /// `None`: what a body may have that is held in memory.
    text_bytes_max: Option<u64>,
    file_bytes_max: Option<u64>,
    memory_bytes_max: u64,
}

impl FormSettings {
    fn limits(&self, held_bytes_max: u64) -> Limits {
        Limits {
            fields_max: self.fields_max,
            files_max: self.files_max,
            part_head_bytes_max: self.part_head_bytes_max,
            name_bytes_max: self.name_bytes_max,
            text_bytes_max: self.text_bytes_max(held_bytes_max),
            file_bytes_max: self.file_bytes_max.unwrap_or(u64::MAX),
        }
    }

    /// Bytes that a form may have which is held in memory.
    pub(crate) fn text_bytes_max(&self, held_bytes_max: u64) -> u64 {
        self.text_bytes_max.unwrap_or(held_bytes_max)
    }
}

/// Whether the body is a form that is parsed as it comes.
pub(crate) fn is_multipart(head: &Head) -> bool {
    head.field(b"content-type").is_some_and(|value| {
        let media_type = value.split(|&byte| byte == b';').next().unwrap_or_default();
        media_type
            .trim_ascii()
            .eq_ignore_ascii_case(b"multipart/form-data")
    })
}

fn boundary(parameters: Parameters<'_>) -> Cow<'_, str> {
    let mut found = parameters.filter(|(name, _)| name.eq_ignore_ascii_case("boundary"));
    match (found.next(), found.next()) {
        (Some((_, boundary)), None) => boundary,
        // Two readers of such a form could take different ones; an empty boundary is refused.
        _ => Cow::Borrowed(""),
    }
}

/// A form that comes with the body of a request.
pub(crate) struct Form {
    /// An error: the form is broken, and nothing is taken any more.
    parser: Result<Multipart, Failure>,
    memory_bytes_max: u64,
    /// Bytes of files in memory.
    memory_bytes: u64,
    /// Bytes of files that have been given to the disk.
    spooled_bytes: u64,
    parts: Vec<(Part, Content)>,
    open: Option<(Part, Content)>,
    /// The files that are not in memory, one after the other.
    spool: Option<Spool>,
    pending: Pending,
}

enum Content {
    Memory(Vec<u8>),
    /// So many bytes of the form's temporary file, from there on.
    Spooled {
        offset: u64,
        size: u64,
    },
}

/// What there is of a form in the body of a request.
#[expect(clippy::large_enum_variant, reason = "it is always in a box")]
pub(crate) enum FormState {
    Coming(Form),
    /// The `FormData`.
    Made(Py<PyAny>),
}

/// Why there is no form.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    Broken(Fault),
    /// Status and text of a response.
    Refused(u16, &'static str),
    Disk(Option<i32>, String),
}

/// What is to be done after a piece of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fed {
    /// Ask for so many bytes more.
    Want(u64),
    /// The form is broken: nothing more is needed.
    Failed,
}

impl Form {
    pub(crate) fn new(head: &Head, settings: &FormSettings, held_bytes_max: u64) -> Self {
        let content_type = head.field(b"content-type").unwrap_or_default();
        let content_type = String::from_utf8_lossy(content_type);
        let boundary = boundary(parameters::split(&content_type).1);
        let parser = Multipart::new(boundary.as_bytes(), settings.limits(held_bytes_max));
        Self {
            parser: parser.map_err(Failure::Broken),
            memory_bytes_max: settings.memory_bytes_max,
            memory_bytes: 0,
            spooled_bytes: 0,
            parts: Vec::new(),
            open: None,
            spool: None,
            pending: Pending::default(),
        }
    }

    /// Takes a piece of the body of the request `id`.
    pub(crate) fn push(&mut self, mut bytes: &[u8], spooler: &Spooler, id: StreamId) -> Fed {
        let Ok(parser) = &mut self.parser else {
            return Fed::Failed;
        };
        let (count, mut n_spooled) = (bytes.len() as u64, 0);
        let mut intake = Intake {
            memory_bytes_max: self.memory_bytes_max,
            memory_bytes: &mut self.memory_bytes,
            spooled_bytes: &mut self.spooled_bytes,
            spool: &mut self.spool,
            pending: &self.pending,
            spooler,
            id,
        };
        let failure = loop {
            match parser.receive(&mut bytes) {
                Ok(None) => return Fed::Want(count.saturating_sub(n_spooled)),
                Ok(Some(Event::Part(part))) => {
                    self.open = Some((part, Content::Memory(Vec::new())));
                }
                Ok(Some(Event::Content(piece))) => {
                    let Some((part, content)) = &mut self.open else {
                        continue;
                    };
                    match intake.append(content, piece, part.filename.is_some()) {
                        Ok(spooled) => n_spooled += spooled,
                        Err(failure) => break failure,
                    }
                }
                Ok(Some(Event::PartEnd)) => self.parts.extend(self.open.take()),
                Ok(Some(Event::End)) => {}
                Err(fault) => break Failure::Broken(fault),
            }
        };
        self.parser = Err(failure);
        self.parts.clear();
        self.open = None;
        self.spool = None;
        Fed::Failed
    }

    /// Whether there are files to be waited for.
    pub(crate) fn awaits_files(&self) -> bool {
        self.parser.is_ok() && !self.pending.is_empty()
    }

    /// The parts of a complete form; a failure is one for good.
    pub(crate) fn take(&mut self) -> Result<Vec<Received>, Failure> {
        let parser = self.parser.as_ref().map_err(Clone::clone)?;
        parser.finish().map_err(Failure::Broken)?;
        let parts = mem::take(&mut self.parts);
        let spool = self.spool.take().map(SharedFile::of).transpose();
        let file = spool.map_err(|error| {
            let failure = disk(&error);
            self.parser = Err(failure.clone());
            failure
        })?;
        let spooled = parts.iter();
        let spooled = spooled.filter(|(_, content)| matches!(content, Content::Spooled { .. }));
        let is_alone = spooled.count() == 1;
        let settled = parts.into_iter().map(|(part, content)| {
            let content = match (content, &file) {
                (Content::Memory(bytes), _) => Settled::Memory(bytes),
                (Content::Spooled { offset, size }, Some(file)) => Settled::File {
                    file: Arc::clone(file),
                    offset: (!is_alone).then_some(offset),
                    size,
                },
                (Content::Spooled { .. }, None) => Settled::Memory(Vec::new()),
            };
            (part, content)
        });
        Ok(settled.collect())
    }
}

/// The temporary file of a form, which is closed with the last of its parts, in a thread.
pub(crate) struct SharedFile {
    file: Option<std::fs::File>,
    _slot: Arc<Slot>,
}

impl SharedFile {
    fn of(spool: Spool) -> Result<Arc<Self>, Error> {
        let slot = spool.slot();
        let file = Some(spool.into_file()?);
        Ok(Arc::new(Self { file, _slot: slot }))
    }
}

impl Drop for SharedFile {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            close(file);
        }
    }
}

/// A complete part and its content.
pub(crate) type Received = (Part, Settled);

/// The content of a complete part.
pub(crate) enum Settled {
    Memory(Vec<u8>),
    /// So many bytes of a temporary file.
    File {
        file: Arc<SharedFile>,
        /// `None`: it has no other content.
        offset: Option<u64>,
        size: u64,
    },
}

fn disk(error: &Error) -> Failure {
    Failure::Disk(error.raw_os_error(), error.to_string())
}

/// Where the content of a part goes.
struct Intake<'a> {
    memory_bytes_max: u64,
    memory_bytes: &'a mut u64,
    spooled_bytes: &'a mut u64,
    spool: &'a mut Option<Spool>,
    pending: &'a Pending,
    spooler: &'a Spooler,
    id: StreamId,
}

impl Intake<'_> {
    /// Returns how many of the bytes wait for the disk. Those that leave the memory have been counted when they came.
    fn append(
        &mut self,
        content: &mut Content,
        piece: &[u8],
        is_file: bool,
    ) -> Result<u64, Failure> {
        let count = piece.len() as u64;
        match content {
            Content::Memory(bytes) => {
                let fits = self.memory_bytes.saturating_add(count) <= self.memory_bytes_max;
                if !is_file || fits {
                    bytes.extend_from_slice(piece);
                    *self.memory_bytes += if is_file { count } else { 0 };
                    return Ok(0);
                }
                *self.memory_bytes -= bytes.len() as u64;
                let before = mem::take(bytes);
                let mut size = before.len() as u64;
                let offset = self.spool.as_ref().map_or(0, Spool::size);
                if !before.is_empty() {
                    self.write(before, 0)?;
                }
                size += count;
                self.write(piece.to_vec(), count)?;
                *content = Content::Spooled { offset, size };
            }
            Content::Spooled { size, .. } => {
                *size += count;
                self.write(piece.to_vec(), count)?;
            }
        }
        Ok(count)
    }

    /// Has bytes written; so many of the body are `wanted` when that is done.
    fn write(&mut self, bytes: Vec<u8>, wanted: u64) -> Result<(), Failure> {
        let count = bytes.len() as u64;
        *self.spooled_bytes += count;
        if *self.spooled_bytes > self.spooler.bytes_max() {
            return Err(Failure::Refused(413, "the files of the form are too long"));
        }
        let has_slot = self.spool.is_some() || self.spooler.has_slot();
        if !has_slot || !self.spooler.has_room(count) {
            return Err(Failure::Refused(503, "too many files are being received"));
        }
        let spool = self.spool.get_or_insert_with(|| self.spooler.open());
        if let Some(error) = spool.failure() {
            return Err(disk(&error));
        }
        let written = self
            .spooler
            .write(spool, bytes, wanted, self.pending, self.id);
        written.map_err(|error| disk(&error))
    }
}

impl Failure {
    fn exception(&self, py: Python<'_>) -> PyErr {
        let (status, text) = match self {
            Self::Broken(fault) => (fault.status(), fault.text()),
            Self::Refused(status, text) => (*status, *text),
            Self::Disk(Some(number), text) => return PyOSError::new_err((*number, text.clone())),
            Self::Disk(None, text) => return PyOSError::new_err(text.clone()),
        };
        refused(py, status, text)
    }
}

/// The exception whose response has this status and text.
fn refused(py: Python<'_>, status: u16, text: &str) -> PyErr {
    let made = functions::FORM_REFUSED
        .get(py)
        .and_then(|refused| refused.call1((status, text)));
    match made {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// A file, as keyword arguments of `citius.web.binding.forms.upload_of`.
#[derive(IntoPyObject)]
struct File<'py> {
    name: String,
    filename: String,
    content_type: Option<String>,
    fields: Vec<(String, String)>,
    /// The content, if it is in memory.
    data: Option<Bound<'py, PyBytes>>,
    temporary: Option<TemporaryFile>,
    /// Where it begins in a temporary file that it shares.
    offset: Option<u64>,
    size: u64,
}

/// A temporary file, which is closed in a thread.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct TemporaryFile(Mutex<Option<Arc<SharedFile>>>);

#[pymethods]
impl TemporaryFile {
    fn fileno(&self) -> PyResult<Fd> {
        match lock(&self.0).as_deref() {
            Some(SharedFile {
                file: Some(file), ..
            }) => Ok(number_of(file)?),
            _ => Err(PyValueError::new_err("the file is closed")),
        }
    }

    fn close(&self) {
        // In a statement of its own: the last one closes the file after the lock.
        let file = lock(&self.0).take();
        drop(file);
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        self.close();
    }
}

/// Pairs of texts, and files.
pub(crate) type Parts<'py> = (Bound<'py, PyList>, Bound<'py, PyList>);

/// What Python gets of a form.
pub(crate) fn parts(py: Python<'_>, taken: Result<Vec<Received>, Failure>) -> PyResult<Parts<'_>> {
    let taken = taken.map_err(|failure| failure.exception(py))?;
    let (fields, files) = (PyList::empty(py), PyList::empty(py));
    for (part, content) in taken {
        let (data, temporary, offset, size) = match content {
            Settled::Memory(bytes) if part.filename.is_none() => {
                fields.append((part.name, String::from_utf8_lossy(&bytes)))?;
                continue;
            }
            Settled::Memory(bytes) => {
                let data = PyBytes::new(py, &bytes);
                (Some(data), None, None, bytes.len() as u64)
            }
            Settled::File { file, offset, size } => {
                let temporary = TemporaryFile(Mutex::new(Some(file)));
                (None, Some(temporary), offset, size)
            }
        };
        files.append(File {
            name: part.name,
            filename: part.filename.unwrap_or_default(),
            content_type: part.content_type,
            fields: part.fields,
            data,
            temporary,
            offset,
            size,
        })?;
    }
    Ok((fields, files))
}

/// Pairs and files of a form that is there as a whole.
#[pyfunction]
pub(crate) fn parse_form<'py>(
    py: Python<'py>,
    content_type: &str,
    body: &[u8],
    settings: FormSettings,
) -> PyResult<Parts<'py>> {
    let (media_type, parameters) = parameters::split(content_type);
    let limits = settings.limits(u64::MAX);
    if media_type.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        let pairs = urlencoded::parse(body, &limits);
        let pairs = pairs.map_err(|fault| Failure::Broken(fault).exception(py))?;
        return Ok((PyList::new(py, pairs)?, PyList::empty(py)));
    }
    if media_type.eq_ignore_ascii_case("multipart/form-data") {
        let taken = parse_whole(boundary(parameters).as_bytes(), body, limits);
        return parts(py, taken.map_err(Failure::Broken));
    }
    let got = if media_type.is_empty() {
        "no Content-Type"
    } else {
        media_type
    };
    let expected = "expected application/x-www-form-urlencoded or multipart/form-data, got";
    Err(refused(
        py,
        415,
        &format!("{expected} {}", got.to_ascii_lowercase()),
    ))
}

fn parse_whole(boundary: &[u8], mut body: &[u8], limits: Limits) -> Result<Vec<Received>, Fault> {
    let mut parser = Multipart::new(boundary, limits)?;
    let (mut received, mut open) = (Vec::new(), None);
    while let Some(event) = parser.receive(&mut body)? {
        match event {
            Event::Part(part) => open = Some((part, Vec::new())),
            Event::Content(piece) => {
                if let Some((_, content)) = &mut open {
                    content.extend_from_slice(piece);
                }
            }
            Event::PartEnd => {
                let part = open.take();
                received.extend(part.map(|(part, bytes)| (part, Settled::Memory(bytes))));
            }
            Event::End => break,
        }
    }
    parser.finish()?;
    Ok(received)
}
