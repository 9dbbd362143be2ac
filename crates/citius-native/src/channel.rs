//! Channels of native code and of the interpreter: references to them, their values, and the parties that wait at them.
//!
//! The interpreter's object and the `citius_chan` of native code refer to the same channel. A channel of objects is the
//! interpreter's. The values of every other channel are bytes, which compiled code sends and receives without the interpreter; how
//! it sees them is noted in [`Element`] and known there.

use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

use citius_abi::DropFunction;
use citius_goroutine::{Goroutine, LocalHere, LocalHome};

use crate::Packed;
use crate::interpreter::interpreter;
use crate::thread::{self, Parker};

/// A reference to a channel.
#[derive(Clone)]
pub struct Channel(Arc<TypedChannel>);

/// What the references to a channel share.
pub struct TypedChannel {
    raw: RawChannel,
    element: Element,
    /// The process it was made in.
    generation: u32,
}

impl Channel {
    /// A channel with so many places.
    pub fn new(capacity: usize, element: Element) -> Self {
        // The interpreter's collector visits objects, on any thread; goroutines of one thread pass each other values of native code.
        let raw = match element {
            Element::Fixed { .. } => RawChannel::confinable(capacity),
            Element::Bytes | Element::Array(_) | Element::Object => RawChannel::new(capacity),
        };
        Self(Arc::new(TypedChannel {
            raw,
            element,
            generation: thread::generation(),
        }))
    }

    /// What its values are.
    #[inline]
    pub fn element(&self) -> &Element {
        &self.0.element
    }

    /// Whether nothing else refers to it, not even an operation.
    pub fn is_alone(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// Whether both refer to one channel.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Tells it from all others that exist.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// Whether it was made in this process.
    #[inline]
    pub fn is_of_this_process(&self) -> bool {
        self.0.generation == thread::generation()
    }

    /// The process it was made in: see [`thread::generation`].
    #[inline]
    pub fn generation(&self) -> u32 {
        self.0.generation
    }

    pub(crate) fn from_shared(shared: Arc<TypedChannel>) -> Self {
        Self(shared)
    }

    pub(crate) fn into_shared(self) -> Arc<TypedChannel> {
        self.0
    }

    pub(crate) fn references(&self) -> usize {
        Arc::strong_count(&self.0)
    }
}

impl Deref for Channel {
    type Target = RawChannel;

    #[inline]
    fn deref(&self) -> &RawChannel {
        &self.0.raw
    }
}

impl TypedChannel {
    pub(crate) fn raw(&self) -> &RawChannel {
        &self.raw
    }

    pub(crate) fn element(&self) -> &Element {
        &self.element
    }

    #[inline]
    pub(crate) fn is_of_this_process(&self) -> bool {
        self.generation == thread::generation()
    }
}

/// What travels through a channel.
pub enum Element {
    /// Objects of the interpreter.
    Object,
    /// Values of one size.
    Fixed {
        /// In bytes.
        size: usize,
        /// How the interpreter sees them.
        format: Format,
        /// Frees one that is never received.
        drop: Option<DropFunction>,
    },
    /// Any number of bytes.
    Bytes,
    /// One-dimensional arrays of numpy with this dtype.
    Array(Object),
}

/// How the interpreter sees values of one size.
pub enum Format {
    /// `None`; there are no bytes.
    Unit,
    /// A signed integer of 64 bits.
    Integer,
    /// A double.
    Real,
    /// A byte: 0 or 1.
    Bool,
    /// `bytes` of exactly the size.
    Opaque,
    /// A tuple, or one value, by a `struct.Struct`.
    Struct(Object),
}

impl Element {
    /// Values of `size` bytes.
    pub fn fixed(size: usize, format: Format) -> Self {
        Self::Fixed {
            size,
            format,
            drop: None,
        }
    }
}

impl fmt::Debug for Element {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Object => "objects",
            Self::Bytes => "bytes",
            Self::Array(_) => "arrays",
            Self::Fixed { size, .. } => return write!(formatter, "{size} bytes"),
        })
    }
}

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
