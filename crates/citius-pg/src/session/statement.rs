//! A prepared statement of one session.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::change::{Change, change_of};
use crate::description::Description;
use crate::footprint::footprint;
use crate::guard::Guard;
use crate::type_table::TypeTable;
use crate::types::Types;

/// The number of a text of a pool, and what the statement changes of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StatementId(u32);

/// What a number says of its statement beside which one it is.
const CHANGE_BITS: u32 = 4;

impl StatementId {
    /// That of a text that is the `number`th of its pool.
    pub fn new(number: u32, text: &str) -> Self {
        Self(number << CHANGE_BITS | change_of(text) as u32)
    }

    /// One that was told by [`bits`](Self::bits).
    #[inline]
    pub fn of_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// All of it as a number.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// What the statement changes of a session.
    #[inline]
    pub(super) fn change(self) -> Change {
        let change = (self.0 & ((1 << CHANGE_BITS) - 1)) as usize;
        Change::ALL.get(change).copied().unwrap_or(Change::Session)
    }
}

impl fmt::Display for StatementId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Which statement, and where its names are looked up: [`Path`](super::path::Path).
pub(super) type Key = (StatementId, u64);

/// A statement that was found, by its key.
pub(super) type Found<Codec, Made> = (Key, Arc<Statement<Codec, Made>>);

/// What a statement was prepared as.
#[derive(Clone, Debug, Default)]
pub(super) struct Origin {
    /// Empty for one that is sent with its text.
    pub(super) name: String,
    pub(super) text_bytes: usize,
    /// Of [`PoolState::schema`](super::pool::PoolState::schema), before it was sent.
    pub(super) schema: u32,
    /// Of [`Names::now`](crate::Names::now), when it was sent.
    pub(super) names: u32,
}

impl Origin {
    /// What a statement of such a description takes of the server's memory, and without one what it is taken to.
    pub(super) fn footprint(&self, description: Option<&Description>) -> usize {
        footprint(
            (!self.name.is_empty()).then_some(self.text_bytes),
            description,
        )
    }
}

/// A prepared statement of one session, with what is `Made` of its description once.
#[derive(Debug)]
pub struct Statement<Codec, Made> {
    pub(super) name: String,
    description: Description,
    table: Arc<TypeTable<Codec>>,
    /// What it takes of the server's memory, about, and the number of changes of the schema that were seen when it was prepared.
    pub(super) footprint: usize,
    pub(super) schema: u32,
    /// What [`Names`](crate::Names) knows it by.
    pub(super) names: u32,
    /// Whether it was executed since the session last made room.
    is_used: AtomicBool,
    /// Values of composite types are among its parameters or columns.
    pub(super) has_composites: bool,
    guards: Option<Box<Guards>>,
    made: Made,
}

/// What has an execution fail when composite types are not what they were.
#[derive(Debug)]
struct Guards {
    /// Those of the parameters.
    of_parameters: Option<Guard>,
    /// Those of the columns, too.
    of_all: Option<Guard>,
    /// A composite type of a column has a codec, which reads its values by the names of fields.
    has_codec: bool,
}

impl Guards {
    fn new<Codec>(description: &Description, table: &TypeTable<Codec>) -> Self {
        let types = table.types();
        let guard = |of: &BTreeSet<u32>| (!of.is_empty()).then(|| Guard::new(of, types));
        let mut composites = composites_of(&description.parameters, types);
        let of_parameters = guard(&composites);
        let of_columns = composites_of_columns(description, types);
        let has_codec = table.has_codec_of(&of_columns);
        composites.extend(of_columns);
        Self {
            of_parameters,
            of_all: guard(&composites),
            has_codec,
        }
    }
}

impl<Codec, Made> Statement<Codec, Made> {
    /// Parameters and columns.
    #[inline]
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// The types that it was described with.
    #[inline]
    pub fn table(&self) -> &TypeTable<Codec> {
        &self.table
    }

    /// What is made of its description.
    #[inline]
    pub fn made(&self) -> &Made {
        &self.made
    }

    pub(super) fn set_used(&self) {
        self.is_used.store(true, Ordering::Relaxed);
    }

    /// Whether it was executed since this was last asked.
    pub(super) fn take_used(&self) -> bool {
        self.is_used.swap(false, Ordering::Relaxed)
    }

    /// What goes with an execution of it. Parameters are written by the names of fields; values are read by them if
    /// `reads_names`, and by codecs.
    #[cold]
    pub(super) fn guard(&self, reads_names: bool) -> Option<&Guard> {
        let guards = self.guards.as_ref()?;
        if reads_names || guards.has_codec {
            guards.of_all.as_ref()
        } else {
            guards.of_parameters.as_ref()
        }
    }

    /// Whether its parameters may not have fitted because a composite type was changed: it is described anew then.
    #[cold]
    pub(super) fn is_worth_a_look(&self, now_ms: u64) -> bool {
        !composites_of(&self.description.parameters, self.table.types()).is_empty()
            && self.table.set_stale_if_old(now_ms)
    }
}

impl<Codec, Made: Default> Statement<Codec, Made> {
    pub(super) fn new(
        origin: Origin,
        mut description: Description,
        table: Arc<TypeTable<Codec>>,
    ) -> Self {
        description.resolve(table.types());
        let footprint = origin.footprint(Some(&description));
        let has_composites = has_composites(&description, table.types());
        let guards = has_composites.then(|| Box::new(Guards::new(&description, &table)));
        Self {
            name: origin.name,
            description,
            table,
            footprint,
            schema: origin.schema,
            names: origin.names,
            is_used: AtomicBool::new(true),
            has_composites,
            guards,
            made: Made::default(),
        }
    }

    /// What it is if a statement without a name returns other columns than it was described with; `None` if they cannot be
    /// read.
    #[cold]
    pub(super) fn with_columns(
        &self,
        columns: &Description,
        table: Arc<TypeTable<Codec>>,
    ) -> Option<Self> {
        let description = self.description.with_columns(columns, table.types())?;
        let origin = Origin {
            name: self.name.clone(),
            text_bytes: 0,
            schema: self.schema,
            names: self.names,
        };
        // Guards have looked at those composite types alone that were there before.
        let guarded = composites_of_columns(&self.description, self.table.types());
        let is_guarded = composites_of_columns(&description, table.types()).is_subset(&guarded);
        is_guarded.then(|| Self::new(origin, description, table))
    }
}

fn composites_of(type_oids: &[u32], types: &Types) -> BTreeSet<u32> {
    let mut composites = BTreeSet::new();
    for &type_oid in type_oids {
        types.add_composites_in(type_oid, &mut composites);
    }
    composites
}

fn composites_of_columns(description: &Description, types: &Types) -> BTreeSet<u32> {
    let mut composites = BTreeSet::new();
    for column in &description.columns {
        types.add_composites_in(column.type_oid, &mut composites);
    }
    composites
}

/// Whether a statement depends on what composite types are. A row without a type can have values of some.
fn has_composites(description: &Description, types: &Types) -> bool {
    let columns = description.columns.iter().map(|column| column.type_oid);
    let mut all = description.parameters.iter().copied().chain(columns);
    all.any(|type_oid| matches!(type_oid, RECORD | RECORDS))
        || !composites_of(&description.parameters, types).is_empty()
        || !composites_of_columns(description, types).is_empty()
}

/// `record` and `record[]`.
const RECORD: u32 = 2249;
const RECORDS: u32 = 2287;
