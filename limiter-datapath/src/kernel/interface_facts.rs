//! The facts about interfaces in a program's writable statics. All interfaces of the program share them; each has the
//! slot of its index.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aya::maps::{Array, Map, MapError};
use limiter_common::attachment_facts::{AttachmentFacts, NO_INTERFACE, ProgramFacts, slot};

use super::pod::InMap;

/// The map of the object's writable statics.
pub(super) const STATICS: &str = ".bss";

/// The facts in a program that this process has loaded.
#[derive(Debug)]
struct SharedFacts {
    /// The map of the writable statics.
    statics: Map,
    facts: Box<ProgramFacts>,
}

impl SharedFacts {
    fn is_free(&self, slot: usize) -> bool {
        self.facts.slots[slot].interface == NO_INTERFACE
    }

    fn write(&mut self, slot: usize, facts: AttachmentFacts) -> Result<(), MapError> {
        let before = self.facts.slots[slot];
        // Every change of any interface leads here, so skip writes without a change.
        if before == facts {
            return Ok(());
        }
        self.facts.slots[slot] = facts;
        let written = Array::try_from(&mut self.statics)
            .and_then(|mut array| array.set(0, InMap(*self.facts), 0));
        if written.is_err() {
            self.facts.slots[slot] = before;
        }
        written
    }
}

/// One interface's slot in a program. Dropping it frees the slot for another.
#[derive(Debug)]
pub(super) struct FactSlot {
    shared: Arc<Mutex<SharedFacts>>,
    slot: usize,
}

impl FactSlot {
    /// Takes the slot of the interface with the kernel's `index` in a new program, for the number `interface`.
    pub(super) fn first(statics: Map, index: u32, interface: u32) -> Result<Self, MapError> {
        let shared = SharedFacts {
            statics,
            facts: Box::new(ProgramFacts::all(AttachmentFacts::of(NO_INTERFACE))),
        };
        let shared = Arc::new(Mutex::new(shared));
        Self::take(&shared, &mut lock(&shared), index, interface)
    }

    /// Takes the slot of another interface in the same program; `None`: it is taken.
    pub(super) fn another(&self, index: u32, interface: u32) -> Result<Option<Self>, MapError> {
        // Locked until the slot is taken, so that no other interface takes it.
        let mut facts = lock(&self.shared);
        if !facts.is_free(slot(index)) {
            return Ok(None);
        }
        Self::take(&self.shared, &mut facts, index, interface).map(Some)
    }

    fn take(
        shared: &Arc<Mutex<SharedFacts>>,
        facts: &mut SharedFacts,
        index: u32,
        interface: u32,
    ) -> Result<Self, MapError> {
        let slot = slot(index);
        facts.write(slot, AttachmentFacts::of(interface))?;
        Ok(Self {
            shared: Arc::clone(shared),
            slot,
        })
    }

    /// Writes the facts about the interface.
    pub(super) fn write(&self, facts: AttachmentFacts) -> Result<(), MapError> {
        lock(&self.shared).write(self.slot, facts)
    }

    /// Follows the interface to another index, which it may get in another network namespace. If the slot there is
    /// taken, the program takes the interface for the slot's, until the interface is attached to again.
    pub(super) fn follow(&mut self, index: u32) -> Result<(), MapError> {
        let (old, new) = (self.slot, slot(index));
        let mut shared = lock(&self.shared);
        if old == new || !shared.is_free(new) {
            return Ok(());
        }
        let facts = shared.facts.slots[old];
        shared.write(new, facts)?;
        self.slot = new;
        shared.write(old, AttachmentFacts::of(NO_INTERFACE))
    }
}

impl Drop for FactSlot {
    fn drop(&mut self) {
        // Not in the program: if it is pinned, its interfaces outlive this process.
        lock(&self.shared).facts.slots[self.slot] = AttachmentFacts::of(NO_INTERFACE);
    }
}

fn lock(shared: &Mutex<SharedFacts>) -> MutexGuard<'_, SharedFacts> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
