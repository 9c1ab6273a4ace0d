//! The charge of one limit for one packet: which bucket to change, and how.

use super::log::Stamp;
use crate::{numbered::numbered, strategy::Spend};

/// The charge of one limit for one packet: which bucket to change, and how.
///
/// It consists of plain numbers, because it is in scratch memory.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Charge<Location> {
    /// The table's handle of the bucket.
    pub(super) location: Location,
    pub(super) plan: Plan<Location>,
}

/// How to change a bucket.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Plan<Location> {
    /// The tokens that the packet spends.
    pub(super) spend: Spend,
    /// The bucket's state at the last decision.
    pub(super) seen: u64,
    /// The bucket's next state by that decision.
    pub(super) next: u64,
    /// The ticks that the packet must leave in the bucket; only for limits that reserve.
    pub(super) reserve: u64,
    /// The packet's time of arrival, in nanoseconds.
    pub(super) now_ns: u64,
    /// The number of the unit of a moving window's stamps.
    pub(super) stamp_unit: u32,
    /// The number of an [`Ending`], for functions that hand over a decision.
    pub ending: u32,
    /// The stamp that a moving window must have before it gets the next state.
    pub(super) stamp: Stamp<Location>,
}

impl<Location: Default> Default for Plan<Location> {
    /// Returns a plan that changes nothing.
    fn default() -> Self {
        Self {
            spend: Spend::NONE,
            seen: 0,
            next: 0,
            reserve: 0,
            now_ns: 0,
            stamp_unit: 0,
            ending: 0,
            stamp: Stamp::default(),
        }
    }
}

numbered! {
    /// The effect of a charge on its bucket.
    pub enum Intent {
        /// Takes tokens, if the bucket has them.
        Spend,
        /// Counts the refusal, if the bucket's strategy counts refusals.
        Refuse,
        /// Gives the tokens back.
        Refund,
    } else Spend
}

impl<Location> Plan<Location> {
    /// Makes this a plan that leaves the bucket as it is.
    #[inline(always)]
    pub(super) const fn clear(&mut self) {
        // Not both set to 0: in BPF that would be a call to a loop over bytes.
        self.next = self.seen;
    }

    /// Whether the decision gives the bucket another state.
    #[inline(always)]
    pub(super) const fn changes_state(&self) -> bool {
        self.seen != self.next
    }

    /// Returns whether the packet, which the decision lets pass, also passes above the reserve. The limit must reserve, and so use GCRA, with TATs as states.
    #[inline(always)]
    pub(super) const fn passes_above_own_reserve(&mut self) -> bool {
        self.spend = self.spend.leaving(self.reserve);
        self.next <= self.spend.gcra().latest
    }

    /// Whether the packet, refused by the last decision, would have passed without the reserve: the
    /// reserve makes the latest allowed TAT earlier, and so the wait longer.
    #[inline(always)]
    pub(super) const fn is_refused_for_reserve(&self) -> bool {
        self.spend.gcra().decide(self.seen).wait <= self.reserve
    }
}
