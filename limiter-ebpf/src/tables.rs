//! The compiled policy, in arrays that this instance of the program alone reads.
//!
//! The loader sizes them. A new policy comes with a new instance of the program and new
//! arrays, so no packet is judged by a mixture of two policies.

use aya_ebpf::{bindings::BPF_F_RDONLY_PROG, btf_maps::Array, macros::btf_map};
use limiter_common::{
    address::Family,
    gcra::Gcra,
    limit::MAX_LIMITS,
    policy::{Class, LimitEntry, Range, Tables},
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
    fn opaque(&self, value: u64) -> u64 {
        value ^ globals::zero()
    }
}
