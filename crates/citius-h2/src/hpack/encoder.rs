//! Fields to field blocks.

use alloc::vec::Vec;

use citius_http::multiplexed::spelling::{put_integer, put_string};

use super::TABLE_BYTES;
use super::table::{Table, static_field, static_name};

/// How a field is spelled that is in no table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Indexing {
    /// Into the dynamic table: it will be said again.
    Keep,
    /// Not into it.
    Once,
    /// Not into it, and into no proxy's either: a secret (RFC 7541 §7.1.3).
    Never,
}

/// Writes the blocks of one direction, in their order.
#[derive(Debug)]
pub(crate) struct Encoder {
    table: Table,
    /// The smallest size since the last block and the one at its end, if they have to be told.
    resized: Option<(usize, usize)>,
}

impl Encoder {
    pub(crate) fn new() -> Self {
        Self {
            table: Table::new(TABLE_BYTES),
            resized: None,
        }
    }

    /// As long as it stays the same, the same block means the same.
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.table.generation()
    }

    /// The peer allows its table so many bytes; more than [`TABLE_BYTES`] are not used.
    pub(crate) fn allow(&mut self, bytes: usize) {
        let size_max = bytes.min(TABLE_BYTES);
        if size_max == self.table.size_max() && self.resized.is_none() {
            return;
        }
        let smallest = self
            .resized
            .map_or(size_max, |(smallest, _)| smallest.min(size_max));
        self.table.resize(size_max);
        self.resized = Some((smallest, size_max));
    }

    /// What a block has to begin with.
    #[inline]
    pub(crate) fn begin(&mut self, out: &mut Vec<u8>) {
        if let Some((smallest, last)) = self.resized.take() {
            if smallest < last {
                put_integer(out, 0x20, 5, smallest);
            }
            put_integer(out, 0x20, 5, last);
        }
    }

    /// The field of a number below 64 in one of the tables.
    #[inline]
    pub(crate) fn static_index(out: &mut Vec<u8>, index: u8) {
        out.push(0x80 | index);
    }

    /// Appends a field.
    pub(crate) fn field(&mut self, out: &mut Vec<u8>, name: &[u8], value: &[u8], how: Indexing) {
        let named = static_name(name);
        if how != Indexing::Never {
            let known = named
                .and_then(|first| static_field(first, name, value))
                .or_else(|| self.table.find(name, value));
            if let Some(index) = known {
                return put_integer(out, 0x80, 7, index);
            }
        }
        let (pattern, prefix_bits) = match how {
            Indexing::Keep => (0x40, 6),
            Indexing::Once => (0x00, 4),
            Indexing::Never => (0x10, 4),
        };
        if let Some(index) = named {
            put_integer(out, pattern, prefix_bits, index);
        } else {
            out.push(pattern);
            put_string(out, 0, 7, name);
        }
        put_string(out, 0, 7, value);
        if how == Indexing::Keep {
            self.table.insert(name, value);
        }
    }
}
