//! A response that is complete for the application and not yet for the kernel.
//!
//! It is reported to the observer when its last byte has left the write queue, with the bytes that did.

use citius_observe::{Ending, Note};

use crate::wire::Wire;

/// A request that is fully answered, and whose response is on its way to the kernel.
#[derive(Debug)]
pub(crate) struct Leaving {
    pub(crate) note: Note,
    pub(crate) ending: Ending,
    /// The place of the response's end among all bytes of the connection, once that is in the write queue.
    pub(crate) end_at: Option<u64>,
    /// Bytes that were not, when that was looked at last.
    pub(crate) held_back: u64,
}

impl Leaving {
    /// Finds the response's end, if it has come into the write queue.
    pub(crate) fn look(&mut self, wire: &Wire, end_of_output: u64) {
        if self.end_at.is_some() {
            return;
        }
        match wire.held_back_bytes(self.note.stream) {
            Some(bytes) => self.held_back = bytes,
            // What a connection had held back when it failed will never leave.
            None if self.held_back > 0 && wire.fault().is_some() => {}
            None => self.end_at = Some(end_of_output),
        }
    }

    /// The note of a response that ends here: with the bytes that have left.
    pub(crate) fn cut(mut self, unsent: u64) -> (Note, Ending) {
        self.note.bytes = self.note.bytes.saturating_sub(unsent);
        (self.note, self.ending)
    }
}
