//! Chunked transfer coding (RFC 9112 §7.1): coded bytes in, pieces of the body and its trailers out.
//!
//! Holds no byte back but those of an unfinished trailer section, and reads every other byte once. Strict
//! in full: a size is hexadecimal digits and nothing else, an extension follows the grammar, lines end in CRLF,
//! the last one included. Cases: `vectors/h1/chunked`, `vectors/h1/limits`.
//!
//! ```text
//!            ┌───────────────────────────── CRLF ◄──────── Data ◄─┐
//!            ▼                                                    │ size > 0
//! start ─► Size ─► (BWS ";" extension)* ─► CR ─► SizeLf ─► LF ─┤
//!                                                                 │ size = 0
//!                                                  Trailers ◄─────┘
//! ```

use citius_http::fields::{is_forbidden_trailer, is_token_byte, is_value_byte};
use citius_http::{Fault, Fields};

use crate::lines;

/// What a body in chunks may cost.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_field_names, reason = "the names of the limits")]
pub(crate) struct Limits {
    pub(crate) chunk_size_digits_max: u32,
    pub(crate) chunk_extension_bytes_max: u32,
    pub(crate) trailer_bytes_max: u32,
    pub(crate) fields_max: u32,
}

impl From<&citius_http::Limits> for Limits {
    #[inline]
    fn from(limits: &citius_http::Limits) -> Self {
        Self {
            chunk_size_digits_max: limits.chunk_size_digits_max,
            chunk_extension_bytes_max: limits.chunk_extension_bytes_max,
            trailer_bytes_max: limits.trailer_bytes_max,
            fields_max: limits.fields_max,
        }
    }
}

/// What [`Chunked::decode`] found.
#[derive(Debug)]
pub(crate) enum Piece<'i> {
    /// Body bytes; never empty.
    Data(&'i [u8]),
    /// The end of the body.
    End(Fields),
    /// More input is needed.
    Starved,
    /// There are body bytes, and no credit for them.
    NoCredit,
}

/// The decoder of one body.
#[derive(Debug)]
pub(crate) struct Chunked {
    /// Size of the current chunk as far as it is read; then, the bytes of it still to come.
    left: u64,
    /// Sizes of all chunks so far.
    total: u64,
    /// What they may add up to.
    pub(crate) bytes_max: u64,
    /// Bytes of all extensions so far.
    extension_bytes: u32,
    /// Digits of the current size so far.
    digits: u32,
    /// Bytes of the trailer section already searched for its end.
    searched: u32,
    state: State,
}

/// What the next byte is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Size,
    /// White space behind the size; only an extension may follow.
    SizeSpace,
    ExtensionName,
    ExtensionNameRest,
    ExtensionNameSpace,
    ExtensionValue,
    ExtensionValueRest,
    ExtensionQuoted,
    ExtensionQuotedPair,
    ExtensionQuotedEnd,
    ExtensionValueSpace,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    Trailers,
}

impl Chunked {
    /// At the start of a body.
    pub(crate) const fn new() -> Self {
        Self {
            left: 0,
            total: 0,
            bytes_max: u64::MAX,
            extension_bytes: 0,
            digits: 0,
            searched: 0,
            state: State::Size,
        }
    }

    /// Takes bytes off `input` up to the next piece, which is at most `credit` bytes of data.
    ///
    /// # Errors
    /// The broken rule; the decoder is unusable afterwards.
    pub(crate) fn decode<'i>(
        &mut self,
        input: &mut &'i [u8],
        credit: u64,
        limits: &Limits,
    ) -> Result<Piece<'i>, Fault> {
        loop {
            match self.state {
                State::Data if self.left == 0 => self.state = State::DataCr,
                State::Data => return Ok(self.take_data(input, credit)),
                State::Trailers => return self.take_trailers(input, limits),
                _ => {
                    let Some((&byte, rest)) = input.split_first() else {
                        return Ok(Piece::Starved);
                    };
                    *input = rest;
                    self.state = self.step(byte, limits)?;
                }
            }
        }
    }

    /// Whether only credit, not input, can bring the next piece.
    pub(crate) fn is_in_data(&self) -> bool {
        self.state == State::Data && self.left > 0
    }

    /// Whether a byte of the body has been read.
    pub(crate) fn is_begun(&self) -> bool {
        self.total > 0 || self.digits > 0 || self.state != State::Size
    }

    fn take_data<'i>(&mut self, input: &mut &'i [u8], credit: u64) -> Piece<'i> {
        if input.is_empty() {
            return Piece::Starved;
        }
        let size = usize::try_from(self.left.min(credit)).unwrap_or(usize::MAX);
        let (data, rest) = input.split_at_checked(size).unwrap_or((*input, &[]));
        if data.is_empty() {
            return Piece::NoCredit;
        }
        *input = rest;
        self.left = self.left.saturating_sub(data.len() as u64);
        Piece::Data(data)
    }

    /// The state behind one byte of a size line or of the CRLF that ends a chunk.
    fn step(&mut self, byte: u8, limits: &Limits) -> Result<State, Fault> {
        match (self.state, byte) {
            (State::Size, b'\r') if self.digits > 0 => Ok(State::SizeLf),
            (State::Size, b'\n') if self.digits > 0 => Err(Fault::LineEnding),
            (State::Size, b';' | b' ' | b'\t') if self.digits > 0 => self.extension(byte, limits),
            (State::Size, _) => self.digit(byte, limits),
            (State::SizeLf, b'\n') => self.size_done(),
            (State::SizeLf, _) => Err(Fault::LineEnding),
            (State::DataCr, b'\r') => Ok(State::DataLf),
            (State::DataLf, b'\n') => {
                self.digits = 0;
                Ok(State::Size)
            }
            (State::DataCr | State::DataLf, _) => Err(Fault::ChunkEnd),
            _ => self.extension(byte, limits),
        }
    }

    fn digit(&mut self, byte: u8, limits: &Limits) -> Result<State, Fault> {
        let digit = char::from(byte).to_digit(16).ok_or(Fault::ChunkSize)?;
        self.digits = self.digits.saturating_add(1);
        if self.digits > limits.chunk_size_digits_max {
            return Err(Fault::ChunkSize);
        }
        let shifted = self.left.checked_mul(16).ok_or(Fault::ChunkSize)?;
        self.left = shifted | u64::from(digit);
        Ok(State::Size)
    }

    fn size_done(&mut self) -> Result<State, Fault> {
        if self.left == 0 {
            return Ok(State::Trailers);
        }
        self.total = self.total.saturating_add(self.left);
        if self.total > self.bytes_max {
            return Err(Fault::BodyTooLong);
        }
        Ok(State::Data)
    }

    /// `*( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] )` (RFC 9112 §7.1.1).
    fn extension(&mut self, byte: u8, limits: &Limits) -> Result<State, Fault> {
        use State::{
            ExtensionName, ExtensionNameRest, ExtensionNameSpace, ExtensionQuoted,
            ExtensionQuotedEnd, ExtensionQuotedPair, ExtensionValue, ExtensionValueRest,
            ExtensionValueSpace, Size, SizeLf, SizeSpace,
        };
        if byte != b'\r' {
            self.extension_bytes = self.extension_bytes.saturating_add(1);
        }
        if self.extension_bytes > limits.chunk_extension_bytes_max {
            return Err(Fault::ChunkExtension);
        }
        match (self.state, byte) {
            (_, b'\n') => Err(Fault::LineEnding),
            (ExtensionQuotedPair, b) if is_value_byte(b) => Ok(ExtensionQuoted),
            (ExtensionQuoted, b'"') => Ok(ExtensionQuotedEnd),
            (ExtensionQuoted, b'\\') => Ok(ExtensionQuotedPair),
            (ExtensionQuoted, b) if is_value_byte(b) => Ok(ExtensionQuoted),
            (ExtensionQuoted | ExtensionQuotedPair, _) => Err(Fault::ChunkExtension),
            (Size | SizeSpace, b' ' | b'\t') => Ok(SizeSpace),
            // White space behind a size is part of an extension or of nothing.
            (SizeSpace, b) if b != b';' => Err(Fault::ChunkSize),
            (ExtensionName | ExtensionValue, b' ' | b'\t') => Ok(self.state),
            (ExtensionNameRest | ExtensionNameSpace, b' ' | b'\t') => Ok(ExtensionNameSpace),
            (_, b' ' | b'\t') => Ok(ExtensionValueSpace),
            (ExtensionName | ExtensionNameRest, b) if is_token_byte(b) => Ok(ExtensionNameRest),
            (ExtensionValue | ExtensionValueRest, b) if is_token_byte(b) => Ok(ExtensionValueRest),
            (ExtensionNameRest | ExtensionNameSpace, b'=') => Ok(ExtensionValue),
            (ExtensionValue, b'"') => Ok(ExtensionQuoted),
            (ExtensionName | ExtensionValue, _) => Err(Fault::ChunkExtension),
            (_, b';') => Ok(ExtensionName),
            (ExtensionNameRest | ExtensionValueRest | ExtensionQuotedEnd, b'\r') => Ok(SizeLf),
            _ => Err(Fault::ChunkExtension),
        }
    }

    fn take_trailers<'i>(
        &mut self,
        input: &mut &'i [u8],
        limits: &Limits,
    ) -> Result<Piece<'i>, Fault> {
        if let Some(rest) = input.strip_prefix(b"\r\n") {
            *input = rest;
            return Ok(Piece::End(Fields::EMPTY));
        }
        let window_bytes = (limits.trailer_bytes_max as usize).max(2);
        let window = input.get(..window_bytes).unwrap_or(input);
        let Some(end) = lines::find_end(window, self.searched as usize)? else {
            if window.len() == window_bytes {
                return Err(Fault::TrailersTooLong);
            }
            self.searched = u32::try_from(window.len()).unwrap_or(u32::MAX);
            return Ok(Piece::Starved);
        };
        let (section, rest) = input.split_at_checked(end).unwrap_or_default();
        let trailers = parse_trailers(section, limits)?;
        *input = rest;
        Ok(Piece::End(trailers))
    }
}

fn parse_trailers(section: &[u8], limits: &Limits) -> Result<Fields, Fault> {
    let mut trailers = Fields::default();
    let mut n_fields = 0u32;
    lines::parse_lines(section, |name, value| {
        n_fields = n_fields.saturating_add(1);
        if n_fields > limits.fields_max {
            return Err(Fault::TooManyFields);
        }
        if is_forbidden_trailer(name) {
            return Err(Fault::TrailerForbidden);
        }
        trailers.push(name, value)
    })?;
    Ok(trailers)
}
