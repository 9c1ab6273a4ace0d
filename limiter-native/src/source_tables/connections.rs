//! Open connections that the caller declares.

use std::{cell::RefCell, collections::BTreeMap};

use limiter_common::connection::CountId;

/// The number of open connections under each count id; by default 0.
#[derive(Debug, Default)]
pub struct MemoryConnections(RefCell<BTreeMap<u64, u64>>);

impl MemoryConnections {
    /// Counts a connection under a count id.
    pub fn add(&self, count_id: CountId) {
        *self.0.borrow_mut().entry(count_id.0).or_default() += 1;
    }

    /// Takes a connection off a count id.
    pub fn take_off(&mut self, count_id: CountId) {
        if let Some(open) = self.0.get_mut().get_mut(&count_id.0) {
            *open = open.saturating_sub(1);
        }
    }

    /// The number of open connections under a count id.
    #[must_use]
    pub fn open(&self, count_id: CountId) -> u64 {
        self.0
            .borrow()
            .get(&count_id.0)
            .copied()
            .unwrap_or_default()
    }
}
