//! Which process this is: the one that something was made in, or a child that was forked since.

use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict};

/// How many forks lie between the process in which the interpreter was started and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The process that something was made in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    /// This one.
    #[inline]
    pub fn current() -> Self {
        Self(FORKS.load(Ordering::Relaxed))
    }
}

/// Has `function` called in each child of a fork; systems without `os.register_at_fork` have no forks.
pub(crate) fn call_in_children(function: &Bound<'_, PyCFunction>) -> PyResult<()> {
    let py = function.py();
    if let Some(register) = py.import("os")?.getattr_opt("register_at_fork")? {
        let keywords = PyDict::new(py);
        keywords.set_item("after_in_child", function)?;
        register.call((), Some(&keywords))?;
    }
    Ok(())
}

/// In the child, before anything else of it runs.
#[cfg(unix)]
pub(crate) fn count() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}
