//! The owner that a packet is charged to.

use super::{BucketKey, OwnerKind};
use crate::{
    address::{Address, Family},
    limit::{IdFormat, LimitId, NumberOf},
    packet::Facts,
};

/// The facts that may name the owner of a packet's bucket. They are references, so that a fact that
/// is not needed is not read.
#[derive(Clone, Copy, Debug)]
pub struct OwnerFields<'a> {
    /// The facts of the packet's headers.
    pub facts: &'a Facts,
    /// The number of the subscriber to whom the source belongs.
    pub subscriber: &'a u64,
    /// The daemon's number for the interface that the packet came in on.
    pub interface: &'a u32,
}

impl OwnerFields<'_> {
    #[inline(always)]
    const fn number(&self, of: NumberOf) -> u64 {
        match of {
            NumberOf::Subscriber => *self.subscriber,
            NumberOf::Interface => *self.interface as u64,
            NumberOf::Host => 0,
        }
    }
}

/// How packets of one family name the owner of a bucket. It consists of numbers, because the
/// kernel's verifier would follow branches separately through all later code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct OwnerOf {
    kind: OwnerKind,
    reserved: u32,
    mask_high: u64,
    mask_low: u64,
}

impl OwnerOf {
    /// Makes it of an id format and, if a number names its owners, what that belongs to.
    pub(crate) const fn new(id_format: IdFormat, number: Option<NumberOf>, family: Family) -> Self {
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
            kind: match number {
                Some(number) => OwnerKind::of_number(number),
                None => OwnerKind::of_range(family, length),
            },
            reserved: 0,
            mask_high: high,
            mask_low: low,
        }
    }

    /// Returns the bucket of a limit that a packet of the family is charged to. `number` is the
    /// [`NumberOf`] by which the limit names owners, or 0. The kernel program reads it from a table
    /// that only the daemon writes; an unknown number counts as 0.
    #[inline(always)]
    pub(crate) const fn key(
        &self,
        limit: LimitId,
        number: u8,
        owner_fields: &OwnerFields<'_>,
    ) -> BucketKey {
        let source = &owner_fields.facts.source;
        let high = match NumberOf::of_number(number) {
            Some(of) => owner_fields.number(of),
            None => source.high & self.mask_high,
        };
        BucketKey::new(limit, self.kind, high, source.low & self.mask_low)
    }
}
