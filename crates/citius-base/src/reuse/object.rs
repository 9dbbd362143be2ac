//! What the memory of an object says: its references, its weak references, its version, its fields.
//!
//! In: an object. Out: counts and words, which [`super`] compares with those of a fresh object. Nothing is changed here.
//! Tests: `tests/{asgi,eager}/test_isolation.py`, `tests/wsgi/test_repeats.py`.

use std::ffi::c_void;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// How many references there are to an object; `None` if this thread cannot know.
///
/// Without a GIL an object has two counts: of the thread that has made it, and of all others. While this thread reads both, the
/// first changes only if another thread owns it, and a reference that moves from one count to the other meanwhile could be
/// missed. So the object has to be this thread's, or have one count only, as when its owner has given up its last reference.
#[inline]
#[cfg_attr(
    not(Py_GIL_DISABLED),
    expect(
        clippy::unnecessary_wraps,
        reason = "without a GIL it may not be known"
    )
)]
pub(super) fn references<T>(_py: Python<'_>, object: &Py<T>) -> Option<ffi::Py_ssize_t> {
    #[cfg(Py_GIL_DISABLED)]
    if !is_counted_here(object) {
        return None;
    }
    // SAFETY: `object` is a live reference, and the thread is attached, as `_py` says.
    let count = unsafe { ffi::Py_REFCNT(object.as_ptr()) };
    // What another thread has done to the object before it gave up its reference is to be seen.
    #[cfg(Py_GIL_DISABLED)]
    std::sync::atomic::fence(Ordering::Acquire);
    Some(count)
}

/// Whether this thread owns an object, or none does.
#[cfg(Py_GIL_DISABLED)]
#[inline]
fn is_counted_here<T>(object: &Py<T>) -> bool {
    // SAFETY: the header of a live object.
    let owner = unsafe { &raw mut (*object.as_ptr()).ob_tid };
    // SAFETY: it is aligned, and written whole: by its owner, which sets it to zero.
    let owner = unsafe { AtomicUsize::from_ptr(owner) }.load(Ordering::Relaxed);
    owner == 0 || Some(owner) == thread_id()
}

/// The number by which the interpreter knows this thread as the owner of objects (`_Py_ThreadId` of `object.h`); `None` on
/// platforms for which it is not known here, where objects serve one request only.
#[cfg(Py_GIL_DISABLED)]
#[inline]
fn thread_id() -> Option<usize> {
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    {
        let id: usize;
        // SAFETY: the first word of the block of thread-local storage, which holds its own address.
        unsafe {
            std::arch::asm!("mov {}, fs:0", out(reg) id, options(nostack, readonly, pure, preserves_flags));
        }
        Some(id)
    }
    #[cfg(all(target_os = "linux", target_arch = "aarch64"))]
    {
        let id: usize;
        // SAFETY: reads the register that holds the address of thread-local storage.
        unsafe {
            std::arch::asm!("mrs {}, tpidr_el0", out(reg) id, options(nostack, nomem, pure, preserves_flags));
        }
        Some(id)
    }
    #[cfg(not(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    )))]
    None
}

/// Whether each weak reference that is added from now on becomes the first one.
///
/// The interpreter puts them in front, but those with a callback behind a plain `weakref.ref` or proxy.
fn shows_new_weak_references<T>(py: Python<'_>, object: &Py<T>) -> bool {
    let first = weak_references(py, object);
    if first.is_null() {
        return true;
    }
    // Without a GIL it may be going just now.
    if cfg!(Py_GIL_DISABLED) {
        return false;
    }
    // SAFETY: what is in the list is alive, and the GIL is held, so that it stays so.
    let first = unsafe { Bound::from_borrowed_ptr(py, first.cast()) };
    let callback = first.getattr(intern!(py, "__callback__"));
    callback.is_ok_and(|callback| !callback.is_none())
}

/// Whether there are weak references to an object.
#[inline]
pub(super) fn has_weak_references<T>(py: Python<'_>, object: &Py<T>) -> bool {
    !weak_references(py, object).is_null()
}

/// The list of the weak references to an object; null if there are none, or none are possible.
#[inline]
fn weak_references<T>(_py: Python<'_>, object: &Py<T>) -> *mut c_void {
    let object = object.as_ptr();
    // SAFETY: a live object has a type.
    let kind = unsafe { ffi::Py_TYPE(object) };
    // SAFETY: and that lives as long.
    let offset = unsafe { (*kind).tp_weaklistoffset };
    if offset == 0 {
        return ptr::null_mut();
    }
    // SAFETY: that is within every object of this type, or just before it where the interpreter manages them (3.13).
    let list = unsafe { object.byte_offset(offset) };
    // SAFETY: the pointer to the first weak reference lies there, as long as the object lives.
    let list = unsafe { AtomicPtr::from_ptr(list.cast::<*mut c_void>()) };
    list.load(Ordering::Relaxed)
}

/// The number that every change of the contents of `dict` makes another, and that no other content of any dict has had
/// (PEP 509); `None` where Python counts no longer, or several threads may at once.
#[allow(
    deprecated,
    clippy::unnecessary_wraps,
    reason = "it is there until Python 3.13; where it has gone nothing is lent"
)]
#[inline]
pub fn version(dict: &Bound<'_, PyDict>) -> Option<u64> {
    #[cfg(not(any(Py_3_14, Py_GIL_DISABLED)))]
    {
        let dict = dict.as_ptr().cast::<ffi::PyDictObject>();
        // SAFETY: a dict is a `PyDictObject`, and the GIL is held, so that it does not change meanwhile.
        Some(unsafe { (*dict).ma_version_tag })
    }
    #[cfg(any(Py_3_14, Py_GIL_DISABLED))]
    {
        let _ = dict;
        None
    }
}

/// Hides a dictionary from `gc.get_objects()` and `gc.get_referrers()`. `false` where its copies would be hidden too, so that
/// cycles which they are part of would never be collected.
#[inline]
pub(super) fn hide(dict: &Bound<'_, PyDict>) -> bool {
    #[cfg(Py_3_14)]
    {
        // SAFETY: a live dictionary, which the interpreter may have or not have among the tracked ones.
        unsafe { ffi::PyObject_GC_UnTrack(dict.as_ptr().cast()) };
        true
    }
    #[cfg(not(Py_3_14))]
    {
        let _ = dict;
        false
    }
}

/// What the memory of an object held: its type, each of its fields, its dictionary and the first of its weak references.
///
/// Whatever is done to an object of a C type that has no containers of its own shows there, by whichever way.
pub struct Memory {
    words: Box<[usize]>,
    /// Where they lie: before the object, in it, behind the links in it.
    parts: [Part; 3],
}

/// Words in a row, the first one counted from the object's address.
#[derive(Clone, Copy, Default)]
struct Part {
    first: isize,
    length: usize,
}

/// The type is what the header of every object ends with.
const TYPE_AT: usize = size_of::<ffi::PyObject>() / size_of::<usize>() - 1;

/// Types whose objects have their attributes behind their fields (`Py_TPFLAGS_INLINE_VALUES`).
const INLINE_VALUES: std::ffi::c_ulong = 1 << 2;
/// Types whose dictionaries and weak references the interpreter keeps before the object
/// (`Py_TPFLAGS_MANAGED_DICT`, `Py_TPFLAGS_MANAGED_WEAKREF`).
const MANAGED: std::ffi::c_ulong = 1 << 3 | 1 << 4;

impl Memory {
    /// `None` if a change may not show.
    pub(crate) fn of(py: Python<'_>, object: &Py<PyAny>) -> Option<Self> {
        let flags = type_flags(py, object);
        // In Python 3.12 they are there wherever the interpreter manages the dictionary.
        let hides_values = flags & INLINE_VALUES != 0 && python(py) >= (3, 15)
            || flags & MANAGED != 0 && python(py) < (3, 13);
        if hides_values || !shows_new_weak_references(py, object) {
            return None;
        }
        let parts = parts(py, object);
        Some(Self {
            words: held(object, &parts),
            parts,
        })
    }

    /// Leaves out the links of a list, for other objects of the type come and go.
    pub(crate) fn except(mut self, object: &Py<PyAny>, links: Links) -> Self {
        let [before, fields, _] = self.parts;
        let Links(at) = links;
        let first = Part {
            length: at,
            ..fields
        };
        let rest = Part {
            first: fields.first + at.cast_signed() + 2,
            length: fields.length - at - 2,
        };
        self.parts = [before, first, rest];
        self.words = held(object, &self.parts);
        self
    }

    /// Whether the memory is as it was.
    #[inline]
    pub(crate) fn is_same(&self, _py: Python<'_>, object: &Py<PyAny>) -> bool {
        // Without a GIL, others may be writing just now.
        if cfg!(Py_GIL_DISABLED) {
            let mut pairs = self.words.iter().zip(words(object, &self.parts));
            return pairs.all(|(held, word)| *held == load(word));
        }
        let address = object.as_ptr().cast::<usize>();
        let mut held = &*self.words;
        let mut differences = 0;
        for part in self.parts {
            let own;
            (own, held) = held.split_at(part.length);
            // SAFETY: the part lies within the allocation of the object, which the reference keeps alive.
            let words = unsafe { address.offset(part.first) };
            // SAFETY: all of it does, and nothing writes to it while the GIL is held here.
            let words = unsafe { std::slice::from_raw_parts(words, part.length) };
            // All of them, without a branch: the compiler takes several at a time, and there is no call of memcmp.
            for (word, held) in words.iter().zip(own) {
                differences |= word ^ held;
            }
        }
        differences == 0
    }

    /// Whether nothing has happened but that empty fields refer to `other` now; that is remembered.
    pub(crate) fn has_become<T>(
        &mut self,
        _py: Python<'_>,
        object: &Py<PyAny>,
        other: &Py<T>,
    ) -> bool {
        let other = other.as_ptr().addr();
        self.words
            .iter_mut()
            .zip(words(object, &self.parts))
            .all(|(held, word)| {
                let word = load(word);
                let is_expected = *held == word || *held == 0 && word == other;
                *held = word;
                is_expected
            })
    }
}

/// The version of the interpreter, which keeps it as a text.
#[inline]
fn python(py: Python<'_>) -> (u8, u8) {
    static FOUND: OnceLock<(u8, u8)> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let version = py.version_info();
        (version.major, version.minor)
    })
}

/// Where objects of a type refer to the next one and the one before, all of them being one list. By the place of the
/// first of the two words, counted from the type on. asyncio's tasks are such a list from Python 3.14 on.
#[derive(Clone, Copy)]
pub struct Links(usize);

impl Links {
    /// Those of two objects of one type, if `second` was made next: each holds the address of the other's.
    pub(crate) fn between(py: Python<'_>, first: &Py<PyAny>, second: &Py<PyAny>) -> Option<Self> {
        let [_, fields, _] = parts(py, first);
        let of = |object| words(object, &[fields]).map(load).collect::<Vec<_>>();
        let (own, others) = (of(first), of(second));
        let address = |object: &Py<PyAny>, at: usize| {
            object.as_ptr().addr() + (TYPE_AT + at) * size_of::<usize>()
        };
        (0..fields.length - 1)
            .find(|&at| own[at] == address(second, at) && others[at + 1] == address(first, at))
            .map(Self)
    }
}

/// One field of the objects of a type, by its place in their memory.
#[derive(Clone, Copy)]
pub struct Field(usize);

impl Field {
    /// The only field in which the memory of an object differs from what it was in `before`; `None` if there are
    /// several, or it lies where the interpreter keeps it.
    pub(crate) fn changed(before: &Memory, object: &Py<PyAny>) -> Option<Self> {
        let pairs = before.words.iter().zip(words(object, &before.parts));
        let mut changed = pairs
            .enumerate()
            .filter(|(_, (held, word))| **held != load(word));
        let (at, _) = changed.next()?;
        let is_only = changed.next().is_none() && before.parts[0].length == 0;
        is_only.then_some(Self(TYPE_AT + at))
    }

    /// What the field holds in `object`, which is of that type.
    #[inline]
    pub(crate) fn of(self, _py: Python<'_>, object: &Py<PyAny>) -> usize {
        // SAFETY: the field lies within the memory of every object of the type.
        let word = unsafe { object.as_ptr().cast::<usize>().add(self.0) };
        // SAFETY: it is aligned, and lives as long as the object; it is written whole.
        load(unsafe { AtomicUsize::from_ptr(word) })
    }
}

/// Where the words of an object's memory lie from its type on, and those that the interpreter keeps before and behind it.
fn parts(py: Python<'_>, object: &Py<PyAny>) -> [Part; 3] {
    let flags = type_flags(py, object);
    // Between them and the object is the collector's header, but in an interpreter without a GIL.
    let before = Part {
        first: if cfg!(Py_GIL_DISABLED) { -2 } else { -4 },
        length: if flags & MANAGED != 0 { 2 } else { 0 },
    };
    // SAFETY: a live object's type lives as long.
    let size = unsafe { (*type_of(py, object)).tp_basicsize };
    let mut length = size.cast_unsigned() / size_of::<usize>() - TYPE_AT;
    if flags & INLINE_VALUES != 0 {
        // SAFETY: attributes lie behind the fields: four bytes, of which the first says how many there can be (Python
        // 3.13 and 3.14, `struct _dictvalues`), and in the words that follow their values.
        let values = unsafe { object.as_ptr().cast::<u8>().offset(size) };
        // SAFETY: the byte was written when the object was made.
        let capacity = unsafe { values.read() };
        length += 1 + usize::from(capacity);
    }
    let fields = Part {
        first: TYPE_AT.cast_signed(),
        length,
    };
    [before, fields, Part::default()]
}

/// The words in parts of an object.
#[inline]
fn words<'a>(
    object: &'a Py<PyAny>,
    parts: &'a [Part],
) -> impl Iterator<Item = &'a AtomicUsize> + use<'a> {
    let address = object.as_ptr().cast::<usize>();
    let places = parts
        .iter()
        .flat_map(|part| part.first..part.first + part.length.cast_signed());
    places.map(move |at| {
        // SAFETY: this lies within the allocation of the object, which the borrow keeps alive.
        let word = unsafe { address.offset(at) };
        // SAFETY: and is aligned as that is; who writes to it has the GIL, or writes it whole.
        unsafe { AtomicUsize::from_ptr(word) }
    })
}

/// What they hold, in memory of the right size.
fn held(object: &Py<PyAny>, parts: &[Part]) -> Box<[usize]> {
    let mut held = Vec::with_capacity(parts.iter().map(|part| part.length).sum());
    held.extend(words(object, parts).map(load));
    held.into_boxed_slice()
}

fn load(word: &AtomicUsize) -> usize {
    word.load(Ordering::Relaxed)
}

fn type_of(_py: Python<'_>, object: &Py<PyAny>) -> *mut ffi::PyTypeObject {
    // SAFETY: a live object has a type.
    unsafe { ffi::Py_TYPE(object.as_ptr()) }
}

fn type_flags(py: Python<'_>, object: &Py<PyAny>) -> std::ffi::c_ulong {
    // SAFETY: a live object's type lives as long.
    unsafe { ffi::PyType_GetFlags(type_of(py, object)) }
}
