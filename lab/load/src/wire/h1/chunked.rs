//! A chunked body (RFC 9112 §7.1): bytes in, payload out, wherever the cuts are.
//!
//! Chunk extensions and trailers are skipped; both are bounded by [`LINE_BYTES_MAX`].

use crate::wire::Fault;

/// Where in the body the reader is.
///
/// ```text
///  Size --> Extension --> SizeEnd --(0)--> TrailerStart --> LastEnd --> complete
///   ^                        |               |      ^
///   |                      (> 0)          Trailer --+
///   +-- DataEnd2 <- DataEnd1 <- Data
/// ```
#[derive(Debug)]
pub(super) struct Chunked {
    state: State,
    /// Of the size while it is read, then bytes of data to come.
    left: u64,
    /// Digits of the size, then bytes of the extension or trailers.
    n_line: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Size,
    Extension,
    SizeEnd,
    Data,
    DataEnd1,
    DataEnd2,
    TrailerStart,
    Trailer,
    TrailerEnd,
    LastEnd,
}

impl Chunked {
    pub(super) fn new() -> Self {
        Self {
            state: State::Size,
            left: 0,
            n_line: 0,
        }
    }

    /// Reads `input`; returns how much of it belongs to this body, and whether the body is complete.
    pub(super) fn receive(
        &mut self,
        input: &[u8],
        mut body: impl FnMut(&[u8]),
    ) -> Result<(usize, bool), Fault> {
        let mut at = 0;
        while at < input.len() {
            if self.state == State::Data {
                let n_bytes = usize::try_from(self.left).unwrap_or(usize::MAX);
                let n_bytes = n_bytes.min(input.len() - at);
                body(&input[at..at + n_bytes]);
                at += n_bytes;
                self.left -= n_bytes as u64;
                if self.left == 0 {
                    self.state = State::DataEnd1;
                }
                continue;
            }
            let complete = self.step(input[at])?;
            at += 1;
            if complete {
                return Ok((at, true));
            }
        }
        Ok((at, false))
    }

    /// Reads one byte that is not data; true when it was the last of the body.
    fn step(&mut self, byte: u8) -> Result<bool, Fault> {
        self.state = match (self.state, byte) {
            (State::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => self.size_digit(byte)?,
            (State::Size, b'\r') if self.n_line > 0 => State::SizeEnd,
            (State::Size, b';' | b' ' | b'\t') if self.n_line > 0 => State::Extension,
            (State::Extension, b'\r') => State::SizeEnd,
            (State::Extension, byte) => self.line_byte(byte, State::Extension)?,
            (State::SizeEnd, b'\n') => {
                self.n_line = 0;
                if self.left == 0 {
                    State::TrailerStart
                } else {
                    State::Data
                }
            }
            (State::DataEnd1, b'\r') => State::DataEnd2,
            (State::DataEnd2, b'\n') => State::Size,
            (State::TrailerStart, b'\r') => State::LastEnd,
            (State::Trailer, b'\r') => State::TrailerEnd,
            (State::TrailerStart | State::Trailer, byte) => self.line_byte(byte, State::Trailer)?,
            (State::TrailerEnd, b'\n') => State::TrailerStart,
            (State::LastEnd, b'\n') => return Ok(true),
            _ => return Err(Fault::Chunk),
        };
        Ok(false)
    }

    fn size_digit(&mut self, digit: u8) -> Result<State, Fault> {
        if self.n_line == SIZE_DIGITS_MAX {
            return Err(Fault::Chunk);
        }
        self.n_line += 1;
        let value = char::from(digit).to_digit(16).ok_or(Fault::Chunk)?;
        self.left = self.left << 4 | u64::from(value);
        Ok(State::Size)
    }

    fn line_byte(&mut self, byte: u8, state: State) -> Result<State, Fault> {
        self.n_line += 1;
        if byte == b'\n' || self.n_line > LINE_BYTES_MAX {
            return Err(Fault::Chunk);
        }
        Ok(state)
    }
}

/// Hexadecimal digits of a size that 64 bits hold.
const SIZE_DIGITS_MAX: usize = 16;
/// Bytes of one extension, or of all trailers. Exceeded: a protocol error.
const LINE_BYTES_MAX: usize = 16 * 1024;
