//! Many MessagePack messages in, instances of one msgspec Struct out, in one call.
//!
//! The slots of an instance are filled here if type and message are plain: fields that are numbers, strings, bytes, booleans or
//! `None`, in a map that has each field once and no other. Any other message, also an invalid one, goes to msgspec, so that the
//! result is the same. Strings and floats that a field had within the last few records are shared. The one long function is
//! one pass over one input. Tests: `tests/unit/`.

use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyType};

/// Makes the instances of a Struct.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct RecordDecoder {
    kind: Py<PyType>,
    fields: Vec<Field>,
    /// Decodes one message in all the ways there are.
    decode: Py<PyAny>,
}

/// One field of it.
struct Field {
    /// Its name in messages.
    key: Vec<u8>,
    /// Where its slot is in an instance.
    offset: usize,
    allowed: u8,
}

/// Types that a field may have, as bits.
const INT: u8 = 1;
const FLOAT: u8 = 2;
const STR: u8 = 4;
const BYTES: u8 = 8;
const BOOL: u8 = 16;
const NONE: u8 = 32;

/// `PyMemberDescrObject` of `descrobject.h`.
#[repr(C)]
struct MemberDescriptor {
    base: ffi::PyObject,
    owner: *mut ffi::PyTypeObject,
    name: *mut ffi::PyObject,
    qualified_name: *mut ffi::PyObject,
    member: *mut ffi::PyMemberDef,
}

/// Where the slot of the attribute `name` is in instances of `kind`.
pub(crate) fn offset_of(kind: &Bound<'_, PyType>, name: &str) -> PyResult<usize> {
    let py = kind.py();
    let no_slot = || PyValueError::new_err(format!("{name} is no slot of {kind}"));
    let descriptor = kind.getattr(name)?;
    let expected = py.import("types")?.getattr("MemberDescriptorType")?;
    if !descriptor.get_type().is(&expected) {
        return Err(no_slot());
    }
    let descriptor = descriptor.as_ptr().cast::<MemberDescriptor>();
    // SAFETY: its type has been checked, whose layout is public.
    let descriptor = unsafe { &*descriptor };
    // SAFETY: both are types.
    let is_own = unsafe { ffi::PyType_IsSubtype(kind.as_type_ptr(), descriptor.owner) } != 0;
    // SAFETY: a descriptor's member lives as long as its type.
    let member = unsafe { &*descriptor.member };
    usize::try_from(member.offset)
        .ok()
        .filter(|_| is_own && member.type_code == ffi::Py_T_OBJECT_EX)
        .ok_or_else(no_slot)
}

/// What the slot of a field holds; `None` if it is empty. The offset is that of the field in instances of the object's type
/// (`offset_of`), or of one that this extends.
#[inline]
pub(crate) fn slot<'py>(
    object: &Bound<'py, PyAny>,
    name: &str,
    offset: usize,
) -> Option<Bound<'py, PyAny>> {
    if cfg!(Py_GIL_DISABLED) {
        // Another thread may put another value there meanwhile.
        return object.getattr(name).ok();
    }
    // SAFETY: the caller knows that there is a slot.
    let slot = unsafe { object.as_ptr().byte_add(offset) };
    // SAFETY: it holds null or an object, and with the GIL nothing changes that meanwhile.
    let value = unsafe { slot.cast::<*mut ffi::PyObject>().read() };
    // SAFETY: the slot keeps it alive until there is a reference of ours.
    unsafe { Bound::from_borrowed_ptr_or_opt(object.py(), value) }
}

/// The version of a class: every change of it, or of a class that it extends, makes another.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape(std::ffi::c_uint);

impl Shape {
    /// `None` for a class that was changed, until something is looked up in it.
    #[inline]
    pub(crate) fn of(class: &Bound<'_, PyType>) -> Option<Self> {
        // SAFETY: it is a type.
        let version = unsafe { &raw mut (*class.as_type_ptr()).tp_version_tag };
        // SAFETY: it is aligned, and written whole: without a GIL another thread may just be doing so.
        let version = unsafe { AtomicU32::from_ptr(version) }.load(Ordering::Relaxed);
        (version != 0).then_some(Self(version))
    }
}

/// Refuses types whose instances need more than memory: what their own `__new__` does would be left out.
fn is_made_by_msgspec(kind: &Bound<'_, PyType>) -> PyResult<()> {
    let base = kind.py().import("msgspec")?.getattr("Struct")?;
    if kind.is_subclass(&base)? && kind.getattr("__new__")?.is(&base.getattr("__new__")?) {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "expected a msgspec.Struct without a __new__ of its own, got {kind}"
    )))
}

#[pymethods]
impl RecordDecoder {
    #[new]
    fn new(
        kind: &Bound<'_, PyType>,
        fields: Vec<(String, String, Vec<String>)>,
        decode: Py<PyAny>,
    ) -> PyResult<Self> {
        is_made_by_msgspec(kind)?;
        let fields = fields
            .into_iter()
            .map(|(name, key, types)| {
                let mut allowed = 0;
                for name in types {
                    allowed |= match name.as_str() {
                        "int" => INT,
                        "float" => FLOAT,
                        "str" => STR,
                        "bytes" => BYTES,
                        "bool" => BOOL,
                        "None" => NONE,
                        _ => {
                            let message = format!("{name:?} is no type of a plain field");
                            return Err(PyValueError::new_err(message));
                        }
                    };
                }
                Ok(Field {
                    key: key.into_bytes(),
                    offset: offset_of(kind, &name)?,
                    allowed,
                })
            })
            .collect::<PyResult<_>>()?;
        Ok(Self {
            kind: kind.clone().unbind(),
            fields,
            decode,
        })
    }

    /// One record for each message.
    fn decode_many<'py>(
        &self,
        py: Python<'py>,
        messages: &Bound<'py, PyList>,
    ) -> PyResult<Bound<'py, PyList>> {
        // Kept: what is remembered points into them, and msgspec may call code that changes the list.
        let messages: Vec<_> = messages.iter().collect();
        let mut records = Vec::with_capacity(messages.len());
        let mut recent = Recent::new(self.fields.len());
        for message in &messages {
            let plain = message
                .cast_exact::<PyBytes>()
                .ok()
                .and_then(|bytes| self.record(py, bytes.as_bytes(), &mut recent));
            records.push(match plain {
                Some(record) => record,
                None => self.decode.bind(py).call1((message,))?,
            });
        }
        PyList::new(py, records)
    }
}

impl RecordDecoder {
    /// The record of a plain message; `None` for others, in which msgspec will find what is the matter.
    #[inline]
    fn record<'m, 'py>(
        &self,
        py: Python<'py>,
        message: &'m [u8],
        recent: &mut Recent<'m, 'py>,
    ) -> Option<Bound<'py, PyAny>> {
        let mut input = Input(message);
        if input.map_length()? != self.fields.len() {
            return None;
        }
        let kind = self.kind.bind(py);
        let record = allocate(kind)?;
        for (place, field) in self.fields.iter().enumerate() {
            // In the order of the type: so msgspec and most others encode them.
            if !input.take_key(&field.key) {
                return None;
            }
            let value = input.value(py, field.allowed, recent.of(place))?;
            fill(&record, field.offset, value);
        }
        input.0.is_empty().then_some(record)
    }
}

/// An instance without values, as the type's own `__new__` begins with.
#[inline]
fn allocate<'py>(kind: &Bound<'py, PyType>) -> Option<Bound<'py, PyAny>> {
    let py = kind.py();
    let object = kind.as_type_ptr();
    // SAFETY: it is a type.
    let allocate = unsafe { (*object).tp_alloc }?;
    // SAFETY: `tp_alloc` of that very type, for one without variable parts.
    let made = unsafe { allocate(object, 0) };
    // SAFETY: a new reference, or null with an exception.
    let record = unsafe { Bound::from_owned_ptr_or_err(py, made) }.ok()?;
    // SAFETY: it is an object; untracking one that is not tracked does nothing.
    if unsafe { ffi::PyObject_IS_GC(made) } != 0 {
        // Its values can't be part of a cycle: msgspec tracks no such instance either.
        // SAFETY: an object with a garbage collector's head.
        unsafe { ffi::PyObject_GC_UnTrack(made.cast()) };
    }
    Some(record)
}

/// Puts a value into an empty slot.
#[inline]
fn fill(record: &Bound<'_, PyAny>, offset: usize, value: Bound<'_, PyAny>) {
    // SAFETY: the offset is that of a slot in instances of this type (`offset_of`).
    let slot = unsafe { record.as_ptr().byte_add(offset) };
    // SAFETY: the slot is ours: no other code has seen the instance, and it holds null.
    unsafe { slot.cast::<*mut ffi::PyObject>().write(value.into_ptr()) };
}

/// What a field had lately.
struct Recent<'m, 'py>(Vec<Column<'m, 'py>>);

/// Of one field: type and bytes of a value in its message, and the object made of it. The type is part of
/// the key, because a field of several types may have a text and a float of the same eight bytes.
type Column<'m, 'py> = [Option<(u8, &'m [u8], Bound<'py, PyAny>)>; RECENT];

/// Values remembered of each field: a power of two.
const RECENT: usize = 8;
/// Longer texts are not looked up.
const RECENT_BYTES_MAX: usize = 64;

impl<'m, 'py> Recent<'m, 'py> {
    fn new(fields: usize) -> Self {
        Self((0..fields).map(|_| Column::default()).collect())
    }

    #[inline]
    fn of(&mut self, field: usize) -> &mut Column<'m, 'py> {
        &mut self.0[field]
    }
}

/// The object of the type `kind` for `bytes`, made by `make` if none is remembered.
#[inline]
fn remembered<'m, 'py>(
    column: &mut Column<'m, 'py>,
    kind: u8,
    bytes: &'m [u8],
    make: impl FnOnce() -> Option<Bound<'py, PyAny>>,
) -> Option<Bound<'py, PyAny>> {
    if bytes.len() > RECENT_BYTES_MAX {
        return make();
    }
    let first = bytes.first().copied().unwrap_or(0);
    let last = bytes.last().copied().unwrap_or(0);
    let place = (bytes.len() ^ usize::from(first) ^ usize::from(last) << 1) % RECENT;
    if let Some((known_kind, known, object)) = &column[place]
        && *known_kind == kind
        && *known == bytes
    {
        return Some(object.clone());
    }
    let object = make()?;
    column[place] = Some((kind, bytes, object.clone()));
    Some(object)
}

/// What is left of a message.
struct Input<'m>(&'m [u8]);

impl<'m> Input<'m> {
    #[inline]
    fn take(&mut self, count: usize) -> Option<&'m [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    #[inline]
    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    /// A number of `N` bytes, the highest first.
    #[inline]
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    #[inline]
    fn map_length(&mut self) -> Option<usize> {
        match self.byte()? {
            byte @ 0x80..=0x8f => Some(usize::from(byte & 15)),
            0xde => Some(usize::from(u16::from_be_bytes(self.array()?))),
            _ => None,
        }
    }

    /// Takes `key`, if that comes.
    #[inline]
    fn take_key(&mut self, key: &[u8]) -> bool {
        let Some((&head, rest)) = self.0.split_first() else {
            return false;
        };
        if head & 0xe0 != 0xa0 || usize::from(head & 31) != key.len() {
            return false;
        }
        match rest.strip_prefix(key) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    /// A value of one of the types `allowed`.
    #[inline]
    fn value<'py>(
        &mut self,
        py: Python<'py>,
        allowed: u8,
        column: &mut Column<'m, 'py>,
    ) -> Option<Bound<'py, PyAny>> {
        let head = self.byte()?;
        let is = |kind: u8| (allowed & kind != 0).then_some(());
        match head {
            0x00..=0x7f => is(INT).and_then(|()| signed(py, i64::from(head))),
            0xe0..=0xff => is(INT).and_then(|()| signed(py, i64::from(head.cast_signed()))),
            0xa0..=0xbf => is(STR).and_then(|()| self.text(py, usize::from(head & 31), column)),
            0xd9 => {
                let size = self.byte()?;
                is(STR).and_then(|()| self.text(py, size.into(), column))
            }
            0xda => {
                let size = u16::from_be_bytes(self.array()?);
                is(STR).and_then(|()| self.text(py, size.into(), column))
            }
            0xdb => {
                let size = u32::from_be_bytes(self.array()?);
                is(STR).and_then(|()| self.text(py, size as usize, column))
            }
            0xcb => {
                is(FLOAT)?;
                let bytes = self.take(8)?;
                remembered(column, FLOAT, bytes, || {
                    let value = f64::from_be_bytes(bytes.try_into().ok()?);
                    value.into_pyobject(py).ok().map(Bound::into_any)
                })
            }
            0xcc => is(INT).and(self.byte()).and_then(|n| signed(py, n.into())),
            0xcd => signed(
                py,
                is(INT).and(self.array()).map(u16::from_be_bytes)?.into(),
            ),
            0xce => signed(
                py,
                is(INT).and(self.array()).map(u32::from_be_bytes)?.into(),
            ),
            0xcf => {
                let number = is(INT).and(self.array()).map(u64::from_be_bytes)?;
                number.into_pyobject(py).ok().map(Bound::into_any)
            }
            0xd0 => signed(py, is(INT).and(self.array()).map(i8::from_be_bytes)?.into()),
            0xd1 => signed(
                py,
                is(INT).and(self.array()).map(i16::from_be_bytes)?.into(),
            ),
            0xd2 => signed(
                py,
                is(INT).and(self.array()).map(i32::from_be_bytes)?.into(),
            ),
            0xd3 => signed(py, is(INT).and(self.array()).map(i64::from_be_bytes)?),
            0xc0 => is(NONE).map(|()| py.None().into_bound(py)),
            0xc2 => is(BOOL)
                .map(|()| false.into_pyobject(py).ok())?
                .map(|b| b.to_owned().into_any()),
            0xc3 => is(BOOL)
                .map(|()| true.into_pyobject(py).ok())?
                .map(|b| b.to_owned().into_any()),
            0xc4 => {
                let size = self.byte()?;
                is(BYTES).and_then(|()| self.bytes(py, size.into()))
            }
            0xc5 => {
                let size = u16::from_be_bytes(self.array()?);
                is(BYTES).and_then(|()| self.bytes(py, size.into()))
            }
            0xc6 => {
                let size = u32::from_be_bytes(self.array()?);
                is(BYTES).and_then(|()| self.bytes(py, size as usize))
            }
            _ => None,
        }
    }

    #[inline]
    fn text<'py>(
        &mut self,
        py: Python<'py>,
        size: usize,
        column: &mut Column<'m, 'py>,
    ) -> Option<Bound<'py, PyAny>> {
        let bytes = self.take(size)?;
        remembered(column, STR, bytes, || {
            let text = std::str::from_utf8(bytes).ok()?;
            text.into_pyobject(py).ok().map(Bound::into_any)
        })
    }

    fn bytes<'py>(&mut self, py: Python<'py>, size: usize) -> Option<Bound<'py, PyAny>> {
        Some(PyBytes::new(py, self.take(size)?).into_any())
    }
}

#[inline]
fn signed(py: Python<'_>, number: i64) -> Option<Bound<'_, PyAny>> {
    number.into_pyobject(py).ok().map(Bound::into_any)
}
