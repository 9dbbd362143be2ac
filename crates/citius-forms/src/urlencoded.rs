//! URL-encoded forms and queries (WHATWG URL §5.1): a body in, its names and values out.

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
    let mut found = Vec::new();
    let (mut n_fields, mut text_bytes) = (0u32, 0u64);
    for (name, value) in pairs(body) {
        n_fields = n_fields.saturating_add(1);
        if n_fields > limits.fields_max {
            return Err(Fault::TooManyFields);
        }
        let (name, value) = (text(name).into_owned(), text(value).into_owned());
        if name.len() > limits.name_bytes_max as usize {
            return Err(Fault::NameTooLong);
        }
        text_bytes = text_bytes.saturating_add(value.len() as u64);
        if text_bytes > limits.text_bytes_max {
            return Err(Fault::TextTooLong);
        }
        found.push((name, value));
    }
    Ok(found)
}

/// The names and values in their order, still encoded.
pub fn pairs(encoded: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let pairs = encoded.split(|&byte| byte == b'&');
    pairs.filter(|pair| !pair.is_empty()).map(|pair| {
        let end = memchr::memchr(b'=', pair).unwrap_or(pair.len());
        let (name, value) = pair.split_at(end);
        (name, value.get(1..).unwrap_or_default())
    })
}

/// One name or value, decoded.
#[must_use]
pub fn text(encoded: &[u8]) -> Cow<'_, str> {
    if encoded.contains(&b'+') {
        let space = |&byte: &u8| if byte == b'+' { b' ' } else { byte };
        let spaced: Vec<u8> = encoded.iter().map(space).collect();
        return Cow::Owned(lossy(decode(&spaced).into_owned()));
    }
    match decode(encoded) {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(lossy(bytes)),
    }
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
