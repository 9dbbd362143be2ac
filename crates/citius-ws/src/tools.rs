//! What the connections of one thread share: memory for the message in hand, and compressors.

use alloc::vec::Vec;

use citius_http::Limits;

use crate::deflate::Deflate;
use crate::frame::{self, Kind, Opcode};

/// Shared by all connections of a thread; each uses it for the length of a call.
#[derive(Debug, Default)]
pub struct Tools {
    /// The memory of the last message.
    spare: Vec<u8>,
    pub(crate) deflate: Deflate,
}

impl Tools {
    /// Bytes of a message above which its memory goes back to the allocator.
    const SPARE_BYTES_MAX: usize = 256 * 1024;

    /// Memory for a message.
    #[inline]
    pub(crate) fn take(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.spare)
    }

    /// Takes back the bytes of an [`Event::Message`](crate::Event), for their memory.
    #[inline]
    pub fn recycle(&mut self, mut bytes: Vec<u8>) {
        if bytes.capacity() <= Self::SPARE_BYTES_MAX && bytes.capacity() > self.spare.capacity() {
            bytes.clear();
            self.spare = bytes;
        }
    }

    /// Appends a whole message as a server sends it; compressed for a window of so many `bits`, if the
    /// client can read that and it is worth it.
    #[inline]
    pub fn encode(
        &mut self,
        kind: Kind,
        payload: &[u8],
        bits: Option<u8>,
        limits: &Limits,
        out: &mut Vec<u8>,
    ) {
        if let Some(bits) = bits
            && is_worth_it(payload.len(), limits)
            && self.encode_compressed(kind, payload, bits, out)
        {
            return;
        }
        out.reserve(payload.len().saturating_add(frame::HEAD_BYTES_MAX));
        frame::write_head(out, Opcode::Message(kind), false, payload.len());
        out.extend_from_slice(payload);
    }

    /// `false`: it would not become shorter.
    fn encode_compressed(
        &mut self,
        kind: Kind,
        payload: &[u8],
        bits: u8,
        out: &mut Vec<u8>,
    ) -> bool {
        let mut packed = self.take();
        packed.clear();
        self.deflate.deflate(payload, bits, &mut packed);
        let is_shorter = packed.len() < payload.len();
        if is_shorter {
            frame::write_head(out, Opcode::Message(kind), true, packed.len());
            out.extend_from_slice(&packed);
        }
        self.recycle(packed);
        is_shorter
    }
}

/// Whether a message of so many bytes is compressed for who can read that.
#[inline]
pub(crate) fn is_worth_it(payload_bytes: usize, limits: &Limits) -> bool {
    payload_bytes >= limits.ws_deflate_bytes_min as usize && limits.ws_deflate_bytes_min > 0
}
