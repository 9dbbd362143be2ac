//! Whether a response is JSON or MessagePack, and how an error is written: an `Accept` field in, a choice out
//! (RFC 9110 §12.5.1).

use citius_http::{Status, TEXT};

/// Whether `accept` ranks MessagePack above JSON. Equal weights go to the one named first; a wildcard
/// stands behind anything named.
pub(crate) fn prefers_msgpack(accept: &[u8]) -> bool {
    // What most clients say that say anything.
    if accept == b"*/*" || accept == b"application/json" {
        return false;
    }
    let (mut json, mut msgpack) = (0u32, 0u32);
    for (position, range) in (0u32..).zip(accept.split(|&byte| byte == b',')) {
        let mut parts = range.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let media = parts.next().unwrap_or_default();
        let weight = parts.find_map(quality).unwrap_or(1000);
        // Thousandths in the high digits, then named before wildcard, then early before late.
        let rank = |named: bool| {
            if weight == 0 {
                0
            } else {
                weight * 10_000 + u32::from(named) * 5_000 - position.min(999)
            }
        };
        if is_msgpack(media) {
            msgpack = msgpack.max(rank(true));
        } else if media.eq_ignore_ascii_case(b"application/json") {
            json = json.max(rank(true));
        } else if media == b"*/*" || media.eq_ignore_ascii_case(b"application/*") {
            json = json.max(rank(false));
        }
    }
    msgpack > json
}

/// How the response to an error without a handler is written; `web/responses/problems.py` has the same for errors in Python.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorFormat {
    /// Problem details (RFC 9457).
    Problem,
    Html,
    Text,
}

impl ErrorFormat {
    /// The first format that `accept` names; problem details if it names none of the three.
    pub(crate) fn of(accept: Option<&[u8]>) -> Self {
        for range in accept.unwrap_or_default().split(|&byte| byte == b',') {
            let media = range.split(|&byte| byte == b';').next().unwrap_or_default();
            let media = media.trim_ascii();
            if media.eq_ignore_ascii_case(b"text/html") {
                return Self::Html;
            } else if media.eq_ignore_ascii_case(b"text/plain") {
                return Self::Text;
            } else if media.ends_with(b"json") {
                return Self::Problem;
            }
        }
        Self::Problem
    }

    pub(crate) fn media_type(self) -> &'static [u8] {
        match self {
            Self::Problem => b"application/problem+json",
            Self::Html => b"text/html; charset=utf-8",
            Self::Text => TEXT,
        }
    }

    pub(crate) fn body(self, status: Status) -> String {
        let (code, reason) = (status.code(), status.reason());
        match self {
            Self::Problem => format!("{{\"title\":\"{reason}\",\"status\":{code}}}"),
            Self::Html => {
                format!("<!doctype html><title>{code} {reason}</title><h1>{code} {reason}</h1>\n")
            }
            Self::Text => reason.to_owned(),
        }
    }
}

/// Whether `media` is one of the names that MessagePack goes by.
pub(crate) fn is_msgpack(media: &[u8]) -> bool {
    [
        &b"application/msgpack"[..],
        b"application/x-msgpack",
        b"application/vnd.msgpack",
    ]
    .iter()
    .any(|name| media.eq_ignore_ascii_case(name))
}

/// `q=0.5` in thousandths; `None` for other parameters.
fn quality(parameter: &[u8]) -> Option<u32> {
    let digits = parameter
        .strip_prefix(b"q=")
        .or_else(|| parameter.strip_prefix(b"Q="))?;
    let mut parts = digits.splitn(2, |&byte| byte == b'.');
    let whole = u32::from(parts.next() == Some(b"1")) * 1000;
    let fraction = parts
        .next()
        .unwrap_or_default()
        .iter()
        .take(3)
        .zip([100, 10, 1]);
    let fraction =
        fraction.map(|(digit, unit)| u32::from(digit.saturating_sub(b'0').min(9)) * unit);
    Some((whole + fraction.sum::<u32>()).min(1000))
}
