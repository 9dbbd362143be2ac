//! Frames (RFC 9114 §7): a type, a length, a payload.

use alloc::vec::Vec;

use crate::varint;

/// The types of frames that mean something here, or must not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Data,
    Headers,
    CancelPush,
    Settings,
    PushPromise,
    GoAway,
    MaxPushId,
    /// `PRIORITY_UPDATE` of a request (RFC 9218 §7.2).
    PriorityUpdate,
    /// The same of a push.
    PushPriorityUpdate,
    /// `WEBTRANSPORT_STREAM`: not a frame, but what a stream of a session begins with. Its length is the session.
    SessionStream,
    /// A type of HTTP/2 that HTTP/3 has no use for (§7.2.8).
    OfHttp2,
    /// Of no meaning here: skipped (§9).
    Unknown,
}

impl Kind {
    pub(crate) const fn of(number: u64) -> Self {
        match number {
            0x0 => Self::Data,
            0x1 => Self::Headers,
            0x3 => Self::CancelPush,
            0x4 => Self::Settings,
            0x5 => Self::PushPromise,
            0x7 => Self::GoAway,
            0xd => Self::MaxPushId,
            0x41 => Self::SessionStream,
            0xf0700 => Self::PriorityUpdate,
            0xf0701 => Self::PushPriorityUpdate,
            0x2 | 0x6 | 0x8 | 0x9 => Self::OfHttp2,
            _ => Self::Unknown,
        }
    }
}

/// A type and a length that may come in pieces.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Partial {
    bytes: [u8; 16],
    n_bytes: u8,
}

impl Partial {
    /// Whether nothing of a header has come.
    #[inline]
    pub(crate) const fn is_empty(self) -> bool {
        self.n_bytes == 0
    }

    /// Takes two integers from `input`, the first of which may be here already; `None`: they are not whole, and all of `input`
    /// is taken.
    #[inline]
    pub(crate) fn pair(&mut self, input: &mut &[u8]) -> Option<(u64, u64)> {
        if self.is_empty() {
            let mut rest = *input;
            if let Some(first) = varint::take(&mut rest)
                && let Some(second) = varint::take(&mut rest)
            {
                *input = rest;
                return Some((first, second));
            }
        }
        self.gather(input, |mut bytes| {
            let first = varint::take(&mut bytes)?;
            Some((first, varint::take(&mut bytes)?))
        })
    }

    /// Takes one integer likewise.
    pub(crate) fn single(&mut self, input: &mut &[u8]) -> Option<u64> {
        self.gather(input, |mut bytes| varint::take(&mut bytes))
    }

    /// Takes byte by byte until `read` finds what it looks for.
    #[cold]
    fn gather<T>(&mut self, input: &mut &[u8], read: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
        while let Some((&byte, rest)) = input.split_first() {
            *input = rest;
            // Two integers have sixteen bytes at most.
            *self.bytes.get_mut(usize::from(self.n_bytes))? = byte;
            self.n_bytes = self.n_bytes.saturating_add(1);
            let held = self.bytes.get(..usize::from(self.n_bytes))?;
            if let Some(found) = read(held) {
                self.n_bytes = 0;
                return Some(found);
            }
        }
        None
    }
}

/// Appends what stands before a payload of `length` bytes.
#[inline]
pub(crate) fn header(out: &mut Vec<u8>, kind: u64, length: usize) {
    varint::put(out, kind);
    varint::put(out, length as u64);
}

/// Appends a frame.
pub(crate) fn whole(out: &mut Vec<u8>, kind: u64, payload: &[u8]) {
    header(out, kind, payload.len());
    out.extend_from_slice(payload);
}

pub(crate) const DATA: u64 = 0x0;
pub(crate) const HEADERS: u64 = 0x1;
pub(crate) const SETTINGS: u64 = 0x4;
pub(crate) const GOAWAY: u64 = 0x7;
