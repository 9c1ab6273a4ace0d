//! Locks that daemons before this one have left in the table: they changed it themselves, and were
//! killed while a way was locked.
//!
//! Programs of the kernel lock ways, too, for some nanoseconds, and come to their end. Who cannot
//! tell the two apart must not free anything: a way that two hold gives one owner's debt to another.
//! So a way that is seen locked again and again is marked ([`limiter_common::table::mark`]), and freed when it has
//! stayed so until all programs have ended that could have locked it. However this process ends
//! meanwhile, the way is locked as before, and the next one begins again.

use limiter_common::{
    bucket::Updated,
    table::{LOCKED, Line as _, MARK, Order, OrderKind, WAYS},
};
use limiter_policy::config::Store;

use super::{BucketMaps, DatapathError, Spot};
use crate::kernel::grace::wait_for_running_programs;

/// How often a way is seen locked by the same bucket, with all running programs ended in between,
/// before it is marked: a mark on a lock that somebody holds costs a bucket.
const LOOKS: u32 = 4;

/// A way that is locked.
#[derive(Clone, Copy)]
struct Locked {
    line: u32,
    way: usize,
    name: u64,
}

impl BucketMaps {
    /// Frees the ways of the table whose locks nobody holds any more; returns how many these were.
    pub fn free_abandoned_locks(&self) -> Result<u64, DatapathError> {
        self.free_locks_in(0..self.table.count())
    }

    /// The same of the lines of some spots.
    pub(super) fn free_locks_of(
        &self,
        spots: impl Iterator<Item = Spot>,
    ) -> Result<u64, DatapathError> {
        self.free_locks_in(spots.map(|spot| spot.order().line))
    }

    fn free_locks_in(&self, lines: impl Iterator<Item = u32>) -> Result<u64, DatapathError> {
        // An element of the hash map is replaced as a whole.
        if self.settings.buckets.store == Store::Hash {
            return Ok(0);
        }
        let mut locked: Vec<_> = lines.flat_map(|line| self.locked_in(line)).collect();
        for _ in 0..LOOKS {
            if locked.is_empty() {
                return Ok(0);
            }
            wait_for_running_programs()?;
            locked.retain(|way| self.is_still(way));
        }
        for way in &mut locked {
            self.order_on(OrderKind::Mark, way, LOCKED)?;
            way.name = MARK;
        }
        // Whoever knew a way by its name before comes to his end here.
        wait_for_running_programs()?;
        for way in &locked {
            self.forget_marked(way)?;
        }
        locked.retain(|way| self.is_still(way));
        // Whoever has locked one since comes to his end here, and has named it.
        wait_for_running_programs()?;
        let mut freed = 0;
        for way in locked.iter().filter(|way| self.is_still(way)) {
            freed += u64::from(self.order_on(OrderKind::Free, way, LOCKED)?);
        }
        Ok(freed)
    }

    /// The ways of a line that are locked.
    fn locked_in(&self, index: u32) -> Vec<Locked> {
        let Some(line) = self.table.get(index) else {
            return Vec::new();
        };
        let ways = (0..WAYS).filter(|way| line.state(*way) == LOCKED);
        let ways = ways.map(|way| Locked {
            line: index,
            way,
            name: line.name(way),
        });
        ways.collect()
    }

    /// Whether it is locked under the same name.
    fn is_still(&self, way: &Locked) -> bool {
        let line = self.table.get(way.line);
        line.is_some_and(|line| line.state(way.way) == LOCKED && line.name(way.way) == way.name)
    }

    /// Empties a marked way that somebody has let go of: its name does not tell what its state is.
    fn forget_marked(&self, way: &Locked) -> Result<(), DatapathError> {
        let state = self
            .table
            .get(way.line)
            .map_or(0, |line| line.state(way.way));
        if state != LOCKED {
            self.order_on(OrderKind::Free, way, state)?;
        }
        Ok(())
    }

    /// Gives an order on a way; returns whether it was carried out.
    fn order_on(&self, kind: OrderKind, way: &Locked, seen: u64) -> Result<bool, DatapathError> {
        let ended = self.carry_out(&Order {
            kind: kind as u32,
            way: u32::try_from(way.way).unwrap_or(u32::MAX),
            seen,
            ..Spot::in_line(way.line, way.name).order()
        })?;
        Ok(ended.updated == Updated::Stored)
    }
}
