//! This node among the fleet's.

use std::cell::Cell;

use limiter_fleet::{Boot, Members, NodeId, Terms};

/// This node.
pub(super) struct Me {
    pub(super) members: Members,
    pub(super) id: NodeId,
    pub(super) terms: Terms,
    /// The number of the last start.
    boot: Cell<u64>,
}

impl Me {
    /// `started`: a number above those of all earlier starts, such as the nanoseconds since 1970. If the wall
    /// clock went back since an earlier start, nobody lends to this node until it is as late again.
    pub(super) const fn new(members: Members, id: NodeId, terms: Terms, started: u64) -> Self {
        Self {
            members,
            id,
            terms,
            boot: Cell::new(started),
        }
    }

    /// Returns the number of another start.
    pub(super) fn boot(&self) -> Boot {
        let next = self.boot.get().saturating_add(1);
        self.boot.set(next);
        Boot(next)
    }
}
