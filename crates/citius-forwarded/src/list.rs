//! Lists from their right ends, and the pairs of an element of `Forwarded` (RFC 7239 §4).

use citius_http::Head;
use citius_http::fields::is_token;

/// The elements of all fields `name`, the last one first; empty ones do not count (RFC 9110 §5.6.1).
pub(crate) fn elements<'h>(head: &'h Head, name: &'h [u8]) -> impl Iterator<Item = &'h [u8]> {
    head.fields
        .iter()
        .rev()
        .filter(move |field| head.slice(field.name).eq_ignore_ascii_case(name))
        .flat_map(|field| FromRight(Some(head.slice(field.value))))
        .map(<[u8]>::trim_ascii)
        .filter(|element| !element.is_empty())
}

/// Splits at commas outside quotes, from the right.
///
/// From the right, because the last element is the trusted peer's own: an opening quote that a client has
/// left unclosed in front of it must not swallow it.
struct FromRight<'v>(Option<&'v [u8]>);

impl<'v> Iterator for FromRight<'v> {
    type Item = &'v [u8];

    fn next(&mut self) -> Option<&'v [u8]> {
        let rest = self.0?;
        let mut in_quotes = false;
        let comma = rest.iter().rposition(|&byte| {
            in_quotes ^= byte == b'"';
            byte == b',' && !in_quotes
        });
        let Some((before, element)) = comma.and_then(|at| rest.split_at_checked(at)) else {
            self.0 = None;
            return Some(rest);
        };
        self.0 = Some(before);
        element.split_first().map(|(_, element)| element)
    }
}

/// What one hop of `Forwarded` says, still as text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Hop<'v> {
    pub(crate) client: Option<&'v [u8]>,
    pub(crate) proto: Option<&'v [u8]>,
    pub(crate) host: Option<&'v [u8]>,
}

impl<'v> Hop<'v> {
    /// Reads `name=value` pairs with semicolons between them; `None` if that is not what `element` is.
    ///
    /// Quoted pairs (a backslash) are refused: nothing that belongs into these values needs one.
    pub(crate) fn parse(element: &'v [u8]) -> Option<Self> {
        let mut hop = Self::default();
        let mut rest = element;
        loop {
            let equals = rest.iter().position(|&byte| byte == b'=')?;
            let (name, value_on) = rest.split_at_checked(equals)?;
            let (value, after) = value(value_on.get(1..)?)?;
            let name = name.trim_ascii_start();
            let slot = match name.len() {
                3 if name.eq_ignore_ascii_case(b"for") => Some(&mut hop.client),
                4 if name.eq_ignore_ascii_case(b"host") => Some(&mut hop.host),
                5 if name.eq_ignore_ascii_case(b"proto") => Some(&mut hop.proto),
                _ if !is_token(name) => return None,
                _ => None,
            };
            // RFC 7239 §4: each parameter must not occur more than once.
            if slot.is_some_and(|slot| slot.replace(value).is_some()) {
                return None;
            }
            match after.trim_ascii_start() {
                [] => return Some(hop),
                [b';', next @ ..] => rest = next,
                _ => return None,
            }
        }
    }
}

/// The token or quoted string at the start of `text`, and what follows it.
fn value(text: &[u8]) -> Option<(&[u8], &[u8])> {
    if let [b'"', quoted @ ..] = text {
        let end = quoted.iter().position(|&byte| byte == b'"')?;
        let (value, after) = quoted.split_at_checked(end)?;
        return (!value.contains(&b'\\')).then_some((value, after.get(1..)?));
    }
    let end = text
        .iter()
        .position(|&byte| matches!(byte, b';' | b' ' | b'\t'))
        .unwrap_or(text.len());
    let (value, after) = text.split_at_checked(end)?;
    is_token(value).then_some((value, after))
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn an_unclosed_quote_swallows_nothing_to_its_right() {
        let split = |text: &'static str| {
            let parts = FromRight(Some(text.as_bytes()));
            parts
                .map(|part| core::str::from_utf8(part).unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(split("a,b, c"), [" c", "b", "a"]);
        assert_eq!(split("a,\"b,c\",d"), ["d", "\"b,c\"", "a"]);
        assert_eq!(split("for=\"a, for=b"), [" for=b", "for=\"a"]);
        assert_eq!(split("x"), ["x"]);
        assert_eq!(split(","), ["", ""]);
    }

    #[test]
    fn reads_pairs() {
        let hop = Hop::parse(b"For=\"[::1]:80\"; proto=https;by=_x;host=a").expect("pairs");
        assert_eq!(
            (hop.client, hop.proto, hop.host),
            (Some(&b"[::1]:80"[..]), Some(&b"https"[..]), Some(&b"a"[..]))
        );
    }

    #[test]
    fn refuses_what_is_no_pair() {
        for bad in [
            "for",
            "for=",
            "=a",
            "for=a for=b",
            "for=a;for=b",
            "for=a;",
            "for=a;;by=b",
            "for=\"a",
            "for=\"a\"b",
            "for=\"a\\\"b\"",
            "for=1.2.3.4:80",
            "f r=a",
            "for =a",
        ] {
            assert_eq!(Hop::parse(bad.as_bytes()), None, "{bad}");
        }
    }
}
