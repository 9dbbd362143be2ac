//! The calls of one connection that have no response yet, and the batches they belong to.

use alloc::boxed::Box;
use alloc::vec::Vec;

use citius_http::Millis;

/// What a response is recognised by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Id {
    /// A notification: no response is sent.
    None,
    /// MessagePack-RPC's.
    Number(u32),
    /// JSON-RPC's, as it was sent.
    Json(Box<[u8]>),
}

/// A call that is being worked on.
#[derive(Debug)]
pub(crate) struct OpenCall {
    /// Its number on the connection.
    pub(crate) stream: u32,
    pub(crate) id: Id,
    /// The batch its response goes to.
    pub(crate) batch: Option<u32>,
    /// When it is given up; `Millis::MAX`: never.
    pub(crate) due_at: Millis,
}

/// Open calls in the order in which they came, so that one is found by its number.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    open: Vec<OpenCall>,
    /// No call is due earlier; `Millis::MAX` where none has a deadline.
    due_at: Millis,
}

impl Calls {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Enters a call, whose number is higher than all before.
    #[inline]
    pub(crate) fn enter(&mut self, call: OpenCall) {
        if self.open.is_empty() {
            self.due_at = Millis::MAX;
        }
        self.due_at = self.due_at.min(call.due_at);
        self.open.push(call);
    }

    /// Takes a call out; `None` if it is not open.
    #[inline]
    pub(crate) fn take(&mut self, stream: u32) -> Option<OpenCall> {
        // A call that gets its response at once is the last one that came.
        if self.open.last()?.stream == stream {
            return self.open.pop();
        }
        let at = self.position(stream)?;
        Some(self.open.remove(at))
    }

    pub(crate) fn is_open(&self, stream: u32) -> bool {
        self.position(stream).is_some()
    }

    /// Has a call given up at another moment.
    pub(crate) fn set_due(&mut self, stream: u32, due_at: Millis) {
        if let Some(at) = self.position(stream)
            && let Some(call) = self.open.get_mut(at)
        {
            call.due_at = due_at;
            self.due_at = self.due_at.min(due_at);
        }
    }

    /// When [`take_due`](Self::take_due) may find one.
    #[inline]
    pub(crate) fn due_at(&self) -> Millis {
        if self.open.is_empty() {
            Millis::MAX
        } else {
            self.due_at
        }
    }

    /// A call whose time is over.
    pub(crate) fn take_due(&mut self, now: Millis) -> Option<OpenCall> {
        let due = self.open.iter().position(|call| call.due_at <= now);
        if due.is_none() {
            let times = self.open.iter().map(|call| call.due_at);
            self.due_at = times.min().unwrap_or(Millis::MAX);
        }
        due.map(|at| self.open.remove(at))
    }

    /// The number of the newest call with this id.
    pub(crate) fn find(&self, id: &Id) -> Option<u32> {
        let found = self.open.iter().rev().find(|call| call.id == *id);
        found.map(|call| call.stream)
    }

    fn position(&self, stream: u32) -> Option<usize> {
        // Numbers begin anew after 2^32 calls; their distance to the first that is open does not.
        let first = self.open.first()?.stream;
        let distance = |number: u32| number.wrapping_sub(first);
        self.open
            .binary_search_by_key(&distance(stream), |call| distance(call.stream))
            .ok()
    }
}

/// Responses that are written together.
#[derive(Debug, Default)]
pub(crate) struct Batches {
    slots: Vec<Batch>,
}

/// One batch of JSON-RPC's (§6).
#[derive(Debug, Default)]
struct Batch {
    /// Elements that are not read or have no response; 0: the slot is free.
    left: usize,
    /// The responses so far, `[` first.
    responses: Vec<u8>,
}

impl Batches {
    /// Begins a batch of `n` elements.
    pub(crate) fn begin(&mut self, n: usize) -> u32 {
        let free = self.slots.iter().position(|batch| batch.left == 0);
        let at = free.unwrap_or_else(|| {
            self.slots.push(Batch::default());
            self.slots.len().saturating_sub(1)
        });
        if let Some(batch) = self.slots.get_mut(at) {
            batch.left = n;
        }
        u32::try_from(at).unwrap_or(u32::MAX)
    }

    /// Where the next response of a batch is written.
    pub(crate) fn respond(&mut self, batch: u32) -> Option<&mut Vec<u8>> {
        let batch = self.slots.get_mut(batch as usize)?;
        batch.responses.push(if batch.responses.is_empty() {
            b'['
        } else {
            b','
        });
        Some(&mut batch.responses)
    }

    /// An element is done with. After the last one returns the responses, if there are any.
    pub(crate) fn complete_one(&mut self, batch: u32) -> Option<Vec<u8>> {
        let batch = self.slots.get_mut(batch as usize)?;
        batch.left = batch.left.saturating_sub(1);
        if batch.left > 0 {
            return None;
        }
        let mut responses = core::mem::take(&mut batch.responses);
        if responses.is_empty() {
            return None;
        }
        responses.extend_from_slice(b"]\n");
        Some(responses)
    }
}
