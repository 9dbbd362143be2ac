//! Percent-encoding (RFC 3986 §2.1).

use std::borrow::Cow;

/// Undoes percent-encoding; what is not a valid escape stays as it is.
pub fn decode(encoded: &[u8]) -> Cow<'_, [u8]> {
    if !encoded.contains(&b'%') {
        return Cow::Borrowed(encoded);
    }
    let mut decoded = Vec::with_capacity(encoded.len());
    let mut rest = encoded;
    while let Some((&byte, tail)) = rest.split_first() {
        if let (b'%', Some(value)) = (byte, escape(tail)) {
            decoded.push(value);
            rest = &tail[2..];
        } else {
            decoded.push(byte);
            rest = tail;
        }
    }
    Cow::Owned(decoded)
}

/// The form in which paths are compared: escapes of unreserved characters undone, the digits of the
/// others in upper case, everything that is no URI character escaped.
pub(crate) fn normalize(path: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(path)
        && path.iter().all(|&byte| byte != b'%' && is_path_byte(byte))
    {
        return Cow::Borrowed(text);
    }
    let mut normal = String::with_capacity(path.len() + 8);
    let mut rest = path;
    while let Some((&byte, tail)) = rest.split_first() {
        if let (b'%', Some(value)) = (byte, escape(tail)) {
            push(&mut normal, value, is_unreserved(value));
            rest = &tail[2..];
        } else {
            push(&mut normal, byte, is_path_byte(byte) || byte == b'%');
            rest = tail;
        }
    }
    Cow::Owned(normal)
}

fn push(normal: &mut String, byte: u8, plain: bool) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    if plain {
        normal.push(char::from(byte));
    } else {
        let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
        normal.extend(['%', digit(byte >> 4), digit(byte & 15)]);
    }
}

/// The byte that two hexadecimal digits at the start of `digits` stand for.
fn escape(digits: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*digits.get(at)?).to_digit(16);
    u8::try_from(digit(0)? * 16 + digit(1)?).ok()
}

const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Bytes that stand for themselves in a path: RFC 3986's `pchar` and `/`, and what browsers leave alone.
const fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b'%'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_once_and_leaves_bad_escapes() {
        for (encoded, decoded) in [
            ("a%20b", "a b"),
            ("%252F", "%2F"),
            ("%zz%4", "%zz%4"),
            ("%C3%A9", "é"),
            ("", ""),
        ] {
            assert_eq!(decode(encoded.as_bytes()), decoded.as_bytes());
        }
    }

    #[test]
    fn normal_forms_keep_encoded_slashes() {
        for (path, normal) in [
            ("/a%2fb", "/a%2Fb"),
            ("/%7Eme", "/~me"),
            ("/é", "/%C3%A9"),
            ("/a b", "/a%20b"),
            ("/%", "/%"),
        ] {
            assert_eq!(normalize(path.as_bytes()), normal);
        }
    }
}
