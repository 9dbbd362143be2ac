//! How a connection ends: codes (§7.4) and reasons.

use alloc::string::String;
use alloc::vec::Vec;

/// A close code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(u16);

impl Code {
    /// The purpose is fulfilled.
    pub const NORMAL: Self = Self(1000);
    /// An endpoint goes away: a browser has left the page.
    pub const GOING_AWAY: Self = Self(1001);
    /// A rule of the protocol was broken.
    pub const PROTOCOL_ERROR: Self = Self(1002);
    /// A close frame without a code; never sent.
    pub const NO_STATUS: Self = Self(1005);
    /// No close frame at all; never sent.
    pub const ABNORMAL: Self = Self(1006);
    /// A text message that is not UTF-8, or data that is not what it says.
    pub const INVALID_DATA: Self = Self(1007);
    /// A message against the receiver's policy.
    pub const POLICY: Self = Self(1008);
    /// A message that is too large.
    pub const TOO_LARGE: Self = Self(1009);
    /// Something unexpected happened to the server.
    pub const SERVER_ERROR: Self = Self(1011);
    /// The server restarts: come again.
    pub const SERVICE_RESTART: Self = Self(1012);
    /// The server is overloaded: come again later.
    pub const TRY_LATER: Self = Self(1013);

    /// The code `number` if an endpoint may send it: those of the RFC and its registry, and 3000 to 4999 for
    /// libraries and applications.
    pub const fn new(number: u16) -> Option<Self> {
        match number {
            1000..=1003 | 1007..=1014 | 3000..=4999 => Some(Self(number)),
            _ => None,
        }
    }

    /// The number.
    pub const fn number(self) -> u16 {
        self.0
    }
}

/// A code and the words that go with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Close {
    /// The code; [`Code::NO_STATUS`] for a frame without one, [`Code::ABNORMAL`] without a frame.
    pub code: Code,
    /// The reason, mostly empty.
    pub reason: String,
}

impl Close {
    /// Bytes that a reason can have: a control frame has 125 (§5.5), two are the code's.
    pub const REASON_BYTES_MAX: usize = 123;

    /// A close with a reason, cut off at the last character that fits.
    pub fn new(code: Code, reason: &str) -> Self {
        let mut end = reason.len().min(Self::REASON_BYTES_MAX);
        while !reason.is_char_boundary(end) {
            end = end.saturating_sub(1);
        }
        Self {
            code,
            reason: reason.get(..end).unwrap_or_default().into(),
        }
    }

    /// An end without a close frame.
    pub fn abnormal() -> Self {
        Self::new(Code::ABNORMAL, "")
    }

    /// What the payload of a close frame says; `None` if it must not say that.
    pub(crate) fn parse(payload: &[u8]) -> Option<Self> {
        let Some((number, reason)) = payload.split_first_chunk::<2>() else {
            return payload.is_empty().then(|| Self::new(Code::NO_STATUS, ""));
        };
        Some(Self {
            code: Code::new(u16::from_be_bytes(*number))?,
            reason: simdutf8::basic::from_utf8(reason).ok()?.into(),
        })
    }

    /// The payload of its frame.
    pub(crate) fn payload(&self) -> Vec<u8> {
        let mut payload = Vec::new();
        if Code::new(self.code.0).is_some() {
            payload.extend_from_slice(&self.code.0.to_be_bytes());
            payload.extend_from_slice(self.reason.as_bytes());
        }
        payload
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_that_nobody_may_send_are_none() {
        for number in [
            0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535,
        ] {
            assert_eq!(Code::new(number), None, "{number}");
        }
        for number in [
            1000, 1001, 1002, 1003, 1007, 1011, 1014, 3000, 3999, 4000, 4999,
        ] {
            assert_eq!(Code::new(number).map(Code::number), Some(number));
        }
    }

    #[test]
    fn payloads_are_read_strictly() {
        assert_eq!(Close::parse(b""), Some(Close::new(Code::NO_STATUS, "")));
        assert_eq!(Close::parse(b"\x03"), None);
        assert_eq!(
            Close::parse(b"\x03\xe8bye"),
            Some(Close::new(Code::NORMAL, "bye"))
        );
        assert_eq!(Close::parse(b"\x03\xe8\xff"), None);
        assert_eq!(Close::parse(b"\x03\xec"), None);
    }

    #[test]
    fn reasons_are_cut_between_characters() {
        let close = Close::new(Code::NORMAL, &"ä".repeat(100));
        assert_eq!(close.reason, "ä".repeat(61));
        assert_eq!(close.payload().len(), 124);
        assert_eq!(Close::abnormal().payload(), b"");
    }
}
