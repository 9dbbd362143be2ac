//! The parts that fields are made of: nodes (RFC 7239 §6), schemes, hosts, ports, prefixes.

use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use core::str::{FromStr, from_utf8};

use citius_http::origin::{Client, Scheme};

/// A node of `Forwarded`: an address, IPv6 in brackets, or an identifier that hides it; then maybe a port.
pub(crate) fn node(text: &[u8]) -> Option<Client> {
    let (name, port) = if let [b'[', literal @ ..] = text {
        let end = literal.iter().position(|&byte| byte == b']')?;
        let (address, rest) = literal.split_at_checked(end)?;
        (
            Name::Address(parse::<Ipv6Addr>(address)?.into()),
            rest.get(1..)?,
        )
    } else {
        let end = text.iter().position(|&byte| byte == b':');
        let (name, rest) = text.split_at_checked(end.unwrap_or(text.len()))?;
        (Name::parse(name)?, rest)
    };
    let port = match port {
        [] => 0,
        [b':', b'_', hidden @ ..] if is_obfuscated(hidden) => 0,
        [b':', digits @ ..] => self::port(digits)?,
        _ => return None,
    };
    Some(match name {
        Name::Hidden => Client::Hidden,
        Name::Address(ip) => Client::Address(SocketAddr::new(ip.to_canonical(), port)),
    })
}

/// An element of `X-Forwarded-For`: a node, or an IPv6 address without its brackets.
pub(crate) fn x_node(text: &[u8]) -> Option<Client> {
    match parse::<Ipv6Addr>(text) {
        Some(ip) => Some(Client::Address(SocketAddr::new(
            IpAddr::V6(ip).to_canonical(),
            0,
        ))),
        None => node(text),
    }
}

enum Name {
    Hidden,
    Address(IpAddr),
}

impl Name {
    fn parse(text: &[u8]) -> Option<Self> {
        match text {
            [b'_', hidden @ ..] if is_obfuscated(hidden) => Some(Self::Hidden),
            _ if text.eq_ignore_ascii_case(b"unknown") => Some(Self::Hidden),
            _ => parse(text).map(IpAddr::V4).map(Self::Address),
        }
    }
}

/// RFC 7239 §6.3, behind the underscore.
fn is_obfuscated(text: &[u8]) -> bool {
    let is_inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    !text.is_empty() && text.iter().all(is_inner)
}

fn parse<T: FromStr>(text: &[u8]) -> Option<T> {
    from_utf8(text).ok()?.parse().ok()
}

/// A port number, up to five digits.
pub(crate) fn port(digits: &[u8]) -> Option<u16> {
    let is_number = (1..=5).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| parse(digits)).flatten()
}

/// The scheme; a proxy of `WebSocket` may name its own.
pub(crate) fn scheme(text: &[u8]) -> Option<Scheme> {
    let is = |name: &[u8]| text.eq_ignore_ascii_case(name);
    if is(b"https") || is(b"wss") {
        Some(Scheme::Https)
    } else if is(b"http") || is(b"ws") {
        Some(Scheme::Http)
    } else {
        None
    }
}

/// A host and maybe a port.
///
/// Of names only letters, digits, hyphens, dots and underscores: a proxy's host goes into links and
/// redirects.
pub(crate) fn authority(text: &[u8]) -> Option<(&str, Option<u16>)> {
    let end = if let [b'[', literal @ ..] = text {
        let length = literal.iter().position(|&byte| byte == b']')?;
        parse::<Ipv6Addr>(literal.get(..length)?)?;
        length.checked_add(2)?
    } else {
        let is_named = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._".contains(byte);
        let end = text.iter().position(|byte| !is_named(byte));
        end.unwrap_or(text.len())
    };
    let (host, rest) = text.split_at_checked(end)?;
    let port = match rest {
        [] => None,
        [b':', digits @ ..] => Some(port(digits)?),
        _ => return None,
    };
    let host = from_utf8(host).ok().filter(|host| !host.is_empty())?;
    Some((host, port))
}

/// A path to put before others, without the slash at its end; `/` is none at all.
///
/// Only what may stand in a path (RFC 3986 §3.3), and no `//`, which begins another host in a link, no
/// `.` and no `..`. A segment is one when it is decoded, too.
pub(crate) fn prefix(text: &[u8]) -> Option<&str> {
    let path = text.strip_suffix(b"/").unwrap_or(text);
    if path.is_empty() {
        return (!text.is_empty()).then_some("");
    }
    let is_path_byte =
        |byte: &u8| byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+;=:@%".contains(byte);
    let mut segments = path.strip_prefix(b"/")?.split(|&byte| byte == b'/');
    let is_path = path.iter().all(is_path_byte)
        && segments
            .all(|segment| !segment.is_empty() && !is_dots(segment) && is_decodable(segment));
    is_path.then(|| from_utf8(path).ok()).flatten()
}

/// `.` or `..`, as they stand or percent-encoded, which paths mean the same by (RFC 3986 §6.2.2.2).
fn is_dots(segment: &[u8]) -> bool {
    let (mut rest, mut count) = (segment, 0_u8);
    loop {
        rest = match rest {
            [] => return (1..=2).contains(&count),
            [b'.', rest @ ..] | [b'%', b'2', b'e' | b'E', rest @ ..] => rest,
            _ => return false,
        };
        count = count.saturating_add(1);
    }
}

/// Whether percent signs begin encoded bytes, none of which is a slash, a backslash or a control character:
/// decoded, the segment would be several, or would not be text.
fn is_decodable(segment: &[u8]) -> bool {
    let mut pieces = segment.split(|&byte| byte == b'%');
    let _before = pieces.next();
    pieces.all(|piece| match piece {
        [high, low, ..] => match (
            char::from(*high).to_digit(16),
            char::from(*low).to_digit(16),
        ) {
            (Some(high), Some(low)) => !matches!(high << 4 | low, 0..=0x1f | 0x2f | 0x5c | 0x7f),
            _ => false,
        },
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};

    use super::*;

    fn show(node: Option<Client>) -> String {
        match node {
            None => "garbage".into(),
            Some(Client::Hidden) => "hidden".into(),
            Some(Client::Address(address)) => address.to_string(),
        }
    }

    #[test]
    fn nodes_are_addresses_with_and_without_ports() {
        for (text, forwarded, x_forwarded) in [
            ("192.0.2.1", "192.0.2.1:0", "192.0.2.1:0"),
            ("192.0.2.1:4711", "192.0.2.1:4711", "192.0.2.1:4711"),
            ("192.0.2.1:_p", "192.0.2.1:0", "192.0.2.1:0"),
            ("[2001:db8::1]", "[2001:db8::1]:0", "[2001:db8::1]:0"),
            ("[2001:db8::1]:80", "[2001:db8::1]:80", "[2001:db8::1]:80"),
            ("2001:db8::1", "garbage", "[2001:db8::1]:0"),
            ("::ffff:192.0.2.1", "garbage", "192.0.2.1:0"),
            ("[::ffff:192.0.2.1]", "192.0.2.1:0", "192.0.2.1:0"),
            ("unknown", "hidden", "hidden"),
            ("Unknown:80", "hidden", "hidden"),
            ("_gazonk", "hidden", "hidden"),
            ("_SEVKISEK:_x", "hidden", "hidden"),
            ("_", "garbage", "garbage"),
            ("_a b", "garbage", "garbage"),
            ("192.0.2.1:65536", "garbage", "garbage"),
            ("192.0.2.1:", "garbage", "garbage"),
            ("192.0.2.1:+1", "garbage", "garbage"),
            ("192.0.2.256", "garbage", "garbage"),
            ("192.0.2.01", "garbage", "garbage"),
            ("192.0.2", "garbage", "garbage"),
            ("[192.0.2.1]", "garbage", "garbage"),
            ("[2001:db8::1", "garbage", "garbage"),
            ("[2001:db8::1]80", "garbage", "garbage"),
            ("fe80::1%eth0", "garbage", "garbage"),
            ("client.example", "garbage", "garbage"),
            ("", "garbage", "garbage"),
            ("\u{e9}", "garbage", "garbage"),
        ] {
            assert_eq!(show(node(text.as_bytes())), forwarded, "Forwarded {text}");
            assert_eq!(show(x_node(text.as_bytes())), x_forwarded, "X {text}");
        }
    }

    #[test]
    fn schemes_hosts_and_prefixes_are_what_they_seem() {
        assert_eq!(scheme(b"HTTPS"), Some(Scheme::Https));
        assert_eq!(scheme(b"wss"), Some(Scheme::Https));
        assert_eq!(scheme(b"http"), Some(Scheme::Http));
        assert_eq!(scheme(b"javascript"), None);
        for (text, expected) in [
            ("shop.example", Some(("shop.example", None))),
            ("shop.example:8443", Some(("shop.example", Some(8443)))),
            ("[2001:db8::1]:80", Some(("[2001:db8::1]", Some(80)))),
            ("[::1]", Some(("[::1]", None))),
            ("shop.example:", None),
            ("shop.example/x", None),
            ("a@b", None),
            ("a b", None),
            (":80", None),
            ("[::1", None),
            ("", None),
        ] {
            assert_eq!(authority(text.as_bytes()), expected, "{text}");
        }
        for (text, expected) in [
            ("/api", Some("/api")),
            ("/api/v1/", Some("/api/v1")),
            ("/a%20b", Some("/a%20b")),
            ("/%2e%2E", None),
            ("/a/.%2e/b", None),
            ("/%2e%2e%2e", Some("/%2e%2e%2e")),
            // servers D17
            ("/a%2fb", None),
            ("/%2F%2Fevil.example", None),
            ("/a%2f..%2f", None),
            ("/%5cevil.example", None),
            ("/a%00", None),
            ("/a%0d%0ab", None),
            ("/a%7F", None),
            ("/a%", None),
            ("/a%2", None),
            ("/a%2/f", None),
            ("/a%zz", None),
            ("/%25%2f", None),
            ("/%252f", Some("/%252f")),
            ("/%C3%A9", Some("/%C3%A9")),
            ("/", Some("")),
            ("", None),
            ("api", None),
            ("//evil.example", None),
            ("/a//b", None),
            ("/../a", None),
            ("/a?b", None),
            ("/a,/b", None),
            ("https://evil.example/", None),
        ] {
            assert_eq!(prefix(text.as_bytes()), expected, "{text}");
        }
    }
}
