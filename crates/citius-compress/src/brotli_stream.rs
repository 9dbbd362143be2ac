//! A stream of brotli, into a vector.
//!
//! Google's library in C by the crate `brotlic`. The crate `brotli`, a translation of it to Rust, takes 1.1 to 1.5 times as
//! long and makes the wheel 0.15 MB larger: it has a table of 65 536 logarithms, and its encoder twice.

use std::io;

use brotlic::encode::BrotliOperation;
use brotlic::{BrotliEncoder, BrotliEncoderOptions, Quality, WindowSize};

/// Bytes that the encoder gives at once.
const STEP_BYTES: usize = 4096;

/// One response being compressed.
pub(crate) struct BrotliStream {
    encoder: BrotliEncoder,
    coded: Vec<u8>,
}

impl BrotliStream {
    /// A stream at a level of 0 to 11, with a window of two to the power of `window_log` (10 to 24) bytes, whose bytes go to
    /// `coded`.
    ///
    /// # Errors
    /// The level or the window is out of range.
    pub(crate) fn new(coded: Vec<u8>, level: u8, window_log: u8) -> io::Result<Self> {
        let encoder = BrotliEncoderOptions::new()
            .quality(Quality::new(level).map_err(io::Error::other)?)
            .window_size(WindowSize::new(window_log).map_err(io::Error::other)?)
            .build()
            .map_err(io::Error::other)?;
        Ok(Self { encoder, coded })
    }

    /// # Errors
    /// The stream is finished.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.encode(BrotliOperation::Process, bytes)
    }

    /// Gives all that was written to [`coded`](Self::coded).
    ///
    /// # Errors
    /// The stream is finished.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.encode(BrotliOperation::Flush, &[])
    }

    /// # Errors
    /// The stream is finished.
    pub(crate) fn finish(mut self) -> io::Result<Vec<u8>> {
        self.encode(BrotliOperation::Finish, &[])?;
        Ok(self.coded)
    }

    /// What has come out so far.
    pub(crate) const fn coded(&mut self) -> &mut Vec<u8> {
        &mut self.coded
    }

    fn encode(&mut self, operation: BrotliOperation, mut bytes: &[u8]) -> io::Result<()> {
        let mut step = [0; STEP_BYTES];
        loop {
            let done = self
                .encoder
                .compress(bytes, &mut step, operation)
                .map_err(io::Error::other)?;
            // The encoder reads and gives no more than it was told there is.
            bytes = bytes.get(done.bytes_read..).unwrap_or(&[]);
            self.coded
                .extend_from_slice(step.get(..done.bytes_written).unwrap_or(&[]));
            if bytes.is_empty() && !self.encoder.has_output() {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn decoded(coded: &[u8]) -> Vec<u8> {
        let mut plain = Vec::new();
        brotlic::DecompressorReader::new(coded)
            .read_to_end(&mut plain)
            .unwrap();
        plain
    }

    #[test]
    fn pieces_of_any_size_and_flushes_give_the_text_again() {
        let text: Vec<u8> = (0_u32..20_000)
            .flat_map(|number| (number * number % 1009).to_string().into_bytes())
            .collect();
        for level in [0, 1, 4, 9, 11] {
            for piece_bytes in [1 << 20, 10_000, 333] {
                let mut stream = BrotliStream::new(Vec::new(), level, 17).unwrap();
                for (number, piece) in text.chunks(piece_bytes).enumerate() {
                    stream.write(piece).unwrap();
                    if number % 5 == 4 {
                        stream.flush().unwrap();
                    }
                }
                let coded = stream.finish().unwrap();
                assert!(coded.len() < text.len(), "{level} {piece_bytes}");
                assert!(decoded(&coded) == text, "{level} {piece_bytes}");
            }
        }
    }

    #[test]
    fn nothing_is_a_stream_too() {
        let stream = BrotliStream::new(Vec::new(), 4, 10).unwrap();
        assert!(decoded(&stream.finish().unwrap()).is_empty());
    }

    #[test]
    fn a_level_or_a_window_out_of_range_is_an_error() {
        assert!(BrotliStream::new(Vec::new(), 12, 17).is_err());
        assert!(BrotliStream::new(Vec::new(), 4, 9).is_err());
        assert!(BrotliStream::new(Vec::new(), 4, 25).is_err());
    }
}
