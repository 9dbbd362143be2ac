//! Values of PostgreSQL as Python objects.

use citius_pg::{
    Array, Composite, Definition, Fault, Kind, NESTING_MAX, Piece, Range, TextArray, Value,
    civil_of_days,
};
use citius_reactor::coarse_ms;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBytes, PyDate, PyDateTime, PyDelta, PyDict, PyList, PyString, PyTime, PyTuple, PyTzInfo,
};

use super::errors::protocol_error;
use super::types::{Codec, TypeTable};

/// The object for a value of a type.
#[inline]
pub(crate) fn object(
    py: Python<'_>,
    table: &TypeTable,
    type_oid: u32,
    kind: Kind,
    bytes: &[u8],
) -> PyResult<Py<PyAny>> {
    let reader = Reader {
        py,
        table,
        levels: NESTING_MAX,
    };
    reader.object(type_oid, kind, bytes)
}

/// Reads values, and those in them.
#[derive(Clone, Copy)]
struct Reader<'py, 'a> {
    py: Python<'py>,
    table: &'a TypeTable,
    levels: usize,
}

impl Reader<'_, '_> {
    #[inline]
    fn object(self, type_oid: u32, kind: Kind, bytes: &[u8]) -> PyResult<Py<PyAny>> {
        let value = Value::of(kind, bytes).map_err(|fault| protocol_error(self.py, &fault))?;
        let object = self.plain(type_oid, value)?;
        match self.table.codec(type_oid) {
            None => Ok(object),
            Some(codec) => self.decoded(codec, object),
        }
    }

    /// What the application's codec makes of it.
    fn decoded(self, codec: &Codec, object: Py<PyAny>) -> PyResult<Py<PyAny>> {
        match &codec.decode {
            Some(decode) => decode.call1(self.py, (object,)),
            None => Ok(object),
        }
    }

    #[inline]
    fn plain(self, type_oid: u32, value: Value<'_>) -> PyResult<Py<PyAny>> {
        match value {
            Value::Array(_)
            | Value::TextArray(_)
            | Value::Range(_)
            | Value::Multirange(_)
            | Value::Composite(_) => self.several(type_oid, value),
            scalar => scalar_object(self.py, scalar),
        }
    }

    /// A value that has values in it.
    fn several(mut self, type_oid: u32, value: Value<'_>) -> PyResult<Py<PyAny>> {
        self.levels = self.levels.checked_sub(1).ok_or_else(|| {
            PyValueError::new_err("values are nested too deeply: cast the column to text")
        })?;
        match value {
            Value::Array(array) => self.list(&array),
            Value::TextArray(array) => self.text_list(type_oid, &array),
            Value::Range(range) => self.range(&range),
            Value::Multirange(ranges) => {
                let made = ranges.ranges().map(|range| {
                    self.range(&range.map_err(|fault| protocol_error(self.py, &fault))?)
                });
                let made = made.collect::<PyResult<Vec<_>>>()?;
                Ok(PyList::new(self.py, made)?.into_any().unbind())
            }
            Value::Composite(composite) => self.composite(&composite),
            scalar => scalar_object(self.py, scalar),
        }
    }

    fn inner(self, type_oid: u32, kind: Kind, bytes: Option<&[u8]>) -> PyResult<Py<PyAny>> {
        match bytes {
            None => Ok(self.py.None()),
            Some(bytes) => self.object(type_oid, kind, bytes),
        }
    }

    fn list(self, array: &Array<'_>) -> PyResult<Py<PyAny>> {
        let py = self.py;
        let (element, mut items) = (array.element, Vec::new());
        let kind = self.table.types().kind_of(element);
        for bytes in array.elements() {
            let bytes = bytes.map_err(|fault| protocol_error(py, &fault))?;
            items.push(self.inner(element, kind, bytes)?);
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

    fn range(self, range: &Range<'_>) -> PyResult<Py<PyAny>> {
        static RANGE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let class = RANGE.import(self.py, "citius.pg.ranges", "Range")?;
        if range.is_empty {
            let keywords = PyDict::new(self.py);
            keywords.set_item(intern!(self.py, "is_empty"), true)?;
            return Ok(class.call((), Some(&keywords))?.unbind());
        }
        let kind = self.table.types().kind_of(range.bound);
        let bounds = match (range.has_lower, range.has_upper) {
            (true, false) => intern!(self.py, "[)"),
            (true, true) => intern!(self.py, "[]"),
            (false, true) => intern!(self.py, "(]"),
            (false, false) => intern!(self.py, "()"),
        };
        let lower = self.inner(range.bound, kind, range.lower)?;
        let upper = self.inner(range.bound, kind, range.upper)?;
        Ok(class.call1((lower, upper, bounds))?.unbind())
    }

    /// A tuple of the fields.
    fn composite(self, composite: &Composite<'_>) -> PyResult<Py<PyAny>> {
        let mut fields = Vec::with_capacity(composite.len());
        for field in composite.fields() {
            let (type_oid, bytes) = field.map_err(|fault| protocol_error(self.py, &fault))?;
            let kind = self.table.types().kind_of(type_oid);
            if !kind.is_binary() && bytes.is_some() {
                // A type that came with a change of the composite one is looked up with it.
                self.table.set_stale_if_old(coarse_ms());
                return Err(PyValueError::new_err(format!(
                    "a row has a field of the type {type_oid}, which is not known or comes as text only: cast it to text"
                )));
            }
            fields.push(self.inner(type_oid, kind, bytes)?);
        }
        Ok(PyTuple::new(self.py, fields)?.into_any().unbind())
    }

    /// Lists of elements that come as text.
    fn text_list(self, type_oid: u32, array: &TextArray<'_>) -> PyResult<Py<PyAny>> {
        let py = self.py;
        let codec = match self.table.types().definition(type_oid) {
            Some(Definition::Array { element, .. }) => self.table.codec(element),
            _ => None,
        };
        let mut open = vec![Vec::new()];
        let add = |open: &mut Vec<Vec<Py<PyAny>>>, item| {
            if let Some(list) = open.last_mut() {
                list.push(item);
            }
        };
        let walked = array.walk(|piece| {
            match piece {
                Piece::Open => open.push(Vec::new()),
                Piece::Close => {
                    let list = PyList::new(py, open.pop().unwrap_or_default())?;
                    add(&mut open, list.into_any().unbind());
                }
                Piece::Null => add(&mut open, py.None()),
                Piece::Text(text) => {
                    let text = PyString::new(py, &text).into_any().unbind();
                    let item = match codec {
                        None => text,
                        Some(codec) => self.decoded(codec, text)?,
                    };
                    add(&mut open, item);
                }
            }
            Ok::<_, Broken>(())
        });
        match walked {
            Ok(()) => {
                let whole = open.pop().and_then(|mut outer| outer.pop());
                Ok(whole.unwrap_or_else(|| py.None()))
            }
            Err(Broken::Fault(fault)) => Err(protocol_error(py, &fault)),
            Err(Broken::Error(error)) => Err(error),
        }
    }
}

enum Broken {
    Fault(Fault),
    Error(PyErr),
}

impl From<Fault> for Broken {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<PyErr> for Broken {
    fn from(error: PyErr) -> Self {
        Self::Error(error)
    }
}

fn scalar_object(py: Python<'_>, value: Value<'_>) -> PyResult<Py<PyAny>> {
    match value {
        Value::Int(value) => value.into_py_any(py),
        Value::Text(text) => Ok(PyString::new(py, text).into_any().unbind()),
        Value::Bool(value) => value.into_py_any(py),
        Value::Float4(value) => f64::from(value).into_py_any(py),
        Value::Float8(value) => value.into_py_any(py),
        Value::Bytes(bytes) => Ok(PyBytes::new(py, bytes).into_any().unbind()),
        Value::Json(text) => {
            static DECODE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            let decoded = DECODE.import(py, "msgspec.json", "decode")?.call1((text,));
            match decoded {
                Ok(value) => Ok(value.unbind()),
                Err(error) => lone_surrogates(py, text).ok_or(error),
            }
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
        value => time(py, &value),
    }
}

/// The value of JSON that `msgspec` does not take: a column of type `json` can have escaped surrogates without a pair.
#[cold]
fn lone_surrogates(py: Python<'_>, text: &str) -> Option<Py<PyAny>> {
    let json = py.import("json").ok()?;
    Some(json.call_method1("loads", (text,)).ok()?.unbind())
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
fn clock(us: i64) -> PyResult<Clock> {
    if !(0..US_PER_DAY).contains(&us) {
        // 24:00:00 is a time of PostgreSQL.
        return Err(PyOverflowError::new_err(
            "a time that Python cannot say (24:00): cast the column to text",
        ));
    }
    let seconds = us / 1_000_000;
    Ok(Clock {
        hour: (seconds / 3600) as u8,
        minute: (seconds / 60 % 60) as u8,
        second: (seconds % 60) as u8,
        microsecond: (us % 1_000_000) as u32,
    })
}

fn time(py: Python<'_>, value: &Value<'_>) -> PyResult<Py<PyAny>> {
    match *value {
        Value::Date(days) => {
            if matches!(days, i32::MAX | i32::MIN) {
                return infinite(py, "date", days > 0);
            }
            let date = civil_of_days(days);
            let date = PyDate::new(py, in_range(date.year)?, date.month, date.day)?;
            Ok(date.into_any().unbind())
        }
        Value::Time(us) => {
            let at = clock(us)?;
            let time = PyTime::new(py, at.hour, at.minute, at.second, at.microsecond, None)?;
            Ok(time.into_any().unbind())
        }
        Value::TimeTz(us, west) => {
            let at = clock(us)?;
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
            // As psycopg and asyncpg have it: a year is 365 days, a month 30.
            let (years, months) = (interval.months / 12, interval.months % 12);
            let days = years.saturating_mul(365).saturating_add(months * 30);
            let days = interval.days.saturating_add(days);
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
        let kind = if zone.is_some() {
            "timestamptz"
        } else {
            "timestamp"
        };
        return infinite(py, kind, us > 0);
    }
    let days = i32::try_from(us.div_euclid(US_PER_DAY)).map_err(|_| out_of_range())?;
    let (date, at) = (civil_of_days(days), clock(us.rem_euclid(US_PER_DAY))?);
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

/// The object that infinity is read as, and written as infinity again.
#[cold]
fn infinite(py: Python<'_>, kind: &str, is_positive: bool) -> PyResult<Py<PyAny>> {
    let module = py.import("citius.pg.infinity")?;
    Ok(module
        .call_method1("infinite", (kind, is_positive))?
        .unbind())
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
