//! Frames (§5.2): heads read and written.

use alloc::vec::Vec;

use crate::Fault;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// UTF-8.
    Text,
    /// Anything.
    Binary,
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opcode {
    Continuation,
    Message(Kind),
    Close,
    Ping,
    Pong,
}

impl Opcode {
    fn from_nibble(nibble: u8) -> Option<Self> {
        Some(match nibble {
            0x0 => Self::Continuation,
            0x1 => Self::Message(Kind::Text),
            0x2 => Self::Message(Kind::Binary),
            0x8 => Self::Close,
            0x9 => Self::Ping,
            0xa => Self::Pong,
            _ => return None,
        })
    }

    fn nibble(self) -> u8 {
        match self {
            Self::Continuation => 0x0,
            Self::Message(Kind::Text) => 0x1,
            Self::Message(Kind::Binary) => 0x2,
            Self::Close => 0x8,
            Self::Ping => 0x9,
            Self::Pong => 0xa,
        }
    }

    pub(crate) fn is_control(self) -> bool {
        matches!(self, Self::Close | Self::Ping | Self::Pong)
    }
}

const FIN: u8 = 0x80;
const COMPRESSED: u8 = 0x40;
const MASKED: u8 = 0x80;

/// Bytes of the longest head of a client's frame.
pub(crate) const HEAD_BYTES_MAX: usize = 14;
/// Bytes of the longest control frame's payload.
pub(crate) const CONTROL_BYTES_MAX: u64 = 125;

/// The head of a client's frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHead {
    pub(crate) is_final: bool,
    pub(crate) is_compressed: bool,
    pub(crate) opcode: Opcode,
    pub(crate) key: [u8; 4],
    pub(crate) length: u64,
}

impl FrameHead {
    /// The head at the start of `input`, and how many bytes it takes; `None` if more have to come.
    ///
    /// A rule is broken as soon as its byte is there.
    #[inline]
    pub(crate) fn parse(input: &[u8], with_deflate: bool) -> Result<Option<(Self, usize)>, Fault> {
        let Some((&first, rest)) = input.split_first() else {
            return Ok(None);
        };
        let is_compressed = first & COMPRESSED != 0;
        if first & 0x30 != 0 || is_compressed && !with_deflate {
            return Err(Fault::ReservedBits);
        }
        let opcode = Opcode::from_nibble(first & 0x0f).ok_or(Fault::Opcode)?;
        let is_final = first & FIN != 0;
        if opcode.is_control() && !is_final {
            return Err(Fault::FragmentedControl);
        }
        // RFC 7692 §6: the bit is the first frame's of a message.
        if is_compressed && !matches!(opcode, Opcode::Message(_)) {
            return Err(Fault::ReservedBits);
        }
        let Some((&second, rest)) = rest.split_first() else {
            return Ok(None);
        };
        if second & MASKED == 0 {
            return Err(Fault::Unmasked);
        }
        let short = second & 0x7f;
        if opcode.is_control() && u64::from(short) > CONTROL_BYTES_MAX {
            return Err(Fault::LongControl);
        }
        let (length, rest, length_bytes) = match short {
            126 => match rest.split_first_chunk::<2>() {
                Some((bytes, rest)) => (u64::from(u16::from_be_bytes(*bytes)), rest, 2),
                None => return Ok(None),
            },
            127 => match rest.split_first_chunk::<8>() {
                Some((bytes, rest)) => (u64::from_be_bytes(*bytes), rest, 8),
                None => return Ok(None),
            },
            _ => (u64::from(short), rest, 0),
        };
        let is_shortest = match length_bytes {
            2 => length > 125,
            8 => length > u64::from(u16::MAX) && length >> 63 == 0,
            _ => true,
        };
        if !is_shortest {
            return Err(Fault::Length);
        }
        let Some((&key, _)) = rest.split_first_chunk::<4>() else {
            return Ok(None);
        };
        let head = Self {
            is_final,
            is_compressed,
            opcode,
            key,
            length,
        };
        Ok(Some((head, 6usize.saturating_add(length_bytes))))
    }
}

/// Appends the head of a server's frame.
#[inline]
pub(crate) fn write_head(out: &mut Vec<u8>, opcode: Opcode, is_compressed: bool, length: usize) {
    let first = FIN | opcode.nibble() | if is_compressed { COMPRESSED } else { 0 };
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short @ ..=125), _) => out.extend_from_slice(&[first, short]),
        (_, Ok(medium)) => {
            let [a, b] = medium.to_be_bytes();
            out.extend_from_slice(&[first, 126, a, b]);
        }
        _ => {
            out.extend_from_slice(&[first, 127]);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
}

/// Appends a whole control frame.
pub(crate) fn write_control(out: &mut Vec<u8>, opcode: Opcode, payload: &[u8]) {
    write_head(out, opcode, false, payload.len());
    out.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn masked(first: u8, length: &[u8]) -> Vec<u8> {
        [&[first], length, &[1, 2, 3, 4]].concat()
    }

    #[test]
    fn heads_are_read_in_each_length_and_any_cut() {
        for (length, expected) in [
            (vec![0x80], 0),
            (vec![0xfd], 125),
            (vec![0xfe, 0, 126], 126),
            (vec![0xfe, 0xff, 0xff], 65535),
            (vec![0xff, 0, 0, 0, 0, 0, 1, 0, 0], 65536),
            (
                vec![0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
                u64::MAX >> 1,
            ),
        ] {
            let bytes = masked(0x82, &length);
            for cut in 0..bytes.len() {
                assert_eq!(FrameHead::parse(&bytes[..cut], false), Ok(None));
            }
            let (head, n) = FrameHead::parse(&bytes, false)
                .expect("valid")
                .expect("whole");
            assert_eq!((head.length, n), (expected, bytes.len()));
            assert_eq!(
                (head.key, head.opcode),
                ([1, 2, 3, 4], Opcode::Message(Kind::Binary))
            );
            assert!(head.is_final && !head.is_compressed);
        }
    }

    #[test]
    fn heads_that_break_a_rule_are_refused_at_the_byte_that_does() {
        let refused = |bytes: &[u8], with_deflate| FrameHead::parse(bytes, with_deflate).err();
        for first in [0x91, 0xa1, 0xc1, 0xf1] {
            assert_eq!(refused(&[first], false), Some(Fault::ReservedBits));
        }
        assert_eq!(refused(&[0xc1], true), None);
        for first in [0xc0, 0xc8, 0xc9, 0xca, 0xe1] {
            assert_eq!(refused(&[first], true), Some(Fault::ReservedBits));
        }
        for nibble in [3, 4, 5, 6, 7, 0xb, 0xc, 0xd, 0xe, 0xf] {
            assert_eq!(refused(&[0x80 | nibble], false), Some(Fault::Opcode));
        }
        for nibble in [8, 9, 0xa] {
            assert_eq!(refused(&[nibble], false), Some(Fault::FragmentedControl));
            assert_eq!(
                refused(&[0x80 | nibble, 0xfe], false),
                Some(Fault::LongControl)
            );
        }
        assert_eq!(refused(&[0x81, 0x05], false), Some(Fault::Unmasked));
        assert_eq!(
            refused(&masked(0x81, &[0xfe, 0, 125]), false),
            Some(Fault::Length)
        );
        assert_eq!(
            refused(&masked(0x81, &[0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff]), false),
            Some(Fault::Length)
        );
        assert_eq!(
            refused(&masked(0x81, &[0xff, 0x80, 0, 0, 0, 0, 0, 0, 0]), false),
            Some(Fault::Length)
        );
    }

    #[test]
    fn heads_are_written_in_their_shortest_form() {
        let head = |length| {
            let mut out = Vec::new();
            write_head(&mut out, Opcode::Message(Kind::Text), length == 1, length);
            out
        };
        assert_eq!(head(0), [0x81, 0]);
        assert_eq!(head(1), [0xc1, 1]);
        assert_eq!(head(125), [0x81, 125]);
        assert_eq!(head(126), [0x81, 126, 0, 126]);
        assert_eq!(head(65535), [0x81, 126, 0xff, 0xff]);
        assert_eq!(head(65536), [0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
    }
}
