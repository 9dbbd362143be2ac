//! The three codings behind one call.
//!
//! Default levels are the ones at which a server is not yet slower than the network it saves: gzip 4, brotli 4,
//! zstd 3. Windows of streams are small, because each stream keeps its own.

use std::io::{self, Write};

use citius_http::coding::Coding;
use flate2::write::GzEncoder;

use crate::brotli_stream::BrotliStream;

/// Two to this power bytes; the same for brotli and zstd.
const STREAM_WINDOW_LOG: u8 = 17;
const WHOLE_WINDOW_LOG: u8 = 20;

/// How much work each coding does to save bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    brotli: u8,
    zstd: u8,
    gzip: u8,
}

impl Default for Levels {
    fn default() -> Self {
        Self {
            brotli: 4,
            zstd: 3,
            gzip: 4,
        }
    }
}

impl Levels {
    /// The lowest and the highest level of a coding.
    pub const fn range(coding: Coding) -> (u8, u8) {
        match coding {
            Coding::Brotli => (0, 11),
            Coding::Zstd => (1, 22),
            Coding::Gzip => (1, 9),
        }
    }

    /// Has `coding` work at `level`, or at the nearest one that it has.
    pub fn set(&mut self, coding: Coding, level: u8) {
        let (lowest, highest) = Self::range(coding);
        *match coding {
            Coding::Brotli => &mut self.brotli,
            Coding::Zstd => &mut self.zstd,
            Coding::Gzip => &mut self.gzip,
        } = level.clamp(lowest, highest);
    }
}

/// One response being compressed.
pub(crate) enum Encoder {
    Gzip(GzEncoder<Vec<u8>>),
    Brotli(BrotliStream),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Encoder {
    /// A stream, or a whole response of `length` bytes.
    pub(crate) fn new(coding: Coding, levels: Levels, length: Option<usize>) -> io::Result<Self> {
        let window_log = match length {
            // No more than the response fills.
            Some(length) => (10..WHOLE_WINDOW_LOG)
                .find(|log| length >> log == 0)
                .unwrap_or(WHOLE_WINDOW_LOG),
            None => STREAM_WINDOW_LOG,
        };
        let room = Vec::with_capacity(length.map_or(0, |length| length / 3));
        Ok(match coding {
            Coding::Gzip => Self::Gzip(GzEncoder::new(
                room,
                flate2::Compression::new(levels.gzip.into()),
            )),
            Coding::Brotli => Self::Brotli(BrotliStream::new(room, levels.brotli, window_log)?),
            Coding::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(room, levels.zstd.into())?;
                encoder.window_log(window_log.into())?;
                encoder.include_contentsize(false)?;
                Self::Zstd(encoder)
            }
        })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Gzip(encoder) => encoder.write_all(bytes),
            Self::Brotli(encoder) => encoder.write(bytes),
            Self::Zstd(encoder) => encoder.write_all(bytes),
        }
    }

    /// Sees to it that what is [`take`](Self::take)n next lets the client have all that was written.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Gzip(encoder) => encoder.flush(),
            Self::Brotli(encoder) => encoder.flush(),
            Self::Zstd(encoder) => encoder.flush(),
        }
    }

    /// What has come out so far.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(match self {
            Self::Gzip(encoder) => encoder.get_mut(),
            Self::Brotli(encoder) => encoder.coded(),
            Self::Zstd(encoder) => encoder.get_mut(),
        })
    }

    /// The rest.
    pub(crate) fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip(encoder) => encoder.finish(),
            Self::Brotli(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn decode(coding: Coding, coded: &[u8]) -> Vec<u8> {
        let mut plain = Vec::new();
        // What is there so far of an unfinished stream ends in an error, after all of it was given.
        let _ = match coding {
            Coding::Gzip => flate2::read::GzDecoder::new(coded).read_to_end(&mut plain),
            Coding::Brotli => brotlic::DecompressorReader::new(coded).read_to_end(&mut plain),
            Coding::Zstd => zstd::stream::read::Decoder::new(coded)
                .unwrap()
                .read_to_end(&mut plain),
        };
        plain
    }

    #[test]
    fn a_higher_level_gives_fewer_bytes() {
        let mut n = 1_u32;
        let plain: Vec<u8> = (0..200_000)
            .map(|_| {
                n = n.wrapping_mul(1_103_515_245).wrapping_add(12345);
                b"the quick brown fox; "[((n >> 16) % 21 * ((n >> 24) % 3) / 2) as usize]
            })
            .collect();
        for coding in Coding::ALL {
            let (lowest, highest) = Levels::range(coding);
            let coded = [lowest, highest, u8::MAX].map(|level| {
                let mut levels = Levels::default();
                levels.set(coding, level);
                let mut encoder = Encoder::new(coding, levels, Some(plain.len())).unwrap();
                encoder.write(&plain).unwrap();
                encoder.finish().unwrap()
            });
            assert!(coded[1].len() < coded[0].len(), "{coding:?}");
            assert_eq!(coded[1], coded[2], "{coding:?}");
            assert_eq!(decode(coding, &coded[1]), plain);
        }
    }

    #[test]
    fn wholes_come_back() {
        for coding in Coding::ALL {
            for length in [1, 1000, 5000, 300_000, 2_000_000] {
                let plain: Vec<u8> = b"abc, and so on; "
                    .iter()
                    .copied()
                    .cycle()
                    .take(length)
                    .collect();
                let mut encoder = Encoder::new(coding, Levels::default(), Some(length)).unwrap();
                encoder.write(&plain).unwrap();
                let coded = encoder.finish().unwrap();
                assert!(
                    length < 100 || coded.len() < length / 3,
                    "{coding:?} {length}"
                );
                assert!(decode(coding, &coded) == plain, "{coding:?} {length}");
            }
        }
    }

    #[test]
    fn each_flush_brings_all_that_was_written() {
        for coding in Coding::ALL {
            let mut encoder = Encoder::new(coding, Levels::default(), None).unwrap();
            let (mut plain, mut coded) = (Vec::new(), Vec::new());
            for piece in ["one ", "two ", &"x".repeat(100_000), "three"].map(str::as_bytes) {
                encoder.write(piece).unwrap();
                plain.extend_from_slice(piece);
                encoder.flush().unwrap();
                coded.extend(encoder.take());
                assert!(decode(coding, &coded) == plain, "{coding:?}");
            }
            coded.extend(encoder.finish().unwrap());
            assert!(decode(coding, &coded) == plain, "{coding:?}");
        }
    }
}
