//! One open exchange: a request without a complete response, a WebSocket or a procedure call.
//!
//! An exchange is entered in a [`Role`], by whose type events reach its gateway; an event for another role finds nothing.
//! The one transition is [`Exchange::change_role`]. The table of exchanges is in `reactor_handle.rs`.
//! Tests: `tests/server/`.

use std::any::Any;

use pyo3::intern;
use pyo3::prelude::*;

use crate::logging::{Names, Subject};

/// What a gateway keeps of an open exchange.
pub trait Role: Any + Send {
    /// Its client has gone, or has broken the rules of its protocol. Returns whether the task is to be cancelled.
    fn on_disconnect(self: Box<Self>, py: Python<'_>) -> bool;

    /// No more of the body comes, while the response, which has begun, goes on: what tells the application so. `None`: its
    /// response cannot be completed without the body.
    fn refuse_body(&self, _py: Python<'_>) -> Option<Tell> {
        None
    }

    /// It is worked on to its end although its connection has gone.
    fn outlives_connection(&self) -> bool {
        false
    }

    /// What finds out what the log says of it, which may run Python code.
    fn subject(&self, _py: Python<'_>, _names: Names<'_>) -> Option<LazySubject> {
        None
    }
}

/// To be called when no lock is held.
pub type LazySubject = Box<dyn FnOnce(Python<'_>) -> Subject>;

/// Likewise.
pub type Tell = Box<dyn FnOnce(Python<'_>)>;

/// A request whose response was not complete at once.
pub struct Exchange {
    pub(crate) stream: u32,
    /// The handler's task, if it has suspended.
    pub(crate) task: Option<Py<PyAny>>,
    /// What its gateway keeps of it.
    pub role: Box<dyn Role>,
}

impl Exchange {
    /// Its role, if it is of this type.
    pub fn role<R: Role>(&self) -> Option<&R> {
        (&*self.role as &dyn Any).downcast_ref()
    }

    /// Its role to be changed, if it is of this type.
    pub fn role_mut<R: Role>(&mut self) -> Option<&mut R> {
        (&mut *self.role as &mut dyn Any).downcast_mut()
    }

    /// What finds out what the log says of it, if its role knows that.
    pub fn subject(&self, py: Python<'_>, names: Names<'_>) -> Option<LazySubject> {
        self.role.subject(py, names)
    }

    /// Makes one role of another. Returns the one before, to be dropped outside of the lock; `Err` gives `role` back if
    /// the exchange is not in the role `From`.
    pub fn change_role<From: Role>(
        &mut self,
        role: Box<dyn Role>,
    ) -> Result<Box<dyn Role>, Box<dyn Role>> {
        if self.role::<From>().is_none() {
            return Err(role);
        }
        Ok(std::mem::replace(&mut self.role, role))
    }

    /// Ends what belongs to it, its client having gone; cancels its task if its role says so.
    pub fn disconnect(self, py: Python<'_>) {
        if self.role.on_disconnect(py) {
            cancel(py, self.task);
        }
    }

    /// Ends what belongs to it when its connection has gone.
    pub fn lose_connection(self, py: Python<'_>) {
        if !self.role.outlives_connection() {
            self.disconnect(py);
        }
    }

    /// Cancels its task.
    pub fn cancel(self, py: Python<'_>) {
        cancel(py, self.task);
    }
}

/// Cancels a task that has not ended.
fn cancel(py: Python<'_>, task: Option<Py<PyAny>>) {
    if let Some(task) = task
        && let Err(error) = task.bind(py).call_method0(intern!(py, "cancel"))
    {
        error.write_unraisable(py, Some(task.bind(py)));
    }
}
