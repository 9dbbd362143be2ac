//! Frames of HTTP/2 (RFC 9113 §4 and §6): heads, types, flags, and the few frames that we send.

/// The nine bytes before every payload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FrameHead {
    pub(crate) n_payload: usize,
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
}

impl FrameHead {
    #[inline]
    pub(crate) fn parse(bytes: &[u8; HEAD_BYTES]) -> Self {
        let [a, b, c, kind, flags, stream @ ..] = *bytes;
        Self {
            n_payload: usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c),
            kind,
            flags,
            stream: u32::from_be_bytes(stream) & STREAM_MAX,
        }
    }

    #[inline]
    pub(crate) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    #[inline]
    pub(crate) fn bytes(self) -> [u8; HEAD_BYTES] {
        let n_payload = u32::try_from(self.n_payload).expect("no frame is longer than 2^24");
        let mut bytes = [0; HEAD_BYTES];
        bytes[..3].copy_from_slice(&n_payload.to_be_bytes()[1..]);
        bytes[3] = self.kind;
        bytes[4] = self.flags;
        bytes[5..].copy_from_slice(&self.stream.to_be_bytes());
        bytes
    }
}

/// Our side of the opening: the preface, our settings, and room for what is to come.
pub(crate) fn write_opening(output: &mut Vec<u8>) {
    output.extend_from_slice(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    let settings = [(ENABLE_PUSH, 0), (INITIAL_WINDOW_SIZE, RECEIVE_WINDOW)];
    let head = FrameHead {
        n_payload: settings.len() * 6,
        kind: SETTINGS,
        flags: 0,
        stream: 0,
    }
    .bytes();
    output.extend_from_slice(&head);
    for (name, value) in settings {
        output.extend_from_slice(&u16::to_be_bytes(name));
        output.extend_from_slice(&u32::to_be_bytes(value));
    }
    write_window_update(0, RECEIVE_WINDOW - WINDOW_DEFAULT, output);
}

pub(crate) fn write_window_update(stream: u32, n_bytes: u32, output: &mut Vec<u8>) {
    write_short(WINDOW_UPDATE, 0, stream, &n_bytes.to_be_bytes(), output);
}

pub(crate) fn write_reset(stream: u32, code: u32, output: &mut Vec<u8>) {
    write_short(RST_STREAM, 0, stream, &code.to_be_bytes(), output);
}

pub(crate) fn write_short(kind: u8, flags: u8, stream: u32, payload: &[u8], output: &mut Vec<u8>) {
    let head = FrameHead {
        n_payload: payload.len(),
        kind,
        flags,
        stream,
    };
    output.extend_from_slice(&head.bytes());
    output.extend_from_slice(payload);
}

/// The first four bytes of a payload as a number; `None` if there are fewer.
pub(crate) fn number(payload: &[u8]) -> Option<u32> {
    payload
        .first_chunk()
        .map(|bytes| u32::from_be_bytes(*bytes))
}

pub(crate) const HEAD_BYTES: usize = 9;
pub(crate) const STREAM_MAX: u32 = 0x7FFF_FFFF;
/// A payload, unless we allowed more, which we do not (RFC 9113 §4.2).
pub(crate) const PAYLOAD_BYTES_MAX: usize = 16_384;
/// The initial flow-control window (RFC 9113 §6.9.2).
pub(crate) const WINDOW_DEFAULT: u32 = 65_535;
/// What we let the peer send, on each stream and on the connection: a generator always has room.
pub(crate) const RECEIVE_WINDOW: u32 = (1 << 30) - 1;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PUSH_PROMISE: u8 = 5;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 0x1;
pub(crate) const ACK: u8 = 0x1;
pub(crate) const END_HEADERS: u8 = 0x4;
pub(crate) const PADDED: u8 = 0x8;
pub(crate) const PRIORITISED: u8 = 0x20;

pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
pub(crate) const ENABLE_PUSH: u16 = 2;
pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
pub(crate) const MAX_FRAME_SIZE: u16 = 5;

pub(crate) const PROTOCOL_ERROR: u32 = 1;
pub(crate) const CANCEL: u32 = 8;
