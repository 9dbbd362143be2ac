//! Method and path in, route and parameters out.
//!
//! A [`Pattern`] such as `/items/{id:int}` is split into a shape (`/items/{0}`), which matchit's tree
//! finds, and the converters of its parameters, which are tried on what the tree found. Patterns of
//! one shape share a node, so `/items/{id:int}` and `/items/{slug}` live side by side: the narrower
//! converter is tried first.
//!
//! Matching is done on the path as sent, so that an encoded slash never separates segments; only the
//! escapes of characters that need none are undone first (RFC 3986 §6.2.2.2). Parameters are decoded once,
//! after matching. No I/O, no Python, nothing unsafe.
#![forbid(unsafe_code)]

mod exact;
mod pattern;
mod percent;
mod router;

pub use pattern::{Converter, Param, Pattern, PatternError};
pub use percent::decode;
pub use router::{Captures, Found, Router};
