//! What the two ends agree on (RFC 9113 §6.5).

use alloc::vec::Vec;

use citius_http::{Fault, Limits};

use crate::frame::{self, WINDOW_BYTES, WINDOW_MAX};
use crate::hpack::TABLE_BYTES;

/// The client's settings, as far as they concern a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Bytes that the client's dynamic table may have.
    pub(crate) table_bytes: usize,
    /// Bytes that a new stream's response may have before its window is opened further.
    pub(crate) window: i64,
    /// It limits streams that a server begins, which mean nothing without push: the library `h2` does, and curl.
    limits_pushes: bool,
    /// It limits field sections: the library `h2` does, and curl does not.
    limits_heads: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            table_bytes: TABLE_BYTES,
            window: WINDOW_BYTES,
            limits_pushes: false,
            limits_heads: false,
        }
    }
}

impl Settings {
    /// Whether the client's settings are such as those of the library `h2`, which has httpx read nothing behind a GOAWAY.
    pub(crate) fn are_of_h2(&self) -> bool {
        self.limits_pushes && self.limits_heads
    }

    /// Whether the client's settings are such as those of curl, which reads nothing behind the end of a response while it sends.
    pub(crate) fn are_of_curl(&self) -> bool {
        self.limits_pushes && !self.limits_heads
    }

    /// Takes the values of one frame, in their order; unknown ones are ignored (§6.5.2).
    ///
    /// # Errors
    /// `SettingsValue` or `FlowControl`; `FrameSize` if the payload is not made of whole settings.
    pub(crate) fn take(&mut self, mut payload: &[u8]) -> Result<(), Fault> {
        while let Some(([n0, n1, v0, v1, v2, v3], rest)) = payload.split_first_chunk::<6>() {
            payload = rest;
            let value = u32::from_be_bytes([*v0, *v1, *v2, *v3]);
            match u16::from_be_bytes([*n0, *n1]) {
                1 => self.table_bytes = value as usize,
                // ENABLE_PUSH, ENABLE_CONNECT_PROTOCOL and NO_RFC7540_PRIORITIES are flags.
                2 | 8 | 9 if value > 1 => return Err(Fault::SettingsValue),
                3 => self.limits_pushes = true,
                6 => self.limits_heads = true,
                4 if i64::from(value) > WINDOW_MAX => return Err(Fault::FlowControl),
                4 => self.window = i64::from(value),
                5 if !(16_384..=16_777_215).contains(&value) => return Err(Fault::SettingsValue),
                _ => {}
            }
        }
        if payload.is_empty() {
            Ok(())
        } else {
            Err(Fault::FrameSize)
        }
    }
}

/// Bytes that a stream may send before its window is opened further.
///
/// Before our settings are known a client may send [`WINDOW_BYTES`], so we never allow less.
pub(crate) fn stream_window(limits: &Limits) -> i64 {
    i64::from(limits.body_window_bytes).clamp(WINDOW_BYTES, WINDOW_MAX)
}

/// Bytes that all streams together may send before the connection's window is opened further.
pub(crate) fn connection_window(limits: &Limits) -> i64 {
    i64::from(limits.h2_window_bytes).clamp(WINDOW_BYTES, WINDOW_MAX)
}

/// Appends our settings and the window of the connection.
pub(crate) fn announce(out: &mut Vec<u8>, limits: &Limits, extended_connect: bool) {
    let window = u32::try_from(stream_window(limits)).unwrap_or_default();
    let mut values = Vec::from([
        (0x3, limits.h2_streams_max),
        (0x4, window),
        (0x6, limits.head_bytes_max),
        // The tree of priorities is ignored, urgency is not (RFC 9218 §2.1).
        (0x9, 1),
    ]);
    if extended_connect {
        values.push((0x8, 1));
    }
    frame::settings(out, &values);
    let more = connection_window(limits).saturating_sub(WINDOW_BYTES);
    if let (Ok(more), true) = (u32::try_from(more), more > 0) {
        frame::window_update(out, 0, more);
    }
}

/// Decodes `HTTP2-Settings` (RFC 7540 §3.2.1): base64url without padding.
pub(crate) fn from_base64url(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let (mut bits, mut n_bits) = (0u32, 0u32);
    for &byte in text {
        let value = match byte {
            b'A'..=b'Z' => byte.wrapping_sub(b'A'),
            b'a'..=b'z' => byte.wrapping_sub(b'a').wrapping_add(26),
            b'0'..=b'9' => byte.wrapping_sub(b'0').wrapping_add(52),
            b'-' => 62,
            b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(value);
        n_bits = n_bits.wrapping_add(6);
        if n_bits >= 8 {
            n_bits = n_bits.wrapping_sub(8);
            bytes.push(u8::try_from((bits >> n_bits) & 0xff).unwrap_or_default());
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_what_clients_send_and_refuses_the_impossible() {
        let mut settings = Settings::default();
        // What curl sends: 100 streams, a window of 10 MiB, no push.
        let payload = from_base64url(b"AAMAAABkAAQAoAAAAAIAAAAA").expect("base64url");
        assert_eq!(settings.take(&payload), Ok(()));
        assert_eq!(settings.window, 10 * 1024 * 1024);
        for (payload, fault) in [
            ([0, 4, 0x80, 0, 0, 0], Fault::FlowControl),
            ([0, 2, 0, 0, 0, 2], Fault::SettingsValue),
            ([0, 5, 0, 0, 0, 1], Fault::SettingsValue),
            ([0, 5, 1, 0, 0, 0], Fault::SettingsValue),
        ] {
            assert_eq!(settings.take(&payload), Err(fault));
        }
        assert_eq!(settings.take(&[0; 5]), Err(Fault::FrameSize));
        assert_eq!(settings.take(&[0xff, 0xff, 0, 0, 0, 9]), Ok(()));
        assert_eq!(from_base64url(b"a+b"), None);
    }
}
