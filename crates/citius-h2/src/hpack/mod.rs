//! Compressed field sections (RFC 7541): one table a direction, bounded by what was agreed.
//!
//! The decoder decodes every block to its end, even that of a refused head, because the next block depends on the
//! table. The encoder keeps in its table what responses repeat, and writes the rest as plain literals: bytes saved by
//! Huffman coding there would cost more instructions than they are worth.

mod decoder;
mod encoder;
mod table;

pub(crate) use decoder::Decoder;
pub(crate) use encoder::{Encoder, Indexing};

/// Bytes of a table before anything is agreed (RFC 9113 §6.5.2); ours stay at that.
pub(crate) const TABLE_BYTES: usize = 4096;

#[cfg(test)]
mod tests;
