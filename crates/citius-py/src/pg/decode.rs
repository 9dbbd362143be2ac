//! Values of PostgreSQL as Python objects.

use citius_pg::{Array, Kind, Value, civil_of_days};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyOverflowError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBytes, PyDate, PyDateTime, PyDelta, PyDict, PyList, PyString, PyTime, PyTzInfo,
};

use super::errors::protocol_error;

/// The object for a value of a column.
#[inline]
pub(crate) fn object(py: Python<'_>, kind: Kind, bytes: &[u8]) -> PyResult<Py<PyAny>> {
    match Value::of(kind, bytes) {
        Ok(value) => object_of(py, value),
        Err(fault) => Err(protocol_error(py, &fault)),
    }
}

fn object_of(py: Python<'_>, value: Value<'_>) -> PyResult<Py<PyAny>> {
    match value {
        Value::Int(value) => value.into_py_any(py),
        Value::Text(text) => Ok(PyString::new(py, text).into_any().unbind()),
        Value::Bool(value) => value.into_py_any(py),
        Value::Float4(value) => f64::from(value).into_py_any(py),
        Value::Float8(value) => value.into_py_any(py),
        Value::Bytes(bytes) => Ok(PyBytes::new(py, bytes).into_any().unbind()),
        Value::Json(text) => {
            static DECODE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            Ok(DECODE
                .import(py, "msgspec.json", "decode")?
                .call1((text,))?
                .unbind())
        }
        Value::Numeric(text) => {
            static DECIMAL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            Ok(DECIMAL
                .import(py, "decimal", "Decimal")?
                .call1((text,))?
                .unbind())
        }
        Value::Uuid(bytes) => {
            static UUID: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            let keywords = PyDict::new(py);
            keywords.set_item(intern!(py, "bytes"), PyBytes::new(py, &bytes))?;
            Ok(UUID
                .import(py, "uuid", "UUID")?
                .call((), Some(&keywords))?
                .unbind())
        }
        Value::Array(array) => list(py, &array),
        value => time(py, &value),
    }
}

fn list(py: Python<'_>, array: &Array<'_>) -> PyResult<Py<PyAny>> {
    let mut items = Vec::new();
    for element in array.elements() {
        items.push(match element.map_err(|fault| protocol_error(py, &fault))? {
            None => py.None(),
            Some(value) => object_of(py, value)?,
        });
    }
    // The innermost dimension first: each makes lists of as many items as it is long.
    for &length in array.lengths().iter().skip(1).rev() {
        let length = (length as usize).max(1);
        let lists = items.chunks(length).map(|chunk| {
            let chunk = chunk.iter().map(|item| item.clone_ref(py));
            Ok(PyList::new(py, chunk.collect::<Vec<_>>())?
                .into_any()
                .unbind())
        });
        items = lists.collect::<PyResult<_>>()?;
    }
    Ok(PyList::new(py, items)?.into_any().unbind())
}

const US_PER_DAY: i64 = 86_400_000_000;

struct Clock {
    hour: u8,
    minute: u8,
    second: u8,
    microsecond: u32,
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the parts of one day"
)]
fn clock(us: i64) -> Clock {
    // 24:00:00 is a time of PostgreSQL, and none of Python.
    let us = us.rem_euclid(US_PER_DAY);
    let seconds = us / 1_000_000;
    Clock {
        hour: (seconds / 3600) as u8,
        minute: (seconds / 60 % 60) as u8,
        second: (seconds % 60) as u8,
        microsecond: (us % 1_000_000) as u32,
    }
}

fn time(py: Python<'_>, value: &Value<'_>) -> PyResult<Py<PyAny>> {
    match *value {
        Value::Date(days) => {
            let date = match days {
                i32::MAX => PyDate::new(py, 9999, 12, 31)?,
                i32::MIN => PyDate::new(py, 1, 1, 1)?,
                days => {
                    let date = civil_of_days(days);
                    PyDate::new(py, in_range(date.year)?, date.month, date.day)?
                }
            };
            Ok(date.into_any().unbind())
        }
        Value::Time(us) => {
            let at = clock(us);
            let time = PyTime::new(py, at.hour, at.minute, at.second, at.microsecond, None)?;
            Ok(time.into_any().unbind())
        }
        Value::TimeTz(us, west) => {
            let at = clock(us);
            let zone =
                PyTzInfo::fixed_offset(py, PyDelta::new(py, 0, west.saturating_neg(), 0, true)?)?;
            let time = PyTime::new(
                py,
                at.hour,
                at.minute,
                at.second,
                at.microsecond,
                Some(&zone),
            )?;
            Ok(time.into_any().unbind())
        }
        Value::Timestamp(us) => timestamp(py, us, None),
        Value::TimestampTz(us) => timestamp(py, us, Some(&PyTzInfo::utc(py)?.to_owned())),
        Value::Interval(interval) => {
            // As psycopg and asyncpg have it: a month is 30 days.
            let days = interval
                .days
                .saturating_add(interval.months.saturating_mul(30));
            let us = interval.microseconds;
            let days = i64::from(days) + us.div_euclid(US_PER_DAY);
            let us = us.rem_euclid(US_PER_DAY);
            let days = i32::try_from(days).unwrap_or(i32::MAX);
            let delta = PyDelta::new(
                py,
                days,
                seconds(us),
                seconds(us % 1_000_000 * 1_000_000),
                true,
            )?;
            Ok(delta.into_any().unbind())
        }
        _ => Ok(py.None()),
    }
}

/// Whole seconds of less than a day of microseconds.
fn seconds(us: i64) -> i32 {
    i32::try_from(us / 1_000_000).unwrap_or(i32::MAX)
}

fn timestamp(py: Python<'_>, us: i64, zone: Option<&Bound<'_, PyTzInfo>>) -> PyResult<Py<PyAny>> {
    if us == i64::MAX || us == i64::MIN {
        let (year, month, day) = if us > 0 { (9999, 12, 31) } else { (1, 1, 1) };
        return Ok(PyDateTime::new(py, year, month, day, 0, 0, 0, 0, zone)?
            .into_any()
            .unbind());
    }
    let days = i32::try_from(us.div_euclid(US_PER_DAY)).map_err(|_| out_of_range())?;
    let (date, at) = (civil_of_days(days), clock(us));
    let year = in_range(date.year)?;
    let (hour, minute, second) = (at.hour, at.minute, at.second);
    let made = PyDateTime::new(
        py,
        year,
        date.month,
        date.day,
        hour,
        minute,
        second,
        at.microsecond,
        zone,
    )?;
    Ok(made.into_any().unbind())
}

fn in_range(year: i32) -> PyResult<i32> {
    if (1..=9999).contains(&year) {
        Ok(year)
    } else {
        Err(out_of_range())
    }
}

fn out_of_range() -> PyErr {
    PyOverflowError::new_err(
        "a date that Python cannot say (years 1 to 9999): cast the column to text",
    )
}
