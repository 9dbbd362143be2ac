//! The event loop of a reactor's thread: there from the start, made when something first asks for it, or never there.
//!
//! Most services that are all `def` need none, and asyncio and uvloop cost a worker a quarter of its memory. Whatever asks for
//! the loop in Rust asks here; in Python it imports asyncio, and `serving/late_loop.py` hears of that.
//! Tests: `tests/hosts/test_late_loop.py`.

use std::cell::RefCell;
use std::sync::OnceLock;
use std::thread::ThreadId;

use pyo3::prelude::*;

/// Shared by everything of a reactor that runs coroutines.
pub struct HostLoop {
    made: OnceLock<Py<PyAny>>,
    /// Makes the loop, has it be the running one of this thread, and [sets](Self::set) it.
    make: Option<Py<PyAny>>,
    home: ThreadId,
}

impl HostLoop {
    /// `made` is there from the start; else `make` makes it, if there is to be one at all.
    pub fn new(made: Option<Py<PyAny>>, make: Option<Py<PyAny>>) -> Self {
        Self {
            made: made.map_or_else(OnceLock::new, OnceLock::from),
            make,
            home: std::thread::current().id(),
        }
    }

    /// The loop, if it is there.
    #[inline]
    pub fn get(&self) -> Option<&Py<PyAny>> {
        self.made.get()
    }

    /// The loop, made now if it is not there yet; `None` where there is none.
    #[inline]
    pub(crate) fn ask(&self, py: Python<'_>) -> PyResult<Option<&Py<PyAny>>> {
        if self.made.get().is_none() {
            self.make(py)?;
        }
        Ok(self.made.get())
    }

    /// The loop is there now.
    pub fn set(&self, event_loop: Py<PyAny>) {
        drop(self.made.set(event_loop));
    }

    #[cold]
    fn make(&self, py: Python<'_>) -> PyResult<()> {
        match &self.make {
            Some(make) if std::thread::current().id() == self.home => make.call0(py).map(drop),
            _ => Ok(()),
        }
    }

    /// While what is returned lives, [`ask_here`] asks this one.
    pub fn stand_by(&self, py: Python<'_>) -> StandBy {
        let make = self.make.as_ref().map(|make| make.clone_ref(py));
        StandBy(HERE.replace(make))
    }
}

thread_local! {
    /// What makes the loop of the reactor that runs on this thread.
    static HERE: RefCell<Option<Py<PyAny>>> = const { RefCell::new(None) };
}

/// While it lives, the loop of this thread can be asked for; then what could be asked before.
pub struct StandBy(Option<Py<PyAny>>);

impl Drop for StandBy {
    fn drop(&mut self) {
        drop(HERE.replace(self.0.take()));
    }
}

/// Makes the loop of this thread, if one is made when it is asked for; whether there is such a loop.
#[cold]
pub(crate) fn ask_here(py: Python<'_>) -> PyResult<bool> {
    let make = HERE.with_borrow(|make| make.as_ref().map(|make| make.clone_ref(py)));
    make.map_or(Ok(false), |make| make.call0(py).map(|_| true))
}
