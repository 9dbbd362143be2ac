//! A stream of brotli, into a vector.
//!
//! The crate's own `CompressorWriter` calls its encoder with two callbacks of different types, one as it writes and one as it
//! flushes, and so has the compiler make most of the encoder twice: 0.1 MB of a wheel. Here there is one.

use std::io;

use brotli::enc::StandardAlloc;
use brotli::enc::encode::{
    BrotliEncoderDestroyInstance, BrotliEncoderOperation, BrotliEncoderParameter,
    BrotliEncoderStateStruct,
};

/// Bytes that the encoder gives at once.
const STEP_BYTES: usize = 4096;

/// One response being compressed.
pub(crate) struct BrotliStream {
    state: BrotliEncoderStateStruct<StandardAlloc>,
    coded: Vec<u8>,
}

impl BrotliStream {
    /// A stream at a level of 0 to 11, with a window of two to the power of `window_log` bytes, whose bytes go to `coded`.
    pub(crate) fn new(coded: Vec<u8>, level: u8, window_log: u32) -> Self {
        let mut state = BrotliEncoderStateStruct::new(StandardAlloc::default());
        state.set_parameter(BrotliEncoderParameter::BROTLI_PARAM_QUALITY, level.into());
        state.set_parameter(BrotliEncoderParameter::BROTLI_PARAM_LGWIN, window_log);
        Self { state, coded }
    }

    /// # Errors
    /// The stream is finished.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.encode(BrotliEncoderOperation::BROTLI_OPERATION_PROCESS, bytes)
    }

    /// Gives all that was written to [`coded`](Self::coded).
    ///
    /// # Errors
    /// The stream is finished.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.encode(BrotliEncoderOperation::BROTLI_OPERATION_FLUSH, &[])
    }

    /// # Errors
    /// The stream is finished.
    pub(crate) fn finish(mut self) -> io::Result<Vec<u8>> {
        self.encode(BrotliEncoderOperation::BROTLI_OPERATION_FINISH, &[])?;
        Ok(std::mem::take(&mut self.coded))
    }

    /// What has come out so far.
    pub(crate) const fn coded(&mut self) -> &mut Vec<u8> {
        &mut self.coded
    }

    fn encode(&mut self, operation: BrotliEncoderOperation, bytes: &[u8]) -> io::Result<()> {
        let (mut unread, mut read) = (bytes.len(), 0);
        let mut step = [0; STEP_BYTES];
        loop {
            let (mut room, mut given) = (STEP_BYTES, 0);
            let is_taken = self.state.compress_stream(
                operation,
                &mut unread,
                bytes,
                &mut read,
                &mut room,
                &mut step,
                &mut given,
                &mut None,
                &mut |_, _, _, _| (),
            );
            // The encoder gives no more than it was told there is room for.
            self.coded
                .extend_from_slice(step.get(..given).unwrap_or(&[]));
            if !is_taken {
                return Err(io::Error::other("the brotli stream is finished"));
            }
            let is_done = match operation {
                BrotliEncoderOperation::BROTLI_OPERATION_FINISH => self.state.is_finished(),
                _ => unread == 0 && !self.state.has_more_output(),
            };
            if is_done {
                return Ok(());
            }
        }
    }
}

impl Drop for BrotliStream {
    fn drop(&mut self) {
        BrotliEncoderDestroyInstance(&mut self.state);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_bytes_are_those_of_the_crates_own_writer() {
        let text: Vec<u8> = (0_u32..20_000)
            .flat_map(|number| (number * number % 1009).to_string().into_bytes())
            .collect();
        for level in [0, 1, 4, 9] {
            for piece_bytes in [1 << 20, 10_000, 333] {
                let mut ours = BrotliStream::new(Vec::new(), level, 17);
                let mut theirs =
                    brotli::CompressorWriter::new(Vec::new(), STEP_BYTES, level.into(), 17);
                for (number, piece) in text.chunks(piece_bytes).enumerate() {
                    ours.write(piece).unwrap();
                    theirs.write_all(piece).unwrap();
                    if number % 5 == 4 {
                        ours.flush().unwrap();
                        theirs.flush().unwrap();
                    }
                }
                assert!(
                    ours.finish().unwrap() == theirs.into_inner(),
                    "{level} {piece_bytes}"
                );
            }
        }
    }
}
