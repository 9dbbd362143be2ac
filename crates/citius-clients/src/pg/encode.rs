//! Python objects as parameters of a statement.
//!
//! The server says which type a parameter has. Integers, floats, booleans, text, bytes and JSON go in binary format, the
//! others in the text format of their type: beside the statement in both cases, never in its text.

use std::fmt::Write as _;

use citius_pg::{Definition, Description, Kind, Parameters};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyUnicodeEncodeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyBytes, PyDate, PyDateTime, PyDelta, PyDeltaAccess, PyDict, PyFloat, PyInt, PyList,
    PyString, PyTime, PyTuple,
};

use super::types::TypeTable;

/// Encodes the arguments of a call.
pub(crate) fn encode(
    arguments: &Bound<'_, PyTuple>,
    description: &Description,
    table: &TypeTable,
    parameters: &mut Parameters,
) -> PyResult<()> {
    parameters.clear();
    check_count(arguments.len(), description)?;
    for (at, (argument, &oid)) in arguments
        .iter_borrowed()
        .zip(&description.parameters)
        .enumerate()
    {
        if let Err(error) = push(&argument, oid, table, parameters) {
            return Err(blame(arguments.py(), at + 1, &error));
        }
    }
    Ok(())
}

/// # Errors
/// `TypeError`: the statement has another number of parameters.
#[inline]
pub(crate) fn check_count(count: usize, description: &Description) -> PyResult<()> {
    let expected = description.parameters.len();
    if count == expected {
        return Ok(());
    }
    Err(PyTypeError::new_err(match expected {
        0 => format!("the statement has no parameters, and {count} are given"),
        _ => format!(
            "the statement has {expected} parameters ($1 to ${expected}), and {count} are given"
        ),
    }))
}

/// `error` with the number of the parameter.
#[cold]
fn blame(py: Python<'_>, number: usize, error: &PyErr) -> PyErr {
    with_text(
        py,
        error,
        format!("parameter ${number}: {}", error.value(py)),
    )
}

/// `error` with the place of its parameters among those of other executions.
#[cold]
pub(crate) fn in_row(py: Python<'_>, at: usize, error: &PyErr) -> PyErr {
    with_text(py, error, format!("rows[{at}]: {}", error.value(py)))
}

fn with_text(py: Python<'_>, error: &PyErr, text: String) -> PyErr {
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

#[inline]
fn push(
    argument: &Bound<'_, PyAny>,
    oid: u32,
    table: &TypeTable,
    parameters: &mut Parameters,
) -> PyResult<()> {
    if argument.is_none() {
        parameters.push_null();
        return Ok(());
    }
    if let Some(encoded) = encoded(argument, oid, table)? {
        return push_plain(&encoded, oid, table, parameters);
    }
    push_plain(argument, oid, table, parameters)
}

/// What the application's codec of a type makes of an argument; `None` without one.
#[inline]
fn encoded<'py>(
    argument: &Bound<'py, PyAny>,
    oid: u32,
    table: &TypeTable,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    match table.codec(oid).and_then(|codec| codec.encode.as_ref()) {
        None => Ok(None),
        Some(encode) => encode.bind(argument.py()).call1((argument,)).map(Some),
    }
}

fn push_plain(
    argument: &Bound<'_, PyAny>,
    oid: u32,
    table: &TypeTable,
    parameters: &mut Parameters,
) -> PyResult<()> {
    let kind = table.types().kind_of(oid);
    match kind {
        Kind::Int2 => parameters.push_binary(&integer::<i16>(argument)?.to_be_bytes()),
        Kind::Int4 => parameters.push_binary(&integer::<i32>(argument)?.to_be_bytes()),
        Kind::Int8 => parameters.push_binary(&integer::<i64>(argument)?.to_be_bytes()),
        Kind::Oid => parameters.push_binary(&integer::<u32>(argument)?.to_be_bytes()),
        Kind::Float8 => parameters.push_binary(&real(argument)?.to_be_bytes()),
        Kind::Text => match argument.cast::<PyString>() {
            Ok(text) => parameters.push_binary(text.to_str()?.as_bytes()),
            Err(_) => parameters.push_binary(label(argument, oid, table)?.as_bytes()),
        },
        Kind::Bool => match argument.cast::<PyBool>() {
            Ok(value) => parameters.push_binary(&[u8::from(value.is_true())]),
            Err(_) => return Err(expected("bool", argument)),
        },
        Kind::Bytea => parameters.push_binary(bytes(argument)?.as_bytes()),
        Kind::Json => parameters.push_binary(json(argument)?.as_bytes()),
        Kind::Jsonb => parameters.push_binary_parts(&[1], json(argument)?.as_bytes()),
        _ => parameters.push_text(text(argument, oid, table)?.as_bytes()),
    }
    Ok(())
}

/// The text of a member of an `Enum`, for a column of an enumeration.
#[cold]
fn label(argument: &Bound<'_, PyAny>, oid: u32, table: &TypeTable) -> PyResult<String> {
    static ENUM: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = argument.py();
    if table.types().definition(oid) == Some(Definition::Enum)
        && argument.is_instance(ENUM.import(py, "enum", "Enum")?)?
        && let Ok(value) = argument.getattr(intern!(py, "value"))?.cast::<PyString>()
    {
        return Ok(value.to_str()?.to_owned());
    }
    Err(expected("str", argument))
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
    let py = argument.py();
    let encode = ENCODE.import(py, "msgspec.json", "encode")?;
    match encode.call1((argument,)) {
        Ok(json) => Ok(json.cast_into::<PyBytes>()?),
        Err(error) if error.is_instance_of::<PyUnicodeEncodeError>(py) => escaped_json(argument),
        Err(error) => Err(error),
    }
}

/// JSON of an object with a lone surrogate in it, which has no UTF-8: what is not ASCII is escaped.
#[cold]
fn escaped_json<'py>(argument: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let py = argument.py();
    let plain = py
        .import("msgspec")?
        .call_method1("to_builtins", (argument,))?;
    let text = py.import("json")?.call_method1("dumps", (plain,))?;
    Ok(PyBytes::new(
        py,
        text.cast::<PyString>()?.to_str()?.as_bytes(),
    ))
}

/// The text format of a value, after the application's codec.
fn inner_text(argument: &Bound<'_, PyAny>, oid: u32, table: &TypeTable) -> PyResult<String> {
    match encoded(argument, oid, table)? {
        Some(encoded) => text(&encoded, oid, table),
        None => text(argument, oid, table),
    }
}

/// The text format of a value.
fn text(argument: &Bound<'_, PyAny>, oid: u32, table: &TypeTable) -> PyResult<String> {
    let kind = table.types().kind_of(oid);
    if kind.is_scalar() && table.types().is_built_in_scalar(oid) {
        return scalar_text(argument, kind);
    }
    match table.types().base_of(oid) {
        INET | CIDR => return address_text(argument),
        MONEY => return money_text(argument),
        _ => {}
    }
    match table.types().definition(oid) {
        // Text is taken for the text format of any of them.
        Some(definition) if !argument.is_instance_of::<PyString>() => match definition {
            Definition::Array { element, delimiter } => {
                let mut text = String::new();
                let of = Elements {
                    element,
                    delimiter,
                    table,
                };
                of.push(argument, &mut text, 0)?;
                Ok(text)
            }
            Definition::Range(bound) => range(argument, bound, table),
            Definition::Multirange(bound) => multirange(argument, bound, table),
            Definition::Composite(fields) => composite(argument, &fields, table),
            Definition::Enum => label(argument, oid, table),
            Definition::Hstore => hstore_text(argument),
            Definition::Text | Definition::Domain(_) => scalar_text(argument, kind),
        },
        _ => scalar_text(argument, kind),
    }
}

/// The text format of a value that has no others in it.
fn scalar_text(argument: &Bound<'_, PyAny>, kind: Kind) -> PyResult<String> {
    let py = argument.py();
    match kind {
        Kind::Int2 | Kind::Int4 | Kind::Int8 | Kind::Oid => {
            Ok(integer::<i64>(argument)?.to_string())
        }
        Kind::Float4 | Kind::Float8 => Ok(real(argument)?.to_string()),
        Kind::Bool => match argument.cast::<PyBool>() {
            Ok(value) => Ok(value.is_true().to_string()),
            Err(_) => Err(expected("bool", argument)),
        },
        Kind::Numeric => numeric_text(argument),
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
        _ => match argument.cast::<PyString>() {
            Ok(text) => Ok(text.to_str()?.into()),
            Err(_) => Err(expected("str (the text form of the type)", argument)),
        },
    }
}

/// The text format of addresses of `ipaddress` for `inet` and `cidr`.
fn address_text(argument: &Bound<'_, PyAny>) -> PyResult<String> {
    let class = argument.get_type();
    let is_address = class.module().is_ok_and(|module| module == "ipaddress");
    if is_address || argument.is_instance_of::<PyString>() {
        return argument.str()?.extract();
    }
    Err(expected("str, or an object of ipaddress", argument))
}

/// The text format of a dict of texts: `"a"=>"1","b"=>NULL`.
fn hstore_text(argument: &Bound<'_, PyAny>) -> PyResult<String> {
    let Ok(dict) = argument.cast::<PyDict>() else {
        return Err(expected("str or dict", argument));
    };
    let mut text = String::new();
    for (key, value) in dict.iter() {
        if !text.is_empty() {
            text.push(',');
        }
        let key = key
            .cast::<PyString>()
            .map_err(|_| expected("str as a key", &key))?;
        push_quoted(&mut text, key.to_str()?, '\\');
        text.push_str("=>");
        if value.is_none() {
            text.push_str("NULL");
            continue;
        }
        let value = value
            .cast::<PyString>()
            .map_err(|_| expected("str or None as a value", &value))?;
        push_quoted(&mut text, value.to_str()?, '\\');
    }
    Ok(text)
}

/// Numbers for `money` are refused: what their text means depends on `lc_monetary`.
fn money_text(argument: &Bound<'_, PyAny>) -> PyResult<String> {
    match argument.cast::<PyString>() {
        Ok(text) => Ok(text.to_str()?.into()),
        Err(_) => Err(expected(
            "str for money, whose text depends on lc_monetary: write $1::numeric::money for a Decimal",
            argument,
        )),
    }
}

/// `money`, `cidr`, `inet`.
const MONEY: u32 = 790;
const CIDR: u32 = 650;
const INET: u32 = 869;

/// The text format of a number of any length.
fn numeric_text(argument: &Bound<'_, PyAny>) -> PyResult<String> {
    static DECIMAL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let decimal = DECIMAL.import(argument.py(), "decimal", "Decimal")?;
    let is_number = argument.is_instance_of::<PyInt>() && !argument.is_instance_of::<PyBool>()
        || argument.is_instance_of::<PyFloat>()
        || argument.is_instance(decimal)?;
    if !is_number {
        return Err(expected("Decimal, int or float", argument));
    }
    let text: String = argument.str()?.extract()?;
    // Python has several that are none; PostgreSQL has one.
    Ok(if text.contains("NaN") {
        "NaN".to_owned()
    } else {
        text
    })
}

/// The text format of a date, a time or a span.
fn time(argument: &Bound<'_, PyAny>, kind: Kind) -> PyResult<String> {
    let py = argument.py();
    let iso = || -> PyResult<String> { argument.call_method0(intern!(py, "isoformat"))?.extract() };
    let is_datetime = argument.is_instance_of::<PyDateTime>();
    match kind {
        Kind::Date if argument.is_instance_of::<PyDate>() && !is_datetime => {
            or_infinite(argument, iso()?)
        }
        Kind::Date => Err(expected("date", argument)),
        // The server would drop the offset.
        Kind::Time if argument.is_instance_of::<PyTime>() => {
            if argument.getattr(intern!(py, "tzinfo"))?.is_none() {
                iso()
            } else {
                Err(expected("a naive time for time", argument))
            }
        }
        Kind::TimeTz if argument.is_instance_of::<PyTime>() => iso(),
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
                _ => or_infinite(argument, iso()?),
            }
        }
        Kind::Timestamp | Kind::TimestampTz => Err(expected("datetime", argument)),
        Kind::Interval => match argument.cast::<PyDelta>() {
            // ISO 8601, where each field has its own sign; in other forms a sign is for all with one IntervalStyle.
            Ok(delta) => Ok(format!(
                "P{}DT{}.{:06}S",
                delta.get_days(),
                delta.get_seconds(),
                delta.get_microseconds()
            )),
            Err(_) => Err(expected("timedelta", argument)),
        },
        _ => Err(expected("a time", argument)),
    }
}

/// The limits of `datetime` may be what infinity was read as.
fn or_infinite(argument: &Bound<'_, PyAny>, iso: String) -> PyResult<String> {
    if !(iso.starts_with("9999-12-31") || iso.starts_with("0001-01-01")) {
        return Ok(iso);
    }
    let module = argument.py().import("citius.pg.infinity")?;
    module.call_method1("text_of", (argument,))?.extract()
}

/// PostgreSQL's limit of dimensions; a list in itself ends here too.
const DIMENSIONS_MAX: usize = 6;

/// The text format of an array: every element is quoted, so that none can be anything but an element.
struct Elements<'a> {
    element: u32,
    delimiter: u8,
    table: &'a TypeTable,
}

impl Elements<'_> {
    fn push(&self, argument: &Bound<'_, PyAny>, text: &mut String, depth: usize) -> PyResult<()> {
        if !(argument.is_instance_of::<PyList>() || argument.is_instance_of::<PyTuple>()) {
            return Err(expected("a list", argument));
        }
        if depth == DIMENSIONS_MAX {
            return Err(PyValueError::new_err("an array of more than 6 dimensions"));
        }
        text.push('{');
        for (at, item) in argument.try_iter()?.enumerate() {
            let item = item?;
            if at > 0 {
                text.push(char::from(self.delimiter));
            }
            if item.is_none() {
                text.push_str("NULL");
            } else if item.is_instance_of::<PyList>() && !self.takes_lists() {
                self.push(&item, text, depth + 1)?;
            } else {
                let element = inner_text(&item, self.element, self.table)?;
                push_quoted(text, &element, '\\');
            }
        }
        text.push('}');
        Ok(())
    }

    /// Whether a list is an element, and not an inner array.
    fn takes_lists(&self) -> bool {
        self.table
            .codec(self.element)
            .is_some_and(|codec| codec.encode.is_some())
            || matches!(
                self.table.types().kind_of(self.element),
                Kind::Json | Kind::Jsonb | Kind::Multirange(_) | Kind::Composite(_)
            )
            || matches!(
                self.table.types().definition(self.element),
                Some(Definition::Composite(_))
            )
    }
}

/// In quotes; `escape` stands before a quote and a backslash.
fn push_quoted(text: &mut String, element: &str, escape: char) {
    text.push('"');
    for character in element.chars() {
        if matches!(character, '"' | '\\') {
            text.push(if escape == '\\' { '\\' } else { character });
        }
        text.push(character);
    }
    text.push('"');
}

/// The text format of a range: `[1,10)`.
fn range(argument: &Bound<'_, PyAny>, bound: u32, table: &TypeTable) -> PyResult<String> {
    static RANGE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = argument.py();
    if !argument.is_instance(RANGE.import(py, "citius.pg.ranges", "Range")?)? {
        return Err(expected("a Range", argument));
    }
    if argument.getattr(intern!(py, "is_empty"))?.is_truthy()? {
        return Ok("empty".to_owned());
    }
    let bounds = argument.getattr(intern!(py, "bounds"))?;
    let bounds = bounds.cast::<PyString>()?.to_str()?;
    let (Some(first @ ('[' | '(')), Some(last @ (']' | ')'))) =
        (bounds.chars().next(), bounds.chars().nth(1))
    else {
        return Err(PyValueError::new_err(
            "the bounds of a range are [), [], (] or ()",
        ));
    };
    let mut text = String::from(first);
    for (name, end) in [(intern!(py, "lower"), ','), (intern!(py, "upper"), last)] {
        let value = argument.getattr(name)?;
        if !value.is_none() {
            push_quoted(&mut text, &inner_text(&value, bound, table)?, '"');
        }
        text.push(end);
    }
    Ok(text)
}

/// The text format of a set of ranges: `{[1,2),[5,9)}`.
fn multirange(argument: &Bound<'_, PyAny>, bound: u32, table: &TypeTable) -> PyResult<String> {
    if !(argument.is_instance_of::<PyList>() || argument.is_instance_of::<PyTuple>()) {
        return Err(expected("a list of Range", argument));
    }
    let ranges = argument.try_iter()?.map(|one| range(&one?, bound, table));
    Ok(format!(
        "{{{}}}",
        ranges.collect::<PyResult<Vec<_>>>()?.join(",")
    ))
}

/// The text format of a composite value: `("1","a")`; of a tuple, a list, a dict, or an object with attributes.
fn composite(
    argument: &Bound<'_, PyAny>,
    fields: &[(String, u32)],
    table: &TypeTable,
) -> PyResult<String> {
    let is_sequence = argument.is_instance_of::<PyTuple>() || argument.is_instance_of::<PyList>();
    if is_sequence && argument.len()? != fields.len() {
        return Err(PyTypeError::new_err(format!(
            "expected {} fields, got {}",
            fields.len(),
            argument.len()?
        )));
    }
    let mut text = String::from("(");
    for (at, (name, oid)) in fields.iter().enumerate() {
        let value = if is_sequence {
            argument.get_item(at)?
        } else if let Ok(dict) = argument.cast::<PyDict>() {
            dict.get_item(name)?
                .ok_or_else(|| PyTypeError::new_err(format!("there is no field {name:?}")))?
        } else {
            argument.getattr_opt(name.as_str())?.ok_or_else(|| {
                expected("a tuple, a dict, or an object with the fields", argument)
            })?
        };
        if at > 0 {
            text.push(',');
        }
        if !value.is_none() {
            push_quoted(&mut text, &inner_text(&value, *oid, table)?, '"');
        }
    }
    text.push(')');
    Ok(text)
}
