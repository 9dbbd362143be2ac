//! A channel as all of its users hold it: Python's `Chan` and the `citius_chan` of native code refer to the same one.

use std::ops::Deref;
use std::sync::Arc;

use pyo3::prelude::*;

use super::element::Element;
use super::{RawChannel, thread};

/// A reference to a channel.
#[derive(Clone)]
pub(crate) struct Channel(Arc<TypedChannel>);

pub(crate) struct TypedChannel {
    raw: RawChannel,
    element: Element,
    /// The process it was made in.
    generation: u32,
}

impl Channel {
    pub(crate) fn new(capacity: usize, element: Element) -> Self {
        // Python's collector visits objects, on any thread; goroutines of one thread pass each other values of native code.
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

    pub(crate) fn element(&self) -> &Element {
        &self.0.element
    }

    /// Whether nothing else refers to it, not even an operation.
    pub(crate) fn is_alone(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Tells it from all others that exist.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// Whether it was made in this process.
    #[inline]
    pub(crate) fn is_of_this_process(&self) -> bool {
        self.0.generation == thread::generation()
    }

    /// The channel, if it was made in this process.
    ///
    /// # Errors
    /// `ChannelMisuse`, if it was not.
    #[inline]
    pub(crate) fn check(&self, py: Python<'_>) -> PyResult<&Self> {
        thread::check_generation(py, self.0.generation)?;
        Ok(self)
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
