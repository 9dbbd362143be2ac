//! Preconditions (RFC 9110 §13): does the client have it already, and is it what the client thinks?

use std::time::UNIX_EPOCH;

use citius_http::Head;

/// What is known of the representation that would be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Validators<'a> {
    /// The entity tag with its quotes; a strong one.
    pub(crate) etag: &'a [u8],
    /// Seconds since 1970.
    pub(crate) modified_s: i64,
}

/// What the preconditions come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Send it.
    Proceed,
    /// 304.
    NotModified,
    /// 412.
    Failed,
}

/// Evaluates the preconditions of a GET or HEAD in the order of RFC 9110 §13.2.2.
pub(crate) fn evaluate(head: &Head, validators: Validators<'_>) -> Verdict {
    match lists_tag(head, b"if-match", validators.etag, true) {
        Some(false) => return Verdict::Failed,
        Some(true) => {}
        None => {
            let limit = head.field(b"if-unmodified-since").and_then(seconds);
            if limit.is_some_and(|limit| validators.modified_s > limit) {
                return Verdict::Failed;
            }
        }
    }
    match lists_tag(head, b"if-none-match", validators.etag, false) {
        Some(true) => Verdict::NotModified,
        Some(false) => Verdict::Proceed,
        None => {
            let known = head.field(b"if-modified-since").and_then(seconds);
            if known.is_some_and(|known| validators.modified_s <= known) {
                Verdict::NotModified
            } else {
                Verdict::Proceed
            }
        }
    }
}

/// Whether a range may be sent, which is what the client has the rest of (RFC 9110 §13.1.5).
pub(crate) fn if_range_holds(head: &Head, validators: Validators<'_>) -> bool {
    let Some(condition) = head.field(b"if-range") else {
        return true;
    };
    // A weak tag does not match: its bytes may differ.
    condition == validators.etag || seconds(condition) == Some(validators.modified_s)
}

/// Whether the lists in the fields called `name` have `etag` or are `*`; `None` without such a field.
fn lists_tag(head: &Head, name: &[u8], etag: &[u8], only_strong: bool) -> Option<bool> {
    let mut found = None;
    for (_, value) in head
        .fields()
        .filter(|(field, _)| field.eq_ignore_ascii_case(name))
    {
        let here = value == b"*" || has_tag(value, etag, only_strong);
        found = Some(found.unwrap_or(false) || here);
    }
    found
}

/// A tag may hold commas, so the list is not simply split. What is no tag ends the search.
fn has_tag(mut list: &[u8], etag: &[u8], only_strong: bool) -> bool {
    loop {
        list = list.trim_ascii_start();
        if let Some(rest) = list.strip_prefix(b",") {
            list = rest;
            continue;
        }
        let (is_weak, rest) = match list.strip_prefix(b"W/") {
            Some(rest) => (true, rest),
            None => (false, list),
        };
        let Some(inner) = rest.strip_prefix(b"\"") else {
            return false;
        };
        let Some(length) = inner.iter().position(|&byte| byte == b'"') else {
            return false;
        };
        if &rest[..length + 2] == etag && !(is_weak && only_strong) {
            return true;
        }
        list = &inner[length + 1..];
    }
}

/// Seconds since 1970 of a date in one of the three forms of RFC 9110 §5.6.7; others are ignored.
fn seconds(date: &[u8]) -> Option<i64> {
    let date = httpdate::parse_http_date(std::str::from_utf8(date).ok()?).ok()?;
    i64::try_from(date.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok()
}

#[cfg(test)]
mod tests {
    use citius_http::head::{FieldSpan, Span};

    use super::*;

    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const VALIDATORS: Validators<'_> = Validators {
        etag: b"\"a,b\"",
        modified_s: 784_111_777,
    };

    pub(crate) fn head(fields: &[(&str, &str)]) -> Head {
        let mut head = Head::default();
        let mut push = |text: &str| {
            let start = u32::try_from(head.bytes.len()).unwrap();
            head.bytes.extend_from_slice(text.as_bytes());
            let end = u32::try_from(head.bytes.len()).unwrap();
            Span { start, end }
        };
        let spans: Vec<_> = fields
            .iter()
            .map(|(name, value)| FieldSpan {
                name: push(name),
                value: push(value),
            })
            .collect();
        head.fields = spans;
        head
    }

    #[test]
    fn preconditions_come_in_the_order_of_the_rfc() {
        use Verdict::{Failed, NotModified, Proceed};
        let cases: &[(&[(&str, &str)], Verdict)] = &[
            (&[], Proceed),
            (&[("If-Match", "\"a,b\"")], Proceed),
            (&[("If-Match", "*")], Proceed),
            (&[("If-Match", "\"x\", \"a,b\"")], Proceed),
            (&[("If-Match", "\"x\"")], Failed),
            (&[("If-Match", "W/\"a,b\"")], Failed),
            (&[("If-Match", "a,b")], Failed),
            (&[("If-Match", "\"x\""), ("If-Match", "\"a,b\"")], Proceed),
            (
                &[("If-Match", "\"a,b\""), ("If-Unmodified-Since", BEFORE)],
                Proceed,
            ),
            (&[("If-Unmodified-Since", BEFORE)], Failed),
            (&[("If-Unmodified-Since", DATE)], Proceed),
            (&[("If-Unmodified-Since", "yesterday")], Proceed),
            (&[("If-None-Match", "\"a,b\"")], NotModified),
            (&[("If-None-Match", "W/\"a,b\"")], NotModified),
            (&[("If-None-Match", "*")], NotModified),
            (&[("If-None-Match", ",, \"x\" ,\"a,b\"")], NotModified),
            (&[("If-None-Match", "\"x\"")], Proceed),
            (
                &[("If-None-Match", "\"x"), ("If-None-Match", "\"y\"")],
                Proceed,
            ),
            (
                &[("If-None-Match", "\"x\""), ("If-Modified-Since", DATE)],
                Proceed,
            ),
            (&[("If-Modified-Since", DATE)], NotModified),
            (
                &[("If-Modified-Since", "Sunday, 06-Nov-94 08:49:37 GMT")],
                NotModified,
            ),
            (
                &[("If-Modified-Since", "Sun Nov  6 08:49:37 1994")],
                NotModified,
            ),
            (&[("If-Modified-Since", BEFORE)], Proceed),
            (&[("If-Modified-Since", "0")], Proceed),
            (
                &[("If-Match", "\"x\""), ("If-None-Match", "\"a,b\"")],
                Failed,
            ),
            (
                &[("If-Match", "*"), ("If-None-Match", "\"a,b\"")],
                NotModified,
            ),
        ];
        for (fields, expected) in cases {
            assert_eq!(evaluate(&head(fields), VALIDATORS), *expected, "{fields:?}");
        }
    }

    #[test]
    fn a_range_needs_the_very_same_bytes() {
        for (condition, expected) in [
            ("\"a,b\"", true),
            ("W/\"a,b\"", false),
            ("\"x\"", false),
            (DATE, true),
            (BEFORE, false),
            ("", false),
        ] {
            let head = head(&[("If-Range", condition)]);
            assert_eq!(if_range_holds(&head, VALIDATORS), expected, "{condition}");
        }
        assert!(if_range_holds(&head(&[]), VALIDATORS));
    }
}
