//! Field blocks to fields.

use alloc::vec::Vec;

use citius_http::multiplexed::spelling::{integer, string};

use super::TABLE_BYTES;
use super::table::Table;

/// Reads the blocks of one direction, in their order.
#[derive(Debug)]
pub(crate) struct Decoder {
    table: Table,
    /// Where strings are put together; kept for its memory.
    name: Vec<u8>,
    value: Vec<u8>,
}

/// The block can't be read, and neither can those behind it (RFC 7541 §3.1: a connection error).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl Decoder {
    pub(crate) fn new() -> Self {
        Self {
            table: Table::new(TABLE_BYTES),
            name: Vec::new(),
            value: Vec::new(),
        }
    }

    /// As long as it stays the same, the same block means the same.
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.table.generation()
    }

    /// Calls `take` with each field of `block`, in order.
    ///
    /// # Errors
    /// `Malformed`, after which the connection can't go on.
    pub(crate) fn decode(
        &mut self,
        mut block: &[u8],
        mut take: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), Malformed> {
        // §4.2: changes of size stand at the beginning of a block, the smallest and the last since the one before.
        let mut resizes_left = 2u8;
        while let [first, ..] = *block {
            if first & 0x80 != 0 {
                let index = integer(&mut block, 7).ok_or(Malformed)?;
                let (name, value) = self.table.field(index).ok_or(Malformed)?;
                take(name, value);
            } else if first & 0x40 != 0 {
                self.literal(&mut block, 6)?;
                self.table.insert(&self.name, &self.value);
                take(&self.name, &self.value);
            } else if first & 0x20 != 0 {
                let size_max = integer(&mut block, 5).ok_or(Malformed)?;
                resizes_left = resizes_left.checked_sub(1).ok_or(Malformed)?;
                if size_max > TABLE_BYTES {
                    return Err(Malformed);
                }
                self.table.resize(size_max);
                continue;
            } else {
                self.literal(&mut block, 4)?;
                take(&self.name, &self.value);
            }
            resizes_left = 0;
        }
        Ok(())
    }

    /// Reads a literal field into `name` and `value`.
    fn literal(&mut self, block: &mut &[u8], prefix_bits: u32) -> Result<(), Malformed> {
        let index = integer(block, prefix_bits).ok_or(Malformed)?;
        self.name.clear();
        self.value.clear();
        if index == 0 {
            string(block, 7, &mut self.name).ok_or(Malformed)?;
        } else {
            let (name, _) = self.table.field(index).ok_or(Malformed)?;
            self.name.extend_from_slice(name);
        }
        string(block, 7, &mut self.value).ok_or(Malformed)
    }
}

#[cfg(test)]
impl Decoder {
    pub(super) fn with_table_bytes(bytes: usize) -> Self {
        let mut decoder = Self::new();
        decoder.table.resize(bytes);
        decoder
    }

    pub(super) fn table_size(&self) -> usize {
        self.table.size()
    }
}
