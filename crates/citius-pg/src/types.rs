//! Types: how their values are read, and what is known of those that a database has made itself.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;

use crate::value::Kind;

/// Types from here on are those of a database; below are those that every server has. Those that scripts of `initdb` make
/// (`information_schema`) are among the former: their numbers differ from version to version.
const FIRST_OF_DATABASE: u32 = 12_000;

/// A domain of a domain, and so on; what a server says beyond that is not followed.
const DOMAINS_MAX: usize = 16;

/// What a type of a database is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Definition {
    /// One that is read and written as text: a type of an extension, for instance.
    Text,
    /// A dict of texts, of the extension of this name; read and written as text.
    Hstore,
    /// An enumeration, whose labels are text, or a type of an extension whose binary format is text (`citext`).
    Enum,
    /// A type with rules: values are those of another type.
    Domain(u32),
    /// An array of a type; in the text format this byte separates elements.
    Array {
        /// The type of the elements.
        element: u32,
        /// `,` for nearly all types.
        delimiter: u8,
    },
    /// A range of values of a type.
    Range(u32),
    /// A set of ranges of values of a type.
    Multirange(u32),
    /// A composite type: the names and types of its fields.
    Composite(Box<[(String, u32)]>),
}

/// The types of one database that statements have come across.
#[derive(Clone, Debug, Default)]
pub struct Types {
    known: BTreeMap<u32, Definition>,
    as_text: BTreeSet<u32>,
}

impl Types {
    /// Learns what a type is; what was known of it before is forgotten.
    pub fn insert(&mut self, type_oid: u32, definition: Definition) {
        self.known.insert(type_oid, definition);
    }

    /// Forgets all composite types, because one is not what it was, and what is made of them: whether a type is known says that its
    /// parts are.
    pub fn forget_composites(&mut self) {
        let mut made = self.known.keys().copied().collect::<BTreeSet<_>>();
        made.retain(|&type_oid| {
            let mut composites = BTreeSet::new();
            self.add_composites_in(type_oid, &mut composites);
            !composites.is_empty()
        });
        self.known.retain(|type_oid, _| !made.contains(type_oid));
    }

    /// Has values of a type come in the text format.
    pub fn read_as_text(&mut self, type_oid: u32) {
        self.as_text.insert(type_oid);
    }

    /// Whether values of a type are asked for in the text format although there is another way to read them.
    pub fn is_read_as_text(&self, type_oid: u32) -> bool {
        self.as_text.contains(&type_oid)
    }

    /// Whether it has to be found out what a type is.
    pub fn is_unknown(&self, type_oid: u32) -> bool {
        type_oid >= FIRST_OF_DATABASE && !self.known.contains_key(&type_oid)
    }

    /// What a type is made of, below its domains; `None` for a scalar and for one that is not known.
    pub fn definition(&self, type_oid: u32) -> Option<Definition> {
        let type_oid = self.base_of(type_oid);
        self.known
            .get(&type_oid)
            .cloned()
            .or_else(|| built_in(type_oid))
    }

    /// The type whose values those of `type_oid` are: another one for a domain.
    pub fn base_of(&self, type_oid: u32) -> u32 {
        let mut base = type_oid;
        for _ in 0..DOMAINS_MAX {
            match self.known.get(&base) {
                Some(Definition::Domain(of)) => base = *of,
                _ => break,
            }
        }
        base
    }

    /// Whether a type is, below its domains, one that every server has and that is not made of others.
    pub fn is_built_in_scalar(&self, type_oid: u32) -> bool {
        let base = self.base_of(type_oid);
        base < FIRST_OF_DATABASE && built_in(base).is_none()
    }

    /// The names and types of a composite type's fields.
    pub fn fields(&self, composite: u32) -> &[(String, u32)] {
        match self.known.get(&composite) {
            Some(Definition::Composite(fields)) => fields,
            _ => &[],
        }
    }

    /// Adds the composite types that values of a type have in them.
    pub fn add_composites_in(&self, type_oid: u32, found: &mut BTreeSet<u32>) {
        let inner = self.base_of(type_oid);
        match self.definition(inner) {
            Some(
                Definition::Array { element: of, .. }
                | Definition::Range(of)
                | Definition::Multirange(of),
            ) => self.add_composites_in(of, found),
            Some(Definition::Composite(fields)) if found.insert(inner) => {
                for (_, of) in &fields {
                    self.add_composites_in(*of, found);
                }
            }
            _ => {}
        }
    }

    /// How values of a type are read.
    #[inline]
    pub fn kind_of(&self, type_oid: u32) -> Kind {
        // The usual case: a scalar, and nothing else is asked for.
        if type_oid < FIRST_OF_DATABASE && self.as_text.is_empty() {
            return Kind::of(type_oid);
        }
        self.kind_within(type_oid, NESTING_MAX)
    }

    fn kind_within(&self, type_oid: u32, levels: usize) -> Kind {
        if self.as_text.contains(&type_oid) || levels == 0 {
            return Kind::Other;
        }
        let type_oid = self.base_of(type_oid);
        let Some(definition) = self.definition(type_oid) else {
            return Kind::of(type_oid);
        };
        let kind = |inner| self.kind_within(inner, levels - 1);
        match definition {
            Definition::Enum => Kind::Text,
            Definition::Text | Definition::Hstore | Definition::Domain(_) => Kind::Other,
            Definition::Array { element, delimiter } => {
                if kind(element).is_binary() && kind(element) != Kind::Array {
                    Kind::Array
                } else {
                    Kind::TextArray(delimiter)
                }
            }
            Definition::Range(of) if kind(of).is_scalar() => Kind::Range(self.base_of(of)),
            Definition::Multirange(of) if kind(of).is_scalar() => {
                Kind::Multirange(self.base_of(of))
            }
            Definition::Composite(fields)
                if fields.iter().all(|(_, of)| {
                    let kind = kind(*of);
                    kind.is_binary() && !matches!(kind, Kind::TextArray(_))
                }) =>
            {
                Kind::Composite(type_oid)
            }
            Definition::Range(_) | Definition::Multirange(_) | Definition::Composite(_) => {
                Kind::Other
            }
        }
    }
}

/// How deep values are nested: arrays of composites of arrays, and so on. What is deeper is refused.
pub const NESTING_MAX: usize = 32;

/// The ranges and arrays that every server has.
pub(crate) fn built_in(type_oid: u32) -> Option<Definition> {
    if let Some(of) = range_of(type_oid) {
        return Some(Definition::Range(of));
    }
    if let Some(of) = multirange_of(type_oid) {
        return Some(Definition::Multirange(of));
    }
    let element = Kind::element_of(type_oid)?;
    // Coordinates of a box have commas between them.
    let delimiter = if element == 603 { b';' } else { b',' };
    Some(Definition::Array { element, delimiter })
}

/// The type of the bounds of a built-in range.
pub(crate) fn range_of(type_oid: u32) -> Option<u32> {
    Some(match type_oid {
        3904 => 23,
        3906 => 1700,
        3908 => 1114,
        3910 => 1184,
        3912 => 1082,
        3926 => 20,
        _ => return None,
    })
}

/// The type of the bounds of a built-in multirange.
pub(crate) fn multirange_of(type_oid: u32) -> Option<u32> {
    Some(match type_oid {
        4451 => 23,
        4532 => 1700,
        4533 => 1114,
        4534 => 1184,
        4535 => 1082,
        4536 => 20,
        _ => return None,
    })
}
