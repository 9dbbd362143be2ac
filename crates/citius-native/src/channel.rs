//! A channel as all of its users hold it: the interpreter's object and the `citius_chan` of native code refer to the same one.

use std::ops::Deref;
use std::sync::Arc;

use crate::{Element, RawChannel, thread};

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
