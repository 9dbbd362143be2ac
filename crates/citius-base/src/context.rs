//! Contexts of `contextvars`: entering and leaving them, and the one that every request starts with.
//!
//! Invariant (I18): a request starts in a context with the very values of the start-up hooks, however the one before it
//! changed its own. Tests: `tests/eager/test_isolation.py`.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use pyo3::ffi;
use pyo3::prelude::*;

use crate::reuse::{Field, Memory};
use crate::support::clear_exception;

/// A copy of the context of this thread.
pub fn copy_current_context(py: Python<'_>) -> PyResult<Py<PyAny>> {
    // SAFETY: the GIL is held.
    let context = unsafe { ffi::PyContext_CopyCurrent() };
    // SAFETY: it is a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, context) }.map(Bound::unbind)
}

pub(crate) fn enter_context(py: Python<'_>, context: &Py<PyAny>) -> PyResult<()> {
    // SAFETY: the GIL is held, and `context` is a context object.
    let failed = unsafe { ffi::PyContext_Enter(context.as_ptr()) } != 0;
    if failed {
        Err(PyErr::fetch(py))
    } else {
        Ok(())
    }
}

/// Calls `call` in `context`, wherever the thread is.
pub fn in_context(py: Python<'_>, context: &Py<PyAny>, call: impl FnOnce()) {
    match enter_context(py, context) {
        Ok(()) => {
            let outcome = catch_unwind(AssertUnwindSafe(call));
            if outcome.is_err() {
                clear_exception(py);
            }
            exit_context(py, context);
            if let Err(panic) = outcome {
                resume_unwind(panic);
            }
        }
        Err(error) => error.write_unraisable(py, None),
    }
}

/// Undoes [`enter_context`]; whatever was entered in between has been left.
pub(crate) fn exit_context(py: Python<'_>, context: &Py<PyAny>) {
    // SAFETY: the GIL is held, and `context` is a context object that this thread has entered.
    if unsafe { ffi::PyContext_Exit(context.as_ptr()) } != 0 {
        PyErr::fetch(py).write_unraisable(py, None);
    }
}

/// A context as every request finds it.
pub struct BaseContext {
    pub(crate) context: Py<PyAny>,
    /// Its variables and their values, so that looking for changes makes no objects.
    pub(crate) values: Vec<(Py<PyAny>, Py<PyAny>)>,
    /// Where contexts keep their variables, all in one immutable object that a copy shares: while that is the same, so
    /// are they. `None` where the interpreter does it otherwise.
    pub(crate) variables: Option<Field>,
}

impl BaseContext {
    pub(crate) fn new(py: Python<'_>) -> PyResult<Self> {
        let context = copy_current_context(py)?;
        let mut values = Vec::new();
        for variable in context.bind(py).try_iter()? {
            let variable = variable?;
            let value = context.bind(py).get_item(&variable)?;
            values.push((variable.unbind(), value.unbind()));
        }
        let mut this = Self {
            context,
            values,
            variables: None,
        };
        this.variables = this.find_variables(py)?;
        Ok(this)
    }

    /// Sets a variable in a copy, and looks what that has changed.
    pub(crate) fn find_variables(&self, py: Python<'_>) -> PyResult<Option<Field>> {
        let probe = self.copy(py)?;
        let Some(before) = Memory::of(py, &probe) else {
            return Ok(None);
        };
        let variable = py
            .import("contextvars")?
            .call_method1("ContextVar", ("citius",))?;
        let set = variable.getattr("set")?;
        let token = probe.bind(py).call_method1("run", (set, py.None()))?;
        let field = Field::changed(&before, &probe);
        drop(token);
        let is_shared = |field: &Field| {
            let copy = self.copy(py);
            copy.is_ok_and(|copy| field.of(py, &copy) == field.of(py, &self.context))
        };
        Ok(field.filter(is_shared))
    }

    /// A context with the same values.
    pub fn copy(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        // SAFETY: the GIL is held, and `context` is a context object.
        let copy = unsafe { ffi::PyContext_Copy(self.context.as_ptr()) };
        // SAFETY: it is a new reference, or null with an exception set.
        unsafe { Bound::from_owned_ptr_or_err(py, copy) }.map(Bound::unbind)
    }

    /// Whether the context that the thread is in holds the very same values.
    pub fn is_entered(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.is_same(py, &copy_current_context(py)?))
    }

    /// Whether `context` holds the very same values still. Not `==`, to which 0 and False are one.
    #[inline]
    pub(crate) fn is_same(&self, py: Python<'_>, context: &Py<PyAny>) -> bool {
        if let Some(field) = self.variables
            && field.of(py, context) == field.of(py, &self.context)
        {
            return true;
        }
        self.is_equal(py, context)
    }

    /// Whether `context` holds the same values, whatever objects hold them.
    #[inline(never)]
    pub(crate) fn is_equal(&self, py: Python<'_>, context: &Py<PyAny>) -> bool {
        let context = context.bind(py);
        let holds = |(variable, value): &(Py<PyAny>, Py<PyAny>)| {
            context.get_item(variable).is_ok_and(|held| held.is(value))
        };
        context.len().is_ok_and(|n| n == self.values.len()) && self.values.iter().all(holds)
    }
}
