//! The core's types as the bytes of map keys and values.

use aya::Pod;
use limiter_common::{
    ban::{Ban, BanKey},
    bucket::BucketKey,
    counters::{LimitTraffic, Traffic},
    decide::Verdict,
    offender::{Offender, OffenderKey, Recording},
    policy::{Class, LimitEntry, Node, Shape, Slot, Stretch},
    sieve::{Pressure, Sieve, SieveTraffic, SieveUse},
    strategy::Budget,
    table::Order,
    unit::Unit,
};

/// A type of the core in a map. The core itself knows of no maps.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct InMap<T: Copy + 'static>(pub(super) T);

/// Types whose every byte is defined and of which every bit pattern is a value.
pub(super) trait PlainBytes: Copy + 'static {}

impl PlainBytes for Ban {}
impl PlainBytes for BanKey {}
impl PlainBytes for BucketKey {}
impl PlainBytes for Budget {}
impl PlainBytes for Class {}
impl PlainBytes for LimitEntry {}
impl PlainBytes for LimitTraffic {}
impl PlainBytes for Node {}
impl PlainBytes for Offender {}
impl PlainBytes for OffenderKey {}
impl PlainBytes for Order {}
impl PlainBytes for Pressure {}
impl PlainBytes for Recording {}
impl PlainBytes for Shape {}
impl PlainBytes for Sieve {}
impl PlainBytes for SieveTraffic {}
impl PlainBytes for SieveUse {}
impl PlainBytes for Slot {}
impl PlainBytes for Stretch {}
impl PlainBytes for Traffic {}
impl PlainBytes for Unit {}
impl PlainBytes for u64 {}
impl PlainBytes for [u64; 2] {}

/// A [`Verdict`] as it lies in memory: not every number is one of its reasons.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct RawVerdict {
    reason: u32,
    denied_by: u32,
    matched: u64,
    would_drop: u64,
}

impl RawVerdict {
    pub(super) const fn verdict(self) -> Option<Verdict> {
        Verdict::from_raw(self.reason, self.denied_by, self.matched, self.would_drop)
    }
}

impl PlainBytes for RawVerdict {}

// SAFETY: `repr(transparent)` over a type that is `repr(C)`, made of integers alone, and has
// no padding: that is what `PlainBytes` is given for.
unsafe impl<T: PlainBytes> Pod for InMap<T> {}

const _: () = {
    assert!(
        size_of::<Budget>() == (3 * 8 + 2 * 16) + (2 * 8 + 8) + 8,
        "no padding"
    );
    assert!(size_of::<Unit>() == 8 + 2 * 16 + 8, "no padding");
    assert!(size_of::<LimitEntry>() == 8 + 2 * 24, "no padding");
    assert!(size_of::<Node>() == 32, "no padding");
    assert!(size_of::<Stretch>() == 32, "no padding");
    assert!(size_of::<Slot>() == 4, "no padding");
    assert!(size_of::<RawVerdict>() == size_of::<Verdict>(), "the same");
    assert!(size_of::<Class>() == 32, "no padding");
    assert!(size_of::<Shape>() == 10 * 4 + 7 * 8 + 6 * 4, "no padding");
    assert!(size_of::<LimitTraffic>() == 48, "no padding");
    assert!(size_of::<Pressure>() == 16, "no padding");
    assert!(size_of::<Sieve>() == 4 * 8 + 8 * 4, "no padding");
    assert!(size_of::<SieveTraffic>() == 3 * 16 + 2 * 8, "no padding");
    assert!(size_of::<SieveUse>() == 16, "no padding");
};
