//! What userspace asks the kernel to do to one bucket.
//!
//! Userspace changes no bucket itself: it may be killed between any two of its instructions, and a
//! program of the kernel's is not.

use crate::{owner::BucketKey, strategy::Spend};

/// One order, as the kernel's program reads it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Order {
    /// The bucket, where the store has exact keys.
    pub key: BucketKey,
    /// What names it: in the table all of its name, elsewhere the number of its unit.
    pub name: u64,
    /// What it is to lose, to be given back, or to be swapped to.
    pub spend: Spend,
    /// Of [`OrderKind::Free`] the state in which the way was seen.
    pub seen: u64,
    /// The time, in nanoseconds.
    pub now_ns: u64,
    /// Its line of the table.
    pub line: u32,
    /// Of [`OrderKind::Mark`] and [`OrderKind::Free`] the way.
    pub way: u32,
    /// An [`OrderKind`] as its number.
    pub kind: u32,
    /// Always 0.
    pub reserved: u32,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum OrderKind {
    /// Spend, and put the bucket in if it is not there.
    Spend,
    /// Spend, if the bucket is there.
    SpendIfThere,
    /// Give back what [`Spend::refunded`] says, if the bucket is there.
    GiveBack,
    /// [`super::clear`]
    Clear,
    /// [`super::mark`]
    Mark,
    /// [`super::free`]
    Free,
}

impl OrderKind {
    /// The kind of that number.
    #[must_use]
    #[inline(always)]
    pub const fn of_number(number: u32) -> Option<Self> {
        const SPEND: u32 = OrderKind::Spend as u32;
        const SPEND_IF_THERE: u32 = OrderKind::SpendIfThere as u32;
        const GIVE_BACK: u32 = OrderKind::GiveBack as u32;
        const CLEAR: u32 = OrderKind::Clear as u32;
        const MARK: u32 = OrderKind::Mark as u32;
        const FREE: u32 = OrderKind::Free as u32;
        Some(match number {
            SPEND => Self::Spend,
            SPEND_IF_THERE => Self::SpendIfThere,
            GIVE_BACK => Self::GiveBack,
            CLEAR => Self::Clear,
            MARK => Self::Mark,
            FREE => Self::Free,
            _ => return None,
        })
    }
}

/// How an order ended: an [`Updated`](crate::bucket::Updated) as its number, and this bit if a
/// bucket in debt was forgotten for it.
pub const EVICTED: u32 = 1 << 16;

const _: () = assert!(size_of::<Order>() == 24 + 8 + 40 + 4 * 8, "no padding");
