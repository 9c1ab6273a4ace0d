//! The log of a moving window: its stamps are parts of the bucket.
//!
//! [`moving_window`] explains why it suffices to stamp a packet before the cursor moves past it.

use crate::{
    bucket::{BucketTable, Swap},
    strategy::{
        Decision, Spend,
        moving_window::{self, Cursor},
    },
};

/// The stamp that the log must have before the cursor moves past its packet.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Stamp<Location> {
    /// The table's handle of the stamp.
    location: Location,
    /// The log's stamp there now.
    seen: u64,
    /// The TAT of the packet; 0: there is no packet to stamp.
    tat: u64,
}

impl<Location> Stamp<Location> {
    #[inline(always)]
    pub(super) const fn clear(&mut self) {
        self.tat = 0;
    }

    /// Ensures that the log has the stamp. Stamps in a log only grow.
    #[inline(always)]
    pub(super) fn ensure<B: BucketTable<Location = Location>>(
        &self,
        buckets: &B,
        now_ns: u64,
    ) -> Swap {
        if self.seen < self.tat {
            buckets.swap(&self.location, now_ns, self.seen, self.tat)
        } else {
            Swap::Stored
        }
    }
}

/// Decides on the bucket of a moving window in `state`, and looks up the stamp that the log must
/// have if the packet passes. `stamp_unit` is the number of the stamps' unit.
#[inline(always)]
pub(super) fn decide<B: BucketTable>(
    buckets: &B,
    bucket: &B::Location,
    spend: &Spend,
    stamp_unit: u32,
    state: u64,
    stamp: &mut Stamp<B::Location>,
) -> Decision {
    let cursor = Cursor::of_state(state, spend.now());
    // The last packet has the latest TAT: once it has passed by every clock, all have.
    if cursor.last == 0 {
        return moving_window::decide(spend, state, cursor, 0);
    }
    let count = spend.count();
    let oldest = if count == 1 {
        cursor.last
    } else {
        let number = cursor.stamp(count);
        let tat = buckets.find_part(bucket, number, stamp_unit, &mut stamp.location);
        // A stamp from a longer period counts no longer than the last packet's.
        tat.min(cursor.last)
    };
    let decision = moving_window::decide(spend, state, cursor, oldest);
    if decision.passes() {
        let number = cursor.stamp(1);
        stamp.seen = buckets.find_part(bucket, number, stamp_unit, &mut stamp.location);
        stamp.tat = cursor.last;
    }
    decision
}
