//! The `headers` lists of scopes, made of pairs of bytes that requests share.
//!
//! In: a head. Out: a list for this request alone. A field section with the same bytes as an earlier one is a copy of its
//! list; any other is made line by line of cached names and lines. The caches are direct-mapped and bounded. Values that may
//! be secrets are never cached by line, only as part of a whole section. Tests: `tests/asgi/`.

use citius_base::reuse::{Known, Reuse, Spare};
use citius_http::Head;
use citius_http::head::{FieldSpan, Span};
use pyo3::ffi::Py_ssize_t;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

#[derive(Default)]
pub(super) struct FieldLists {
    names: Cache<Py<PyBytes>>,
    lines: Cache<Py<PyTuple>>,
    sections: Sections,
    /// The list that the latest request with a known section has got.
    latest: Spare<CopiedList>,
}

/// A list, and the one that it is a copy of.
struct CopiedList {
    list: Py<PyList>,
    original: Py<PyList>,
}

impl Reuse for CopiedList {
    #[inline]
    fn is_fresh(&mut self, py: Python<'_>, lent: Py_ssize_t) -> bool {
        Known::ASGI_HEADERS.are_all(py, &self.list, lent)
            && is_same(self.list.bind(py), self.original.bind(py))
    }
}

/// The list for a request.
pub(super) enum FieldList<'py> {
    /// The one of the latest request with a known section.
    Latest,
    /// A new one, which is the latest from now on.
    Renewed(Bound<'py, PyList>),
    /// One that will hardly be needed again.
    Single(Bound<'py, PyList>),
}

impl FieldLists {
    /// The list for a request. The latest has to be [as it was made](Self::is_as_made), or forgotten.
    #[inline]
    pub(super) fn list<'py>(&mut self, py: Python<'py>, head: &Head) -> PyResult<FieldList<'py>> {
        let section = section_of(head);
        let Some(original) = section.and_then(|section| self.sections.find(head, section)) else {
            let made = self.make(py, head)?;
            if let Some(section) = section {
                self.sections.note(head, section, &made);
            }
            return Ok(FieldList::Single(made));
        };
        let original = original.bind(py);
        let is_latest = |latest: &CopiedList| latest.original.is(original);
        if self.latest.lent().is_some_and(is_latest) {
            return Ok(FieldList::Latest);
        }
        let copy = original.get_slice(0, original.len());
        self.latest = Spare::new(CopiedList {
            list: copy.clone().unbind(),
            original: original.clone().unbind(),
        });
        Ok(FieldList::Renewed(copy))
    }

    /// Whether the latest list, if there is one, is as it was made; it is `lent` to so many scopes.
    #[inline]
    pub(super) fn is_as_made(&mut self, py: Python<'_>, lent: Py_ssize_t) -> bool {
        self.latest.is_empty() || self.latest.is_fresh(py, lent)
    }

    /// Has the next request get another one.
    pub(super) fn forget(&mut self) {
        self.latest = Spare::default();
    }

    fn make<'py>(&mut self, py: Python<'py>, head: &Head) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for field in &head.fields {
            let line = Span {
                start: field.name.start,
                end: field.value.end,
            };
            let (name, value) = (head.slice(field.name), head.slice(field.value));
            list.append(self.line(py, head.slice(line), name, value)?)?;
        }
        Ok(list)
    }

    /// Name and value of a field; `line` is what the client sent of both.
    #[inline]
    fn line<'py>(
        &mut self,
        py: Python<'py>,
        line: &[u8],
        name: &[u8],
        value: &[u8],
    ) -> PyResult<Bound<'py, PyTuple>> {
        if let Some(pair) = self.lines.find(line) {
            return Ok(pair.bind(py).clone());
        }
        let name = self.name(py, name);
        let pair = PyTuple::new(py, [&name, &PyBytes::new(py, value)])?;
        if is_repeated(name.as_bytes()) {
            self.lines.keep(line, pair.clone().unbind());
        }
        Ok(pair)
    }

    fn name<'py>(&mut self, py: Python<'py>, name: &[u8]) -> Bound<'py, PyBytes> {
        if let Some(known) = self.names.find(name) {
            return known.bind(py).clone();
        }
        let made = PyBytes::new(py, &name.to_ascii_lowercase());
        self.names.keep(name, made.clone().unbind());
        made
    }
}

fn is_same(one: &Bound<'_, PyList>, other: &Bound<'_, PyList>) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.is(&other))
}

/// From the first field's name to the last one's value; `None` where there is nothing.
#[inline]
fn section_of(head: &Head) -> Option<Span> {
    let (first, last) = (head.fields.first()?, head.fields.last()?);
    Some(Span {
        start: first.name.start,
        end: last.value.end,
    })
}

/// Field sections and the lists that were made of them, to which nothing else refers.
struct Sections {
    slots: Box<[Place]>,
}

#[derive(Default)]
struct Place {
    /// Says little, but not the same, of the section that was here last without being kept.
    noted: u64,
    section: Option<Section>,
}

struct Section {
    bytes: Box<[u8]>,
    /// Where the fields lie in `bytes`.
    fields: Box<[FieldSpan]>,
    /// HTTP/1 has read `fields` in `bytes`, and would again.
    is_verbatim: bool,
    list: Py<PyList>,
}

impl Sections {
    const SLOTS: usize = 64;
    const BYTES_MAX: usize = 2048;
    const FIELDS_MAX: usize = 32;

    #[inline]
    fn find(&self, head: &Head, at: Span) -> Option<&Py<PyList>> {
        let bytes = head.slice(at);
        let slot = &self.slots[Self::slot_of(summary(bytes))];
        let section = slot.section.as_ref()?;
        let is_same = *section.bytes == *bytes
            // The same bytes might be cut otherwise where a field was dropped or put.
            && (section.is_verbatim && head.is_verbatim || section.is_cut_like(head, at.start));
        is_same.then_some(&section.list)
    }

    /// Keeps a section that comes for the second time in a row.
    fn note(&mut self, head: &Head, at: Span, list: &Bound<'_, PyList>) {
        let bytes = head.slice(at);
        let fields = &head.fields;
        if bytes.len() > Self::BYTES_MAX || bytes.is_empty() || fields.len() > Self::FIELDS_MAX {
            return;
        }
        let summary = summary(bytes);
        let slot = &mut self.slots[Self::slot_of(summary)];
        if slot.noted != summary {
            slot.noted = summary;
            return;
        }
        let fields = fields.iter().map(|field| moved(field, at.start));
        let section = Section {
            bytes: bytes.into(),
            fields: fields.collect(),
            is_verbatim: head.is_verbatim,
            list: list.get_slice(0, list.len()).unbind(),
        };
        let replaced = slot.section.replace(section);
        drop(replaced);
    }

    #[inline]
    fn slot_of(summary: u64) -> usize {
        // The upper bits are the ones that all words have gone into.
        (summary >> 32) as usize % Self::SLOTS
    }
}

impl Default for Sections {
    fn default() -> Self {
        Self {
            slots: (0..Self::SLOTS).map(|_| Place::default()).collect(),
        }
    }
}

impl Section {
    fn is_cut_like(&self, head: &Head, start: u32) -> bool {
        self.fields.len() == head.fields.len()
            && self
                .fields
                .iter()
                .zip(&head.fields)
                .all(|(known, field)| *known == moved(field, start))
    }
}

/// Where a field lies in a section that starts at `start`.
#[inline]
fn moved(field: &FieldSpan, start: u32) -> FieldSpan {
    let moved = |span: Span| Span {
        start: span.start.wrapping_sub(start),
        end: span.end.wrapping_sub(start),
    };
    FieldSpan {
        name: moved(field.name),
        value: moved(field.value),
    }
}

/// The length and four words of a section: not all of it, for it is compared anyway. A client that sends sections which
/// have the same makes its own requests a little slower.
#[inline]
fn summary(bytes: &[u8]) -> u64 {
    let word = |at: usize| {
        let word = bytes.get(at..).and_then(<[u8]>::first_chunk);
        word.map_or(0, |word| u64::from_le_bytes(*word))
    };
    let n = bytes.len();
    [
        word(8),
        word(n / 3),
        word(n / 3 * 2),
        word(n.saturating_sub(8)),
    ]
    .into_iter()
    .fold(n as u64, mix)
}

/// One round of a multiplicative hash.
#[inline]
fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Fields whose values a client repeats with every request, and which are no secrets.
fn is_repeated(name: &[u8]) -> bool {
    matches!(
        name,
        b"host"
            | b"user-agent"
            | b"accept"
            | b"accept-encoding"
            | b"accept-language"
            | b"connection"
            | b"content-type"
            | b"content-length"
            | b"transfer-encoding"
            | b"cache-control"
            | b"pragma"
            | b"origin"
            | b"dnt"
            | b"te"
            | b"priority"
            | b"upgrade-insecure-requests"
            | b"x-forwarded-proto"
            | b"x-forwarded-host"
    ) || name.starts_with(b"sec-")
}

/// A direct-mapped cache of objects made from bytes.
pub(super) struct Cache<T> {
    slots: Box<[Slot<T>]>,
}

/// The bytes, and what was made of them.
type Slot<T> = Option<(Box<[u8]>, T)>;

impl<T> Cache<T> {
    const SLOTS: usize = 256;
    const KEY_BYTES_MAX: usize = 256;

    /// Eight bytes at a time, mixed by a multiplication. A client that finds keys which meet in one slot
    /// makes its own requests a little slower.
    #[inline]
    fn slot_of(key: &[u8]) -> usize {
        let mut hash = key.len() as u64;
        for piece in key.chunks(8) {
            let mut word = [0; 8];
            word[..piece.len()].copy_from_slice(piece);
            hash = mix(hash, u64::from_le_bytes(word));
        }
        // The upper bits are the ones that all bytes have gone into.
        (hash >> 56) as usize % Self::SLOTS
    }

    #[inline]
    pub(super) fn find(&self, key: &[u8]) -> Option<&T> {
        match &self.slots[Self::slot_of(key)] {
            Some((known, value)) if **known == *key => Some(value),
            _ => None,
        }
    }

    /// Keeps `value` in the place of whatever was there.
    pub(super) fn keep(&mut self, key: &[u8], value: T) {
        if key.len() <= Self::KEY_BYTES_MAX {
            self.slots[Self::slot_of(key)] = Some((key.into(), value));
        }
    }
}

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self {
            slots: (0..Self::SLOTS).map(|_| None).collect(),
        }
    }
}
