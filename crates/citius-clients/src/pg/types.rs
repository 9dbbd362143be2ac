//! The types of one database, as statements have come across them, and the codecs that an application has for some.
//!
//! What is known only grows, and statements keep the table that they were described with. A composite type that has been
//! changed makes its table stale: statements are prepared anew then, with a table in which no composite type is known.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use citius_base::sync::lock;
use citius_pg::{Definition, Types};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

/// What is known of types at one time.
pub(crate) struct TypeTable {
    pub(crate) types: Arc<Types>,
    codecs: HashMap<u32, Arc<Codec>>,
    is_stale: AtomicBool,
    /// When all composite types were forgotten last.
    forgotten_at: Instant,
}

/// A client whose values do not fit does not have types looked up more often than this.
const LOOK_UP_EVERY: Duration = Duration::from_secs(1);

#[expect(
    clippy::disallowed_methods,
    reason = "types are looked up by no reactor's turn"
)]
fn now() -> Instant {
    Instant::now()
}

impl Default for TypeTable {
    fn default() -> Self {
        Self {
            types: Arc::default(),
            codecs: HashMap::new(),
            is_stale: AtomicBool::new(false),
            forgotten_at: now(),
        }
    }
}

/// How an application has values of a type converted.
pub(crate) struct Codec {
    /// Called with the object that there would be without it.
    pub(crate) decode: Option<Py<PyAny>>,
    /// Returns an object that would be taken without it.
    pub(crate) encode: Option<Py<PyAny>>,
}

impl TypeTable {
    /// The codec of a type, if it has one.
    #[inline]
    pub(crate) fn codec(&self, type_oid: u32) -> Option<&Codec> {
        if self.codecs.is_empty() {
            return None;
        }
        self.codecs.get(&type_oid).map(|codec| &**codec)
    }

    /// A type is not what it was.
    pub(crate) fn set_stale(&self) {
        self.is_stale.store(true, Ordering::Relaxed);
    }

    /// Whether statements that were described with it are to be described anew.
    #[inline]
    pub(crate) fn is_stale(&self) -> bool {
        self.is_stale.load(Ordering::Relaxed)
    }

    /// A value does not fit a type, which may have been changed: whether it is worth another look.
    #[cold]
    pub(crate) fn set_stale_if_old(&self) -> bool {
        let is_old = self.is_stale() || self.forgotten_at.elapsed() >= LOOK_UP_EVERY;
        if is_old {
            self.set_stale();
        }
        is_old
    }

    /// Whether a composite type of these has a codec.
    pub(crate) fn has_codec_of(&self, types: &BTreeSet<u32>) -> bool {
        types
            .iter()
            .any(|type_oid| self.codecs.contains_key(type_oid))
    }

    fn copy(&self) -> Self {
        Self {
            types: Arc::clone(&self.types),
            codecs: self.codecs.clone(),
            forgotten_at: self.forgotten_at,
            is_stale: AtomicBool::new(false),
        }
    }
}

/// The types of one database.
#[pyclass(frozen, module = "citius._core")]
#[derive(Default)]
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
        if table.is_stale() {
            let mut fresh = table.copy();
            Arc::make_mut(&mut fresh.types).forget_composites();
            fresh.forgotten_at = now();
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
        Self::default()
    }

    /// Learns what types are; those that were asked for and are not among them are text.
    fn learn(&self, asked: Vec<u32>, described: Vec<Described>) {
        self.change(|table| {
            let types = Arc::make_mut(&mut table.types);
            for type_oid in asked {
                types.insert(type_oid, Definition::Text);
            }
            for one in described {
                types.insert(one.0, definition(one));
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
            table
                .codecs
                .insert(type_oid, Arc::new(Codec { decode, encode }));
            if as_text {
                Arc::make_mut(&mut table.types).read_as_text(type_oid);
            }
        });
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Ok(table) = self.table.try_lock() {
            for codec in table.codecs.values() {
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
