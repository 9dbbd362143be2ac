//! What a server may send to a client over HTTP/2: unit, default, origin, and what happens when it is reached.

/// Bytes of one field section, names and values and 32 for each field (RFC 9113 §6.5.2). Origin: as in HTTP/1.1.
/// Exceeded: the stream is reset; a section that is compressed to more ends the connection. Test:
/// `crates/citius-h2/src/client/tests.rs`.
pub const HEAD_BYTES_MAX: u32 = 64 * 1024;

/// Fields of one section. Origin: as in HTTP/1.1. Exceeded: the stream is reset. Test: `crates/citius-h2/src/client/tests.rs`.
pub const FIELDS_MAX: u32 = 128;

/// Interim responses before the final one. Origin: as in HTTP/1.1. Exceeded: the stream is reset. Test:
/// `crates/citius-h2/src/client/tests.rs`.
pub const INTERIM_MAX: u32 = 64;

/// Bytes of content that a server may send on one stream before some are consumed. Origin: nghttp2 64 KiB, Go 4 MiB.
/// Exceeded: the connection ends. Test: `crates/citius-h2/src/client/tests.rs`.
pub const STREAM_WINDOW_BYTES: u32 = 256 * 1024;

/// The same of all streams before some have come here. Origin: Go 1 GiB, Chromium 15 MiB; what has come is bounded by the windows
/// of the streams. Exceeded: the connection ends. Test: `crates/citius-h2/src/client/tests.rs`.
pub const CONNECTION_WINDOW_BYTES: u32 = 16 * 1024 * 1024;

/// Frames in a row that bring no response on: pings, settings, empty pieces. Origin: CVE-2019-9512 and its kin.
/// Exceeded: the connection ends. Test: `crates/citius-h2/src/client/tests.rs`.
pub const IDLE_FRAMES_MAX: u32 = 1000;

/// Settings and pings whose answers wait to be sent. Origin: Go 10 000, nghttp2 1000.
/// Exceeded: the connection ends. Test: `crates/citius-h2/src/client/tests.rs`.
pub const REPLIES_MAX: u32 = 1000;

/// Requests under way at once, whatever the server allows. Origin: Go and Chromium 100 before settings come.
/// Reached: a request waits, or another connection is made. Test: `crates/citius-h2/src/client/tests.rs`.
pub const STREAMS_MAX: u32 = 100;

/// The limits of one client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the constants of these names")]
pub struct Limits {
    pub head_bytes_max: u32,
    pub fields_max: u32,
    pub interim_max: u32,
    pub stream_window_bytes: u32,
    pub connection_window_bytes: u32,
    pub idle_frames_max: u32,
    pub replies_max: u32,
    pub streams_max: u32,
}

impl Limits {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        head_bytes_max: HEAD_BYTES_MAX,
        fields_max: FIELDS_MAX,
        interim_max: INTERIM_MAX,
        stream_window_bytes: STREAM_WINDOW_BYTES,
        connection_window_bytes: CONNECTION_WINDOW_BYTES,
        idle_frames_max: IDLE_FRAMES_MAX,
        replies_max: REPLIES_MAX,
        streams_max: STREAMS_MAX,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
