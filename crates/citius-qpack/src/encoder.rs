//! Fields to field sections (RFC 9204 §4.5), by the static table and literals.

use alloc::vec::Vec;

use citius_http::multiplexed::spelling::{put_integer, put_string};

use crate::fixed;

/// Whether others may put a field into a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrecy {
    /// As they like.
    Public,
    /// No encoder may, and no proxy either (RFC 9204 §7.1.3).
    Secret,
}

/// Writes field sections. It has no state: what it writes can be kept and sent again.
#[derive(Debug)]
pub struct Encoder;

impl Encoder {
    /// Appends what a section begins with: it refers to no dynamic table.
    #[inline]
    pub fn begin(out: &mut Vec<u8>) {
        out.extend_from_slice(&[0, 0]);
    }

    /// Appends a field.
    pub fn field(out: &mut Vec<u8>, name: &[u8], value: &[u8], secrecy: Secrecy) {
        if secrecy == Secrecy::Public
            && let Some(index) = fixed::find(name, value)
        {
            return put_integer(out, 0xc0, 6, index);
        }
        let never = match secrecy {
            Secrecy::Public => 0,
            Secrecy::Secret => 1u8,
        };
        if let Some(index) = fixed::first_of(name) {
            put_integer(out, 0x50 | never << 5, 4, index);
        } else {
            put_string(out, 0x20 | never << 4, 3, name);
        }
        put_string(out, 0, 7, value);
    }
}
