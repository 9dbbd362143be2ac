//! The parameters of one execution.

use alloc::vec::Vec;

use bytes::{BufMut, BytesMut};

use crate::description::Description;
use crate::fault::Fault;

/// Parameters as a Bind message has them: a format and a value each.
#[derive(Debug, Default)]
pub struct Parameters {
    formats: Vec<u8>,
    values: Vec<u8>,
}

/// The protocol counts parameters in 16 bits.
pub const PARAMETERS_MAX: usize = 65_535;

impl Parameters {
    /// Forgets all, for the next execution.
    pub fn clear(&mut self) {
        self.formats.clear();
        self.values.clear();
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.formats.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.formats.is_empty()
    }

    /// What they are: the lengths and values.
    pub fn values(&self) -> &[u8] {
        &self.values
    }

    /// NULL.
    pub fn push_null(&mut self) {
        self.formats.push(0);
        self.values.extend_from_slice(&(-1_i32).to_be_bytes());
    }

    /// A value in the binary format of its type.
    pub fn push_binary(&mut self, value: &[u8]) {
        self.push(1, &[value]);
    }

    /// A value in binary format that is given in two pieces.
    pub fn push_binary_parts(&mut self, first: &[u8], second: &[u8]) {
        self.push(1, &[first, second]);
    }

    /// A value in the text format of its type, which the server parses as that type and as nothing else.
    pub fn push_text(&mut self, value: &[u8]) {
        self.push(0, &[value]);
    }

    fn push(&mut self, format: u8, parts: &[&[u8]]) {
        self.formats.push(format);
        let len: usize = parts.iter().map(|part| part.len()).sum();
        // Longer than the protocol can say is told by `bind`: the message's own length does not fit either.
        let len = i32::try_from(len).unwrap_or(i32::MAX);
        self.values.extend_from_slice(&len.to_be_bytes());
        for part in parts {
            self.values.extend_from_slice(part);
        }
    }

    /// Bind to a portal. Writes nothing if that fails.
    #[inline]
    pub(crate) fn bind(
        &self,
        portal: &str,
        statement: &str,
        description: &Description,
        output: &mut BytesMut,
    ) -> Result<(), Fault> {
        let Ok(count) = u16::try_from(self.len().min(PARAMETERS_MAX + 1)) else {
            return Err(Fault::Protocol("more than 65535 parameters"));
        };
        let columns = description.formats.len();
        let len = 4
            + portal.len()
            + 1
            + statement.len()
            + 1
            + 2
            + 2 * self.formats.len()
            + 2
            + self.values.len()
            + 2
            + 2 * columns;
        let Ok(announced) = i32::try_from(len) else {
            return Err(Fault::MessageTooLong);
        };
        output.reserve(len + 1 + EXECUTE_SYNC.len());
        output.put_u8(b'B');
        output.put_i32(announced);
        output.put_slice(portal.as_bytes());
        output.put_u8(0);
        output.put_slice(statement.as_bytes());
        output.put_u8(0);
        output.put_u16(count);
        for &format in &self.formats {
            output.put_u16(u16::from(format));
        }
        output.put_u16(count);
        output.put_slice(&self.values);
        // A server has at most 1664 columns.
        output.put_u16(u16::try_from(columns).unwrap_or(u16::MAX));
        for &format in &description.formats {
            output.put_u16(u16::from(format));
        }
        Ok(())
    }
}

/// Execute of the unnamed portal without a limit of rows, and Sync.
pub(crate) const EXECUTE_SYNC: &[u8] = b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04";

/// Execute alone: another execution follows before the Sync.
pub(crate) const EXECUTE: &[u8] = EXECUTE_SYNC.split_at(10).0;
