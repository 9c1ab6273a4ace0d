//! The compiled policy, in arrays that only this instance of the program reads.
//!
//! The loader sizes them. A new policy comes with a new instance of the program and new arrays, so no packet meets a
//! mixture of two policies.

use aya_ebpf::{
    bindings::{BPF_F_MMAPABLE, BPF_F_RDONLY_PROG},
    btf_maps::Array,
    macros::btf_map,
};
use limiter_common::{
    key::BucketKey,
    limit::{LimitId, MAX_LIMIT_IDS, MAX_LIMITS},
    name_hash::NameKeys,
    policy::NameSlot,
    policy::{self, Child, Class, Features, LimitEntry, Masks, Node, Stretch, Tables},
    sieve::{Sieve, SieveUse},
    standing::Reserves,
    strategy::{
        Parameters,
        gcra::{CurrentRate, Parts},
    },
};

use crate::{globals, key_shares};

const READ_ONLY: usize = BPF_F_RDONLY_PROG as usize;

#[btf_map]
static LIMITS: Array<LimitEntry, { MAX_LIMITS as usize }, READ_ONLY> = Array::new();

#[btf_map]
static NODES: Array<Node, 1, READ_ONLY> = Array::new();

/// Mappable, because such an array starts at a page, and so two stretches are a cache line.
#[btf_map]
static STRETCHES: Array<Stretch, 1, { READ_ONLY | BPF_F_MMAPABLE as usize }> = Array::new();

#[btf_map]
static CHILDREN: Array<Child, 1, READ_ONLY> = Array::new();

#[btf_map]
static CLASSES: Array<Class, 2, READ_ONLY> = Array::new();

#[btf_map]
static RATES: Array<Parameters, 1, READ_ONLY> = Array::new();

#[btf_map]
static RESERVES: Array<Reserves, 1, READ_ONLY> = Array::new();

#[btf_map]
static MASKS: Array<u64, { Masks::RANGES as usize }, READ_ONLY> = Array::new();

/// Mappable, because such an array starts at a page, and so two slots are a cache line.
#[btf_map]
static NAMES: Array<NameSlot, 1, { READ_ONLY | BPF_F_MMAPABLE as usize }> = Array::new();

#[btf_map]
static SIEVES: Array<Sieve, 1, READ_ONLY> = Array::new();

#[btf_map]
static SIEVE_USES: Array<SieveUse, 1, READ_ONLY> = Array::new();

/// The current rates of limits with automatic rates, and the shares of shared limits, by interned id. All instances
/// share it.
#[btf_map]
static CURRENT_RATES: Array<u64, { MAX_LIMIT_IDS as usize }, READ_ONLY> = Array::new();

pub(crate) struct MapTables;

/// Calls [`policy::descend`]. It is a global function of the BPF object: the verifier walks it once, for any arguments,
/// not once for each call and the values known there.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_descend(node: u32, high: u64, low: u64) -> u32 {
    policy::descend(&MapTables, node, high, low)
}

/// Calls [`policy::without_otherwise`]; a global function like the one above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_without_otherwise(matched: u64) -> u64 {
    policy::without_otherwise(&globals::features().otherwise, matched)
}

impl Tables for MapTables {
    #[inline(always)]
    fn features(&self) -> &Features {
        globals::features()
    }

    #[inline(always)]
    fn limit(&self, limit_index: u32) -> Option<&LimitEntry> {
        LIMITS.get(limit_index)
    }

    #[inline(always)]
    fn node(&self, index: u32) -> Option<&Node> {
        NODES.get(index)
    }

    #[inline(always)]
    fn stretch(&self, index: u32) -> Option<&Stretch> {
        STRETCHES.get(index)
    }

    #[inline(always)]
    fn child(&self, index: u32) -> Option<&Child> {
        CHILDREN.get(index)
    }

    #[inline(always)]
    fn class(&self, index: u32) -> Option<&Class> {
        CLASSES.get(index)
    }

    #[inline(always)]
    fn rate(&self, index: u32) -> Option<&Parameters> {
        RATES.get(index)
    }

    #[inline(always)]
    fn reserves(&self, index: u32) -> Option<&Reserves> {
        RESERVES.get(index)
    }

    #[inline(always)]
    fn current_rate(&self, limit: LimitId) -> CurrentRate {
        match CURRENT_RATES.get_ptr(u32::from(limit.0)) {
            // SAFETY: an element of the map, an aligned word. Volatile, because userspace writes it
            // meanwhile.
            Some(word) => CurrentRate(unsafe { word.read_volatile() }),
            // Never happens: the map has an element for each id.
            None => CurrentRate(0),
        }
    }

    #[inline(always)]
    fn key_share(&self, bucket: &BucketKey, wanted: u64, now_ns: u64) -> Option<Parts> {
        Parts::new(key_shares::share(bucket, wanted, now_ns))
    }

    #[inline(always)]
    fn record_demand(&self, bucket: &BucketKey) {
        key_shares::record_demand(bucket);
    }

    #[inline(always)]
    fn mask(&self, index: u32) -> Option<&u64> {
        MASKS.get(index)
    }

    #[inline(always)]
    fn name_keys(&self) -> &NameKeys {
        globals::name_keys()
    }

    #[inline(always)]
    fn name(&self, index: u32) -> Option<&NameSlot> {
        NAMES.get(index)
    }

    #[inline(always)]
    fn sieve(&self, index: u32) -> Option<&Sieve> {
        SIEVES.get(index)
    }

    #[inline(always)]
    fn sieve_use(&self, index: u32) -> Option<&SieveUse> {
        SIEVE_USES.get(index)
    }

    #[inline(always)]
    fn descend(&self, node: u32, high: u64, low: u64) -> u32 {
        limiter_descend(node, high, low)
    }

    #[inline(always)]
    fn without_otherwise(&self, matched: u64) -> u64 {
        limiter_without_otherwise(matched)
    }

    #[inline(always)]
    fn opaque(&self, value: u64) -> u64 {
        value ^ globals::zero()
    }
}
