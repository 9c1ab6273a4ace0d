//! Open connections that the caller declares.

use std::{cell::RefCell, collections::BTreeMap};

use limiter_common::connection::Place;

/// The number of open connections at each place; by default 0.
#[derive(Debug, Default)]
pub struct MemoryConnections(RefCell<BTreeMap<u64, u64>>);

impl MemoryConnections {
    /// Counts a connection at a place.
    pub fn add(&self, place: Place) {
        *self.0.borrow_mut().entry(place.0).or_default() += 1;
    }

    /// Takes a connection off a place.
    pub fn take_off(&mut self, place: Place) {
        if let Some(open) = self.0.get_mut().get_mut(&place.0) {
            *open = open.saturating_sub(1);
        }
    }

    /// The number of open connections at a place.
    #[must_use]
    pub fn open(&self, place: Place) -> u64 {
        self.0.borrow().get(&place.0).copied().unwrap_or_default()
    }
}
