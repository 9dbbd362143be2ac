//! One message to many WebSockets.
//!
//! In: a message and the policy for slow receivers. Out: its frame, made once for each size of compression window. The
//! turn delivers it (`messages.rs`). Tests: `tests/server/` and `tests/gateway/` of rooms.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use citius_http::Limits;
use citius_ws::{Code, Kind, Tools};

/// What becomes of a message for a receiver whose write queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slow {
    /// It does not get this one.
    Drop,
    /// It is closed with this code.
    Close(Code),
    /// It gets it behind all that waits: its sender bounds how much that is.
    Queue,
}

/// One message to many sockets: framed once, and compressed once for each size of window among them.
#[derive(Debug)]
pub struct Broadcast {
    kind: Kind,
    pub(crate) payload: Bytes,
    plain: OnceLock<Bytes>,
    /// By the logarithm of the window.
    deflated: [OnceLock<Bytes>; 16],
    pub(crate) slow: Slow,
    /// Counts receivers that were too slow.
    pub(crate) missed: Arc<AtomicU64>,
}

impl Broadcast {
    /// A message of this kind; a text is UTF-8. `missed` counts receivers that are too slow for it.
    pub fn new(kind: Kind, payload: Bytes, slow: Slow, missed: Arc<AtomicU64>) -> Self {
        Self {
            kind,
            payload,
            plain: OnceLock::new(),
            deflated: [const { OnceLock::new() }; 16],
            slow,
            missed,
        }
    }

    /// Has receivers get it whose write queue is full.
    pub fn queue_if_slow(&mut self) {
        self.slow = Slow::Queue;
    }

    /// The frame, compressed for a window of so many `bits` if there are any.
    pub(crate) fn frame(&self, bits: Option<u8>, tools: &mut Tools, limits: &Limits) -> Bytes {
        let place = bits.and_then(|bits| self.deflated.get(usize::from(bits)));
        let frame = place.unwrap_or(&self.plain).get_or_init(|| {
            let mut frame = Vec::new();
            tools.encode(self.kind, &self.payload, bits, limits, &mut frame);
            Bytes::from(frame)
        });
        frame.clone()
    }
}
