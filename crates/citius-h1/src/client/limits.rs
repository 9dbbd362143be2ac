//! What a server may send to a client: unit, default, origin, and what happens when it is reached.

/// Bytes of one response head, status line to blank line. Origin: curl 100 KiB, aiohttp 8 190 a line; twice what a request may
/// have, for cookies are set one a line. Exceeded: the connection is not read further. Vector: `h1-client/limits/head_too_long.t`.
pub const HEAD_BYTES_MAX: u32 = 64 * 1024;

/// Field lines of one head or trailer section. Origin: hyper 100, Go none.
/// Exceeded: the connection is not read further. Vector: `h1-client/limits/too_many_fields.t`.
pub const FIELDS_MAX: u32 = 128;

/// Interim responses before the final one. Origin: Go 5 until 1.23; a server that works for an hour may say so each minute.
/// Exceeded: the connection is not read further. Vector: `h1-client/limits/too_many_interim.t`.
pub const INTERIM_MAX: u32 = 64;

/// Bytes of one body, without its transfer coding. Origin: none; callers know what they ask for.
/// Exceeded: the connection is not read further. Vector: `h1-client/limits/body_too_long.t`.
pub const BODY_BYTES_MAX: u64 = u64::MAX;

/// Hexadecimal digits of one chunk size, leading zeros included. Origin: 2^64 has 16.
/// Exceeded: the connection is not read further. Vector: `h1-client/limits/chunk_size_digits.t`.
pub const CHUNK_SIZE_DIGITS_MAX: u32 = 16;

/// Bytes of chunk extensions in one body. Origin: CVE-2023-39326 (Go) bounds them against the data.
/// Exceeded: the connection is not read further. Vector: `h1-client/limits/chunk_extensions.t`.
pub const CHUNK_EXTENSION_BYTES_MAX: u32 = 16 * 1024;

/// Bytes of one trailer section. Origin: as a head.
/// Exceeded: the connection is not read further. Vector: `h1-client/limits/trailers_too_long.t`.
pub const TRAILER_BYTES_MAX: u32 = 64 * 1024;

/// The limits of one client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the constants of these names")]
#[expect(clippy::struct_field_names, reason = "as everywhere: a limit says so")]
pub struct Limits {
    pub head_bytes_max: u32,
    pub fields_max: u32,
    pub interim_max: u32,
    pub body_bytes_max: u64,
    pub chunk_size_digits_max: u32,
    pub chunk_extension_bytes_max: u32,
    pub trailer_bytes_max: u32,
}

impl Limits {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        head_bytes_max: HEAD_BYTES_MAX,
        fields_max: FIELDS_MAX,
        interim_max: INTERIM_MAX,
        body_bytes_max: BODY_BYTES_MAX,
        chunk_size_digits_max: CHUNK_SIZE_DIGITS_MAX,
        chunk_extension_bytes_max: CHUNK_EXTENSION_BYTES_MAX,
        trailer_bytes_max: TRAILER_BYTES_MAX,
    };

    /// Sets the limit called `name`; `None` if there is no such limit or it cannot hold `value`.
    pub fn set(&mut self, name: &str, value: u64) -> Option<()> {
        let place = match name {
            "head_bytes_max" => &mut self.head_bytes_max,
            "fields_max" => &mut self.fields_max,
            "interim_max" => &mut self.interim_max,
            "body_bytes_max" => {
                self.body_bytes_max = value;
                return Some(());
            }
            "chunk_size_digits_max" => &mut self.chunk_size_digits_max,
            "chunk_extension_bytes_max" => &mut self.chunk_extension_bytes_max,
            "trailer_bytes_max" => &mut self.trailer_bytes_max,
            _ => return None,
        };
        *place = u32::try_from(value).ok()?;
        Some(())
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl From<&Limits> for crate::chunked::Limits {
    #[inline]
    fn from(limits: &Limits) -> Self {
        Self {
            chunk_size_digits_max: limits.chunk_size_digits_max,
            chunk_extension_bytes_max: limits.chunk_extension_bytes_max,
            trailer_bytes_max: limits.trailer_bytes_max,
            fields_max: limits.fields_max,
        }
    }
}
