//! Ranges of open files on their way to a socket, as protocols see them: an order and a length.

use alloc::sync::Arc;
use core::any::Any;
use core::fmt;

/// So many bytes of something open, fetched only when the socket takes them.
///
/// The handle is opaque here, because protocols perform no I/O: they count and order bytes, and pass
/// the range on. The code that writes to the socket put the handle in and gets it back by its type; it
/// sends the bytes without seeing them, or reads them in pieces, as encryption must.
#[derive(Clone)]
pub struct FileRange {
    handle: Arc<dyn Any + Send + Sync>,
    offset: u64,
    length: u64,
}

impl FileRange {
    /// `length` bytes from `offset` on.
    pub fn new<H: Any + Send + Sync>(handle: Arc<H>, offset: u64, length: u64) -> Self {
        Self {
            handle,
            offset,
            length,
        }
    }

    /// What is open, if it is an `H`.
    pub fn handle<H: Any>(&self) -> Option<&H> {
        self.handle.downcast_ref()
    }

    /// Where the next byte stands.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Number of bytes still to come.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether no byte is to come.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Takes the first `n` bytes off.
    #[must_use]
    pub fn split_to(&mut self, n: u64) -> Self {
        let first = Self {
            handle: Arc::clone(&self.handle),
            offset: self.offset,
            length: n.min(self.length),
        };
        self.advance(n);
        first
    }

    /// Takes note that the first `n` bytes are on their way.
    pub fn advance(&mut self, n: u64) {
        let step = n.min(self.length);
        self.offset = self.offset.saturating_add(step);
        self.length = self.length.saturating_sub(step);
    }
}

impl fmt::Debug for FileRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileRange")
            .field("offset", &self.offset)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}
