//! Python objects as parameters of a statement.
//!
//! The server says which type a parameter has. Integers, floats, booleans, text, bytes and JSON go in binary format, the
//! others in the text format of their type: beside the statement in both cases, never in its text.

use std::fmt::Write as _;

use citius_pg::{Description, Kind, Parameters};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyBytes, PyDate, PyDateTime, PyDelta, PyDeltaAccess, PyFloat, PyInt, PyList, PyString,
    PyTime, PyTuple,
};

/// Encodes the arguments of a call.
pub(crate) fn encode(
    arguments: &Bound<'_, PyTuple>,
    description: &Description,
    parameters: &mut Parameters,
) -> PyResult<()> {
    parameters.clear();
    let expected = description.parameters.len();
    if arguments.len() != expected {
        return Err(PyTypeError::new_err(format!(
            "the statement has {expected} parameters ($1 to ${expected}), and {} are given",
            arguments.len()
        )));
    }
    for (at, (argument, &oid)) in arguments
        .iter_borrowed()
        .zip(&description.parameters)
        .enumerate()
    {
        if let Err(error) = push(&argument, oid, parameters) {
            return Err(blame(arguments.py(), at + 1, &error));
        }
    }
    Ok(())
}

/// The same error with the number of the parameter.
#[cold]
fn blame(py: Python<'_>, number: usize, error: &PyErr) -> PyErr {
    let text = format!("parameter ${number}: {}", error.value(py));
    if error.is_instance_of::<PyOverflowError>(py) {
        PyOverflowError::new_err(text)
    } else if error.is_instance_of::<PyTypeError>(py) {
        PyTypeError::new_err(text)
    } else {
        PyValueError::new_err(text)
    }
}

fn expected(what: &str, argument: &Bound<'_, PyAny>) -> PyErr {
    let kind = argument
        .get_type()
        .name()
        .map_or_else(|_| "?".into(), |name| name.to_string());
    PyTypeError::new_err(format!("expected {what}, got {kind}"))
}

fn push(argument: &Bound<'_, PyAny>, oid: u32, parameters: &mut Parameters) -> PyResult<()> {
    if argument.is_none() {
        parameters.push_null();
        return Ok(());
    }
    let kind = Kind::of(oid);
    match kind {
        Kind::Int2 => parameters.push_binary(&integer::<i16>(argument)?.to_be_bytes()),
        Kind::Int4 => parameters.push_binary(&integer::<i32>(argument)?.to_be_bytes()),
        Kind::Int8 => parameters.push_binary(&integer::<i64>(argument)?.to_be_bytes()),
        Kind::Oid => parameters.push_binary(&integer::<u32>(argument)?.to_be_bytes()),
        Kind::Float8 => parameters.push_binary(&real(argument)?.to_be_bytes()),
        Kind::Text => match argument.cast::<PyString>() {
            Ok(text) => parameters.push_binary(text.to_str()?.as_bytes()),
            Err(_) => return Err(expected("str", argument)),
        },
        Kind::Bool => match argument.cast::<PyBool>() {
            Ok(value) => parameters.push_binary(&[u8::from(value.is_true())]),
            Err(_) => return Err(expected("bool", argument)),
        },
        Kind::Bytea => parameters.push_binary(bytes(argument)?.as_bytes()),
        Kind::Json => parameters.push_binary(json(argument)?.as_bytes()),
        Kind::Jsonb => parameters.push_binary_parts(&[1], json(argument)?.as_bytes()),
        kind => parameters.push_text(text(argument, kind, oid)?.as_bytes()),
    }
    Ok(())
}

fn integer<T: TryFrom<i64>>(argument: &Bound<'_, PyAny>) -> PyResult<T> {
    if argument.is_instance_of::<PyFloat>() {
        return Err(expected("int", argument));
    }
    let value: i64 = argument.extract().map_err(|error: PyErr| {
        if error.is_instance_of::<PyOverflowError>(argument.py()) {
            too_large()
        } else {
            expected("int", argument)
        }
    })?;
    T::try_from(value).map_err(|_| too_large())
}

fn too_large() -> PyErr {
    PyOverflowError::new_err("the integer is too large for the column's type")
}

fn real(argument: &Bound<'_, PyAny>) -> PyResult<f64> {
    argument.extract().map_err(|_| expected("float", argument))
}

fn bytes<'py>(argument: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    if let Ok(bytes) = argument.cast::<PyBytes>() {
        return Ok(bytes.clone());
    }
    if argument.is_instance_of::<PyString>() || argument.is_instance_of::<PyInt>() {
        return Err(expected("bytes", argument));
    }
    let made = argument.py().get_type::<PyBytes>().call1((argument,));
    let made = made.map_err(|_| expected("bytes", argument))?;
    Ok(made.cast_into::<PyBytes>()?)
}

/// JSON of any object; `bytes` are JSON already.
fn json<'py>(argument: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    static ENCODE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if let Ok(bytes) = argument.cast::<PyBytes>() {
        return Ok(bytes.clone());
    }
    let encode = ENCODE.import(argument.py(), "msgspec.json", "encode")?;
    Ok(encode.call1((argument,))?.cast_into::<PyBytes>()?)
}

/// The text format of a value.
fn text(argument: &Bound<'_, PyAny>, kind: Kind, oid: u32) -> PyResult<String> {
    let py = argument.py();
    match kind {
        Kind::Array => array(argument, oid),
        Kind::Int2 | Kind::Int4 | Kind::Int8 | Kind::Oid => {
            Ok(integer::<i64>(argument)?.to_string())
        }
        Kind::Float4 | Kind::Float8 => Ok(real(argument)?.to_string()),
        Kind::Bool => match argument.cast::<PyBool>() {
            Ok(value) => Ok(value.is_true().to_string()),
            Err(_) => Err(expected("bool", argument)),
        },
        Kind::Numeric => {
            static DECIMAL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            let decimal = DECIMAL.import(py, "decimal", "Decimal")?;
            let is_number = argument.is_instance_of::<PyInt>()
                || argument.is_instance_of::<PyFloat>()
                || argument.is_instance(decimal)?;
            if is_number {
                argument.str()?.extract()
            } else {
                Err(expected("Decimal, int or float", argument))
            }
        }
        Kind::Date
        | Kind::Time
        | Kind::TimeTz
        | Kind::Timestamp
        | Kind::TimestampTz
        | Kind::Interval => time(argument, kind),
        Kind::Bytea => {
            let mut hex = String::from("\\x");
            for byte in bytes(argument)?.as_bytes() {
                // Writing to a string does not fail.
                let _ = write!(hex, "{byte:02x}");
            }
            Ok(hex)
        }
        Kind::Json | Kind::Jsonb => {
            let json = json(argument)?;
            let text = std::str::from_utf8(json.as_bytes());
            text.map(Into::into)
                .map_err(|_| PyValueError::new_err("JSON that is not UTF-8"))
        }
        Kind::Uuid => {
            static UUID: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            let is_uuid = argument.is_instance(UUID.import(py, "uuid", "UUID")?)?;
            if is_uuid || argument.is_instance_of::<PyString>() {
                argument.str()?.extract()
            } else {
                Err(expected("UUID", argument))
            }
        }
        Kind::Text | Kind::Other => match argument.cast::<PyString>() {
            Ok(text) => Ok(text.to_str()?.into()),
            Err(_) => Err(expected("str (the text form of the type)", argument)),
        },
    }
}

/// The text format of a date, a time or a span.
fn time(argument: &Bound<'_, PyAny>, kind: Kind) -> PyResult<String> {
    let py = argument.py();
    let iso = || -> PyResult<String> { argument.call_method0(intern!(py, "isoformat"))?.extract() };
    let is_datetime = argument.is_instance_of::<PyDateTime>();
    match kind {
        Kind::Date if argument.is_instance_of::<PyDate>() && !is_datetime => iso(),
        Kind::Date => Err(expected("date", argument)),
        Kind::Time | Kind::TimeTz if argument.is_instance_of::<PyTime>() => iso(),
        Kind::Time | Kind::TimeTz => Err(expected("time", argument)),
        Kind::Timestamp | Kind::TimestampTz if is_datetime => {
            let offset = argument.call_method0(intern!(py, "utcoffset"))?;
            match (offset.is_none(), kind) {
                (true, Kind::TimestampTz) => {
                    Err(expected("an aware datetime for timestamptz", argument))
                }
                (false, Kind::Timestamp) => {
                    Err(expected("a naive datetime for timestamp", argument))
                }
                _ => iso(),
            }
        }
        Kind::Timestamp | Kind::TimestampTz => Err(expected("datetime", argument)),
        Kind::Interval => match argument.cast::<PyDelta>() {
            Ok(delta) => Ok(format!(
                "{} days {} seconds {} microseconds",
                delta.get_days(),
                delta.get_seconds(),
                delta.get_microseconds()
            )),
            Err(_) => Err(expected("timedelta", argument)),
        },
        _ => Err(expected("a time", argument)),
    }
}

/// The text format of an array: every element is quoted, so that none can be anything but an element.
fn array(argument: &Bound<'_, PyAny>, oid: u32) -> PyResult<String> {
    let element = Kind::element_of(oid).unwrap_or_default();
    let mut text = String::new();
    push_array(argument, Kind::of(element), element, &mut text, 0)?;
    Ok(text)
}

/// PostgreSQL's limit of dimensions; a list in itself ends here too.
const DIMENSIONS_MAX: usize = 6;

fn push_array(
    argument: &Bound<'_, PyAny>,
    kind: Kind,
    element: u32,
    text_: &mut String,
    depth: usize,
) -> PyResult<()> {
    if !(argument.is_instance_of::<PyList>() || argument.is_instance_of::<PyTuple>()) {
        return Err(expected("a list", argument));
    }
    if depth == DIMENSIONS_MAX {
        return Err(PyValueError::new_err("an array of more than 6 dimensions"));
    }
    text_.push('{');
    for (at, item) in argument.try_iter()?.enumerate() {
        let item = item?;
        if at > 0 {
            text_.push(',');
        }
        if item.is_none() {
            text_.push_str("NULL");
        } else if item.is_instance_of::<PyList>() && !matches!(kind, Kind::Json | Kind::Jsonb) {
            push_array(&item, kind, element, text_, depth + 1)?;
        } else {
            text_.push('"');
            for character in text(&item, kind, element)?.chars() {
                if matches!(character, '"' | '\\') {
                    text_.push('\\');
                }
                text_.push(character);
            }
            text_.push('"');
        }
    }
    text_.push('}');
    Ok(())
}
