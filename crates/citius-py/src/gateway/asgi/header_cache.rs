//! The `headers` of `http.response.start`, validated once for all responses that have the same bytes.
//!
//! In: a list of pairs. Out: the encoded fields and the `content-length`, which is read anew each time. Invariant: a cached
//! entry was validated for the very bytes by which it is found. At most [`HeaderCache::KEPT`] lists of [`FIELDS_KEPT_MAX`]
//! lines and [`BYTES_KEPT_MAX`] bytes are kept, none with `set-cookie`. Tests: `tests/asgi/`.

use std::sync::{Arc, Mutex};

use citius_http::fields::{is_value_byte, parse_decimal};
use citius_http::{FAST_PATHS, Fields};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::gateway::asgi::message::{for_each_field, refused};
use crate::sync::lock;

/// A parsed list of headers.
#[derive(Default)]
pub(super) struct ResponseHeaders {
    /// The first `content-type`: apart from the others, because the encoder knows the last one.
    pub(super) content_type: Option<Py<PyBytes>>,
    /// The others, without `content-length`.
    pub(super) fields: Fields,
}

/// Header lists of earlier responses.
#[derive(Default)]
pub(super) struct HeaderCache(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    cached: [Option<CachedHeaders>; HeaderCache::KEPT],
    /// Where the latest one was found or put.
    latest: usize,
}

/// A list of headers as it was sent, and its parsed form.
struct CachedHeaders {
    lines: Vec<CachedLine>,
    parsed: Arc<ResponseHeaders>,
}

struct CachedLine {
    name: Py<PyBytes>,
    value: Py<PyBytes>,
    /// The number, if it is a `content-length`.
    length: Option<u64>,
}

/// Lines of a list that is kept.
const FIELDS_KEPT_MAX: usize = 24;
/// Bytes of names and values of a list that is kept.
const BYTES_KEPT_MAX: usize = 2048;

impl HeaderCache {
    const KEPT: usize = 4;

    /// The parsed `headers`, and the `content-length` among them.
    ///
    /// # Errors
    /// What is wrong with the first line that may not be sent.
    #[inline]
    pub(super) fn read(
        &self,
        headers: &Bound<'_, PyAny>,
    ) -> PyResult<(Arc<ResponseHeaders>, Option<u64>)> {
        let list = headers.cast_exact::<PyList>().ok();
        if let Some(found) = list.filter(|_| FAST_PATHS).and_then(|list| self.find(list)) {
            return Ok(found);
        }
        // Before they are parsed, for what is not kept may run the application's code then, which may change them.
        let lines = list.and_then(cacheable_lines);
        let (parsed, content_length) = parse(headers)?;
        let parsed = Arc::new(parsed);
        if let Some(lines) = lines {
            let cached = CachedHeaders {
                lines,
                parsed: Arc::clone(&parsed),
            };
            let mut kept = lock(&self.0);
            kept.latest = (kept.latest + 1) % Self::KEPT;
            let at = kept.latest;
            let replaced = kept.cached[at].replace(cached);
            drop(kept);
            drop(replaced);
        }
        Ok((parsed, content_length))
    }

    #[inline]
    fn find(&self, list: &Bound<'_, PyList>) -> Option<(Arc<ResponseHeaders>, Option<u64>)> {
        let mut kept = lock(&self.0);
        let latest = kept.latest;
        for at in 0..Self::KEPT {
            let at = (latest + at) % Self::KEPT;
            let mut content_length = None;
            if let Some(cached) = &kept.cached[at]
                && cached.matches(list, &mut content_length)
            {
                let parsed = Arc::clone(&cached.parsed);
                kept.latest = at;
                return Some((parsed, content_length));
            }
        }
        None
    }
}

impl CachedHeaders {
    /// Whether `list` has the same bytes, but for its `content_length`.
    #[inline]
    fn matches(&self, list: &Bound<'_, PyList>, content_length: &mut Option<u64>) -> bool {
        let py = list.py();
        if list.len() != self.lines.len() {
            return false;
        }
        self.lines.iter().zip(list).all(|(line, pair)| {
            let Some((name, value)) = line_of(&pair) else {
                return false;
            };
            if !is_same(line.name.bind(py), name) {
                return false;
            }
            let Some(known) = line.length else {
                return is_same(line.value.bind(py), value);
            };
            let length = if value.is(&line.value) {
                Some(known)
            } else {
                parse_decimal(value.as_bytes().trim_ascii())
            };
            let earlier = std::mem::replace(content_length, length);
            length.is_some() && (earlier.is_none() || earlier == length)
        })
    }
}

/// Name and value of a header that is a tuple of two `bytes`.
#[inline]
fn line_of<'a, 'py>(
    pair: &'a Bound<'py, PyAny>,
) -> Option<(&'a Bound<'py, PyBytes>, &'a Bound<'py, PyBytes>)> {
    let [name, value] = pair.cast_exact::<PyTuple>().ok()?.as_slice() else {
        return None;
    };
    Some((name.cast_exact().ok()?, value.cast_exact().ok()?))
}

/// Whether two objects hold the same bytes. Constants of the application are the same object each time.
#[inline]
fn is_same(one: &Bound<'_, PyBytes>, other: &Bound<'_, PyBytes>) -> bool {
    one.is(other) || one.as_bytes() == other.as_bytes()
}

/// The lines of a list that may be kept.
#[cold]
fn cacheable_lines(list: &Bound<'_, PyList>) -> Option<Vec<CachedLine>> {
    if list.len() > FIELDS_KEPT_MAX {
        return None;
    }
    let mut bytes_left = BYTES_KEPT_MAX;
    let mut lines = Vec::with_capacity(list.len());
    for pair in list {
        let (name, value) = line_of(&pair)?;
        let (name_bytes, value_bytes) = (name.as_bytes(), value.as_bytes());
        bytes_left = bytes_left.checked_sub(name_bytes.len() + value_bytes.len())?;
        if name_bytes.eq_ignore_ascii_case(b"set-cookie") {
            return None;
        }
        let is_length = name_bytes.eq_ignore_ascii_case(b"content-length");
        lines.push(CachedLine {
            name: name.clone().unbind(),
            value: value.clone().unbind(),
            length: is_length
                .then(|| parse_decimal(value_bytes.trim_ascii()))
                .flatten(),
        });
    }
    Some(lines)
}

fn parse(headers: &Bound<'_, PyAny>) -> PyResult<(ResponseHeaders, Option<u64>)> {
    let mut parsed = ResponseHeaders::default();
    for_each_field(headers, |name, value| {
        let (name_bytes, value_bytes) = (name.as_bytes(), value.as_bytes());
        if name_bytes == b"content-type" && parsed.content_type.is_none() {
            if !value_bytes.iter().copied().all(is_value_byte) {
                return Err(refused(name, value, citius_http::Fault::ResponseFieldValue));
            }
            parsed.content_type = Some(value.clone().unbind());
            return Ok(());
        }
        let pushed = parsed.fields.push(name_bytes, value_bytes);
        pushed.map_err(|fault| refused(name, value, fault))
    })?;
    let content_length = parsed.fields.content_length.take();
    Ok((parsed, content_length))
}
