//! A value of native code on its way through a channel: its bytes, and what has to be called if it is never received.

use citius_abi::DropFunction;
use std::fmt;
use std::mem;

use smallvec::SmallVec;

/// Values up to this size need no memory of their own.
const INLINE_BYTES: usize = 24;

/// The bytes of a value.
#[derive(Default)]
pub struct Packed {
    bytes: SmallVec<[u8; INLINE_BYTES]>,
    drop: Option<DropFunction>,
}

impl Packed {
    /// A copy of `bytes`, of which nothing is owned.
    #[inline]
    pub fn copied(bytes: &[u8]) -> Self {
        Self {
            bytes: SmallVec::from_slice(bytes),
            drop: None,
        }
    }

    /// A value that `drop` frees if it is not received.
    ///
    /// # Safety
    /// `drop` may be called once with the address of a copy of `bytes`, at any time and on any thread, and the caller does not
    /// free the value itself.
    #[inline]
    pub unsafe fn owned(bytes: &[u8], drop: Option<DropFunction>) -> Self {
        Self {
            bytes: SmallVec::from_slice(bytes),
            drop,
        }
    }

    #[inline]
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The value is its receiver's.
    #[inline]
    pub fn release(&mut self) {
        self.drop = None;
    }
}

impl Drop for Packed {
    #[inline]
    fn drop(&mut self) {
        if let Some(drop) = mem::take(&mut self.drop) {
            // SAFETY: the maker of the value permits it, once.
            unsafe { drop(self.bytes.as_mut_ptr().cast()) };
        }
    }
}

impl fmt::Debug for Packed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} bytes", self.bytes.len())
    }
}
