//! Whether composite types are what they were, asked in the request that relies on their fields' names.
//!
//! The messages of a row name no fields, and a column that was dropped and one that was added can have the same type. The
//! guard is executed between a statement's Bind, which locks the tables that it reads, and its Execute. It fails if the
//! fields are not those that are known, and the server skips the Execute then.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use crate::fault::ServerError;
use crate::types::Types;

const CHANGED: &str = "citius: a composite type has changed";

/// `$1` are the types, `$2` is what is known of them. The text that is no number depends on a row, so that it is not
/// converted by the planner.
const SQL: &str = "SELECT CASE WHEN f = $2 THEN 0 \
     ELSE ('citius: a composite type has changed' || pg_catalog.left(f, 0))::int4 END \
     FROM (SELECT coalesce(pg_catalog.string_agg(\
     a.attname::text || pg_catalog.chr(1) || a.atttypid::text || pg_catalog.chr(2), '' ORDER BY t.oid, a.attnum), '') AS f \
     FROM pg_catalog.pg_type t JOIN pg_catalog.pg_attribute a ON a.attrelid = t.typrelid \
     WHERE t.oid = ANY ($1) AND a.attnum > 0 AND NOT a.attisdropped) AS fields";
const PORTAL: &[u8] = b"citius_guard\0";

/// The messages of a guard.
#[derive(Clone, Debug)]
pub struct Guard {
    messages: Vec<u8>,
}

impl Guard {
    /// A guard for these composite types.
    pub fn new(composites: &BTreeSet<u32>, types: &Types) -> Self {
        let mut oids = String::from("{");
        let mut fields = String::new();
        for (at, composite) in composites.iter().enumerate() {
            // Writing to a string does not fail.
            let _ = write!(oids, "{}{composite}", if at > 0 { "," } else { "" });
            for (name, type_oid) in types.fields(*composite) {
                let _ = write!(fields, "{name}\u{1}{type_oid}\u{2}");
            }
        }
        oids.push('}');
        let mut messages = Vec::new();
        // The types of the parameters: oid[] and text.
        let types = [&[0, 2][..], &1028_u32.to_be_bytes(), &25_u32.to_be_bytes()].concat();
        push(&mut messages, b'P', &[b"\0", SQL.as_bytes(), b"\0", &types]);
        let (oids_len, fields_len) = (length(&oids), length(&fields));
        let bind: [&[u8]; 9] = [
            PORTAL,
            b"\0",
            &[0, 0, 0, 2],
            &oids_len,
            oids.as_bytes(),
            &fields_len,
            fields.as_bytes(),
            &[0, 0],
            b"",
        ];
        push(&mut messages, b'B', &bind);
        push(&mut messages, b'E', &[PORTAL, &[0; 4]]);
        push(&mut messages, b'C', &[b"P", PORTAL]);
        Self { messages }
    }

    pub(crate) fn messages(&self) -> &[u8] {
        &self.messages
    }

    /// Whether an error is that of a guard: the statement behind it was not executed.
    pub fn has_failed(error: &ServerError) -> bool {
        error.code == "22P02" && error.message.contains(CHANGED)
    }
}

fn length(text: &str) -> [u8; 4] {
    // A server has at most 1600 fields in a row, of at most 63 bytes.
    u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes()
}

fn push(messages: &mut Vec<u8>, tag: u8, parts: &[&[u8]]) {
    let len = 4 + parts.iter().map(|part| part.len()).sum::<usize>();
    messages.push(tag);
    messages.extend_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes());
    for part in parts {
        messages.extend_from_slice(part);
    }
}
