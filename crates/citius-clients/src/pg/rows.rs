//! What a call makes of the rows that come.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use citius_base::sync::lock;
use citius_pg::{Column, Description, Fault, JsonRows, Row};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple, PyType};

use super::decode::object;
use super::errors::protocol_error;
use super::native::{PgTable, Table};
use super::types::Codec;

/// What is asked for.
pub(crate) enum Shape {
    Rows(RowType),
    /// The description of the columns, the rows as tuples, and the count.
    Described,
    One(RowType),
    Value,
    Count,
    /// A JSON array, or an object with it as this member and the `count`.
    Json(Option<String>),
    /// One JSON object, or `null`.
    JsonOne,
    /// A table for compiled code.
    Native,
}

impl Shape {
    /// Whether values of composite types are read by the names of their fields.
    pub(crate) fn reads_names(&self) -> bool {
        matches!(self, Self::Json(_) | Self::JsonOne)
    }
}

/// What a row becomes.
pub(crate) enum RowType {
    Tuple,
    Dict,
    /// A class: called with the columns.
    Class(Py<PyAny>),
}

impl RowType {
    pub(crate) fn of(object: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let Some(object) = object else {
            return Ok(Self::Tuple);
        };
        let py = object.py();
        if object.is(py.get_type::<PyTuple>()) {
            Ok(Self::Tuple)
        } else if object.is(py.get_type::<PyDict>()) {
            Ok(Self::Dict)
        } else if object.is_instance_of::<PyType>() {
            Ok(Self::Class(object.clone().unbind()))
        } else {
            Err(PyTypeError::new_err(
                "as_ is tuple, dict or a class (a Struct, a dataclass)",
            ))
        }
    }

    pub(crate) fn copy(&self, py: Python<'_>) -> Self {
        match self {
            Self::Tuple => Self::Tuple,
            Self::Dict => Self::Dict,
            Self::Class(class) => Self::Class(class.clone_ref(py)),
        }
    }
}

/// A prepared statement of one session.
pub(crate) type Statement = citius_pg::Statement<Codec, Made>;

/// A portal of the server's.
pub(crate) type Portal = citius_pg::Portal<Codec, Made>;

/// What is made of a statement's description once.
pub(crate) struct Made {
    /// The description with values in the text format, for compiled code.
    as_text: OnceLock<Description>,
    keys: PyOnceLock<Vec<Py<PyString>>>,
    /// As `cursor.description` of PEP 249.
    columns: PyOnceLock<Py<PyAny>>,
    json: PyOnceLock<JsonRows>,
    /// Room for the next JSON of its rows: what the last one took, at most [`JSON_ROOM_MAX`].
    json_room: AtomicUsize,
    /// The class that rows became last, and how.
    construction: Mutex<Option<(Py<PyAny>, Arc<Construction>)>>,
}

impl Default for Made {
    fn default() -> Self {
        Self {
            as_text: OnceLock::new(),
            keys: PyOnceLock::new(),
            columns: PyOnceLock::new(),
            json: PyOnceLock::new(),
            json_room: AtomicUsize::new(0),
            construction: Mutex::default(),
        }
    }
}

/// A longer text grows as it is written, so that one long result takes no memory of later ones.
const JSON_ROOM_MAX: usize = 64 * 1024;

/// How an object of a class is made of a row.
enum Construction {
    /// Its fields in order: the column of each.
    Positions(Vec<usize>),
    Names,
}

/// The description by which compiled code has its rows.
pub(crate) fn as_text(statement: &Statement) -> &Description {
    let as_text = &statement.made().as_text;
    as_text.get_or_init(|| statement.description().as_text())
}

fn keys<'a>(py: Python<'_>, statement: &'a Statement) -> &'a [Py<PyString>] {
    statement.made().keys.get_or_init(py, || {
        let columns = statement.description().columns.iter();
        columns
            .map(|column| PyString::intern(py, &column.name).unbind())
            .collect()
    })
}

/// One tuple of seven for each column, of which only the name and the type are known; `None` without columns.
fn columns(py: Python<'_>, statement: &Statement) -> PyResult<Py<PyAny>> {
    let made = statement.made().columns.get_or_try_init(py, || {
        let columns = &statement.description().columns;
        if columns.is_empty() {
            return Ok::<_, PyErr>(py.None());
        }
        let described = columns
            .iter()
            .zip(keys(py, statement))
            .map(|(column, key)| {
                let none = || py.None();
                let key = key.clone_ref(py);
                let oid = column.type_oid;
                (key, oid, none(), none(), none(), none(), none()).into_py_any(py)
            });
        let described = described.collect::<PyResult<Vec<_>>>()?;
        Ok(PyTuple::new(py, described)?.into_any().unbind())
    })?;
    Ok(made.clone_ref(py))
}

fn json<'a>(py: Python<'_>, statement: &'a Statement) -> &'a JsonRows {
    let json = &statement.made().json;
    json.get_or_init(py, || {
        JsonRows::new(statement.description(), statement.table().types())
    })
}

fn construction(statement: &Statement, class: &Bound<'_, PyAny>) -> PyResult<Arc<Construction>> {
    let kept = &statement.made().construction;
    if let Some((known, construction)) = &*lock(kept)
        && known.is(class)
    {
        return Ok(Arc::clone(construction));
    }
    let made = Arc::new(find_construction(statement.description(), class)?);
    let entry = (class.clone().unbind(), Arc::clone(&made));
    let replaced = lock(kept).replace(entry);
    drop(replaced);
    Ok(made)
}

fn find_construction(
    description: &Description,
    class: &Bound<'_, PyAny>,
) -> PyResult<Construction> {
    let py = class.py();
    let mut fields: Vec<String> = Vec::new();
    if let Some(names) = class.getattr_opt(intern!(py, "__match_args__"))? {
        fields = names.extract().unwrap_or_default();
    }
    let place = |field: &String| description.columns.iter().position(|c| c.name == *field);
    let places: Vec<usize> = fields.iter().map_while(place).collect();
    // Positional arguments are the first fields, so all columns must be among those.
    Ok(if places.len() == description.columns.len() {
        Construction::Positions(places)
    } else {
        Construction::Names
    })
}

/// What has come of the result of one call.
pub(crate) enum Rows {
    Many(RowType, Vec<Py<PyAny>>),
    Described(Vec<Py<PyAny>>),
    One(RowType, Option<Py<PyAny>>),
    Value(Option<Py<PyAny>>),
    Count,
    Json {
        text: String,
        count: u64,
        items: Option<String>,
    },
    JsonOne(Option<String>),
    Native(Box<Table>),
}

impl Rows {
    pub(crate) fn new(py: Python<'_>, shape: &Shape) -> Self {
        match shape {
            Shape::Rows(kind) => Self::Many(kind.copy(py), Vec::new()),
            Shape::Described => Self::Described(Vec::new()),
            Shape::One(kind) => Self::One(kind.copy(py), None),
            Shape::Value => Self::Value(None),
            Shape::Count => Self::Count,
            Shape::Json(items) => {
                let mut text = String::new();
                if let Some(items) = items {
                    text.push_str("{\"");
                    text.push_str(items);
                    text.push_str("\":");
                }
                text.push('[');
                Self::Json {
                    text,
                    count: 0,
                    items: items.clone(),
                }
            }
            Shape::JsonOne => Self::JsonOne(None),
            Shape::Native => Self::Native(Box::default()),
        }
    }

    /// Takes a row.
    #[inline]
    pub(crate) fn push(
        &mut self,
        py: Python<'_>,
        statement: &Statement,
        row: Row<'_>,
    ) -> PyResult<()> {
        match self {
            Self::Many(kind, rows) => rows.push(row_object(py, statement, kind, row)?),
            Self::Described(rows) => {
                rows.push(row_object(py, statement, &RowType::Tuple, row)?);
            }
            // Rows after the first are none of the caller's.
            Self::One(kind, one @ None) => *one = Some(row_object(py, statement, kind, row)?),
            Self::Value(one @ None) => {
                let (Some(column), Some(value)) =
                    (statement.description().columns.first(), row.values().next())
                else {
                    return Ok(());
                };
                *one = Some(value_object(py, statement, column, value)?);
            }
            Self::Json { text, count, .. } => {
                if *count > 0 {
                    text.push(',');
                } else {
                    text.reserve(statement.made().json_room.load(Ordering::Relaxed));
                }
                *count += 1;
                let pushed = json(py, statement).push(row, text);
                pushed.map_err(|fault| json_error(py, statement, &fault))?;
            }
            Self::JsonOne(one @ None) => {
                let text = one.insert(String::new());
                let pushed = json(py, statement).push(row, text);
                pushed.map_err(|fault| json_error(py, statement, &fault))?;
            }
            Self::Native(table) => table
                .push(statement, row)
                .map_err(|fault| protocol_error(py, &fault))?,
            Self::One(..) | Self::Value(_) | Self::Count | Self::JsonOne(_) => {}
        }
        Ok(())
    }

    /// What the caller gets; `count` is that of the last statement.
    pub(crate) fn finish(
        self,
        py: Python<'_>,
        statement: Option<&Statement>,
        count: u64,
    ) -> PyResult<Py<PyAny>> {
        match self {
            Self::Many(_, rows) => Ok(PyList::new(py, rows)?.into_any().unbind()),
            Self::Described(rows) => {
                let columns = match statement {
                    Some(statement) => columns(py, statement)?,
                    None => py.None(),
                };
                (columns, PyList::new(py, rows)?, count).into_py_any(py)
            }
            Self::One(_, one) | Self::Value(one) => Ok(one.unwrap_or_else(|| py.None())),
            Self::Count => count.into_py_any(py),
            Self::Json {
                mut text,
                count,
                items,
            } => {
                text.push(']');
                if items.is_some() {
                    text.push_str(",\"count\":");
                    text.push_str(&count.to_string());
                    text.push('}');
                }
                if let Some(statement) = statement {
                    let room = text.len().min(JSON_ROOM_MAX);
                    statement.made().json_room.store(room, Ordering::Relaxed);
                }
                Ok(PyBytes::new(py, text.as_bytes()).into_any().unbind())
            }
            Self::Native(mut table) => {
                table.finish(statement, count);
                Ok(Py::new(py, PgTable(Arc::new(*table)))?.into_any())
            }
            Self::JsonOne(one) => {
                let text = one.as_deref().unwrap_or("null");
                Ok(PyBytes::new(py, text.as_bytes()).into_any().unbind())
            }
        }
    }
}

type RawValue<'a> = Result<Option<&'a [u8]>, Fault>;

#[cold]
fn json_error(py: Python<'_>, statement: &Statement, fault: &Fault) -> PyErr {
    if let Fault::Value(text) = fault {
        // One of them is a composite type that has changed.
        statement.table().set_stale();
        return PyValueError::new_err(*text);
    }
    protocol_error(py, fault)
}

#[inline]
fn value_object(
    py: Python<'_>,
    statement: &Statement,
    column: &Column,
    value: RawValue<'_>,
) -> PyResult<Py<PyAny>> {
    match value {
        Ok(Some(bytes)) => object(py, statement.table(), column.type_oid, column.kind, bytes),
        Ok(None) => Ok(py.None()),
        Err(fault) => Err(protocol_error(py, &fault)),
    }
}

fn row_object(
    py: Python<'_>,
    statement: &Statement,
    kind: &RowType,
    row: Row<'_>,
) -> PyResult<Py<PyAny>> {
    let columns = &statement.description().columns;
    if row.len() != columns.len() {
        let fault = Fault::Protocol("a row with more or fewer values than columns");
        return Err(protocol_error(py, &fault));
    }
    let mut values: Vec<Py<PyAny>> = Vec::with_capacity(columns.len());
    for (value, column) in row.values().zip(columns) {
        values.push(value_object(py, statement, column, value)?);
    }
    match kind {
        RowType::Tuple => Ok(PyTuple::new(py, values)?.into_any().unbind()),
        RowType::Dict => Ok(dict(py, statement, values)?.into_any().unbind()),
        RowType::Class(class) => {
            let class = class.bind(py);
            match &*construction(statement, class)? {
                Construction::Positions(places) => {
                    let ordered = places.iter().map(|&place| values[place].clone_ref(py));
                    let arguments = PyTuple::new(py, ordered.collect::<Vec<_>>())?;
                    Ok(class.call1(arguments)?.unbind())
                }
                Construction::Names => Ok(class
                    .call((), Some(&dict(py, statement, values)?))?
                    .unbind()),
            }
        }
    }
}

fn dict<'py>(
    py: Python<'py>,
    statement: &Statement,
    values: Vec<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (key, value) in keys(py, statement).iter().zip(values) {
        dict.set_item(key, value)?;
    }
    Ok(dict)
}
