//! What a call makes of the rows that come.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use citius_base::sync::lock;
use citius_pg::{Column, Description, Fault, Guard, JsonRows, Row, Types, footprint};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple, PyType};

use super::decode::object;
use super::errors::protocol_error;
use super::native::{PgTable, Table};
use super::types::TypeTable;

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

/// What a statement was prepared as.
#[derive(Clone, Default)]
pub(crate) struct Origin {
    /// Empty for one that is sent with its text.
    pub(crate) name: String,
    pub(crate) text_bytes: usize,
    /// Of [`PgPool::schema`](super::pool::PgPool::schema), before it was sent.
    pub(crate) schema: u32,
    /// Of [`Names::now`](citius_pg::Names::now), when it was sent.
    pub(crate) names: u32,
}

/// Which statement, and where its names are looked up: [`Path`](citius_pg::Path).
pub(crate) type Key = (u32, u64);

/// A prepared statement of one session, with what is made of its description once.
pub(crate) struct Statement {
    pub(crate) name: String,
    pub(crate) description: Description,
    pub(crate) table: Arc<TypeTable>,
    /// What it takes of the server's memory, about, and the number of changes of the schema that were seen when it was prepared.
    pub(crate) footprint: usize,
    pub(crate) schema: u32,
    /// What [`Names`](citius_pg::Names) knows it by.
    pub(crate) names: u32,
    /// Whether it was executed since the session last made room.
    pub(crate) is_used: AtomicBool,
    /// Values of composite types are among its parameters or columns.
    pub(crate) has_composites: bool,
    /// What has an execution fail when composite types are not what they were: those of the parameters, and those of the
    /// columns too.
    guards: OnceLock<[Option<Guard>; 2]>,
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

/// A longer text grows as it is written, so that one long result takes no memory of later ones.
const JSON_ROOM_MAX: usize = 64 * 1024;

/// How an object of a class is made of a row.
enum Construction {
    /// Its fields in order: the column of each.
    Positions(Vec<usize>),
    Names,
}

impl Origin {
    /// What a statement of such a description takes of the server's memory, and without one what it is taken to.
    pub(crate) fn footprint(&self, description: Option<&Description>) -> usize {
        footprint(
            (!self.name.is_empty()).then_some(self.text_bytes),
            description,
        )
    }
}

impl Statement {
    pub(crate) fn new(origin: Origin, mut description: Description, table: Arc<TypeTable>) -> Self {
        description.resolve(&table.types);
        let footprint = origin.footprint(Some(&description));
        let Origin {
            name,
            schema,
            names,
            ..
        } = origin;
        let has_composites = has_composites(&description, &table.types);
        Self {
            name,
            description,
            table,
            footprint,
            schema,
            names,
            is_used: AtomicBool::new(true),
            has_composites,
            guards: OnceLock::new(),
            as_text: OnceLock::new(),
            keys: PyOnceLock::new(),
            columns: PyOnceLock::new(),
            json: PyOnceLock::new(),
            json_room: AtomicUsize::new(0),
            construction: Mutex::default(),
        }
    }

    /// What it is if a statement without a name returns other columns than it was described with; `None` if they cannot be
    /// read.
    #[cold]
    pub(crate) fn with_columns(
        &self,
        columns: &Description,
        table: Arc<TypeTable>,
    ) -> Option<Self> {
        let description = self.description.with_columns(columns, &table.types)?;
        let origin = Origin {
            name: self.name.clone(),
            text_bytes: 0,
            schema: self.schema,
            names: self.names,
        };
        let found = Self::new(origin, description, table);
        // Guards have looked at those composite types alone that were there before.
        let is_guarded = found
            .composites_of_columns()
            .is_subset(&self.composites_of_columns());
        is_guarded.then_some(found)
    }

    /// The description by which compiled code has its rows.
    pub(crate) fn as_text(&self) -> &Description {
        self.as_text.get_or_init(|| self.description.as_text())
    }

    /// What goes with an execution of it whose result has this shape. Parameters are written by the names of fields; values
    /// are read by them as JSON and by codecs.
    #[cold]
    pub(crate) fn guard(&self, shape: &Shape) -> Option<&Guard> {
        let types = &self.table.types;
        let guards = self.guards.get_or_init(|| {
            let mut composites = BTreeSet::new();
            for &type_oid in &self.description.parameters {
                types.add_composites_in(type_oid, &mut composites);
            }
            let guard = |of: &BTreeSet<u32>| (!of.is_empty()).then(|| Guard::new(of, types));
            let of_parameters = guard(&composites);
            for column in &self.description.columns {
                types.add_composites_in(column.type_oid, &mut composites);
            }
            [of_parameters, guard(&composites)]
        });
        let is_json = matches!(shape, Shape::Json(_) | Shape::JsonOne);
        let is_named = is_json || self.table.has_codec_of(&self.composites_of_columns());
        guards[usize::from(is_named)].as_ref()
    }

    fn composites_of_columns(&self) -> BTreeSet<u32> {
        let mut composites = BTreeSet::new();
        for column in &self.description.columns {
            let types = &self.table.types;
            types.add_composites_in(column.type_oid, &mut composites);
        }
        composites
    }

    fn keys(&self, py: Python<'_>) -> &[Py<PyString>] {
        self.keys.get_or_init(py, || {
            let columns = self.description.columns.iter();
            columns
                .map(|column| PyString::intern(py, &column.name).unbind())
                .collect()
        })
    }

    /// One tuple of seven for each column, of which only the name and the type are known; `None` without columns.
    fn columns(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let made = self.columns.get_or_try_init(py, || {
            let columns = &self.description.columns;
            if columns.is_empty() {
                return Ok::<_, PyErr>(py.None());
            }
            let described = columns.iter().zip(self.keys(py)).map(|(column, key)| {
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

    fn json(&self, py: Python<'_>) -> &JsonRows {
        self.json
            .get_or_init(py, || JsonRows::new(&self.description, &self.table.types))
    }

    fn construction(&self, class: &Bound<'_, PyAny>) -> PyResult<Arc<Construction>> {
        let py = class.py();
        if let Some((known, construction)) = &*lock(&self.construction)
            && known.is(class)
        {
            return Ok(Arc::clone(construction));
        }
        let made = Arc::new(self.find_construction(class)?);
        let entry = (class.clone().unbind(), Arc::clone(&made));
        let replaced = lock(&self.construction).replace(entry);
        drop(replaced);
        let _ = py;
        Ok(made)
    }

    fn find_construction(&self, class: &Bound<'_, PyAny>) -> PyResult<Construction> {
        let py = class.py();
        let mut fields: Vec<String> = Vec::new();
        if let Some(names) = class.getattr_opt(intern!(py, "__match_args__"))? {
            fields = names.extract().unwrap_or_default();
        }
        let place = |field: &String| {
            self.description
                .columns
                .iter()
                .position(|c| c.name == *field)
        };
        let places: Vec<usize> = fields.iter().map_while(place).collect();
        // Positional arguments are the first fields, so all columns must be among those.
        Ok(if places.len() == self.description.columns.len() {
            Construction::Positions(places)
        } else {
            Construction::Names
        })
    }
}

/// Whether a statement depends on what composite types are. A row without a type can have values of some.
fn has_composites(description: &Description, types: &Types) -> bool {
    let columns = description.columns.iter().map(|column| column.type_oid);
    let mut composites = BTreeSet::new();
    for type_oid in description.parameters.iter().copied().chain(columns) {
        if matches!(type_oid, RECORD | RECORDS) {
            return true;
        }
        types.add_composites_in(type_oid, &mut composites);
    }
    !composites.is_empty()
}

/// `record` and `record[]`.
const RECORD: u32 = 2249;
const RECORDS: u32 = 2287;

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
                    (statement.description.columns.first(), row.values().next())
                else {
                    return Ok(());
                };
                *one = Some(value_object(py, statement, column, value)?);
            }
            Self::Json { text, count, .. } => {
                if *count > 0 {
                    text.push(',');
                } else {
                    text.reserve(statement.json_room.load(Ordering::Relaxed));
                }
                *count += 1;
                let pushed = statement.json(py).push(row, text);
                pushed.map_err(|fault| json_error(py, statement, &fault))?;
            }
            Self::JsonOne(one @ None) => {
                let text = one.insert(String::new());
                let pushed = statement.json(py).push(row, text);
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
                    Some(statement) => statement.columns(py)?,
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
                    statement.json_room.store(room, Ordering::Relaxed);
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
        statement.table.set_stale();
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
        Ok(Some(bytes)) => object(py, &statement.table, column.type_oid, column.kind, bytes),
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
    let columns = &statement.description.columns;
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
            match &*statement.construction(class)? {
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
    for (key, value) in statement.keys(py).iter().zip(values) {
        dict.set_item(key, value)?;
    }
    Ok(dict)
}
