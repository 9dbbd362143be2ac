//! The types of one database as Python sets them, and the codecs that an application has for some. What a table is,
//! [`citius_pg::TypeTable`] says.

use std::sync::{Arc, Mutex};

use citius_base::sync::lock;
use citius_pg::Definition;
use citius_reactor::coarse_ms;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

/// What is known of types at one time.
pub(crate) type TypeTable = citius_pg::TypeTable<Codec>;

/// How an application has values of a type converted.
pub(crate) struct Codec {
    /// Called with the object that there would be without it.
    pub(crate) decode: Option<Py<PyAny>>,
    /// Returns an object that would be taken without it.
    pub(crate) encode: Option<Py<PyAny>>,
}

/// The types of one database.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct PgTypes {
    table: Mutex<Arc<TypeTable>>,
}

/// What a server says of a type: its identity, `typtype`, elements and what separates them, the type below a domain, the
/// type of a range's bounds, names and types of fields.
type Described = (u32, String, u32, String, u32, u32, Vec<String>, Vec<u32>);

impl PgTypes {
    /// What is known now.
    pub(crate) fn table(&self) -> Arc<TypeTable> {
        let mut table = lock(&self.table);
        if let Some(fresh) = table.refreshed(coarse_ms()) {
            *table = Arc::new(fresh);
        }
        Arc::clone(&table)
    }

    fn change(&self, change: impl FnOnce(&mut TypeTable)) {
        let mut table = self.table().copy();
        change(&mut table);
        let replaced = std::mem::replace(&mut *lock(&self.table), Arc::new(table));
        drop(replaced);
    }
}

#[pymethods]
impl PgTypes {
    #[new]
    fn new() -> Self {
        Self {
            table: Mutex::new(Arc::new(TypeTable::new(coarse_ms()))),
        }
    }

    /// Learns what types are; those that were asked for and are not among them are text.
    fn learn(&self, asked: Vec<u32>, described: Vec<Described>) {
        self.change(|table| {
            for type_oid in asked {
                table.define(type_oid, Definition::Text);
            }
            for one in described {
                table.define(one.0, definition(one));
            }
        });
    }

    /// Forgets what composite types are: one may have been changed.
    fn forget(&self) {
        self.table().set_stale();
    }

    /// Sets how values of a type are converted. `as_text`: they come, and go, in the text format of the type.
    fn set_codec(
        &self,
        type_oid: u32,
        decode: Option<Py<PyAny>>,
        encode: Option<Py<PyAny>>,
        as_text: bool,
    ) {
        self.change(|table| {
            table.set_codec(type_oid, Codec { decode, encode }, as_text);
        });
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Ok(table) = self.table.try_lock() {
            for codec in table.codecs() {
                visit.call(&codec.decode)?;
                visit.call(&codec.encode)?;
            }
        }
        Ok(())
    }
}

fn definition(described: Described) -> Definition {
    let (_, kind, element, delimiter, base, bound, names, fields) = described;
    match kind.as_str() {
        "e" => Definition::Enum,
        "hstore" => Definition::Hstore,
        "d" => Definition::Domain(base),
        "r" => Definition::Range(bound),
        "m" => Definition::Multirange(bound),
        "c" => Definition::Composite(names.into_iter().zip(fields).collect()),
        _ if element != 0 => Definition::Array {
            element,
            delimiter: delimiter.bytes().next().unwrap_or(b','),
        },
        _ => Definition::Text,
    }
}
