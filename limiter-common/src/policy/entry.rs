//! One limit as the datapath reads it.

use crate::{
    address::Family,
    limit::{Cost, IdFormat, LimitId},
    owner::{BucketKey, Known, OwnerOf},
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
    /// What the number is of that names the owner: a [`NumberOf`](crate::limit::NumberOf) as its
    /// number; 0: the source's address names it.
    number: u8,
    reserved: u32,
    /// Whose bucket it is, by the family of the source: [`Family::index`].
    owners: [OwnerOf; 2],
}

/// One token a packet: every packet that matches, or every one that opens a connection.
const PACKETS: u8 = 0;
/// One token a byte.
const BYTES: u8 = 1;

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
            number: match id_format.number() {
                Some(number) => number as u8,
                None => 0,
            },
            reserved: 0,
            owners: [
                OwnerOf::new(id_format, Family::V4),
                OwnerOf::new(id_format, Family::V6),
            ],
        }
    }

    /// The bucket that a packet is charged to of which that is known. `family` is the
    /// [`Family::index`] of the source, handed over so that it can be a number of which the
    /// kernel's verifier knows nothing.
    #[must_use]
    #[inline(always)]
    pub const fn bucket(&self, known: &Known<'_>, family: usize) -> BucketKey {
        self.owners[family & 1].key(LimitId(self.id), self.number, known)
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
