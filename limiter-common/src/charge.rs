//! What one limit wants of one packet.

use crate::{
    bucket::BucketKey,
    gcra::{Change, Gcra, LargerThanBurst},
    packet::Facts,
    policy::{Class, Tables, parameters},
    ratio::Ratio,
};

/// A packet to be decided on: its facts, the class of its source, and the time.
///
/// Without padding, so that the kernel program can hand it to functions of its own.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Packet {
    /// What its headers say.
    pub facts: Facts,
    /// The class of its source.
    pub class: Class,
    /// When it arrived, in nanoseconds.
    pub now: u64,
}

impl Packet {
    /// Of which nothing is known yet. `zero` is 0, but not a constant: of constants the compiler
    /// would make a call to a loop over bytes, in BPF.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "0 is 0")]
    pub(crate) const fn unknown(zero: u64) -> Self {
        Self {
            facts: Facts::NONE,
            class: Class {
                applies: zero,
                overridden: zero,
                subscriber: zero,
                first_override: zero as u32,
                reserved: zero as u32,
            },
            now: zero,
        }
    }
}

const _: () = assert!(
    size_of::<Packet>() == size_of::<Facts>() + size_of::<Class>() + 8,
    "no padding"
);

/// What one limit wants of one packet: which bucket is to change, and how.
///
/// Without padding, so that the kernel program can hand it to functions of its own.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Charge {
    /// The bucket.
    pub key: BucketKey,
    /// The change.
    pub spend: Change,
    /// Converts the limit's ticks to nanoseconds.
    pub ns_per_tick: Ratio,
    /// When the packet arrived, in nanoseconds.
    pub now_ns: u64,
    /// Where the store looks for buckets of the owner [`Self::located`].
    pub place: u64,
    /// The kind of the owner of which `place` is; 0: of none yet.
    pub located: u32,
    /// The number of the limit's tick length.
    pub scale: u32,
}

const _: () = assert!(size_of::<Charge>() == 24 + 32 + 16 + 3 * 8, "no padding");

impl Charge {
    /// Of no limit.
    pub const NONE: Self = Self {
        key: BucketKey::NONE,
        spend: Change::NONE,
        ns_per_tick: Ratio::ONE,
        now_ns: 0,
        place: 0,
        located: 0,
        scale: 0,
    };
}

/// What one limit that counts a packet has to do with it.
#[derive(Clone, Copy, Debug)]
pub struct Account<'a> {
    /// The bucket.
    pub key: BucketKey,
    /// The bucket's parameters.
    pub gcra: &'a Gcra,
    /// The tokens that the packet costs.
    pub cost: u64,
}

/// The account of a packet with the limit in `slot`, which counts it.
#[inline(always)]
pub fn account<'a, T: Tables>(tables: &'a T, packet: &Packet, slot: u32) -> Option<Account<'a>> {
    let limit = tables.limit(slot)?;
    let gcra = parameters(tables, limit, &packet.class, slot)?;
    Some(Account {
        key: limit.bucket(tables.shape(), &packet.class, &packet.facts.source),
        gcra,
        cost: limit.cost_of(&packet.facts),
    })
}

/// How the preparation of a [`Charge`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Prepared {
    /// It is to be spent.
    Charge,
    /// The packet costs more than a full bucket holds.
    LargerThanBurst,
    /// There is no such limit: the policy's compiler excludes it.
    Nothing,
}

/// Prepares what the limit in `slot` wants of a packet that it counts.
#[inline(always)]
pub fn prepare<T: Tables>(tables: &T, packet: &Packet, slot: u32, charge: &mut Charge) -> Prepared {
    let Some(Account { key, gcra, cost }) = account(tables, packet, slot) else {
        return Prepared::Nothing;
    };
    match gcra.spend(gcra.ticks(packet.now), cost) {
        Err(LargerThanBurst) => Prepared::LargerThanBurst,
        Ok(spend) => {
            charge.key = key;
            charge.spend = spend;
            charge.ns_per_tick = gcra.ns_per_tick;
            charge.now_ns = packet.now;
            charge.scale = gcra.scale;
            Prepared::Charge
        }
    }
}
