//! The units that states count in, by number.

use aya_ebpf::{bindings::BPF_F_RDONLY_PROG, btf_maps::Array, macros::btf_map};
use limiter_common::unit::{MAX_UNITS, Unit, UnitTable};

/// The units of all policies with buckets in these maps: shared just like the buckets.
#[btf_map]
static UNITS: Array<Unit, { MAX_UNITS as usize }, { BPF_F_RDONLY_PROG as usize }> = Array::new();

pub(super) struct MapUnits;

impl UnitTable for MapUnits {
    #[inline(always)]
    fn unit(&self, number: u32) -> Option<&Unit> {
        UNITS.get(number)
    }

    #[inline(always)]
    fn exchange(&self, from: u32, to: u32, now_ns: u64, state: u64) -> u64 {
        limiter_exchange_units(from, to, now_ns, state)
    }

    #[inline(always)]
    fn weight(&self, unit: u32, now_ns: u64, state: u64) -> u64 {
        limiter_weight(unit, now_ns, state)
    }
}

/// The same units, without calls.
struct InlinedUnits;

impl UnitTable for InlinedUnits {
    #[inline(always)]
    fn unit(&self, number: u32) -> Option<&Unit> {
        UNITS.get(number)
    }
}

/// Implements [`UnitTable::exchange`].
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_exchange_units(from: u32, to: u32, now_ns: u64, state: u64) -> u64 {
    InlinedUnits.exchange(from, to, now_ns, state)
}

/// Implements [`UnitTable::weight`].
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_weight(unit: u32, now_ns: u64, state: u64) -> u64 {
    InlinedUnits.weight(unit, now_ns, state)
}
