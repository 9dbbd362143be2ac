//! The list of the calls that are made when a turn ends: filled by Python code and `held_calls.rs`, taken by `deferred.rs`.
//!
//! Tests: `tests/server/test_background.py`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use citius_http::FAST_PATHS;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::context::BaseContext;
use crate::sync::lock;

/// What the turn that runs has deferred.
pub struct Deferrals {
    /// The context that a call must have been deferred in: that of the spare task it runs in.
    pub base: Arc<BaseContext>,
    /// A turn runs, which will look at `calls` when it ends.
    is_open: AtomicBool,
    has_calls: AtomicBool,
    /// The deferred calls of an application, and the list of those of this turn.
    calls: Mutex<Option<Calls>>,
}

/// The calls of a turn.
pub struct Calls {
    /// The application that has deferred them.
    pub of: Py<PyAny>,
    /// Each a function with its arguments.
    pub list: Py<PyList>,
}

impl Deferrals {
    /// They are called in `base`.
    pub fn new(base: Arc<BaseContext>) -> Self {
        Self {
            base,
            is_open: AtomicBool::new(false),
            has_calls: AtomicBool::new(false),
            calls: Mutex::default(),
        }
    }

    /// A turn begins.
    #[inline]
    pub fn open(&self) {
        self.is_open.store(true, Ordering::Relaxed);
    }

    /// The list of the calls that `of` makes when this turn ends; `None` if no turn runs, or the context that is
    /// entered is another than requests begin with. To be called in the thread of the reactor.
    pub fn list_for<'py>(
        &self,
        py: Python<'py>,
        of: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        if !FAST_PATHS || !self.is_open.load(Ordering::Relaxed) || !self.base.is_entered(py)? {
            return Ok(None);
        }
        Ok(self.list(py, of))
    }

    /// The same for calls that were deferred in the context that requests begin with.
    pub fn list<'py>(&self, py: Python<'py>, of: &Bound<'py, PyAny>) -> Option<Bound<'py, PyList>> {
        if !FAST_PATHS || !self.is_open.load(Ordering::Relaxed) {
            return None;
        }
        if self.has_calls.load(Ordering::Relaxed) {
            let calls = lock(&self.calls);
            let known = calls.as_ref().filter(|known| known.of.is(of));
            return known.map(|known| known.list.bind(py).clone());
        }
        let list = PyList::empty(py);
        let calls = Calls {
            of: of.clone().unbind(),
            list: list.clone().unbind(),
        };
        let replaced = lock(&self.calls).replace(calls);
        drop(replaced);
        self.has_calls.store(true, Ordering::Relaxed);
        Some(list)
    }

    /// The turn is over: what is deferred from now on is not its own.
    #[inline]
    pub fn close(&self) -> Option<Calls> {
        self.is_open.store(false, Ordering::Relaxed);
        if !self.has_calls.load(Ordering::Relaxed) {
            return None;
        }
        self.has_calls.store(false, Ordering::Relaxed);
        lock(&self.calls).take()
    }
}
