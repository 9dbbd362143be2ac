//! The values of channels, and the senders and receivers that wait for each other there.

use std::any::Any;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use citius_goroutine::{Goroutine, LocalHere, LocalHome};

use crate::interpreter::interpreter;
use crate::thread::Parker;
use crate::{Channel, Packed};

/// A reference to an object of the interpreter.
#[derive(Debug)]
#[repr(transparent)]
pub struct Object(NonNull<c_void>);

// SAFETY: references are counted by the interpreter, which permits it on any thread ([`Interpreter`](crate::Interpreter)).
unsafe impl Send for Object {}
// SAFETY: what is shared is an address, which only the interpreter follows.
unsafe impl Sync for Object {}

impl Object {
    /// Takes over a reference.
    ///
    /// # Safety
    /// It is a reference to an object of the installed interpreter, and the caller's own.
    #[inline]
    pub unsafe fn from_raw(object: NonNull<c_void>) -> Self {
        Self(object)
    }

    /// Gives the reference to the caller.
    #[inline]
    pub fn into_raw(self) -> NonNull<c_void> {
        let object = self.0;
        std::mem::forget(self);
        object
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        interpreter().release(self.0);
    }
}

/// What travels through a channel.
#[derive(Debug)]
pub enum Value {
    /// An object of the interpreter.
    Object(Object),
    /// Bytes.
    Packed(Packed),
}

impl Value {
    /// It was not sent, and stays the sender's.
    pub fn keep(self) {
        if let Self::Packed(mut packed) = self {
            packed.release();
        }
    }
}

/// A channel as `citius-chan` has it.
pub type RawChannel = citius_chan::Channel<Value, Waker>;
/// A wait at channels.
pub type Ticket = citius_chan::Ticket<Value, Waker>;
/// A goroutine that waits at channels of its thread.
pub type Resident = citius_chan::Resident<Value, Waker>;
/// One operation of a select.
pub type Case = citius_chan::Case<Channel, Value>;
/// What a wait has led to.
pub type Outcome = citius_chan::Outcome<Value>;

/// What waits by means of the interpreter: a task of an event loop, a greenlet.
pub trait ForeignWaker: Any + Send + Sync {
    /// Wakes it: the ticket, which has this waker, is complete.
    fn wake(&self, ticket: &Arc<Ticket>);
}

/// How the waiting goroutine, thread, or task is woken.
pub enum Waker {
    /// A goroutine.
    Goroutine(Goroutine),
    /// A thread.
    Thread(Parker),
    /// What the interpreter wakes.
    Foreign(Box<dyn ForeignWaker>),
}

impl Waker {
    /// The waker as the interpreter has made it.
    pub fn foreign<W: ForeignWaker>(&self) -> Option<&W> {
        match self {
            Self::Foreign(waker) => {
                let waker: &dyn Any = &**waker;
                waker.downcast_ref()
            }
            Self::Goroutine(_) | Self::Thread(_) => None,
        }
    }
}

impl citius_chan::Wake<Value> for Waker {
    type Home = LocalHome;
    type Here = LocalHere;

    #[inline]
    fn wake(ticket: Arc<Ticket>) {
        match ticket.waker() {
            Self::Goroutine(goroutine) => goroutine.unpark(),
            Self::Thread(parker) => parker.unpark(),
            Self::Foreign(waker) => waker.wake(&ticket),
        }
    }

    fn unsent(value: Value) {
        value.keep();
    }

    fn home(here: &LocalHere) -> LocalHome {
        here.home()
    }

    fn wake_resident(home: &LocalHome, number: u64) {
        home.unpark(number);
    }

    #[inline]
    fn wake_here(here: &LocalHere, number: u64) {
        here.unpark(number);
    }
}
