//! The owner that a packet is charged to.

use super::{BucketKey, OwnerKind};
use crate::{
    address::{Address, Family},
    limit::{IdFormat, LimitId, NamedBy},
    packet::Asked,
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
    /// What the policy says of what it asks for; read only for limits that count packets by it.
    pub asked: &'a Asked,
    /// The daemon's number for the interface that the packet came in on.
    pub interface: &'a u32,
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
    /// Makes it of an id format and, if something else than the source names its owners, what does.
    pub(crate) const fn new(
        id_format: IdFormat,
        named_by: Option<NamedBy>,
        family: Family,
    ) -> Self {
        let all = Address {
            family,
            high: u64::MAX,
            low: u64::MAX,
        };
        let length = match id_format.prefix_length(family) {
            Some(length) => length,
            None => 0,
        };
        let length = match named_by {
            // It is not masked.
            Some(NamedBy::Destination) => 128,
            _ => length,
        };
        let Address { high, low, .. } = all.masked(length);
        Self {
            kind: match named_by {
                Some(NamedBy::Destination) => OwnerKind::of_destination(family),
                Some(other) => OwnerKind::of_number(other),
                None => OwnerKind::of_range(family, length),
            },
            reserved: 0,
            mask_high: high,
            mask_low: low,
        }
    }

    /// Returns the bucket of a limit that a packet of the family is charged to. `named_by` is the
    /// number of the [`NamedBy`] by which the limit names owners, or 0. The kernel program reads it from
    /// a table that only the daemon writes; an unknown number counts as 0.
    #[inline(always)]
    pub(crate) const fn key(
        &self,
        limit: LimitId,
        named_by: u8,
        owner_fields: &OwnerFields<'_>,
    ) -> BucketKey {
        let Facts {
            source,
            destination_high,
            destination_low,
            ..
        } = owner_fields.facts;
        let (high, low) = match NamedBy::of_number(named_by) {
            Some(NamedBy::Destination) => (*destination_high, *destination_low),
            _ => (source.high, source.low),
        };
        let high = match NamedBy::of_number(named_by) {
            Some(NamedBy::Subscriber) => *owner_fields.subscriber,
            Some(NamedBy::Interface) => *owner_fields.interface as u64,
            Some(NamedBy::Zone | NamedBy::ServerName) => owner_fields.asked.zone,
            Some(NamedBy::Question) => owner_fields.asked.question,
            // The masks of a host's bucket are 0.
            Some(NamedBy::Host | NamedBy::Destination) | None => high & self.mask_high,
        };
        BucketKey::new(limit, self.kind, high, low & self.mask_low)
    }
}
