//! The place of something that is taken out of its lock while it is worked with, because the work may run any Python code, on this
//! thread or while another one waits: what comes meanwhile waits here, and is done when it is back, in its order.

use std::collections::VecDeque;
use std::sync::Mutex;

use pyo3::PyClass;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;

use crate::sync::lock;

/// The place of a `T` that belongs to a `P`.
pub struct Place<T, P>(Mutex<Inner<T, P>>);

struct Inner<T, P> {
    /// `None` while it is worked with.
    value: Option<Box<T>>,
    /// What came meanwhile, in its order.
    late: VecDeque<Late<T, P>>,
    /// It is being done.
    is_at_late: bool,
}

/// Something to be done with the value, which it puts back.
pub(crate) type Late<T, P> = Box<dyn FnOnce(&Bound<'_, P>, Box<T>) + Send>;

impl<T, P> Inner<T, P> {
    /// Whether what comes now has to wait.
    fn is_busy(&self) -> bool {
        self.value.is_none() || !self.late.is_empty()
    }
}

impl<T, P: PyClass<Frozen = True> + Sync> Place<T, P> {
    /// The place where this is.
    pub fn new(value: T) -> Self {
        Self(Mutex::new(Inner {
            value: Some(Box::new(value)),
            late: VecDeque::new(),
            is_at_late: false,
        }))
    }

    /// The value, until it is [put](Self::put) back. While it is worked with, and while something waits for it, `later` waits
    /// behind that.
    #[inline]
    pub fn take(&self, later: impl FnOnce() -> Late<T, P>) -> Option<Box<T>> {
        let mut inner = lock(&self.0);
        if inner.is_busy() {
            inner.late.push_back(later());
            return None;
        }
        inner.value.take()
    }

    /// The value, if nothing has to be waited for and `is_fit`; otherwise nothing is done.
    pub fn take_if(&self, is_fit: impl FnOnce(&T) -> bool) -> Option<Box<T>> {
        let mut inner = lock(&self.0);
        if inner.is_busy() {
            return None;
        }
        inner.value.take_if(|value| is_fit(value))
    }

    /// Does something with the value that runs no Python code, or has what `later` makes of it wait.
    pub fn with<F: FnOnce(&mut T)>(&self, act: F, later: impl FnOnce(F) -> Late<T, P>) {
        let mut inner = lock(&self.0);
        if inner.is_busy() {
            inner.late.push_back(later(act));
        } else if let Some(value) = &mut inner.value {
            act(value);
        }
    }

    /// What is found out of the value; `None` while it is worked with.
    pub fn look<R>(&self, look: impl FnOnce(&mut T) -> R) -> Option<R> {
        lock(&self.0).value.as_mut().map(|value| look(value))
    }

    /// The work is done. Its caller calls [`do_late`](Self::do_late) when it has told what has come of it.
    #[inline]
    pub fn put(&self, value: Box<T>) {
        let before = lock(&self.0).value.replace(value);
        drop(before);
    }

    /// Does what came meanwhile, one after the other.
    #[inline]
    pub fn do_late(&self, owner: &Bound<'_, P>) {
        while let Some((late, value)) = self.next_late() {
            late(owner, value);
            lock(&self.0).is_at_late = false;
        }
    }

    fn next_late(&self) -> Option<(Late<T, P>, Box<T>)> {
        let mut inner = lock(&self.0);
        // Who works with the value now, or is at this already, does the rest.
        if inner.late.is_empty() || inner.is_at_late {
            return None;
        }
        let value = inner.value.take()?;
        let late = inner.late.pop_front()?;
        inner.is_at_late = true;
        Some((late, value))
    }
}
