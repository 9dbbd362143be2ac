//! Instructions and field sections of the client's encoder (RFC 9204 §4.3, §4.5).

use alloc::vec::Vec;

use bytes::Bytes;
use citius_http::multiplexed::huffman;
use citius_http::multiplexed::spelling::{integer, put_integer, string};

use crate::fixed;
use crate::number::{self, Coded, Read};
use crate::table::{Entry, Table};

/// Bytes that cannot be read: the connection can't go on (RFC 9204 §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// What came of a field section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// It was read, or given up as its reader wished; it builds on so many insertions.
    Read(u64),
    /// It refers to entries that have not come: it is to be offered again when as many were inserted as this number.
    Blocked(u64),
}

/// What a prefix says of the section behind it.
#[derive(Clone, Copy)]
struct Prefix {
    /// How many insertions the section builds on.
    required: u64,
    base: u64,
}

/// Reads what one client's encoder writes.
#[derive(Debug)]
pub struct Decoder {
    table: Table,
    capacity_max: usize,
    /// The start of an instruction that has not come whole.
    partial: Vec<u8>,
    /// Insertions that the encoder knows to have arrived.
    n_acknowledged: u64,
    /// Where strings are put together; kept for its memory.
    name: Vec<u8>,
    value: Vec<u8>,
    /// How often a capacity was set or an entry inserted: as long as it stays, the same section means the same.
    generation: u64,
}

impl Decoder {
    /// With a dynamic table of up to `capacity_max` bytes, which the client is told by `QPACK_MAX_TABLE_CAPACITY`.
    pub fn new(capacity_max: u32) -> Self {
        Self {
            table: Table::new(),
            capacity_max: capacity_max as usize,
            partial: Vec::new(),
            n_acknowledged: 0,
            name: Vec::new(),
            value: Vec::new(),
            generation: 0,
        }
    }

    /// As long as it stays the same, the same section means the same.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// How many entries were inserted so far.
    #[inline]
    pub fn insert_count(&self) -> u64 {
        self.table.insert_count()
    }

    /// Takes bytes of the encoder stream. Counts the instructions that they complete in `n_taken`.
    ///
    /// # Errors
    /// `QPACK_ENCODER_STREAM_ERROR`.
    pub fn instructions(&mut self, input: &[u8], n_taken: &mut u32) -> Result<(), Malformed> {
        if self.partial.is_empty() {
            let mut rest = input;
            while self.instruction(&mut rest)? {
                *n_taken = n_taken.saturating_add(1);
            }
            self.partial.extend_from_slice(rest);
            return Ok(());
        }
        let mut partial = core::mem::take(&mut self.partial);
        partial.extend_from_slice(input);
        let mut rest = partial.as_slice();
        while self.instruction(&mut rest)? {
            *n_taken = n_taken.saturating_add(1);
        }
        let n_read = partial.len().saturating_sub(rest.len());
        partial.drain(..n_read);
        self.partial = partial;
        Ok(())
    }

    /// Takes one instruction, if all of it is there. An entry that is referred to may be evicted by what is made of it, so
    /// its strings are held before.
    fn instruction(&mut self, input: &mut &[u8]) -> Result<bool, Malformed> {
        let Some(&first) = input.first() else {
            return Ok(false);
        };
        let mut rest = *input;
        // A plain string must fit the table; a Huffman-coded one is at most four times as long as what it spells.
        let coded_max = self.table.capacity().saturating_mul(4);
        let entry = if first & 0x80 != 0 {
            let Read::Whole(index) = number::integer(&mut rest, 6)? else {
                return Ok(false);
            };
            let Read::Whole(value) = number::string(&mut rest, 7, coded_max)? else {
                return Ok(false);
            };
            let name = if first & 0x40 != 0 {
                let index = usize::try_from(index).map_err(|_| Malformed)?;
                let (name, _) = fixed::FIELDS.get(index).ok_or(Malformed)?;
                Bytes::from_static(name)
            } else {
                self.table.latest(index).ok_or(Malformed)?.name.clone()
            };
            let value = self.spelled(value)?;
            Entry { name, value }
        } else if first & 0x40 != 0 {
            let Read::Whole(name) = number::string(&mut rest, 5, coded_max)? else {
                return Ok(false);
            };
            let Read::Whole(value) = number::string(&mut rest, 7, coded_max)? else {
                return Ok(false);
            };
            let name = self.spelled(name)?;
            let value = self.spelled(value)?;
            Entry { name, value }
        } else if first & 0x20 != 0 {
            let Read::Whole(capacity) = number::integer(&mut rest, 5)? else {
                return Ok(false);
            };
            let capacity = usize::try_from(capacity).map_err(|_| Malformed)?;
            if capacity > self.capacity_max {
                return Err(Malformed);
            }
            self.table.resize(capacity);
            self.generation = self.generation.wrapping_add(1);
            *input = rest;
            return Ok(true);
        } else {
            let Read::Whole(index) = number::integer(&mut rest, 5)? else {
                return Ok(false);
            };
            self.table.latest(index).ok_or(Malformed)?.clone()
        };
        self.table.insert(entry).ok_or(Malformed)?;
        self.generation = self.generation.wrapping_add(1);
        *input = rest;
        Ok(true)
    }

    /// What a string spells; no more than the table can hold.
    fn spelled(&mut self, coded: Coded<'_>) -> Result<Bytes, Malformed> {
        if !coded.is_huffman {
            return Ok(Bytes::copy_from_slice(coded.bytes));
        }
        self.value.clear();
        huffman::decode(coded.bytes, &mut self.value).ok_or(Malformed)?;
        Ok(Bytes::copy_from_slice(&self.value))
    }

    /// Calls `take` with each field of `section`, in order, until that returns `false`. `Blocked`: it was not called.
    ///
    /// Behind a section that was read, call [`acknowledge`](Self::acknowledge).
    ///
    /// # Errors
    /// `QPACK_DECOMPRESSION_FAILED`.
    #[inline]
    pub fn decode(
        &mut self,
        mut section: &[u8],
        mut take: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<Section, Malformed> {
        let prefix = self.prefix(&mut section)?;
        if prefix.required > self.table.insert_count() {
            return Ok(Section::Blocked(prefix.required));
        }
        while let [first, ..] = *section {
            let goes_on = if first & 0x80 != 0 {
                let index = integer(&mut section, 6).ok_or(Malformed)?;
                if first & 0x40 != 0 {
                    let (name, value) = fixed::FIELDS.get(index).ok_or(Malformed)?;
                    take(name, value)
                } else {
                    let entry = self.before_base(prefix, index).ok_or(Malformed)?;
                    take(&entry.name, &entry.value)
                }
            } else if first & 0x40 != 0 {
                let index = integer(&mut section, 4).ok_or(Malformed)?;
                self.value.clear();
                string(&mut section, 7, &mut self.value).ok_or(Malformed)?;
                if first & 0x10 != 0 {
                    let (name, _) = fixed::FIELDS.get(index).ok_or(Malformed)?;
                    take(name, &self.value)
                } else {
                    let entry = self.before_base(prefix, index).ok_or(Malformed)?;
                    take(&entry.name, &self.value)
                }
            } else if first & 0x20 != 0 {
                self.name.clear();
                self.value.clear();
                string(&mut section, 3, &mut self.name).ok_or(Malformed)?;
                string(&mut section, 7, &mut self.value).ok_or(Malformed)?;
                take(&self.name, &self.value)
            } else if first & 0x10 != 0 {
                let index = integer(&mut section, 4).ok_or(Malformed)?;
                let entry = self.behind_base(prefix, index).ok_or(Malformed)?;
                take(&entry.name, &entry.value)
            } else {
                let index = integer(&mut section, 3).ok_or(Malformed)?;
                self.value.clear();
                string(&mut section, 7, &mut self.value).ok_or(Malformed)?;
                let entry = self.behind_base(prefix, index).ok_or(Malformed)?;
                take(&entry.name, &self.value)
            };
            if !goes_on {
                break;
            }
        }
        Ok(Section::Read(prefix.required))
    }

    /// Takes the prefix of a section (§4.5.1).
    #[inline]
    fn prefix(&self, section: &mut &[u8]) -> Result<Prefix, Malformed> {
        if let [0, 0, rest @ ..] = *section {
            *section = rest;
            return Ok(Prefix {
                required: 0,
                base: 0,
            });
        }
        let encoded = match number::integer(section, 8)? {
            Read::Whole(encoded) => encoded,
            Read::Partial => return Err(Malformed),
        };
        let required = self.required_insert_count(encoded)?;
        let is_negative = section.first().ok_or(Malformed)? & 0x80 != 0;
        let delta = match number::integer(section, 7)? {
            Read::Whole(delta) => delta,
            Read::Partial => return Err(Malformed),
        };
        let base = if is_negative {
            required
                .checked_sub(delta)
                .and_then(|base| base.checked_sub(1))
        } else {
            required.checked_add(delta)
        };
        Ok(Prefix {
            required,
            base: base.ok_or(Malformed)?,
        })
    }

    /// Reconstructs the required insert count (§4.5.1.1).
    fn required_insert_count(&self, encoded: u64) -> Result<u64, Malformed> {
        if encoded == 0 {
            return Ok(0);
        }
        let entries_max = (self.capacity_max / 32) as u64;
        let range = entries_max.saturating_mul(2);
        if encoded > range {
            return Err(Malformed);
        }
        let most = self.table.insert_count().saturating_add(entries_max);
        let wrapped = most
            .checked_div(range)
            .ok_or(Malformed)?
            .saturating_mul(range);
        let mut required = wrapped.saturating_add(encoded).saturating_sub(1);
        if required > most {
            required = required.checked_sub(range).ok_or(Malformed)?;
        }
        if required == 0 {
            return Err(Malformed);
        }
        Ok(required)
    }

    /// The entry `index` entries before the base; only one that the section may build on.
    #[inline]
    fn before_base(&self, prefix: Prefix, index: usize) -> Option<&Entry> {
        let index = prefix.base.checked_sub(index as u64)?.checked_sub(1)?;
        (index < prefix.required).then(|| self.table.at(index))?
    }

    /// The entry `index` entries behind the base.
    #[inline]
    fn behind_base(&self, prefix: Prefix, index: usize) -> Option<&Entry> {
        let index = prefix.base.checked_add(index as u64)?;
        (index < prefix.required).then(|| self.table.at(index))?
    }

    /// Appends to the decoder stream that a section of `stream` was read which builds on `required` insertions, if the
    /// encoder has to know that (§4.4.1).
    #[inline]
    pub fn acknowledge(&mut self, stream: u64, required: u64, out: &mut Vec<u8>) {
        if required > 0 {
            self.n_acknowledged = self.n_acknowledged.max(required);
            put_integer(out, 0x80, 7, usize::try_from(stream).unwrap_or(usize::MAX));
        }
    }

    /// Appends to the decoder stream that no section of `stream` will be read any more (§4.4.2).
    pub fn cancel(&self, stream: u64, out: &mut Vec<u8>) {
        if self.capacity_max > 0 {
            put_integer(out, 0x40, 6, usize::try_from(stream).unwrap_or(usize::MAX));
        }
    }

    /// Appends to the decoder stream how many entries have come that no acknowledgement has told of (§4.4.3).
    #[inline]
    pub fn count_insertions(&mut self, out: &mut Vec<u8>) {
        let n_new = self
            .table
            .insert_count()
            .saturating_sub(self.n_acknowledged);
        if n_new > 0 {
            self.n_acknowledged = self.table.insert_count();
            put_integer(out, 0, 6, usize::try_from(n_new).unwrap_or(usize::MAX));
        }
    }

    #[cfg(test)]
    pub(crate) fn sizes(&self) -> (usize, usize) {
        (self.table.size(), self.partial.len())
    }
}
