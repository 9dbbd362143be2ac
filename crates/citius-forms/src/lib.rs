//! Forms: the bytes of a request body in; names, values and files out.
//!
//! - [`Multipart`]: `multipart/form-data` (RFC 7578, RFC 2046 §5.1) as it comes, in pieces of any size.
//! - [`urlencoded`]: `application/x-www-form-urlencoded` (WHATWG URL §5.1), a whole body at once: its names and
//!   values are texts, which are held in memory in any case.
//!
//! Invariants, each with its tests:
//! - How the bytes were cut never shows: parts(whole) == parts(any cut).
//! - Each byte is read a constant number of times, whatever the input.
//! - What is held between two pieces is one part's header section, within [`Limits`]. The content of a part is
//!   given out as it comes.
//! - A broken form has a [`Fault`], and no further byte of it is parsed.
//!
//! Sans-IO: files are where the caller puts them. `part.rs`: header sections of parts. Tests: `tests.rs`, and
//! `tests/unit/test_forms.py` for what other parsers make of the same bytes.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)
)]

extern crate alloc;

mod fault;
mod limits;
mod multipart;
mod part;
pub mod urlencoded;

#[cfg(test)]
mod tests;

pub use fault::Fault;
pub use limits::Limits;
pub use multipart::{Event, Multipart};
pub use part::Part;
