//! Capsules (RFC 9297 §3.2): a type, a length, a value. Those of WebTransport that mean something without its flow control.

use alloc::vec::Vec;

use bytes::Bytes;
use citius_http::Fault;

use crate::frame::Partial;
use crate::varint;

const CLOSE: u64 = 0x2843;
const DRAIN: u64 = 0x78ae;

/// Bytes of the words with which a session is closed.
const REASON_BYTES_MAX: usize = 1024;

/// What has come.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Capsule {
    /// The client has closed the session.
    Closed { code: u32, reason: Bytes },
    /// The client asks for its end.
    Draining,
    /// It means nothing here. A DATAGRAM capsule may be dropped as any datagram.
    Ignored,
}

/// The capsules of one session, which come in any pieces.
#[derive(Debug, Default)]
pub(crate) struct Capsules {
    partial: Partial,
    /// Type and bytes left of the capsule under way.
    current: Option<(u64, u64)>,
    value: Vec<u8>,
}

impl Capsules {
    /// Whether no capsule is under way.
    pub(crate) fn is_whole(&self) -> bool {
        self.current.is_none() && self.partial.is_empty()
    }

    /// Takes the next capsule from `input`; `None`: all of `input` is taken.
    ///
    /// # Errors
    /// `CapsuleSyntax`.
    pub(crate) fn next(&mut self, input: &mut &[u8]) -> Result<Option<Capsule>, Fault> {
        if self.current.is_none() {
            let Some((kind, length)) = self.partial.pair(input) else {
                return Ok(None);
            };
            let length_max = match kind {
                CLOSE => (REASON_BYTES_MAX as u64).saturating_add(4),
                DRAIN => 0,
                _ => varint::MAX,
            };
            if length > length_max || kind == CLOSE && length < 4 {
                return Err(Fault::CapsuleSyntax);
            }
            self.current = Some((kind, length));
        }
        let Some((kind, left)) = self.current else {
            return Ok(None);
        };
        let length = usize::try_from(left).map_or(input.len(), |left| left.min(input.len()));
        let (came, rest) = input.split_at(length);
        *input = rest;
        if kind == CLOSE {
            self.value.extend_from_slice(came);
        }
        let left = left.saturating_sub(length as u64);
        if left > 0 {
            self.current = Some((kind, left));
            return Ok(None);
        }
        self.current = None;
        Ok(Some(match kind {
            CLOSE => {
                let value = core::mem::take(&mut self.value);
                let (code, reason) = value.split_first_chunk::<4>().ok_or(Fault::CapsuleSyntax)?;
                Capsule::Closed {
                    code: u32::from_be_bytes(*code),
                    reason: Bytes::copy_from_slice(reason),
                }
            }
            DRAIN => Capsule::Draining,
            _ => Capsule::Ignored,
        }))
    }
}

/// Appends the capsule that closes a session; words that are too long lose their end, at the start of a character.
pub(crate) fn put_close(out: &mut Vec<u8>, code: u32, reason: &[u8]) {
    let mut n_bytes = reason.len().min(REASON_BYTES_MAX);
    let continues = |byte: Option<&u8>| byte.is_some_and(|byte| byte & 0xc0 == 0x80);
    while n_bytes > 0 && continues(reason.get(n_bytes)) {
        n_bytes = n_bytes.saturating_sub(1);
    }
    varint::put(out, CLOSE);
    varint::put(out, (n_bytes as u64).saturating_add(4));
    out.extend_from_slice(&code.to_be_bytes());
    out.extend_from_slice(reason.get(..n_bytes).unwrap_or_default());
}

/// Appends the capsule that asks for a session's end.
pub(crate) fn put_drain(out: &mut Vec<u8>) {
    varint::put(out, DRAIN);
    varint::put(out, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Result<Vec<Capsule>, Fault> {
        let (mut capsules, mut found) = (Capsules::default(), Vec::new());
        for piece in pieces {
            let mut input = *piece;
            while let Some(capsule) = capsules.next(&mut input)? {
                found.push(capsule);
            }
        }
        Ok(found)
    }

    #[test]
    fn capsules_are_read_in_any_pieces() {
        let mut bytes = Vec::new();
        put_drain(&mut bytes);
        varint::put(&mut bytes, 0x1234);
        varint::put(&mut bytes, 3);
        bytes.extend_from_slice(b"abc");
        put_close(&mut bytes, 7, "bye".as_bytes());
        let closed = Capsule::Closed {
            code: 7,
            reason: Bytes::from_static(b"bye"),
        };
        let expected = Ok(Vec::from([Capsule::Draining, Capsule::Ignored, closed]));
        for cut in 0..bytes.len() {
            assert_eq!(read(&[&bytes[..cut], &bytes[cut..]]), expected);
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(&single), expected);
    }

    #[test]
    fn malformed_capsules_are_refused_and_reasons_are_cut_between_characters() {
        for (kind, length) in [(CLOSE, 3), (CLOSE, 1029), (DRAIN, 1)] {
            let mut bytes = Vec::new();
            varint::put(&mut bytes, kind);
            varint::put(&mut bytes, length);
            assert_eq!(read(&[&bytes]), Err(Fault::CapsuleSyntax));
        }
        let mut bytes = Vec::new();
        put_close(
            &mut bytes,
            1,
            "x".repeat(1023)
                .as_bytes()
                .iter()
                .chain("ü".as_bytes())
                .copied()
                .collect::<Vec<u8>>()
                .as_slice(),
        );
        let found = read(&[&bytes]).unwrap();
        assert_eq!(
            found,
            [Capsule::Closed {
                code: 1,
                reason: Bytes::from("x".repeat(1023))
            }]
        );
    }
}
