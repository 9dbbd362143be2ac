//! `uri-host [ ":" port ]` (RFC 9110 §7.2, RFC 3986 §3.2.2): is it one?

use core::net::Ipv6Addr;

use crate::scan;

/// Whether `authority` names a host and, if it says one, a port; an empty host is not one.
///
/// No userinfo: RFC 9110 §4.2.4 wants it refused where it comes from outside. A comma is a legal byte of a
/// reg-name, and refused all the same: nobody owns such a name, but it is what a proxy makes of
/// two Host lines.
pub(crate) fn is_valid(authority: &[u8]) -> bool {
    let (host_ok, port) = if let Some(literal) = authority.strip_prefix(b"[") {
        let end = memchr::memchr(b']', literal).unwrap_or(literal.len());
        let (address, rest) = literal.split_at_checked(end).unwrap_or_default();
        // A missing bracket stands in place of the port, and is not one.
        let port = rest.strip_prefix(b"]").unwrap_or(b"[");
        (is_ipv6(address), port)
    } else {
        let colon = authority.iter().position(|&byte| byte == b':');
        let end = colon.unwrap_or(authority.len());
        let (name, rest) = authority.split_at_checked(end).unwrap_or_default();
        (is_reg_name(name), rest)
    };
    host_ok && is_port(port)
}

fn is_ipv6(address: &[u8]) -> bool {
    core::str::from_utf8(address).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok())
}

fn is_reg_name(name: &[u8]) -> bool {
    !name.is_empty() && (scan::reg_name_end(name) == name.len() || is_escaped_reg_name(name))
}

/// The rare form with percent-encoded bytes.
#[cold]
fn is_escaped_reg_name(mut name: &[u8]) -> bool {
    loop {
        name = name.get(scan::reg_name_end(name)..).unwrap_or_default();
        match name {
            [] => return true,
            [b'%', high, low, rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                name = rest;
            }
            _ => return false,
        }
    }
}

/// Nothing, or a colon and a port number; the number may be missing (RFC 3986 §3.2.3).
fn is_port(text: &[u8]) -> bool {
    let Some(digits) = text.strip_prefix(b":") else {
        return text.is_empty();
    };
    let number = digits.iter().try_fold(0u32, |number, &byte| {
        let digit = u32::from(byte.wrapping_sub(b'0'));
        let number = number.wrapping_mul(10).wrapping_add(digit);
        (digit < 10 && number <= 65_535).then_some(number)
    });
    number.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_hosts_from_others() {
        for good in [
            "a",
            "a.b",
            "a_b",
            "a:",
            "a:0",
            "a:65535",
            "127.0.0.1:8000",
            "[::1]",
            "[::1]:80",
            "%41",
            "xn--bcher-kva.example",
            "[::ffff:1.2.3.4]:8000",
            "a~b",
            "1",
        ] {
            assert!(is_valid(good.as_bytes()), "{good}");
        }
        for bad in [
            "",
            ":80",
            "a:b",
            "a:65536",
            "a:-1",
            "a:+1",
            "a b",
            "a,b",
            "u@a",
            "a/b",
            "a?b",
            "a#b",
            "[::1",
            "::1",
            "[]",
            "[::1]a",
            "[1]",
            "[fe80::1%eth0]",
            "%4",
            "%4x",
            "%",
            "a:80:80",
            "a\\b",
            "a\u{e9}",
            "[v1.a]",
            "\"a\"",
            "a:99999999999999999999",
        ] {
            assert!(!is_valid(bad.as_bytes()), "{bad}");
        }
    }
}
