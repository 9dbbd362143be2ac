//! Header lists that applications start responses with, each validated once for all responses that have the same headers.
//!
//! In: a list of pairs, of bytes (ASGI) or of text (WSGI), and what validates one. Out: the encoded fields, and the
//! `content-length`, which is read anew each time. Invariant: names, values and pairs are of exact types, which are immutable,
//! so that equal ones have equal fields. Bounded by the constants below; a list with `set-cookie` is not kept, because it
//! hardly comes again. Tests: `tests/asgi/test_isolation.py`, `tests/wsgi/test_repeats.py`.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

use citius_base::sync::lock;
use citius_http::fields::parse_decimal;
use citius_http::{FAST_PATHS, Fields};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};

/// Lists that are kept.
const LISTS_KEPT_MAX: usize = 4;
/// Headers of one.
const HEADERS_KEPT_MAX: usize = 32;
/// Bytes of its names and values.
const BYTES_KEPT_MAX: usize = 2048;

/// The type of names and values.
pub(super) trait HeaderText {
    /// What is compared; `None` for an object that is not exactly of the type.
    fn bytes<'a>(value: &'a Bound<'_, PyAny>) -> Option<&'a [u8]>;
}

impl HeaderText for PyBytes {
    #[inline]
    fn bytes<'a>(value: &'a Bound<'_, PyAny>) -> Option<&'a [u8]> {
        Some(value.cast_exact::<Self>().ok()?.as_bytes())
    }
}

impl HeaderText for PyString {
    #[inline]
    fn bytes<'a>(value: &'a Bound<'_, PyAny>) -> Option<&'a [u8]> {
        Some(value.cast_exact::<Self>().ok()?.to_str().ok()?.as_bytes())
    }
}

/// A validated list of headers.
#[derive(Default)]
pub(super) struct ResponseHeaders {
    /// The first `content-type`: apart from the others, because the encoder knows the last one.
    pub(super) content_type: Option<Vec<u8>>,
    /// The others, without `content-length`.
    pub(super) fields: Fields,
}

impl ResponseHeaders {
    /// The fields of one response.
    #[inline]
    pub(super) fn fields_with(
        &self,
        content_length: Option<u64>,
        reason: &[u8],
    ) -> Cow<'_, Fields> {
        let mut fields = Cow::Borrowed(&self.fields);
        if content_length.is_some() {
            fields.to_mut().content_length = content_length;
        }
        if !reason.is_empty() {
            fields.to_mut().reason = reason.to_vec();
        }
        fields
    }
}

/// Header lists of earlier responses.
pub(super) struct HeaderCache<T> {
    kept: Mutex<Kept>,
    text: PhantomData<fn() -> T>,
}

#[derive(Default)]
struct Kept {
    lists: Vec<CachedHeaders>,
    /// Where the latest one was found or put.
    latest: usize,
}

/// A list of headers as it was sent, and its parsed form.
struct CachedHeaders {
    headers: Vec<CachedHeader>,
    parsed: Arc<ResponseHeaders>,
}

struct CachedHeader {
    /// An exact tuple of two exact texts.
    pair: Py<PyTuple>,
    /// The number, if it is a `content-length`.
    length: Option<u64>,
}

impl<T> Default for HeaderCache<T> {
    fn default() -> Self {
        Self {
            kept: Mutex::default(),
            text: PhantomData,
        }
    }
}

impl<T: HeaderText> HeaderCache<T> {
    /// The parsed `headers`, and the `content-length` among them.
    ///
    /// # Errors
    /// Those of `parse`.
    #[inline]
    pub(super) fn read(
        &self,
        headers: &Bound<'_, PyAny>,
        parse: impl FnOnce(&mut ResponseHeaders) -> PyResult<()>,
    ) -> PyResult<(Arc<ResponseHeaders>, Option<u64>)> {
        let list = headers.cast_exact::<PyList>().ok().filter(|_| FAST_PATHS);
        if let Some(found) = list.and_then(|list| self.find(list)) {
            return Ok(found);
        }
        // Before they are parsed, for what is not kept may run the application's code then, which may change them.
        let cacheable = list.and_then(cacheable_headers::<T>);
        let mut parsed = ResponseHeaders::default();
        parse(&mut parsed)?;
        let content_length = parsed.fields.content_length.take();
        let parsed = Arc::new(parsed);
        if let Some(headers) = cacheable {
            let parsed = Arc::clone(&parsed);
            let replaced = lock(&self.kept).keep(CachedHeaders { headers, parsed });
            drop(replaced);
        }
        Ok((parsed, content_length))
    }

    #[inline]
    fn find(&self, list: &Bound<'_, PyList>) -> Option<(Arc<ResponseHeaders>, Option<u64>)> {
        let mut kept = lock(&self.kept);
        let (latest, n_lists) = (kept.latest, kept.lists.len());
        for at in (latest..n_lists).chain(0..latest) {
            let cached = &kept.lists[at];
            let mut content_length = None;
            if cached.matches::<T>(list, &mut content_length) {
                let parsed = Arc::clone(&cached.parsed);
                kept.latest = at;
                return Some((parsed, content_length));
            }
        }
        None
    }
}

impl Kept {
    /// Returns what has to give way, to be dropped without the lock.
    #[cold]
    fn keep(&mut self, cached: CachedHeaders) -> Option<CachedHeaders> {
        if self.lists.len() < LISTS_KEPT_MAX {
            self.latest = self.lists.len();
            self.lists.push(cached);
            return None;
        }
        self.latest = (self.latest + 1) % LISTS_KEPT_MAX;
        Some(std::mem::replace(&mut self.lists[self.latest], cached))
    }
}

impl CachedHeaders {
    /// Whether `list` has the same headers, but for its `content_length`.
    #[inline]
    fn matches<T: HeaderText>(
        &self,
        list: &Bound<'_, PyList>,
        content_length: &mut Option<u64>,
    ) -> bool {
        list.len() == self.headers.len()
            && self
                .headers
                .iter()
                .zip(list)
                .all(|(header, given)| header.matches::<T>(&given, content_length))
    }
}

impl CachedHeader {
    /// Whether `given` is equal but for the number of a `content-length`, which must be that of an earlier line.
    #[inline]
    fn matches<T: HeaderText>(
        &self,
        given: &Bound<'_, PyAny>,
        content_length: &mut Option<u64>,
    ) -> bool {
        // Constants of the application are the same object each time.
        let length = if self.pair.is(given) {
            self.length
        } else {
            let own = self.pair.bind(given.py());
            let Ok(given) = given.cast_exact::<PyTuple>() else {
                return false;
            };
            let ([own_name, own_value], [name, value]) = (own.as_slice(), given.as_slice()) else {
                return false;
            };
            let has_length = self.length.is_some();
            if !is_same::<T>(own_name, name) || !has_length && !is_same::<T>(own_value, value) {
                return false;
            }
            let digits = T::bytes(value).filter(|_| has_length);
            let length = digits.and_then(|digits| parse_decimal(digits.trim_ascii()));
            if length.is_some() != has_length {
                return false;
            }
            length
        };
        let earlier = content_length.or(length);
        if length.is_some() {
            *content_length = length;
        }
        length.is_none() || length == earlier
    }
}

#[inline]
fn is_same<T: HeaderText>(own: &Bound<'_, PyAny>, given: &Bound<'_, PyAny>) -> bool {
    own.is(given) || T::bytes(given).is_some_and(|given| T::bytes(own) == Some(given))
}

/// The headers of a list that may be kept.
#[cold]
fn cacheable_headers<T: HeaderText>(list: &Bound<'_, PyList>) -> Option<Vec<CachedHeader>> {
    if list.len() > HEADERS_KEPT_MAX {
        return None;
    }
    let mut bytes_left = BYTES_KEPT_MAX;
    let mut headers = Vec::with_capacity(list.len());
    for given in list {
        let pair = given.cast_exact::<PyTuple>().ok()?;
        let [name, value] = pair.as_slice() else {
            return None;
        };
        let (name, value) = (T::bytes(name)?, T::bytes(value)?);
        bytes_left = bytes_left.checked_sub(name.len() + value.len())?;
        if name.eq_ignore_ascii_case(b"set-cookie") {
            return None;
        }
        let is_length = name.eq_ignore_ascii_case(b"content-length");
        headers.push(CachedHeader {
            pair: pair.clone().unbind(),
            length: is_length
                .then(|| parse_decimal(value.trim_ascii()))
                .flatten(),
        });
    }
    Some(headers)
}
