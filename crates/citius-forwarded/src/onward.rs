//! What of a message is not passed on as it came: fields of one connection (RFC 9110 §7.6.1), fields that a gateway says itself, and paths
//! that a server behind could read as others.

use alloc::vec::Vec;

/// Fields that are for one connection, whatever `connection` says.
const OF_CONNECTION: [&[u8]; 11] = [
    b"connection",
    b"keep-alive",
    b"proxy-connection",
    b"proxy-authenticate",
    b"proxy-authorization",
    b"proxy-authentication-info",
    b"te",
    b"transfer-encoding",
    b"upgrade",
    b"http2-settings",
    b"content-length",
];

/// Fields in which a gateway says where a request comes from, and what it asked for. What a client says in them is its own word.
const OF_GATEWAYS: [&[u8]; 9] = [
    b"forwarded",
    b"forwarded-for",
    b"front-end-https",
    b"x-client-ip",
    b"x-cluster-client-ip",
    b"x-original-host",
    b"x-original-url",
    b"x-real-ip",
    b"x-rewrite-url",
];

/// What other such fields begin with: there are many (`x-forwarded-ssl`, `x-forwarded-user`, `x-forwarded-client-cert`), and servers believe
/// each of them.
const OF_GATEWAYS_START: &[u8] = b"x-forwarded";

/// Whether a field is for one connection, whatever `connection` says.
pub fn is_of_connection(name: &[u8]) -> bool {
    is_one_of(&OF_CONNECTION, name)
}

fn is_one_of(names: &[&[u8]], name: &[u8]) -> bool {
    names.iter().any(|other| name.eq_ignore_ascii_case(other))
}

/// Whether names are the same for servers that take `_` for `-`, as CGI does.
pub fn is_same_loosely(one: &[u8], other: &[u8]) -> bool {
    let dashed = |byte: u8| if byte == b'_' { b'-' } else { byte };
    let same = |(a, b): (&u8, &u8)| dashed(*a).eq_ignore_ascii_case(&dashed(*b));
    one.len() == other.len() && one.iter().zip(other).all(same)
}

/// Whether a field is a gateway's to say.
pub fn is_of_gateways(name: &[u8]) -> bool {
    let start = name.get(..OF_GATEWAYS_START.len());
    start.is_some_and(|start| is_same_loosely(start, OF_GATEWAYS_START))
        || OF_GATEWAYS.iter().any(|other| is_same_loosely(name, other))
}

/// What `connection` names.
pub fn options<'a>(values: impl Iterator<Item = &'a [u8]>) -> Vec<&'a [u8]> {
    let options = values.flat_map(|value| value.split(|&byte| byte == b','));
    options
        .map(<[u8]>::trim_ascii)
        .filter(|option| !option.is_empty())
        .collect()
}

/// Whether a server could read a path below `/a/` as one outside of it: with a segment `..` or `.`, encoded or behind an encoded slash.
pub fn leaves_its_place(path: &[u8]) -> bool {
    let mut decoded = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = match after {
            [high, low, ..] if byte == b'%' => match (high, low.to_ascii_lowercase()) {
                (b'2', b'e') => Some(b'.'),
                (b'2', b'f') | (b'5', b'c') => Some(b'/'),
                (b'3', b'b') => Some(b';'),
                (b'0', b'0') => Some(0),
                _ => None,
            },
            _ => None,
        };
        rest = if escaped.is_some() {
            after.get(2..).unwrap_or_default()
        } else {
            after
        };
        let byte = escaped.unwrap_or(byte);
        decoded.push(if byte == b'\\' { b'/' } else { byte });
    }
    // Some servers cut parameters off a segment before they look at it (`..;a`), or what is behind a NUL.
    decoded.split(|&byte| byte == b'/').any(|segment| {
        let name = segment.split(|&byte| byte == b';' || byte == 0).next();
        matches!(name, Some(b"." | b".."))
    })
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;

    #[test]
    fn a_path_that_leaves_its_place_is_seen_however_it_is_written() {
        for bad in [
            &b"/v1/../admin"[..],
            b"/v1/%2e%2E/admin",
            b"/v1/.%2e/x",
            b"/v1/..%2fadmin",
            b"/v1/a%5c..%5cadmin",
            b"/v1/..\\admin",
            b"/v1/./x",
            b"/v1/..",
            b"/v1/..;a=b/admin",
            b"/v1/..%3Ba/admin",
            b"/v1/..%00/admin",
        ] {
            assert!(leaves_its_place(bad), "{}", String::from_utf8_lossy(bad));
        }
        for good in [
            &b"/v1/a..b/c"[..],
            b"/v1/...",
            b"/v1/a.b/%2Ex",
            b"/",
            b"/v1//x",
            b"/%",
        ] {
            assert!(!leaves_its_place(good), "{}", String::from_utf8_lossy(good));
        }
    }

    #[test]
    fn names_are_told_apart_as_servers_behind_do() {
        assert!(is_of_gateways(b"X_Forwarded-For"));
        assert!(is_of_gateways(b"x-forwarded_Client-cert"));
        assert!(is_of_gateways(b"x-real-ip"));
        assert!(is_of_gateways(b"X_Original_URL"));
        assert!(!is_of_gateways(b"x-real-ipx"));
        assert!(!is_of_gateways(b"x-forward"));
        assert_eq!(
            options([&b"close, X-a ,,"[..], b"te"].into_iter()),
            [&b"close"[..], b"X-a", b"te"]
        );
    }
}
