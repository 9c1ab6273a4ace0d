//! The set-associative table of buckets: a line of four for each place, one cache line long.
//!
//! What names a bucket here is a keyed hash: nobody who does not know the key can aim at
//! another's bucket. The hash of the owner (address, range, subscriber, interface) gives the
//! line and most of the name, so that several limits of one owner share a line.
//!
//! **Evicting a full bucket loses nothing**, since a missing bucket is a full bucket. A forged
//! source sends a packet or two, and its bucket is full again an emission interval later: a
//! flood of them cannot push out a client that is being limited. Only when all four of a line
//! are in debt does [`WhenFull`] say what happens.

mod hash;
mod line;
mod order;
mod spot;
mod upkeep;

#[cfg(not(target_arch = "bpf"))]
pub use self::line::entry;
pub use self::{
    hash::{HashKey, Place},
    line::{
        AGAIN, EMPTY, IN_ANOTHER_UNIT, LOCKED, Line, LineStore, MISSING, WAYS, WhenFull, change,
        exchange, insert, read, spend, update,
    },
    order::{EVICTED, Order, OrderKind},
    spot::{Spot, find, find_stamp},
    upkeep::{MARK, clear, free, is_nobodys, is_there, mark},
};
use crate::{limit::LimitId, unit::UNIT_BITS};

const LIMIT_BITS: u32 = 8;

/// What a bucket's state is found under in its line: never 0.
///
/// From the lowest bit on: 16 bits of the number of the unit that the state counts in, by which
/// others of the line can tell whether the bucket is full; 8 bits of the limit's interned id; 40
/// bits of the owner's hash, others than those that chose the line.
#[must_use]
#[inline(always)]
pub const fn name(place: Place, limit: LimitId, unit: u32) -> u64 {
    let tag = place.0 & !((1 << (UNIT_BITS + LIMIT_BITS)) - 1);
    tag | ((limit.0 as u64) & ((1 << LIMIT_BITS) - 1)) << UNIT_BITS
        | (unit as u64) & ((1 << UNIT_BITS) - 1)
}

/// The number of the unit in which the bucket of that name counts.
#[must_use]
#[inline(always)]
pub const fn unit_of(name: u64) -> u32 {
    (name & ((1 << UNIT_BITS) - 1)) as u32
}

/// The limit of the bucket of that name.
#[must_use]
#[inline(always)]
pub const fn limit_of(name: u64) -> LimitId {
    LimitId((name >> UNIT_BITS & ((1 << LIMIT_BITS) - 1)) as u16)
}

/// Whether these are names of the same bucket, in whatever units.
#[must_use]
#[inline(always)]
pub const fn is_same_bucket(name: u64, other: u64) -> bool {
    (name ^ other) >> UNIT_BITS == 0
}

const _: () = assert!(crate::limit::MAX_LIMIT_IDS <= 1 << LIMIT_BITS);
