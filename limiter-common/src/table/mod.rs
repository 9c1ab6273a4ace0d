//! The set-associative table of buckets: each line has four and is one cache line long.
//!
//! A keyed hash names a bucket, so an attacker without its secret cannot aim at another key's
//! bucket. The hash of the key (address, range, subscriber, interface) gives the line and most of
//! the fingerprint, so several limits of one key share a line.
//!
//! **Evicting a full bucket loses nothing**, since a missing bucket is a full bucket. A forged
//! source sends a packet or two, and its bucket is full again an emission interval later: a flood
//! of forged sources cannot evict the bucket of a limited client. [`WhenFull`] applies only if all
//! four buckets of a line are in debt.

#[cfg(not(target_arch = "bpf"))]
mod atomic_line;
mod hash;
mod line;
mod location;
mod order;
mod upkeep;

#[cfg(not(target_arch = "bpf"))]
pub use self::{
    atomic_line::{AtomicLine, next_occupied},
    line::entry,
};
pub use self::{
    hash::{HashKey, KeyHash},
    line::{
        EMPTY, Eviction, InsertOutcome, LOCKED, Line, LineTable, WAYS, WhenFull, exchange, insert,
        insert_by, read, swap as swap_in_line,
    },
    location::{TableLocation, find, find_again, find_part, swap},
    order::{EVICTED, Order, OrderKind},
    upkeep::clear,
};
use crate::{limit::LimitId, unit::UNIT_BITS};

const LIMIT_BITS: u32 = 8;

/// The fingerprint of a bucket in its line: never 0.
///
/// From the lowest bit on: 16 bits for the number of the state's unit, by which code that needs
/// room in the line can tell whether the bucket is full; 8 bits for the limit's interned id; 40
/// bits of the key's hash, none of them used to choose the line. With 20 bits, 40 of five million
/// packets a second would hit a foreign bucket (16 million sources).
#[must_use]
#[inline(always)]
pub const fn fingerprint(hash: KeyHash, limit: LimitId, unit: u32) -> u64 {
    let tag = hash.0 & !((1 << (UNIT_BITS + LIMIT_BITS)) - 1);
    tag | ((limit.0 as u64) & ((1 << LIMIT_BITS) - 1)) << UNIT_BITS
        | (unit as u64) & ((1 << UNIT_BITS) - 1)
}

/// The number of the unit in which the bucket with this fingerprint counts.
#[must_use]
#[inline(always)]
pub const fn unit_of(fingerprint: u64) -> u32 {
    (fingerprint & ((1 << UNIT_BITS) - 1)) as u32
}

/// The limit of the bucket with this fingerprint.
#[must_use]
#[inline(always)]
pub const fn limit_of(fingerprint: u64) -> LimitId {
    LimitId((fingerprint >> UNIT_BITS & ((1 << LIMIT_BITS) - 1)) as u16)
}

/// Whether two fingerprints belong to the same bucket, in any units.
#[must_use]
#[inline(always)]
pub const fn is_same_bucket(fingerprint: u64, other: u64) -> bool {
    (fingerprint ^ other) >> UNIT_BITS == 0
}

const _: () = assert!(crate::limit::MAX_LIMIT_IDS <= 1 << LIMIT_BITS);
