//! The units that states count in, by number.

use aya_ebpf::{bindings::BPF_F_RDONLY_PROG, btf_maps::Array, macros::btf_map};
use limiter_common::unit::{KnownUnits, MAX_UNITS, Unit};

/// Of all policies whose buckets there are: as shared as the buckets.
#[btf_map]
static UNITS: Array<Unit, { MAX_UNITS as usize }, { BPF_F_RDONLY_PROG as usize }> = Array::new();

pub(super) struct MapUnits;

impl KnownUnits for MapUnits {
    #[inline(always)]
    fn unit(&self, number: u32) -> Option<&Unit> {
        UNITS.get(number)
    }
}
