//! A row as it came.

use crate::fault::Fault;

/// The values of one row, still bytes.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    count: u16,
    bytes: &'a [u8],
}

const TRUNCATED: Fault = Fault::Protocol("a row that ends in the middle of a value");

impl<'a> Row<'a> {
    /// The body of a `DataRow` message.
    pub(crate) fn of(body: &'a [u8]) -> Result<Self, Fault> {
        let (count, bytes) = body.split_first_chunk().ok_or(TRUNCATED)?;
        Ok(Self {
            count: u16::from_be_bytes(*count),
            bytes,
        })
    }

    /// How many values it has.
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Its values, `None` for NULL.
    pub fn values(&self) -> Values<'a> {
        Values {
            left: self.count,
            bytes: self.bytes,
        }
    }
}

/// An iterator over the values of a row.
#[derive(Clone, Debug)]
pub struct Values<'a> {
    left: u16,
    bytes: &'a [u8],
}

impl<'a> Iterator for Values<'a> {
    type Item = Result<Option<&'a [u8]>, Fault>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        Some(take_value(&mut self.bytes))
    }
}

/// A length and so many bytes; NULL if the length is -1.
#[inline]
pub(crate) fn take_value<'a>(bytes: &mut &'a [u8]) -> Result<Option<&'a [u8]>, Fault> {
    let (len, rest) = bytes.split_first_chunk().ok_or(TRUNCATED)?;
    let len = i32::from_be_bytes(*len);
    if len == -1 {
        *bytes = rest;
        return Ok(None);
    }
    let len = usize::try_from(len).map_err(|_| TRUNCATED)?;
    let (value, rest) = rest.split_at_checked(len).ok_or(TRUNCATED)?;
    *bytes = rest;
    Ok(Some(value))
}
