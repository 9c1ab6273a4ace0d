//! The owner that a packet is charged to.

use super::{BucketKey, OwnerKind};
use crate::{
    address::{Address, Family},
    limit::{IdFormat, LimitId, NumberOf},
    packet::Facts,
};

/// What may name the owner of a bucket that a packet is charged to. All by reference: what is not
/// asked for is not read.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// What the packet's headers say.
    pub facts: &'a Facts,
    /// The number of the subscriber to whom the source belongs.
    pub subscriber: &'a u64,
    /// The daemon's number for the interface that the packet came in on.
    pub interface: &'a u32,
}

impl Known<'_> {
    #[inline(always)]
    const fn number(&self, of: NumberOf) -> u64 {
        match of {
            NumberOf::Subscriber => *self.subscriber,
            NumberOf::Interface => *self.interface as u64,
        }
    }
}

/// How the owner of a bucket is told from packets of one family: by numbers, because what is
/// decided by branches the kernel's verifier follows apart through all that comes after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct OwnerOf {
    kind: OwnerKind,
    reserved: u32,
    mask_high: u64,
    mask_low: u64,
}

impl OwnerOf {
    pub(crate) const fn new(id_format: IdFormat, family: Family) -> Self {
        let all = Address {
            family,
            high: u64::MAX,
            low: u64::MAX,
        };
        let length = match id_format.prefix_length(family) {
            Some(length) => length,
            None => 0,
        };
        let Address { high, low, .. } = all.masked(length);
        Self {
            kind: match id_format.number() {
                Some(number) => OwnerKind::of_number(number),
                None => OwnerKind::of_range(family, length),
            },
            reserved: 0,
            mask_high: high,
            mask_low: low,
        }
    }

    /// The bucket of a limit that a packet of the family is charged to. `number`: that of the
    /// [`NumberOf`] by which the limit names owners, or 0. The kernel program reads it from a table
    /// that the daemon alone writes; one that it does not know is as good as 0.
    #[inline(always)]
    pub(crate) const fn key(&self, limit: LimitId, number: u8, known: &Known<'_>) -> BucketKey {
        let source = &known.facts.source;
        let high = match NumberOf::of_number(number) {
            Some(of) => known.number(of),
            None => source.high & self.mask_high,
        };
        BucketKey::new(limit, self.kind, high, source.low & self.mask_low)
    }
}
