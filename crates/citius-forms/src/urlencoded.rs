//! URL-encoded forms (WHATWG URL §5.1): a body in, its names and values out.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use citius_route::decode;

use crate::{Fault, Limits};

/// The pairs of a form in their order; what is not UTF-8 becomes U+FFFD.
///
/// # Errors
/// The form has more fields, or longer names or values, than the limits allow.
pub fn parse(body: &[u8], limits: &Limits) -> Result<Vec<(String, String)>, Fault> {
    let mut pairs = Vec::new();
    let (mut n_fields, mut text_bytes) = (0u32, 0u64);
    for pair in body.split(|&byte| byte == b'&') {
        if pair.is_empty() {
            continue;
        }
        n_fields = n_fields.saturating_add(1);
        if n_fields > limits.fields_max {
            return Err(Fault::TooManyFields);
        }
        let mut halves = pair.splitn(2, |&byte| byte == b'=');
        let name = text(halves.next().unwrap_or_default());
        let value = text(halves.next().unwrap_or_default());
        if name.len() > limits.name_bytes_max as usize {
            return Err(Fault::NameTooLong);
        }
        text_bytes = text_bytes.saturating_add(value.len() as u64);
        if text_bytes > limits.text_bytes_max {
            return Err(Fault::TextTooLong);
        }
        pairs.push((name, value));
    }
    Ok(pairs)
}

/// One name or value, decoded.
#[must_use]
pub fn text(encoded: &[u8]) -> String {
    let spaced = if encoded.contains(&b'+') {
        let space = |&byte: &u8| if byte == b'+' { b' ' } else { byte };
        Cow::Owned(encoded.iter().map(space).collect::<Vec<_>>())
    } else {
        Cow::Borrowed(encoded)
    };
    String::from_utf8_lossy(&decode(&spaced)).into_owned()
}
