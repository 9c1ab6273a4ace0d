//! One limit as the datapath reads it.

use super::{Class, Shape};
use crate::{
    address::{Address, Family},
    limit::{Cost, IdFormat, LimitId},
    owner::{BucketKey, OwnerKind},
    packet::Facts,
};

/// One limit as the datapath reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct LimitEntry {
    /// The interned id.
    pub id: u16,
    /// [`PACKETS`] or [`BYTES`].
    cost: u8,
    /// [`SOURCE`], [`SUBSCRIBER`] or [`INTERFACE`].
    owner: u8,
    reserved: u32,
    /// Whose bucket it is, by the family of the source: [`Family::index`].
    owners: [OwnerOf; 2],
}

/// How the owner of a bucket is told from a source address: by numbers, because what is decided
/// by branches the kernel's verifier follows apart through all that comes after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
struct OwnerOf {
    kind: OwnerKind,
    reserved: u32,
    mask_high: u64,
    mask_low: u64,
}

impl OwnerOf {
    const fn new(id_format: IdFormat, family: Family) -> Self {
        let all = Address {
            family,
            high: u64::MAX,
            low: u64::MAX,
        };
        let (kind, Address { high, low, .. }) = match id_format {
            IdFormat::RegId => (OwnerKind::SUBSCRIBER, all.masked(0)),
            IdFormat::Total => (OwnerKind::INTERFACE, all.masked(0)),
            IdFormat::IpAddress
            | IdFormat::Ipv4RangeCidr { .. }
            | IdFormat::Ipv6RangeCidr { .. } => {
                let length = match id_format.prefix_length(family) {
                    Some(length) => length,
                    None => 0,
                };
                (OwnerKind::of_range(family, length), all.masked(length))
            }
        };
        Self {
            kind,
            reserved: 0,
            mask_high: high,
            mask_low: low,
        }
    }
}

/// One token a packet: every packet that matches, or every one that opens a connection.
const PACKETS: u8 = 0;
/// One token a byte.
const BYTES: u8 = 1;

const SOURCE: u8 = 0;
const SUBSCRIBER: u8 = 1;
const INTERFACE: u8 = 2;

impl LimitEntry {
    /// The entry of a limit.
    #[must_use]
    pub const fn new(id: LimitId, id_format: IdFormat, cost: Cost) -> Self {
        Self {
            id: id.0,
            cost: match cost {
                Cost::Packets | Cost::NewConnections => PACKETS,
                Cost::Bytes => BYTES,
            },
            owner: match id_format {
                IdFormat::RegId => SUBSCRIBER,
                IdFormat::Total => INTERFACE,
                IdFormat::IpAddress
                | IdFormat::Ipv4RangeCidr { .. }
                | IdFormat::Ipv6RangeCidr { .. } => SOURCE,
            },
            reserved: 0,
            owners: [
                OwnerOf::new(id_format, Family::V4),
                OwnerOf::new(id_format, Family::V6),
            ],
        }
    }

    /// The bucket that packets from `source`, which is of `class`, are charged to. `family` is the
    /// [`Family::index`] of the source, handed over so that it can be a number of which the
    /// kernel's verifier knows nothing.
    #[must_use]
    #[inline(always)]
    pub const fn bucket(
        &self,
        shape: &Shape,
        class: &Class,
        source: &Address,
        family: usize,
    ) -> BucketKey {
        let owner = &self.owners[family & 1];
        let high = match self.owner {
            SUBSCRIBER => class.subscriber,
            INTERFACE => shape.interface as u64,
            _ => source.high & owner.mask_high,
        };
        BucketKey::new(
            LimitId(self.id),
            owner.kind,
            high,
            source.low & owner.mask_low,
        )
    }

    /// The tokens that a packet which the limit counts costs.
    #[must_use]
    #[inline(always)]
    pub const fn cost_of(&self, facts: &Facts) -> u64 {
        match self.cost {
            BYTES => facts.length,
            _ => 1,
        }
    }
}
