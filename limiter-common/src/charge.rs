//! What one limit wants of one packet.

use crate::{
    address::{Address, Family},
    bucket::BucketKey,
    gcra::{Change, LargerThanBurst},
    limit::LimitId,
    packet::Facts,
    policy::{Class, Tables, parameters},
    ratio::Ratio,
};

/// A packet to be decided on: its facts, the class of its source, and the time.
///
/// Flat and without padding, so that the kernel program can hand it to functions of its own.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Packet {
    source_high: u64,
    source_low: u64,
    length: u64,
    now: u64,
    class: Class,
    version: u32,
    opens_connection: u32,
}

const _: () = assert!(size_of::<Packet>() == 56, "no padding");

impl Packet {
    /// A packet that arrives at `now` nanoseconds.
    #[inline(always)]
    pub(crate) const fn new(facts: &Facts, class: Class, now: u64) -> Self {
        Self {
            source_high: facts.source.high,
            source_low: facts.source.low,
            length: facts.length,
            now,
            class,
            version: facts.source.family as u32,
            opens_connection: facts.opens_connection as u32,
        }
    }

    #[inline(always)]
    const fn facts(&self) -> Facts {
        Facts {
            source: Address {
                family: if self.version == Family::V6 as u32 {
                    Family::V6
                } else {
                    Family::V4
                },
                high: self.source_high,
                low: self.source_low,
            },
            length: self.length,
            opens_connection: self.opens_connection != 0,
        }
    }
}

/// What one limit wants of one packet: which bucket is to change, and how.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Charge {
    /// The bucket.
    pub key: BucketKey,
    /// The change.
    pub spend: Change,
    /// Converts the limit's ticks to nanoseconds.
    pub ns_per_tick: Ratio,
}

impl Charge {
    /// Of no limit.
    pub const NONE: Self = Self {
        key: BucketKey::new(LimitId(0), Address::v4([0; 4]), 0),
        spend: Change::NONE,
        ns_per_tick: Ratio::ONE,
    };
}

/// Whether a limit wants anything of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Match {
    /// No: it is for other sources, or counts other packets.
    None,
    /// The charge that was prepared.
    Charge,
    /// More than a full bucket holds.
    LargerThanBurst,
}

/// Prepares what the limit in `slot` wants of the packet.
#[inline(always)]
pub fn prepare<T: Tables>(tables: &T, packet: &Packet, slot: u32, charge: &mut Charge) -> Match {
    let facts = packet.facts();
    let Some(limit) = tables.limit(slot) else {
        return Match::None;
    };
    let (Some(prefix_length), Some(cost), Some(gcra)) = (
        limit.prefix_length(facts.source.family),
        limit.cost_of(&facts),
        parameters(tables, limit, packet.class, slot),
    ) else {
        return Match::None;
    };
    match gcra.spend(gcra.ticks(packet.now), cost) {
        Err(LargerThanBurst) => Match::LargerThanBurst,
        Ok(spend) => {
            *charge = Charge {
                key: BucketKey::new(LimitId(limit.id), facts.source, prefix_length),
                spend,
                ns_per_tick: gcra.ns_per_tick,
            };
            Match::Charge
        }
    }
}
