//! What is known of a database's types at one time, and the codecs that an application has for some.
//!
//! A statement keeps the table that it was described with. A composite type that has been changed makes its table stale: a
//! [fresh](TypeTable::refreshed) one takes its place, in which no composite type is known, and statements are prepared anew. The
//! time is its caller's.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::types::{Definition, Types};

/// A table of types; a `Codec` is how an application has values of one converted.
#[derive(Debug)]
pub struct TypeTable<Codec> {
    types: Arc<Types>,
    codecs: BTreeMap<u32, Arc<Codec>>,
    is_stale: AtomicBool,
    /// When all composite types were forgotten last.
    forgotten_at_ms: u64,
}

/// A client whose values do not fit does not have types looked up more often than this.
const LOOK_UP_EVERY_MS: u64 = 1000;

impl<Codec> TypeTable<Codec> {
    /// One that knows nothing of a database.
    pub fn new(now_ms: u64) -> Self {
        Self {
            types: Arc::default(),
            codecs: BTreeMap::new(),
            is_stale: AtomicBool::new(false),
            forgotten_at_ms: now_ms,
        }
    }

    /// The types.
    #[inline]
    pub fn types(&self) -> &Arc<Types> {
        &self.types
    }

    /// The codec of a type, if it has one.
    #[inline]
    pub fn codec(&self, type_oid: u32) -> Option<&Codec> {
        if self.codecs.is_empty() {
            return None;
        }
        self.codecs.get(&type_oid).map(|codec| &**codec)
    }

    /// All codecs.
    pub fn codecs(&self) -> impl Iterator<Item = &Codec> {
        self.codecs.values().map(|codec| &**codec)
    }

    /// Whether a type of these has a codec.
    pub fn has_codec_of(&self, types: &BTreeSet<u32>) -> bool {
        types
            .iter()
            .any(|type_oid| self.codecs.contains_key(type_oid))
    }

    /// A type is not what it was.
    pub fn set_stale(&self) {
        self.is_stale.store(true, Ordering::Relaxed);
    }

    /// Whether statements that were described with it are to be described anew.
    #[inline]
    pub fn is_stale(&self) -> bool {
        self.is_stale.load(Ordering::Relaxed)
    }

    /// A value does not fit a type, which may have been changed: whether it is worth another look.
    #[cold]
    pub fn set_stale_if_old(&self, now_ms: u64) -> bool {
        let age_ms = now_ms.saturating_sub(self.forgotten_at_ms);
        let is_old = self.is_stale() || age_ms >= LOOK_UP_EVERY_MS;
        if is_old {
            self.set_stale();
        }
        is_old
    }

    /// The same table without composite types, if it is stale.
    pub fn refreshed(&self, now_ms: u64) -> Option<Self> {
        if !self.is_stale() {
            return None;
        }
        let mut fresh = self.copy();
        Arc::make_mut(&mut fresh.types).forget_composites();
        fresh.forgotten_at_ms = now_ms;
        Some(fresh)
    }

    /// A copy, to be changed.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self {
            types: Arc::clone(&self.types),
            codecs: self.codecs.clone(),
            is_stale: AtomicBool::new(false),
            forgotten_at_ms: self.forgotten_at_ms,
        }
    }

    /// Learns what a type is.
    pub fn define(&mut self, type_oid: u32, definition: Definition) {
        Arc::make_mut(&mut self.types).insert(type_oid, definition);
    }

    /// Sets how values of a type are converted. `as_text`: they come, and go, in the text format of the type.
    pub fn set_codec(&mut self, type_oid: u32, codec: Codec, as_text: bool) {
        self.codecs.insert(type_oid, Arc::new(codec));
        if as_text {
            Arc::make_mut(&mut self.types).read_as_text(type_oid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> TypeTable<&'static str> {
        let mut table = TypeTable::new(5000);
        table.define(20_000, Definition::Enum);
        table.define(20_001, Definition::Composite([].into()));
        table.set_codec(20_000, "codec", false);
        table
    }

    #[test]
    fn a_fresh_table_knows_no_composite_type_and_all_codecs() {
        let table = table();
        assert!(table.refreshed(6000).is_none(), "it is not stale");
        table.set_stale();
        let fresh = table.refreshed(6000).unwrap();
        assert!(fresh.types().is_unknown(20_001));
        assert!(!fresh.types().is_unknown(20_000));
        assert_eq!(fresh.codec(20_000), Some(&"codec"));
        assert!(!fresh.is_stale());
    }

    #[test]
    fn types_are_looked_up_again_once_a_second_at_most() {
        let table = table();
        assert!(!table.set_stale_if_old(5999));
        assert!(!table.is_stale());
        assert!(table.set_stale_if_old(6000));
        let fresh = table.refreshed(6000).unwrap();
        assert!(!fresh.set_stale_if_old(6999));
        assert!(fresh.set_stale_if_old(7000));
    }
}
