//! Reuse of Python objects by the next request, and its condition (I18).
//!
//! In: objects that a request has had. Out: the same ones for the next request, if they are like fresh ones: every reference to
//! them is one of the server's ([`Known`]), no weak one was added, and nothing has changed them ([`Reuse::is_fresh`]). [`Spare`] asks
//! when it hands them out, because code may have found them since the request that had them (`gc.get_objects()`).
//!
//! Another thread can drop references but cannot create one: creating a reference requires holding one, and we hold the only
//! one. A stale count is therefore too high at worst, and the object is then not reused. Without a GIL this holds only in the
//! thread that made the object, because the references of that thread and of all others are two counts; in others no object
//! is fresh (`object.rs`). Readers that take no lock (`dict.get` in another thread) may raise the count of an object that
//! they have seen before it left its container; they find that out and give the reference back without a look at the object.
//! `gc.get_objects()` and `asyncio.all_tasks(loop)` stop all threads, which happens only where Python code could run too.
//!
//! `docs/internals/reuse.md` has the invariant and the test of each constant of [`Known`] (`tests/tidy/test_reuse.py`).

use citius_http::FAST_PATHS;
use pyo3::ffi::Py_ssize_t;
use pyo3::prelude::*;
use pyo3::types::PyDict;

mod object;

pub use self::object::{Field, Links, Memory, version};
use self::object::{has_weak_references, hide, references};

/// Objects that the next request may reuse.
pub trait Reuse {
    /// Whether they are as fresh ones are. `lent` references to them are the caller's, besides those that are [`Known`].
    fn is_fresh(&mut self, py: Python<'_>, lent: Py_ssize_t) -> bool;
}

/// What the next request gets, if it is fresh then; without [`FAST_PATHS`] it never is.
pub struct Spare<T>(Option<T>);

impl<T> Default for Spare<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> From<Option<T>> for Spare<T> {
    #[inline]
    fn from(object: Option<T>) -> Self {
        Self(object)
    }
}

impl<T: Reuse> Spare<T> {
    /// One that is there from the start.
    pub fn new(object: T) -> Self {
        Self(Some(object))
    }

    /// Hands it out, if it is fresh. Dropping it otherwise may run Python code.
    #[inline]
    pub fn take(&mut self, py: Python<'_>) -> Option<T> {
        let mut object = self.0.take()?;
        (FAST_PATHS && object.is_fresh(py, 0)).then_some(object)
    }

    /// Whether a request may have it that stays here meanwhile: `lent` references to it are the caller's.
    #[inline]
    pub fn is_fresh(&mut self, py: Python<'_>, lent: Py_ssize_t) -> bool {
        let is_fresh = |object: &mut T| FAST_PATHS && object.is_fresh(py, lent);
        self.0.as_mut().is_some_and(is_fresh)
    }

    /// Keeps `object` for the next request, in the place of another one.
    #[inline]
    pub fn put(&mut self, object: T) -> &mut T {
        self.0.insert(object)
    }
}

impl<T> Spare<T> {
    /// What a request has got from here or was kept for it: not to be handed to another one.
    #[inline]
    pub fn lent(&self) -> Option<&T> {
        self.0.as_ref()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The end of its service: it is the caller's.
    #[inline]
    pub(crate) fn retire(&mut self) -> Option<T> {
        self.0.take()
    }
}

/// A dictionary that is fresh while its contents are those that it was kept with.
pub struct SpareDict {
    /// The dictionary.
    pub dict: Py<PyDict>,
    known: Known,
    /// `None`: no code can find it to change it.
    version: Option<u64>,
}

impl SpareDict {
    /// One that a request has. `None` where dictionaries have no versions: no change would show.
    #[inline]
    pub fn lent(dict: &Bound<'_, PyDict>, known: Known) -> Option<Self> {
        let version = version(dict)?;
        Some(Self::with_version(dict, known, Some(version)))
    }

    /// One of which requests get copies. `None` where it can be found and changed unseen.
    #[inline]
    pub fn template(dict: &Bound<'_, PyDict>, known: Known) -> Option<Self> {
        let version = version(dict);
        let is_safe = version.is_some() || hide(dict);
        is_safe.then(|| Self::with_version(dict, known, version))
    }

    #[inline]
    fn with_version(dict: &Bound<'_, PyDict>, known: Known, version: Option<u64>) -> Self {
        let dict = dict.clone().unbind();
        Self {
            dict,
            known,
            version,
        }
    }
}

impl Reuse for SpareDict {
    #[inline]
    fn is_fresh(&mut self, py: Python<'_>, lent: Py_ssize_t) -> bool {
        self.known.are_all(py, &self.dict, lent) && version(self.dict.bind(py)) == self.version
    }
}

/// How many references to an object the server itself has, while no request has the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known(Py_ssize_t);

impl Known {
    /// The scope's own: that of its [`Spare`].
    pub const ASGI_SCOPE: Self = Self(1);
    /// The maker's. The scopes that it is in are lent.
    pub const ASGI_STATE: Self = Self(1);
    /// The maker's.
    pub const ASGI_HEADERS: Self = Self(1);
    /// The maker's, of `scope["asgi"]` and `scope["extensions"]`.
    pub const ASGI_DICT: Self = Self(1);
    /// Of a container in one of those: its dictionary's, and the one by which it is looked at.
    pub const ASGI_INNER: Self = Self(2);
    /// That of the callables.
    pub const ASGI_RECEIVE: Self = Self(1);
    /// That of the callables.
    pub const ASGI_SEND: Self = Self(1);
    /// That of the callables, and those of `receive` and `send`, which are its methods.
    pub const ASGI_CYCLE: Self = Self(3);
    /// That of its [`Spare`], or of the call that has had it.
    pub const WSGI_ENVIRON: Self = Self(1);
    /// That of the callables.
    pub const WSGI_START_RESPONSE: Self = Self(1);
    /// That of the callables, and the method's that is `start_response`.
    pub const WSGI_START: Self = Self(2);
    /// That of the callables, and the one of what returns it.
    pub const WSGI_WRITE: Self = Self(2);
    /// That of the spare, and the wake-up's, of a task that waits for its driver.
    pub(crate) const TASK: Self = Self(2);
    /// That of the spare, and the task's.
    pub(crate) const TASK_CONTEXT: Self = Self(2);
    /// That of the spare, and the task's two: its coroutine, and what it waits for.
    pub(crate) const TASK_DRIVER: Self = Self(3);
    /// The driver's.
    pub(crate) const TASK_WAKEUP: Self = Self(1);
    /// That of [`Tasks`](crate::task::Tasks).
    pub(crate) const SHARED_CONTEXT: Self = Self(1);

    /// Those that an object has which was just made.
    pub(crate) fn counted<T>(py: Python<'_>, object: &Py<T>) -> Self {
        // One that cannot be counted is never found alone.
        Self(references(py, object).unwrap_or(Py_ssize_t::MIN / 2))
    }

    /// Whether there is no other reference to `object` than these and `lent`, and no weak one.
    #[inline]
    pub fn are_all<T>(self, py: Python<'_>, object: &Py<T>, lent: Py_ssize_t) -> bool {
        self.are_all_strong(py, object, lent) && !has_weak_references(py, object)
    }

    /// Whether there is no other than these and `lent`. Weak ones show elsewhere ([`Memory`]).
    #[inline]
    pub(crate) fn are_all_strong<T>(
        self,
        py: Python<'_>,
        object: &Py<T>,
        lent: Py_ssize_t,
    ) -> bool {
        references(py, object) == Some(self.0 + lent)
    }
}
