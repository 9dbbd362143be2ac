//! `uri-host [ ":" port ]` (RFC 9110 §7.2, RFC 3986 §3.2.2): is it one?

use core::net::Ipv6Addr;

use citius_http::head::Span;

use crate::scan;

/// Whether `span` of `input` names a host and, if it says one, a port; an empty host is not one.
///
/// No userinfo: RFC 9110 §4.2.4 wants it refused where it comes from outside. A comma is a legal byte of a
/// reg-name, and refused all the same: no registered name has one, but a proxy may join two Host
/// lines with it.
#[inline]
pub(crate) fn is_valid(input: &[u8], span: Span) -> bool {
    let (start, end) = (span.start as usize, span.end as usize);
    let rest = input.get(start..).unwrap_or_default();
    // What follows the authority is looked at for speed only.
    plain_run(rest, input) == end.wrapping_sub(start) && end > start
        || is_valid_rarely(input.get(start..end).unwrap_or_default())
}

/// Length of the `reg-name [ ":" port ]` at the start of `rest`, the end of `whole`; zero if there is none in
/// plain letters and digits.
#[inline]
pub(crate) fn plain_run(rest: &[u8], whole: &[u8]) -> usize {
    let name_run = scan::reg_name_run(rest, whole);
    match rest.split_at_checked(name_run).unwrap_or_default().1 {
        [b':', digits @ ..] if name_run > 0 => {
            let (mut number, mut run) = (0u32, 0usize);
            for digit in digits.iter().map(|byte| u32::from(byte.wrapping_sub(b'0'))) {
                if digit > 9 {
                    break;
                }
                number = number.wrapping_mul(10).wrapping_add(digit);
                if number > 65_535 {
                    return 0;
                }
                run = run.wrapping_add(1);
            }
            name_run.wrapping_add(1).wrapping_add(run)
        }
        _ => name_run,
    }
}

/// The forms that need more than a look: IPv6 literals and percent-encoded names.
#[cold]
fn is_valid_rarely(authority: &[u8]) -> bool {
    if let Some(literal) = authority.strip_prefix(b"[") {
        let end = memchr::memchr(b']', literal).unwrap_or(literal.len());
        let (address, rest) = literal.split_at_checked(end).unwrap_or_default();
        // A missing bracket stands in place of the port, and is not one.
        return is_ipv6(address) && is_port(rest.strip_prefix(b"]").unwrap_or(b"["));
    }
    let mut rest = authority;
    loop {
        rest = rest
            .get(scan::reg_name_run(rest, rest)..)
            .unwrap_or_default();
        match rest {
            [b'%', high, low, after @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                rest = after;
            }
            port => return port.len() < authority.len() && is_port(port),
        }
    }
}

fn is_ipv6(address: &[u8]) -> bool {
    core::str::from_utf8(address).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok())
}

/// Nothing, or a colon and a port number; the number may be missing (RFC 3986 §3.2.3).
#[inline]
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
    use alloc::format;

    use super::*;

    /// Whether `text` is a host, within a head and at the end of the input alike.
    fn is_host(text: &str) -> bool {
        let span = |start: usize| Span {
            start: u32::try_from(start).unwrap(),
            end: u32::try_from(start.wrapping_add(text.len())).unwrap(),
        };
        let alone = is_valid(text.as_bytes(), span(0));
        let head = format!("GET / HTTP/1.1\r\nhost: {text}\r\naccept: */*\r\n\r\n");
        assert_eq!(is_valid(head.as_bytes(), span(22)), alone, "{text}");
        alone
    }

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
            assert!(is_host(good), "{good}");
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
            assert!(!is_host(bad), "{bad}");
        }
    }
}
