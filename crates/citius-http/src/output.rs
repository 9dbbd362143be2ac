//! Bytes on their way to a socket: small ones copied together, large ones kept by reference, those of
//! files named by their place.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use bytes::{Buf, Bytes};

use crate::{FileRange, Payload};

/// A write queue. Order is the order of the calls; `parts` come before `tail`.
#[derive(Debug, Default)]
pub struct Output {
    parts: VecDeque<Part>,
    /// Bytes in `parts`, kept so that [`Output::len`] costs nothing.
    parts_bytes: u64,
    tail: Vec<u8>,
    /// Bytes of `tail` that are already written; only without `parts`.
    written: usize,
}

#[derive(Debug)]
enum Part {
    Bytes(Bytes),
    File(FileRange),
}

impl Part {
    fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::File(_) => None,
        }
    }
}

impl Output {
    /// Bytes from which a shared payload is kept by reference instead of copied.
    /// Below it a copy is cheaper than another part in the gather list.
    pub const SHARED_BYTES_MIN: usize = 16 * 1024;

    /// Bytes not written yet.
    #[inline]
    pub fn len(&self) -> usize {
        // Callers only compare this to a limit; a size beyond the address space exceeds every limit.
        usize::try_from(self.parts_bytes)
            .unwrap_or(usize::MAX)
            .saturating_add(self.tail.len().saturating_sub(self.written))
    }

    /// Whether everything is written.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that the tail can take without asking for memory.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.tail.capacity()
    }

    /// Lends `spare` to an empty output: its small pieces go there. Swaps, if it has memory already.
    #[inline]
    pub fn lend(&mut self, spare: &mut Vec<u8>) {
        debug_assert!(self.is_empty() && spare.is_empty());
        core::mem::swap(&mut self.tail, spare);
    }

    /// Takes the memory of an empty output, which owns none from then on.
    #[inline]
    pub fn take_memory(&mut self) -> Vec<u8> {
        debug_assert!(self.is_empty());
        if self.parts.capacity() > 0 {
            self.parts = VecDeque::new();
        }
        core::mem::take(&mut self.tail)
    }

    /// Where small pieces are appended.
    #[inline]
    pub fn tail(&mut self) -> &mut Vec<u8> {
        &mut self.tail
    }

    /// Appends body bytes.
    #[inline]
    pub fn push(&mut self, payload: Payload<'_>) {
        match payload {
            Payload::Copied(bytes) => self.tail.extend_from_slice(bytes),
            Payload::Shared(bytes) if bytes.len() < Self::SHARED_BYTES_MIN => {
                self.tail.extend_from_slice(&bytes);
            }
            Payload::Shared(bytes) => {
                self.seal();
                self.parts_bytes = self.parts_bytes.saturating_add(bytes.len() as u64);
                self.parts.push_back(Part::Bytes(bytes));
            }
            Payload::File(range) if range.is_empty() => {}
            Payload::File(range) => {
                self.seal();
                self.parts_bytes = self.parts_bytes.saturating_add(range.len());
                self.parts.push_back(Part::File(range));
            }
        }
    }

    /// Appends all of `other` and leaves it empty.
    pub fn append(&mut self, other: &mut Self) {
        if other.parts.is_empty() {
            self.tail
                .extend_from_slice(other.tail.get(other.written..).unwrap_or_default());
        } else {
            self.seal();
            other.seal();
            self.parts_bytes = self.parts_bytes.saturating_add(other.parts_bytes);
            self.parts.append(&mut other.parts);
        }
        other.clear();
    }

    /// The pieces to write, in order, up to the first that is of a file.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let tail = self.tail.get(self.written..).unwrap_or_default();
        self.parts
            .iter()
            .map(Part::bytes)
            .chain((!tail.is_empty()).then_some(Some(tail)))
            .map_while(|piece| piece)
    }

    /// What comes next, if that is of a file.
    pub fn file(&self) -> Option<&FileRange> {
        match self.parts.front() {
            Some(Part::File(range)) => Some(range),
            _ => None,
        }
    }

    /// Whether something of a file is to come, now or later.
    pub fn has_file(&self) -> bool {
        self.parts.iter().any(|part| part.bytes().is_none())
    }

    /// The one piece there is, if there is no gather list; the common case.
    #[inline]
    pub fn single(&self) -> Option<&[u8]> {
        if self.parts.is_empty() {
            self.tail.get(self.written..)
        } else {
            None
        }
    }

    /// Takes note that the first `n` bytes are written.
    pub fn advance(&mut self, mut n: usize) {
        while let Some(part) = self.parts.front_mut() {
            let (step, is_over) = match part {
                Part::Bytes(bytes) => {
                    let step = n.min(bytes.len());
                    bytes.advance(step);
                    (step, bytes.is_empty())
                }
                Part::File(range) => {
                    let step = n.min(usize::try_from(range.len()).unwrap_or(usize::MAX));
                    range.advance(step as u64);
                    (step, range.is_empty())
                }
            };
            self.parts_bytes = self.parts_bytes.saturating_sub(step as u64);
            n = n.saturating_sub(step);
            if !is_over {
                return;
            }
            self.parts.pop_front();
        }
        self.written = self.written.saturating_add(n);
        if self.written >= self.tail.len() {
            self.tail.clear();
            self.written = 0;
        }
    }

    /// Drops all bytes and keeps the memory of the tail.
    #[inline]
    pub fn clear(&mut self) {
        self.parts.clear();
        self.parts_bytes = 0;
        self.tail.clear();
        self.written = 0;
    }

    /// Turns the tail into a part, so that something may follow it.
    fn seal(&mut self) {
        if self.written < self.tail.len() {
            let mut sealed = Bytes::from(core::mem::take(&mut self.tail));
            sealed.advance(self.written);
            self.parts_bytes = self.parts_bytes.saturating_add(sealed.len() as u64);
            self.parts.push_back(Part::Bytes(sealed));
        }
        self.tail.clear();
        self.written = 0;
    }
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;
    use alloc::vec;

    use super::*;

    fn drain(output: &mut Output, step: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while !output.is_empty() {
            let before = output.len();
            let bytes: Vec<u8> = output.pieces().flatten().copied().take(step).collect();
            output.advance(bytes.len());
            assert_eq!(output.len(), before - bytes.len());
            all.extend(bytes);
        }
        all
    }

    #[test]
    fn keeps_order_across_copied_and_shared_pieces() {
        let large = vec![b'x'; Output::SHARED_BYTES_MIN];
        let expected = [b"head", &large[..], b"tail", &large[..], b"end"].concat();
        for step in [1, 3, 7, 4096, usize::MAX] {
            let (mut output, mut other) = (Output::default(), Output::default());
            output.push(Payload::Copied(b"head"));
            output.push(Payload::Shared(Bytes::from(large.clone())));
            output.push(Payload::Shared(Bytes::from_static(b"tail")));
            other.push(Payload::Shared(Bytes::from(large.clone())));
            other.push(Payload::Copied(b"end"));
            output.append(&mut other);
            assert!(other.is_empty());
            assert_eq!(output.len(), expected.len());
            assert_eq!(drain(&mut output, step), expected);
        }
    }

    #[test]
    fn a_half_written_tail_can_be_followed_by_a_part() {
        let mut output = Output::default();
        output.push(Payload::Copied(b"abcdef"));
        output.advance(2);
        output.push(Payload::Shared(Bytes::from(vec![
            b'x';
            Output::SHARED_BYTES_MIN
        ])));
        let all = drain(&mut output, usize::MAX);
        assert!(all.starts_with(b"cdefxx") && all.len() == Output::SHARED_BYTES_MIN + 4);
    }

    #[test]
    fn bytes_around_a_file_keep_their_places() {
        let mut output = Output::default();
        output.push(Payload::Copied(b"head"));
        output.push(Payload::File(FileRange::new(Arc::new(7u8), 100, 5)));
        output.push(Payload::Copied(b"tail"));
        output.push(Payload::File(FileRange::new(Arc::new(8u8), 0, 0)));
        assert_eq!((output.len(), output.has_file()), (13, true));
        assert!(output.single().is_none() && output.file().is_none());
        assert_eq!(output.pieces().collect::<Vec<_>>(), [b"head"]);
        output.advance(4);
        assert_eq!(output.pieces().count(), 0);
        let place = |output: &Output| {
            let range = output.file()?;
            Some((*range.handle::<u8>()?, range.offset(), range.len()))
        };
        assert_eq!(place(&output), Some((7, 100, 5)));
        assert!(
            output
                .file()
                .is_some_and(|range| range.handle::<u16>().is_none())
        );
        output.advance(2);
        assert_eq!((place(&output), output.len()), (Some((7, 102, 3)), 7));
        output.advance(3);
        assert_eq!(
            (output.single(), output.has_file()),
            (Some(&b"tail"[..]), false)
        );
        output.advance(4);
        assert!(output.is_empty());
    }
}
