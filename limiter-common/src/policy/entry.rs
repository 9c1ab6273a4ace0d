//! One limit as the datapath reads it.

use super::{Class, Shape};
use crate::{
    address::{Address, Family},
    bucket::BucketKey,
    gcra::Gcra,
    limit::{Cost, IdFormat, LimitId},
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
    ipv4_prefix_length: u8,
    ipv6_prefix_length: u8,
    /// 1: `default` holds for every id without an override; 0: only overrides count.
    has_default: u8,
    reserved: u8,
    default: Gcra,
}

/// One token a packet: every packet that matches, or every one that opens a connection.
const PACKETS: u8 = 0;
/// One token a byte.
const BYTES: u8 = 1;

const SOURCE: u8 = 0;
const SUBSCRIBER: u8 = 1;
const INTERFACE: u8 = 2;

impl LimitEntry {
    /// The entry of a limit; without `default`, only its overrides are limited.
    #[must_use]
    pub const fn new(id: LimitId, id_format: IdFormat, cost: Cost, default: Option<Gcra>) -> Self {
        const fn or_zero(length: Option<u8>) -> u8 {
            match length {
                Some(length) => length,
                None => 0,
            }
        }
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
            ipv4_prefix_length: or_zero(id_format.prefix_length(Family::V4)),
            ipv6_prefix_length: or_zero(id_format.prefix_length(Family::V6)),
            has_default: default.is_some() as u8,
            reserved: 0,
            default: match default {
                Some(gcra) => gcra,
                None => Gcra::NONE,
            },
        }
    }

    /// The bucket that packets from `source`, which is of `class`, are charged to.
    #[must_use]
    #[inline(always)]
    pub const fn bucket(&self, shape: &Shape, class: &Class, source: &Address) -> BucketKey {
        let id = LimitId(self.id);
        match self.owner {
            SUBSCRIBER => BucketKey::of_subscriber(id, class.subscriber),
            INTERFACE => BucketKey::of_interface(id, shape.interface),
            _ => BucketKey::of_source(
                id,
                *source,
                match source.family {
                    Family::V4 => self.ipv4_prefix_length,
                    Family::V6 => self.ipv6_prefix_length,
                },
            ),
        }
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

    /// The parameters of ids without an override.
    #[must_use]
    #[inline(always)]
    pub const fn default(&self) -> Option<&Gcra> {
        if self.has_default == 1 {
            Some(&self.default)
        } else {
            None
        }
    }
}
