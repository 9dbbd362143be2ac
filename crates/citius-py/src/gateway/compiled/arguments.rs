//! Arguments of typed functions: a request in, C values out.
//!
//! As `binding.py` for Python handlers: a request whose arguments do not fit gets 422 with all errors, and a function never
//! sees an argument that does not have its type. Tests: `tests/compiled/`.

use std::borrow::Cow;
use std::fmt::Write as _;

use citius_http::Head;
use citius_route::Captures;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::abi::{Text, Value, Values};
use super::query;
use crate::numbers;

/// Where an argument comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Param(usize),
    Query,
    RawPath,
    RawQuery,
    Body,
}

/// What it has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bytes,
    Integer,
    Real,
    Bool,
}

/// What is passed where the query does not have it.
#[derive(Clone, Debug)]
enum Default {
    Bytes(Box<[u8]>),
    Integer(i64),
    Real(f64),
}

/// One parameter of a function.
#[derive(Clone, Debug)]
pub(crate) struct Argument {
    name: String,
    source: Source,
    kind: Kind,
    default: Option<Default>,
}

impl<'py> FromPyObject<'_, 'py> for Argument {
    type Error = PyErr;

    /// From `(name, source, type, default)`; see `citius.web.execution.compiled_handlers.Argument`.
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (name, source, kind, default): (String, String, String, Option<Bound<'py, PyAny>>) =
            object.extract()?;
        let source = match source.as_str() {
            "query" => Source::Query,
            "raw_path" => Source::RawPath,
            "raw_query" => Source::RawQuery,
            "body" => Source::Body,
            place => Source::Param(place.parse().map_err(|_| {
                PyValueError::new_err(format!(
                    "{name}: a source is query, raw_path, raw_query, body or the place of a path \
                     parameter, not {place:?}"
                ))
            })?),
        };
        let kind = match kind.as_str() {
            "bytes" => Kind::Bytes,
            "int" => Kind::Integer,
            "float" => Kind::Real,
            "bool" => Kind::Bool,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "{name}: a type is bytes, int, float or bool, not {kind:?}"
                )));
            }
        };
        let default = match default {
            None => None,
            Some(value) => Some(match kind {
                Kind::Bytes => Default::Bytes(value.extract::<Vec<u8>>()?.into()),
                Kind::Integer | Kind::Bool => Default::Integer(value.extract()?),
                Kind::Real => Default::Real(value.extract()?),
            }),
        };
        Ok(Self {
            name,
            source,
            kind,
            default,
        })
    }
}

/// A request that arguments are taken from.
#[derive(Clone, Copy)]
pub(super) struct Given<'a> {
    pub(super) head: &'a Head,
    pub(super) captures: &'a Captures,
    pub(super) body: &'a [u8],
}

/// What the arguments of one call point to besides the request.
#[derive(Default)]
pub(super) struct Decoded(Vec<Vec<u8>>);

/// The values of all arguments, or the response that says what is wrong with them (RFC 9457).
///
/// They point into `given` and `decoded`.
pub(super) fn values(
    arguments: &[Argument],
    given: Given<'_>,
    decoded: &mut Decoded,
) -> Result<Values, String> {
    let mut values = Values::new();
    let mut mistakes = Vec::new();
    for argument in arguments {
        match value(argument, given, decoded) {
            Ok(value) => values.push(value),
            Err(message) => mistakes.push((argument, message)),
        }
    }
    if mistakes.is_empty() {
        Ok(values)
    } else {
        Err(problem(&mistakes))
    }
}

fn value(
    argument: &Argument,
    given: Given<'_>,
    decoded: &mut Decoded,
) -> Result<Value, &'static str> {
    let text = match argument.source {
        Source::RawPath => Cow::Borrowed(given.head.path()),
        Source::RawQuery => Cow::Borrowed(given.head.query()),
        Source::Body => Cow::Borrowed(given.body),
        Source::Param(at) => Cow::Borrowed(given.captures.get(at).map_or(&[][..], Vec::as_slice)),
        Source::Query => match query::last(given.head.query(), argument.name.as_bytes()) {
            Some(text) => text,
            None => return argument.default.as_ref().map(passed).ok_or("missing"),
        },
    };
    match argument.kind {
        Kind::Bytes => Ok(Value {
            text: match text {
                Cow::Borrowed(bytes) => Text::of(bytes),
                Cow::Owned(bytes) => {
                    // The vector may move, its bytes stay where they are.
                    let text = Text::of(&bytes);
                    decoded.0.push(bytes);
                    text
                }
            },
        }),
        Kind::Integer => numbers::integer(&text)
            .map(|integer| Value { integer })
            .ok_or("expected an integer that fits 64 bits"),
        Kind::Real => numbers::real(&text)
            .map(|real| Value { real })
            .ok_or("expected a number"),
        Kind::Bool => truth(&text)
            .map(|truth| Value {
                integer: i64::from(truth),
            })
            .ok_or("expected true or false"),
    }
}

fn passed(default: &Default) -> Value {
    match default {
        Default::Bytes(bytes) => Value {
            text: Text::of(bytes),
        },
        Default::Integer(integer) => Value { integer: *integer },
        Default::Real(real) => Value { real: *real },
    }
}

/// The words that msgspec takes for one.
fn truth(text: &[u8]) -> Option<bool> {
    let is = |words: [&[u8]; 2]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    match text {
        _ if is([b"true", b"1"]) => Some(true),
        _ if is([b"false", b"0"]) => Some(false),
        _ => None,
    }
}

/// Problem details, with mistakes as `web/declarations/validation_errors.py` writes them.
fn problem(mistakes: &[(&Argument, &'static str)]) -> String {
    let mut text = String::from(
        "{\"title\":\"Unprocessable Content\",\"status\":422,\
         \"detail\":\"request validation failed\",\"errors\":[",
    );
    for (index, (argument, message)) in mistakes.iter().enumerate() {
        let place = match argument.source {
            Source::Param(_) => "path",
            _ => "query",
        };
        // A name is a Python identifier and the messages are ours: nothing to escape.
        let _ = write!(
            text,
            "{}{{\"in\":\"{place}\",\"pointer\":\"#/{}\",\"detail\":\"{message}\"}}",
            if index == 0 { "" } else { "," },
            argument.name
        );
    }
    text.push_str("]}");
    text
}
