//! Frames (RFC 9113 §4, §6): their header, their names, and how ours are written.

use alloc::vec::Vec;

use citius_http::Fault;

/// What a client's side of the connection begins with (§3.4).
pub(crate) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes of a frame header.
pub(crate) const HEADER_BYTES: usize = 9;
/// Bytes of the largest frame either side sends: every peer must accept it (§4.2), and we do not advertise more.
pub(crate) const FRAME_BYTES_MAX: usize = 16_384;
/// The largest window (§6.9.1), and the largest stream number.
pub(crate) const WINDOW_MAX: i64 = 0x7fff_ffff;
/// Bytes of a window before anything is agreed.
pub(crate) const WINDOW_BYTES: i64 = 65_535;

pub(crate) const END_STREAM: u8 = 0x1;
pub(crate) const ACK: u8 = 0x1;
pub(crate) const END_HEADERS: u8 = 0x4;
pub(crate) const PADDED: u8 = 0x8;
pub(crate) const PRIORITY: u8 = 0x20;

/// The types of frames (§6, RFC 9218 §7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Data,
    Headers,
    Priority,
    ResetStream,
    Settings,
    PushPromise,
    Ping,
    GoAway,
    WindowUpdate,
    Continuation,
    PriorityUpdate,
    /// Of no meaning here: skipped (§5.5).
    Unknown,
}

/// Why a stream or a connection ends (§7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Code {
    NoError = 0,
    Protocol = 1,
    Internal = 2,
    FlowControl = 3,
    SettingsTimeout = 4,
    StreamClosed = 5,
    FrameSize = 6,
    RefusedStream = 7,
    Cancel = 8,
    Compression = 9,
    EnhanceYourCalm = 11,
}

impl Code {
    /// What tells the peer of `fault`.
    pub(crate) fn of(fault: Fault) -> Self {
        match fault {
            Fault::Overloaded | Fault::HeadTooSlow => Self::NoError,
            Fault::FlowControl => Self::FlowControl,
            Fault::SettingsTimeout => Self::SettingsTimeout,
            Fault::StreamClosed => Self::StreamClosed,
            Fault::FrameSize => Self::FrameSize,
            Fault::FieldCompression => Self::Compression,
            Fault::ExcessiveLoad | Fault::ExcessiveResets | Fault::StreamStalled => {
                Self::EnhanceYourCalm
            }
            Fault::BodyTooSlow | Fault::BodyTooLong | Fault::StreamReset => Self::Cancel,
            _ if fault.blame() == citius_http::Blame::App => Self::Internal,
            _ => Self::Protocol,
        }
    }
}

/// The nine bytes before a payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) length: usize,
    pub(crate) kind: Kind,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
}

impl Header {
    /// The header at the start of `input`, and what follows it.
    #[inline]
    pub(crate) fn read(input: &[u8]) -> Option<(Self, &[u8])> {
        let ([l0, l1, l2, kind, flags, s0, s1, s2, s3], rest) =
            input.split_first_chunk::<HEADER_BYTES>()?;
        let kind = match kind {
            0 => Kind::Data,
            1 => Kind::Headers,
            2 => Kind::Priority,
            3 => Kind::ResetStream,
            4 => Kind::Settings,
            5 => Kind::PushPromise,
            6 => Kind::Ping,
            7 => Kind::GoAway,
            8 => Kind::WindowUpdate,
            9 => Kind::Continuation,
            16 => Kind::PriorityUpdate,
            _ => Kind::Unknown,
        };
        let header = Self {
            length: u32::from_be_bytes([0, *l0, *l1, *l2]) as usize,
            kind,
            flags: *flags,
            // §4.1: the reserved bit is ignored.
            stream: u32::from_be_bytes([*s0 & 0x7f, *s1, *s2, *s3]),
        };
        Some((header, rest))
    }

    #[inline]
    pub(crate) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// The payload of a frame that may be padded, without its padding (§6.1).
pub(crate) fn without_padding(header: Header, payload: &[u8]) -> Result<&[u8], Fault> {
    if !header.has(PADDED) {
        return Ok(payload);
    }
    let (&n_padding, rest) = payload.split_first().ok_or(Fault::FrameSize)?;
    let length = rest
        .len()
        .checked_sub(usize::from(n_padding))
        .ok_or(Fault::FramePadding)?;
    Ok(rest.get(..length).unwrap_or_default())
}

/// The 31 bits at the start of `payload` of a stream number or an increment, and what follows.
pub(crate) fn number(payload: &[u8]) -> Option<(u32, &[u8])> {
    let (bytes, rest) = payload.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*bytes) & 0x7fff_ffff, rest))
}

/// The header of a frame of ours.
#[inline]
pub(crate) fn header(length: usize, kind: u8, flags: u8, stream: u32) -> [u8; HEADER_BYTES] {
    debug_assert!(length <= FRAME_BYTES_MAX);
    let [_, l0, l1, l2] = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    let [s0, s1, s2, s3] = stream.to_be_bytes();
    [l0, l1, l2, kind, flags, s0, s1, s2, s3]
}

/// Appends the header of a DATA frame.
#[inline]
pub(crate) fn data(out: &mut Vec<u8>, stream: u32, length: usize, ends: bool) {
    let flags = if ends { END_STREAM } else { 0 };
    out.extend_from_slice(&header(length, 0, flags, stream));
}

/// Appends a field block in as many frames as it takes.
pub(crate) fn headers(out: &mut Vec<u8>, stream: u32, block: &[u8], ends: bool) {
    let mut rest = block;
    let mut kind = 1;
    let mut flags = if ends { END_STREAM } else { 0 };
    loop {
        let (now, later) = rest.split_at(rest.len().min(FRAME_BYTES_MAX));
        if later.is_empty() {
            flags |= END_HEADERS;
        }
        out.extend_from_slice(&header(now.len(), kind, flags, stream));
        out.extend_from_slice(now);
        if later.is_empty() {
            return;
        }
        (rest, kind, flags) = (later, 9, 0);
    }
}

/// Appends a `RST_STREAM`.
pub(crate) fn reset(out: &mut Vec<u8>, stream: u32, code: Code) {
    out.extend_from_slice(&header(4, 3, 0, stream));
    out.extend_from_slice(&[0, 0, 0, code as u8]);
}

/// Appends `SETTINGS`.
pub(crate) fn settings(out: &mut Vec<u8>, values: &[(u16, u32)]) {
    out.extend_from_slice(&header(values.len().saturating_mul(6), 4, 0, 0));
    for (name, value) in values {
        out.extend_from_slice(&name.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Appends the acknowledgement of settings.
pub(crate) fn settings_ack(out: &mut Vec<u8>) {
    out.extend_from_slice(&header(0, 4, ACK, 0));
}

/// Appends a `PING`.
pub(crate) fn ping(out: &mut Vec<u8>, payload: &[u8], flags: u8) {
    out.extend_from_slice(&header(8, 6, flags, 0));
    out.extend_from_slice(payload);
}

/// Appends a `GOAWAY`.
pub(crate) fn go_away(out: &mut Vec<u8>, last_stream: u32, code: Code) {
    out.extend_from_slice(&header(8, 7, 0, 0));
    out.extend_from_slice(&last_stream.to_be_bytes());
    out.extend_from_slice(&[0, 0, 0, code as u8]);
}

/// Appends a `WINDOW_UPDATE`.
pub(crate) fn window_update(out: &mut Vec<u8>, stream: u32, increment: u32) {
    out.extend_from_slice(&header(4, 8, 0, stream));
    out.extend_from_slice(&increment.to_be_bytes());
}
