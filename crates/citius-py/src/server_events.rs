//! Server-sent events as they are sent (HTML standard, §9.2.6): what an application yields in, lines out.
//!
//! The general way is `encode_event` in `python/citius/web/realtime/events.py`. What most events are is written here from the objects
//! themselves; the bytes are the same (I21). Tests: `tests/gateway/test_event_streams.py`.

use citius_http::FAST_PATHS;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyString};

use crate::functions;

/// Appends one event: an `Event`, or the data of one.
#[inline]
pub(crate) fn append_event(event: &Bound<'_, PyAny>, output: &mut Vec<u8>) -> PyResult<()> {
    if let Some(text) = plain_text(event) {
        append_data(text, output);
        return Ok(());
    }
    append_other(event, output)
}

/// The data of an event that is nothing but a text.
#[inline]
pub(crate) fn plain_text<'a>(event: &'a Bound<'_, PyAny>) -> Option<&'a [u8]> {
    // A text with a lone surrogate has no UTF-8; what is sent in its place is the general way's to say.
    let text = event.cast_exact::<PyString>().ok().filter(|_| FAST_PATHS)?;
    Some(text.to_str().ok()?.as_bytes())
}

/// Appends an event that is nothing but its data: a field for each line of it, and the empty line that ends an event.
#[inline]
pub(crate) fn append_data(data: &[u8], output: &mut Vec<u8>) {
    output.reserve(data.len() + b"data: \n\n".len());
    let mut rest = data;
    while let Some(end) = memchr::memchr2(b'\r', b'\n', rest) {
        append_field(b"data: ", &rest[..end], output);
        let is_crlf = rest[end..].starts_with(b"\r\n");
        rest = &rest[end + 1 + usize::from(is_crlf)..];
    }
    append_field(b"data: ", rest, output);
    output.push(b'\n');
}

#[inline]
fn append_field(name: &[u8], value: &[u8], output: &mut Vec<u8>) {
    output.extend_from_slice(name);
    output.extend_from_slice(value);
    output.push(b'\n');
}

#[inline(never)]
fn append_other(event: &Bound<'_, PyAny>, output: &mut Vec<u8>) -> PyResult<()> {
    let py = event.py();
    if FAST_PATHS {
        if event.cast_exact::<PyDict>().is_ok() {
            let json = functions::ENCODE_JSON.call1(py, event)?;
            append_data(json.cast::<PyBytes>()?.as_bytes(), output);
            return Ok(());
        }
        let before = output.len();
        if event.get_type().is(&functions::EVENT.get(py)?) && append_fields(event, output)? {
            return Ok(());
        }
        output.truncate(before);
    }
    let encoded = functions::ENCODE_EVENT.call1(py, event)?;
    output.extend_from_slice(encoded.cast::<PyBytes>()?.as_bytes());
    Ok(())
}

/// Appends an `Event`; `false` if one of its values needs the general way.
fn append_fields(event: &Bound<'_, PyAny>, output: &mut Vec<u8>) -> PyResult<bool> {
    let py = event.py();
    let lines = [
        (intern!(py, "event"), &b"event: "[..]),
        (intern!(py, "id"), b"id: "),
    ];
    for (attribute, name) in lines {
        let value = event.getattr(attribute)?;
        if value.is_none() {
            continue;
        }
        let Some(text) = plain_text(&value) else {
            return Ok(false);
        };
        append_field(name, text, output);
    }
    let retry = event.getattr(intern!(py, "retry_ms"))?;
    if let Ok(number) = retry.cast_exact::<PyInt>() {
        append_field(b"retry: ", number.str()?.to_str()?.as_bytes(), output);
    } else if !retry.is_none() {
        return Ok(false);
    }
    let data = event.getattr(intern!(py, "data"))?;
    if let Some(text) = plain_text(&data) {
        append_data(text, output);
        return Ok(true);
    }
    if data.is_instance_of::<PyString>() {
        return Ok(false);
    }
    let json = functions::ENCODE_JSON.call1(py, &data)?;
    append_data(json.cast::<PyBytes>()?.as_bytes(), output);
    Ok(true)
}
