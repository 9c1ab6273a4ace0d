//! Detects duplicates.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::Hash,
};

use super::{diagnostics::Position, reader::Reader};

/// Where each key first occurred in a file.
pub(super) struct Seen<K>(HashMap<K, Position>);

impl<K: Eq + Hash> Seen<K> {
    /// Returns whether a key occurs for the first time. Otherwise notes the duplicate, with the
    /// first position; `what` names it.
    pub(super) fn is_first(
        &mut self,
        reader: &mut Reader<'_, '_>,
        key: K,
        at: Position,
        what: impl FnOnce() -> String,
    ) -> bool {
        match self.0.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(at);
                true
            }
            Entry::Occupied(entry) => {
                let message = format!("duplicate {}, first at {}", what(), entry.get());
                reader.error(at, message);
                false
            }
        }
    }
}

impl<K> Default for Seen<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}
