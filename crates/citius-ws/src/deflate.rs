//! permessage-deflate (RFC 7692): one message at a time, nothing kept in between.
//!
//! The server always answers an offer with `server_no_context_takeover` and `client_no_context_takeover`,
//! which it may do unasked (§7.1.1). A window of 32 KiB and hash tables for each connection, in each
//! direction, would cost 300 KiB of a socket that is idle nearly always.

use alloc::boxed::Box;
use alloc::vec::Vec;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use crate::Fault;

/// What a sender takes off the end of each message (§7.2.1).
const TAIL: [u8; 4] = [0x00, 0x00, 0xff, 0xff];
/// Smallest and largest window, as its logarithm, that zlib can make.
pub(crate) const BITS_MIN: u8 = 9;
pub(crate) const BITS_MAX: u8 = 15;
/// Bytes that memory for output grows by.
const STEP_BYTES: usize = 16 * 1024;

/// The compressors of one thread: made when first needed, reset for each message.
#[derive(Default)]
pub(crate) struct Deflate {
    inflater: Option<Box<Decompress>>,
    /// One for each size of window that a client has asked for.
    deflaters: [Option<Box<Compress>>; 7],
}

impl core::fmt::Debug for Deflate {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Deflate").finish_non_exhaustive()
    }
}

impl Deflate {
    /// Appends what `compressed` says, at most `bytes_max` of it.
    pub(crate) fn inflate(
        &mut self,
        compressed: &[u8],
        out: &mut Vec<u8>,
        bytes_max: usize,
    ) -> Result<(), Fault> {
        let inflater = self
            .inflater
            .get_or_insert_with(|| Box::new(Decompress::new(false)));
        inflater.reset(false);
        let end = out.len().saturating_add(bytes_max);
        for mut input in [compressed, &TAIL] {
            loop {
                if out.len() > end {
                    return Err(Fault::TooLarge);
                }
                if out.len() == out.capacity() {
                    out.reserve(STEP_BYTES);
                }
                let before = inflater.total_in();
                let status = inflater
                    .decompress_vec(input, out, FlushDecompress::Sync)
                    .map_err(|_| Fault::Deflate)?;
                let taken = inflater.total_in().saturating_sub(before);
                input = input
                    .get(usize::try_from(taken).unwrap_or(usize::MAX)..)
                    .unwrap_or_default();
                // A block that says it is the last may be followed by others (§7.2.3.4).
                if status == Status::StreamEnd {
                    inflater.reset(false);
                } else if input.is_empty() && out.len() < out.capacity() {
                    break;
                } else if taken == 0 && out.len() < out.capacity() {
                    return Err(Fault::Deflate);
                }
                if input.is_empty() && status == Status::StreamEnd {
                    break;
                }
            }
        }
        if out.len() > end {
            return Err(Fault::TooLarge);
        }
        Ok(())
    }

    /// Appends `payload` compressed for a window of `bits`.
    pub(crate) fn deflate(&mut self, payload: &[u8], bits: u8, out: &mut Vec<u8>) {
        let place = usize::from(bits.clamp(BITS_MIN, BITS_MAX).saturating_sub(BITS_MIN));
        let Some(slot) = self.deflaters.get_mut(place) else {
            return;
        };
        let deflater = slot.get_or_insert_with(|| {
            let bits = bits.clamp(BITS_MIN, BITS_MAX);
            Box::new(Compress::new_with_window_bits(
                Compression::fast(),
                false,
                bits,
            ))
        });
        deflater.reset();
        let mut input = payload;
        loop {
            if out.len() == out.capacity() {
                out.reserve((input.len() / 2).clamp(64, STEP_BYTES));
            }
            let before = deflater.total_in();
            // In a state that was reset before it, no call of this fails.
            let _ = deflater.compress_vec(input, out, FlushCompress::Sync);
            let taken = deflater.total_in().saturating_sub(before);
            input = input
                .get(usize::try_from(taken).unwrap_or(usize::MAX)..)
                .unwrap_or_default();
            if input.is_empty() && out.len() < out.capacity() {
                break;
            }
        }
        if out.ends_with(&TAIL) {
            out.truncate(out.len().saturating_sub(TAIL.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn inflated(compressed: &[u8], bytes_max: usize) -> Result<Vec<u8>, Fault> {
        let mut out = Vec::new();
        Deflate::default()
            .inflate(compressed, &mut out, bytes_max)
            .map(|()| out)
    }

    #[test]
    fn the_examples_of_the_rfc() {
        let hello = [0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00];
        assert_eq!(inflated(&hello, 5), Ok(b"Hello".to_vec()));
        // No compression, a last block, and two blocks (§7.2.3).
        let stored = [
            0x00, 0x05, 0x00, 0xfa, 0xff, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x00,
        ];
        assert_eq!(inflated(&stored, 5), Ok(b"Hello".to_vec()));
        let last = [0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00];
        assert_eq!(inflated(&last, 5), Ok(b"Hello".to_vec()));
        let two = [
            0xf2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xff, 0xff, 0xca, 0xc9, 0xc9, 0x07, 0x00,
        ];
        assert_eq!(inflated(&two, 5), Ok(b"Hello".to_vec()));
    }

    #[test]
    fn messages_survive_every_window_and_length() {
        let mut tools = Deflate::default();
        let text: Vec<u8> = (0..100_000u32)
            .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()[..2].to_vec())
            .collect();
        for bits in 8..=16 {
            for length in [0, 1, 125, 4096, 65_536, 200_000] {
                for message in [&text[..length], &vec![b'a'; length]] {
                    let (mut packed, mut out) = (Vec::new(), Vec::new());
                    tools.deflate(message, bits, &mut packed);
                    assert_eq!(tools.inflate(&packed, &mut out, length), Ok(()));
                    assert!(out == message, "{bits} bits, {length} bytes");
                }
            }
        }
    }

    #[test]
    fn bombs_and_rubbish_are_refused() {
        let mut bomb = Vec::new();
        Deflate::default().deflate(&vec![0; 10_000_000], 15, &mut bomb);
        assert!(bomb.len() < 100_000, "{}", bomb.len());
        let mut out = Vec::new();
        let refused = Deflate::default().inflate(&bomb, &mut out, 100_000);
        assert_eq!(refused, Err(Fault::TooLarge));
        assert!(out.capacity() < 200_000, "{}", out.capacity());
        assert_eq!(inflated(b"\xff\xff\xff\xff", 100), Err(Fault::Deflate));
        assert_eq!(inflated(b"\x06", 100), Err(Fault::Deflate));
    }
}
