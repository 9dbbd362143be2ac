//! A request as bytes: what Python gives as `str` or `bytes`, checked and encoded.

use std::borrow::Cow;

use citius_h1::client::{self, Content, Misuse, Request};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};
use smallvec::SmallVec;

use super::head::Lines;
use super::origin::HttpOrigin;

/// Fields that most requests do not exceed.
pub(crate) type Fields<'a> = SmallVec<[(Cow<'a, [u8]>, Cow<'a, [u8]>); 12]>;

/// The bytes of a `str` in Latin-1, or those of `bytes`.
fn octets<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    if let Ok(bytes) = value.cast_exact::<PyBytes>() {
        return Ok(Cow::Borrowed(bytes.as_bytes()));
    }
    let Ok(text) = value.cast::<PyString>() else {
        return Err(PyTypeError::new_err(format!(
            "a field's name and value are str or bytes, got {}",
            value.get_type().name()?
        )));
    };
    let text = text.to_str()?;
    if text.is_ascii() {
        return Ok(Cow::Borrowed(text.as_bytes()));
    }
    let latin: Option<Vec<u8>> = text.chars().map(|it| u8::try_from(it).ok()).collect();
    latin.map(Cow::Owned).ok_or_else(|| {
        PyValueError::new_err(
            "a field has characters beyond Latin-1: encode it, and give its bytes",
        )
    })
}

/// Calls `act` with the fields of a list of pairs. No Python code runs between reading them and its return.
pub(crate) fn with_fields<R>(
    list: &Bound<'_, PyList>,
    act: impl FnOnce(&Fields<'_>) -> R,
) -> PyResult<R> {
    let mut objects: SmallVec<[(Bound<'_, PyAny>, Bound<'_, PyAny>); 12]> = SmallVec::new();
    for pair in list.iter() {
        let Ok(pair) = pair.cast::<PyTuple>() else {
            return Err(PyTypeError::new_err("fields are pairs of name and value"));
        };
        if pair.len() != 2 {
            return Err(PyValueError::new_err("fields are pairs of name and value"));
        }
        objects.push((pair.get_item(0)?, pair.get_item(1)?));
    }
    let mut fields = Fields::new();
    for (name, value) in &objects {
        fields.push((octets(name)?, octets(value)?));
    }
    Ok(act(&fields))
}

/// What a server is asked for.
#[expect(
    clippy::large_enum_variant,
    reason = "a call is an object of its own, and the larger variant is spared an allocation"
)]
pub(crate) enum Asked {
    ByPython {
        method: Py<PyString>,
        target: Py<PyString>,
        fields: Py<PyList>,
    },
    /// The head was made here.
    Made {
        method: &'static str,
        target: String,
        fields: Lines,
    },
}

impl Asked {
    pub(crate) fn method<'a>(&'a self, py: Python<'a>) -> PyResult<&'a str> {
        match self {
            Self::ByPython { method, .. } => method.to_str(py),
            Self::Made { method, .. } => Ok(method),
        }
    }

    pub(crate) fn target<'a>(&'a self, py: Python<'a>) -> PyResult<&'a str> {
        match self {
            Self::ByPython { target, .. } => target.to_str(py),
            Self::Made { target, .. } => Ok(target),
        }
    }

    /// Calls `act` with the fields. No Python code runs between reading them and its return.
    pub(crate) fn with_fields<R>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&Fields<'_>) -> R,
    ) -> PyResult<R> {
        match self {
            Self::ByPython { fields, .. } => with_fields(fields.bind(py), act),
            Self::Made { fields, .. } => {
                let fields = fields.iter();
                let borrowed = fields.map(|(name, value)| (name.into(), value.into()));
                Ok(act(&borrowed.collect()))
            }
        }
    }
}

/// A request without its content.
#[derive(Clone, Copy)]
pub(crate) struct RequestParts<'a> {
    pub(crate) asked: &'a Asked,
    pub(crate) content: Content,
    /// It may ask for a WebSocket.
    pub(crate) upgrades: bool,
}

/// Appends the head of a request of HTTP/1.1; whether its content is to be waited with (`Expect: 100-continue`).
pub(crate) fn encode_h1(
    py: Python<'_>,
    parts: &RequestParts<'_>,
    origin: &HttpOrigin,
    out: &mut Vec<u8>,
) -> PyResult<(client::Asked, bool)> {
    let start = out.len();
    let RequestParts {
        asked,
        content,
        upgrades,
    } = *parts;
    let (method, target) = (asked.method(py)?, asked.target(py)?);
    let joined;
    let target = match &origin.target_prefix {
        None => target,
        Some(prefix) => {
            joined = format!("{prefix}{target}");
            &joined
        }
    };
    let request = Request {
        method: method.as_bytes(),
        target: target.as_bytes(),
        authority: origin.authority.as_bytes(),
        content,
        upgrades,
    };
    let encoded = asked.with_fields(py, |fields| {
        let expects = expects_continue(fields) && content != Content::Length(0);
        let proxy = origin.proxy_authorization.as_deref();
        let proxy = proxy.map(|value| (&b"proxy-authorization"[..], value.as_bytes()));
        let own = fields.iter().map(|(name, value)| (&**name, &**value));
        let encoded = request.encode(own.chain(proxy), out);
        encoded
            .map(|asked| (asked, expects))
            .map_err(|misuse| refused(method, &misuse))
    });
    let encoded = encoded.and_then(|encoded| encoded);
    if encoded.is_err() {
        out.truncate(start);
    }
    encoded
}

pub(crate) fn expects_continue(fields: &Fields<'_>) -> bool {
    fields.iter().any(|(name, value)| {
        name.eq_ignore_ascii_case(b"expect") && value.eq_ignore_ascii_case(b"100-continue")
    })
}

/// A request that cannot be sent without another reading.
#[cold]
pub(crate) fn refused(method: &str, misuse: &Misuse<'_>) -> PyErr {
    let shown = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    PyValueError::new_err(match misuse {
        Misuse::Method => format!("{method:?} is no method that a client sends"),
        Misuse::Target | Misuse::Authority => {
            "the URL has a byte that no URL has: percent-encode it".into()
        }
        Misuse::FieldName(name) => format!("{:?} is no name of a field", shown(name)),
        Misuse::FieldValue(name) => format!(
            "the value of the field {:?} has a line end or another control byte in it",
            shown(name)
        ),
        Misuse::FieldOwned(name) => format!(
            "the field {:?} is written by the client itself",
            shown(name)
        ),
    })
}

/// The same for a request of HTTP/2.
#[cold]
pub(crate) fn refused_h2(method: &str, misuse: &citius_h2::client::Misuse<'_>) -> PyErr {
    use citius_h2::client::Misuse as Other;
    let same = match *misuse {
        Other::Method => Misuse::Method,
        Other::Target => Misuse::Target,
        Other::FieldName(name) => Misuse::FieldName(name),
        Other::FieldValue(name) => Misuse::FieldValue(name),
        Other::FieldOwned(name) => Misuse::FieldOwned(name),
        Other::Full => {
            return PyValueError::new_err("the connection takes no more requests");
        }
    };
    refused(method, &same)
}
