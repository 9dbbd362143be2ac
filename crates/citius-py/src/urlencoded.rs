//! Queries and forms, `application/x-www-form-urlencoded` (WHATWG URL §5.1): bytes in, Python pairs out.

use std::borrow::Cow;

use citius_route::decode;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

/// The pairs of `raw` in their order; what is not UTF-8 becomes U+FFFD.
#[pyfunction]
pub(crate) fn parse_urlencoded<'py>(py: Python<'py>, raw: &[u8]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for pair in raw
        .split(|&byte| byte == b'&')
        .filter(|pair| !pair.is_empty())
    {
        let equals = pair.iter().position(|&byte| byte == b'=');
        let (name, value) = match equals {
            Some(at) => (&pair[..at], &pair[at + 1..]),
            None => (pair, &b""[..]),
        };
        list.append((text(py, name), text(py, value)))?;
    }
    Ok(list)
}

/// One name or value, decoded.
fn text<'py>(py: Python<'py>, encoded: &[u8]) -> Bound<'py, PyString> {
    let spaced = if encoded.contains(&b'+') {
        let space = |&byte: &u8| if byte == b'+' { b' ' } else { byte };
        Cow::Owned(encoded.iter().map(space).collect::<Vec<_>>())
    } else {
        Cow::Borrowed(encoded)
    };
    PyString::new(py, &String::from_utf8_lossy(&decode(&spaced)))
}
