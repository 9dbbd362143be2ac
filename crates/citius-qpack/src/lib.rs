//! Compressed field sections of HTTP/3 (RFC 9204): field sections to fields, and fields to field sections.
//!
//! [`Decoder`] reads what the client's encoder writes: instructions for the dynamic table, and sections that refer to it.
//! [`Encoder`] refers to the static table alone, so it has no state and no stream, and what it writes never waits at the client:
//! the bytes that a dynamic table would save cost less to encrypt and send than its acknowledgements.
//!
//! Invariants:
//! - The dynamic table never exceeds the capacity that it was made with, nor does an incomplete instruction.
//! - Reading takes time in proportion to the bytes read: an entry is referred to and duplicated without copying it.
//! - Reading instructions in any pieces gives the same table.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation
    )
)]

extern crate alloc;

mod decoder;
mod encoder;
mod fixed;
mod number;
mod table;

#[cfg(test)]
mod tests;

pub use decoder::{Decoder, Malformed, Section};
pub use encoder::{Encoder, Secrecy};
pub use number::take_instructions_of_decoder;
