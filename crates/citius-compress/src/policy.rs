//! Which responses are compressed, and which fields a compressed response has.

use citius_http::coding::Coding;
use citius_http::{Fault, Fields, ResponseHead};

use crate::encoder::Levels;

/// What a server compresses.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The codings it offers; of those a client likes as much, the first is taken.
    pub codings: Vec<Coding>,
    /// How much work they do, unless a request is [told otherwise](crate::Streams::set_levels).
    pub levels: Levels,
    /// Media types besides those that are known to be worth it, without parameters.
    pub types: Vec<String>,
}

impl Policy {
    /// Whether a response's content may be sent in another coding.
    pub(crate) fn may_code(&self, response: &ResponseHead<'_>) -> bool {
        !matches!(response.status.code(), 204 | 205 | 206 | 304)
            && is_free(response).is_some_and(|media_type| self.is_worth_it(media_type))
    }

    fn is_worth_it(&self, media_type: &[u8]) -> bool {
        let essence = media_type.split(|&byte| byte == b';').next();
        let essence = essence.unwrap_or_default().trim_ascii();
        let Ok(essence) = std::str::from_utf8(essence) else {
            return false;
        };
        let essence = essence.to_ascii_lowercase();
        essence.starts_with("text/")
            || essence.ends_with("+json")
            || essence.ends_with("+xml")
            || KNOWN.contains(&essence.as_str())
            || self
                .types
                .iter()
                .any(|other| other.eq_ignore_ascii_case(&essence))
    }
}

/// The media type of a response that nothing forbids to send in another coding.
fn is_free<'a>(response: &ResponseHead<'a>) -> Option<&'a [u8]> {
    let mut media_type = response.content_type.unwrap_or_default();
    for (name, value) in response.fields.iter() {
        match name {
            // Digests are of the content as it is (RFC 9530).
            b"content-encoding" | b"content-range" | b"content-digest" | b"repr-digest"
            | b"digest" | b"content-md5" => return None,
            b"cache-control" if lists(value, b"no-transform") => return None,
            b"content-type" => media_type = value,
            _ => {}
        }
    }
    Some(media_type)
}

/// Whether a response stands for one that may have been sent in another coding.
///
/// It has no media type, and has `Vary` as the 200 has it (RFC 9110 §15.4.5).
pub(crate) fn is_of_coded(response: &ResponseHead<'_>) -> bool {
    response.status.code() == 304 && is_free(response).is_some()
}

/// Texts by another name, and binary formats that are not compressed in themselves.
const KNOWN: &[&str] = &[
    "application/json",
    "application/javascript",
    "application/xml",
    "application/x-ndjson",
    "application/yaml",
    "application/graphql",
    "application/msgpack",
    "application/wasm",
    "application/vnd.apple.mpegurl",
    "font/otf",
    "font/ttf",
    "image/bmp",
    "image/vnd.microsoft.icon",
];

/// The fields of a response whose content is sent in `coding` (or could have been, for another client).
///
/// The length is no longer known, a strong entity tag no longer true (RFC 9110 §8.8.3.3).
pub(crate) fn coded_fields(fields: &Fields, coding: Option<Coding>) -> Result<Fields, Fault> {
    let mut coded = Fields::default();
    coded.reason.clone_from(&fields.reason);
    coded.close = fields.close;
    coded.content_length = fields.content_length.filter(|_| coding.is_none());
    let mut varies = false;
    for (name, value) in fields.iter() {
        match name {
            b"vary" => {
                varies |= lists(value, b"accept-encoding") || value == b"*";
                coded.push(name, value)?;
            }
            b"etag" if coding.is_some() && !value.starts_with(b"W/") => {
                coded.push(name, &[b"W/", value].concat())?;
            }
            b"accept-ranges" if coding.is_some() => {}
            _ => coded.push(name, value)?,
        }
    }
    if !varies {
        coded.push(b"vary", b"accept-encoding")?;
    }
    if let Some(coding) = coding {
        coded.push(b"content-encoding", coding.token().as_bytes())?;
    }
    Ok(coded)
}

/// Whether a comma-separated list has `item`, compared without regard to case.
fn lists(list: &[u8], item: &[u8]) -> bool {
    list.split(|&byte| byte == b',')
        .any(|other| other.trim_ascii().eq_ignore_ascii_case(item))
}

#[cfg(test)]
mod tests {
    use citius_http::Status;

    use super::*;

    fn may_code(status: u16, fields: &[(&str, &str)]) -> bool {
        let policy = Policy {
            codings: Coding::ALL.to_vec(),
            levels: Levels::default(),
            types: vec!["application/x-own".to_owned()],
        };
        let mut made = Fields::default();
        for (name, value) in fields {
            made.push(name.as_bytes(), value.as_bytes()).unwrap();
        }
        policy.may_code(&ResponseHead {
            status: Status::from_const(status),
            content_type: Some(b"application/octet-stream"),
            fields: &made,
        })
    }

    #[test]
    fn only_what_gains_and_nobody_has_touched() {
        for (media_type, expected) in [
            ("text/html; charset=utf-8", true),
            ("Text/Event-Stream", true),
            ("application/json", true),
            ("application/problem+json", true),
            ("image/svg+xml", true),
            ("application/x-own", true),
            ("image/png", false),
            ("application/zip", false),
            ("", false),
        ] {
            assert_eq!(
                may_code(200, &[("content-type", media_type)]),
                expected,
                "{media_type}"
            );
        }
        let text = ("content-type", "text/plain");
        assert!(may_code(404, &[text]));
        assert!(!may_code(206, &[text]));
        assert!(!may_code(304, &[text]));
        assert!(!may_code(200, &[text, ("content-encoding", "identity")]));
        assert!(!may_code(200, &[text, ("content-range", "bytes 0-1/2")]));
        // servers B10
        assert!(!may_code(
            200,
            &[text, ("content-digest", "sha-256=:YQ==:")]
        ));
        assert!(!may_code(200, &[text, ("content-md5", "YQ==")]));
        assert!(!may_code(
            200,
            &[text, ("cache-control", "public, No-Transform")]
        ));
        assert!(!may_code(200, &[]));
    }

    #[test]
    fn fields_say_what_was_done() {
        let mut fields = Fields::default();
        for (name, value) in [
            ("ETag", "\"a\""),
            ("Vary", "origin"),
            ("Content-Length", "9"),
            ("Accept-Ranges", "bytes"),
            ("Connection", "close"),
        ] {
            fields.push(name.as_bytes(), value.as_bytes()).unwrap();
        }
        let coded = coded_fields(&fields, Some(Coding::Gzip)).unwrap();
        assert_eq!(
            coded.lines(),
            b"etag: W/\"a\"\r\nvary: origin\r\nvary: accept-encoding\r\ncontent-encoding: gzip\r\n"
        );
        assert_eq!((coded.content_length, coded.close), (None, true));
        let plain = coded_fields(&fields, None).unwrap();
        assert_eq!(plain.content_length, Some(9));
        assert!(plain.lines().starts_with(b"etag: \"a\"\r\n"));
        let mut known = Fields::default();
        known.push(b"vary", b"Cookie, Accept-Encoding").unwrap();
        assert_eq!(coded_fields(&known, None).unwrap(), known);
    }
}
