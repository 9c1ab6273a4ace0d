//! The compiled policy, in arrays that this instance of the program alone reads.
//!
//! The loader sizes them. A new policy comes with a new instance of the program and new
//! arrays, so no packet is judged by a mixture of two policies.

use aya_ebpf::{bindings::BPF_F_RDONLY_PROG, btf_maps::Array, macros::btf_map};
use limiter_common::{
    address::{Address, Family},
    charge::{self, Charge, Match, Packet},
    gcra::Gcra,
    limit::MAX_LIMITS,
    policy::{self, Class, LimitEntry, Range, Tables},
};

use crate::globals;

const READ_ONLY: usize = BPF_F_RDONLY_PROG as usize;

#[btf_map]
static LIMITS: Array<LimitEntry, { MAX_LIMITS as usize }, READ_ONLY> = Array::new();

#[btf_map]
static RANGES_V4: Array<Range, 1, READ_ONLY> = Array::new();

#[btf_map]
static RANGES_V6: Array<Range, 1, READ_ONLY> = Array::new();

#[btf_map]
static CLASSES: Array<Class, 1, READ_ONLY> = Array::new();

#[btf_map]
static OVERRIDES: Array<Gcra, 1, READ_ONLY> = Array::new();

pub(crate) struct MapTables;

/// [`policy::search`], as a global function of the BPF object: the verifier walks those once,
/// for any arguments, and not once for each call and what it knows there.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_search(high: u64, low: u64, version: u32) -> u32 {
    let family = if version == Family::V6 as u32 {
        Family::V6
    } else {
        Family::V4
    };
    policy::search(&MapTables, Address { family, high, low })
}

/// [`charge::prepare`], returning a [`Match`] as its number; a global function likewise.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_prepare(packet: *const Packet, slot: u32, charge: *mut Charge) -> u32 {
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else; the two
    // are different variables of the one caller.
    let (Some(packet), Some(charge)) = (unsafe { packet.as_ref() }, unsafe { charge.as_mut() })
    else {
        return Match::None as u32;
    };
    charge::prepare(&MapTables, packet, slot, charge) as u32
}

const MATCH_CHARGE: u32 = Match::Charge as u32;
const MATCH_LARGER_THAN_BURST: u32 = Match::LargerThanBurst as u32;

impl Tables for MapTables {
    #[inline(always)]
    fn limit_count(&self) -> u32 {
        globals::LIMIT_COUNT.load()
    }

    #[inline(always)]
    fn limit(&self, slot: u32) -> Option<&LimitEntry> {
        LIMITS.get(slot)
    }

    #[inline(always)]
    fn range_count(&self, family: Family) -> u32 {
        match family {
            Family::V4 => globals::RANGE_COUNT_V4.load(),
            Family::V6 => globals::RANGE_COUNT_V6.load(),
        }
    }

    #[inline(always)]
    fn range(&self, family: Family, index: u32) -> Option<&Range> {
        match family {
            Family::V4 => RANGES_V4.get(index),
            Family::V6 => RANGES_V6.get(index),
        }
    }

    #[inline(always)]
    fn class(&self, index: u32) -> Option<&Class> {
        CLASSES.get(index)
    }

    #[inline(always)]
    fn override_at(&self, index: u32) -> Option<&Gcra> {
        OVERRIDES.get(index)
    }

    #[inline(always)]
    fn class_index(&self, address: Address) -> u32 {
        limiter_search(address.high, address.low, address.family as u32)
    }

    #[inline(always)]
    fn prepare(&self, packet: &Packet, slot: u32, charge: &mut Charge) -> Match {
        match limiter_prepare(packet, slot, charge) {
            MATCH_CHARGE => Match::Charge,
            MATCH_LARGER_THAN_BURST => Match::LargerThanBurst,
            _ => Match::None,
        }
    }

    #[inline(always)]
    fn opaque(&self, value: u64) -> u64 {
        value ^ globals::zero()
    }
}
