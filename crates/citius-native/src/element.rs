//! What the values of a channel are.
//!
//! A channel of objects is the interpreter's. The values of every other channel are bytes, which compiled code sends and receives
//! without the interpreter; how it sees them is noted here and known there.

use std::fmt;

use crate::Object;
use citius_abi::DropFunction;

/// What travels through a channel.
pub enum Element {
    /// Objects of the interpreter.
    Object,
    /// Values of one size.
    Fixed {
        /// In bytes.
        size: usize,
        /// How the interpreter sees them.
        format: Format,
        /// Frees one that is never received.
        drop: Option<DropFunction>,
    },
    /// Any number of bytes.
    Bytes,
    /// One-dimensional arrays of numpy with this dtype.
    Array(Object),
}

/// How the interpreter sees values of one size.
pub enum Format {
    /// `None`; there are no bytes.
    Unit,
    /// A signed integer of 64 bits.
    Integer,
    /// A double.
    Real,
    /// A byte: 0 or 1.
    Bool,
    /// `bytes` of exactly the size.
    Opaque,
    /// A tuple, or one value, by a `struct.Struct`.
    Struct(Object),
}

impl Element {
    /// Values of `size` bytes.
    pub fn fixed(size: usize, format: Format) -> Self {
        Self::Fixed {
            size,
            format,
            drop: None,
        }
    }
}

impl fmt::Debug for Element {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Object => "objects",
            Self::Bytes => "bytes",
            Self::Array(_) => "arrays",
            Self::Fixed { size, .. } => return write!(formatter, "{size} bytes"),
        })
    }
}
