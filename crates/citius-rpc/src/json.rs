//! JSON-RPC 2.0: where a value ends, what a request consists of, how responses are put together.
//!
//! Values follow each other with or without white space in between, so that a line for each is as good as
//! none. The end of a value is found by its brackets; whether what is between them is JSON is then for
//! `serde_json` to say, which borrows and decodes nothing.

use alloc::borrow::Cow;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use citius_http::Fault;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// How far the search for the end of a value has come.
#[derive(Debug, Default)]
pub(crate) struct Scanner {
    /// Bytes that were looked at.
    at: usize,
    /// What closes the brackets that are open.
    closers: Vec<u8>,
    in_string: bool,
    /// The byte before was a backslash that escapes this one.
    is_escaped: bool,
}

impl Scanner {
    /// The length of the object or array that `input` begins with, once all of it is there.
    ///
    /// # Errors
    /// It is too long or nested too deeply, begins like neither, or has brackets that do not match.
    pub(crate) fn scan(
        &mut self,
        input: &[u8],
        bytes_max: usize,
        depth_max: usize,
    ) -> Result<Option<usize>, Fault> {
        for &byte in input.get(self.at..).unwrap_or_default() {
            self.at = self.at.saturating_add(1);
            if self.at > bytes_max {
                return Err(Fault::CallTooLong);
            }
            if self.in_string {
                match byte {
                    _ if self.is_escaped => self.is_escaped = false,
                    b'\\' => self.is_escaped = true,
                    b'"' => self.in_string = false,
                    // The line ends inside a string: the message is invalid, without waiting for the rest.
                    0..0x20 => return Err(Fault::CallSyntax),
                    _ => {}
                }
                continue;
            }
            match byte {
                b'{' | b'[' if self.closers.len() == depth_max => return Err(Fault::CallTooDeep),
                b'{' => self.closers.push(b'}'),
                b'[' => self.closers.push(b']'),
                _ if self.closers.is_empty() => return Err(Fault::CallSyntax),
                b'"' => self.in_string = true,
                b'}' | b']' => {
                    if self.closers.pop() != Some(byte) {
                        return Err(Fault::CallSyntax);
                    }
                    if self.closers.is_empty() {
                        return Ok(Some(core::mem::take(&mut self.at)));
                    }
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// Whether a value has begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.at > 0
    }
}

/// The length of the white space that `input` begins with.
pub(crate) fn blank(input: &[u8]) -> usize {
    input
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace())
        .count()
}

/// One request object.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) method: Cow<'a, str>,
    /// Encoded; an empty array where there are none.
    pub(crate) params: &'a [u8],
    /// As sent; `None` for a notification.
    pub(crate) id: Option<&'a [u8]>,
}

/// The members of a request object, still encoded.
#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow, default, deserialize_with = "given")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    id: Option<&'a RawValue>,
}

/// A member that is there, be it `null`.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// What is wrong with a value, and the `id` of the response if it has one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Mistake<'a> {
    /// It is not JSON.
    Syntax,
    /// It is JSON, and no request.
    Shape(Option<&'a [u8]>),
}

/// Bytes of an `id` that is echoed. Longer ones serve no one but who wants to fill our memory.
const ID_BYTES_MAX: usize = 256;

/// The parts of a request object.
pub(crate) fn request_of(value: &[u8]) -> Result<Request<'_>, Mistake<'_>> {
    // An array would do for a struct, but is no request.
    let members = serde_json::from_slice::<Members<'_>>(value);
    let Some(members) = members.ok().filter(|_| value.first() == Some(&b'{')) else {
        let is_json = serde_json::from_slice::<&RawValue>(value).is_ok();
        return Err(if is_json {
            Mistake::Shape(None)
        } else {
            Mistake::Syntax
        });
    };
    let id = members.id.map(RawValue::get).map(str::as_bytes);
    let is_id = |id: &[u8]| {
        id.len() <= ID_BYTES_MAX && matches!(id.first(), Some(b'"' | b'-' | b'n' | b'0'..=b'9'))
    };
    if !id.is_none_or(is_id) {
        return Err(Mistake::Shape(None));
    }
    let method = members.method.map(RawValue::get).and_then(text_of);
    let params = members
        .params
        .map_or(Some(&b"[]"[..]), |raw| match raw.get().as_bytes() {
            params @ [b'[' | b'{', ..] => Some(params),
            _ => None,
        });
    let version = members.jsonrpc.map(RawValue::get).and_then(text_of);
    match (version.as_deref(), method, params) {
        (Some("2.0"), Some(method), Some(params)) => Ok(Request { method, params, id }),
        _ => Err(Mistake::Shape(id)),
    }
}

/// The text of an encoded string; copied only if it has escapes.
fn text_of(raw: &str) -> Option<Cow<'_, str>> {
    let plain = raw.strip_prefix('"')?.strip_suffix('"')?;
    if plain.contains('\\') {
        serde_json::from_str::<String>(raw).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(plain))
    }
}

/// The `id` that a `$/cancelRequest` names.
pub(crate) fn cancelled_id(params: &[u8]) -> Option<&[u8]> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow)]
        id: &'a RawValue,
    }
    let params = serde_json::from_slice::<Params<'_>>(params).ok()?;
    Some(params.id.get().as_bytes())
}

/// Where the elements of a batch lie: bytes to skip before each, and its length.
pub(crate) type Elements = VecDeque<(usize, usize)>;

/// Why a batch is not taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BatchMistake {
    /// It is not JSON.
    Syntax,
    /// It has more elements than are taken; what follows them was not looked at.
    TooLong,
}

/// The elements of a batch, of which at most `n_max` are kept.
pub(crate) fn elements_of(batch: &[u8], n_max: usize) -> Result<Elements, BatchMistake> {
    let mut reader = BatchReader {
        n_max,
        behind: batch.as_ptr() as usize,
        is_too_long: false,
    };
    let mut json = serde_json::Deserializer::from_slice(batch);
    let read = json.deserialize_seq(&mut reader);
    match read {
        Ok(elements) => Ok(elements),
        Err(_) if reader.is_too_long => Err(BatchMistake::TooLong),
        Err(_) => Err(BatchMistake::Syntax),
    }
}

/// Notes where elements lie, and stops at the first that is too many.
struct BatchReader {
    n_max: usize,
    /// Where the element before ends.
    behind: usize,
    is_too_long: bool,
}

impl<'de> Visitor<'de> for &mut BatchReader {
    type Value = Elements;

    fn expecting(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str("a batch")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Elements, A::Error> {
        let mut found = Elements::new();
        while let Some(element) = elements.next_element::<&'de RawValue>()? {
            if found.len() == self.n_max {
                self.is_too_long = true;
                return Err(A::Error::custom("too many elements"));
            }
            let text = element.get();
            let at = text.as_ptr() as usize;
            found.push_back((at.saturating_sub(self.behind), text.len()));
            self.behind = at.saturating_add(text.len());
        }
        Ok(found)
    }
}

/// An `id` that is a number, if it is a small one.
pub(crate) fn small_number(id: &[u8]) -> Option<u32> {
    core::str::from_utf8(id).ok()?.parse().ok()
}

/// `{"jsonrpc":"2.0","id":…,` and then a member and a bracket, which the caller writes.
pub(crate) fn open(id: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id);
    out.push(b',');
}

/// Appends a string with what must be escaped escaped.
pub(crate) fn encode_text(text: &str, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            0..0x20 => {
                let [high, low] = [byte >> 4, byte & 0x0f]
                    .map(|digit| HEX.get(usize::from(digit)).copied().unwrap_or(b'0'));
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
            }
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}
