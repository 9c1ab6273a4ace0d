//! Sizes and fills the maps with a policy's tables; each program has its own.

use aya::{Ebpf, EbpfLoader};
use limiter_common::policy::NameSlot;
use limiter_policy::policy::CompiledPolicy;

use super::{DatapathError, array, buckets::UNITS};

/// Has a loader make the maps in the sizes that a policy needs. `names`: the slots of the policy's
/// names.
pub(super) fn size(loader: &mut EbpfLoader<'_>, policy: &CompiledPolicy, names: &[NameSlot]) {
    loader
        .map_max_entries("NODES", entries(policy.nodes.len()))
        .map_max_entries("STRETCHES", entries(policy.stretches.len()))
        .map_max_entries("CHILDREN", entries(policy.children.len()))
        .map_max_entries("CLASSES", entries(policy.classes.len()))
        .map_max_entries("RATES", entries(policy.rates.len()))
        .map_max_entries("RESERVES", entries(policy.reserves.len()))
        .map_max_entries("MASKS", entries(policy.masks.len()))
        .map_max_entries("NAMES", entries(names.len()))
        .map_max_entries("SIEVES", entries(policy.sieves.len()))
        .map_max_entries("SIEVE_USES", entries(policy.sieve_uses.len()));
}

pub(super) fn write(
    ebpf: &mut Ebpf,
    policy: &CompiledPolicy,
    names: &[NameSlot],
) -> Result<(), DatapathError> {
    array::write(ebpf, "LIMITS", &policy.limits)?;
    array::write(ebpf, "NODES", &policy.nodes)?;
    array::write(ebpf, "STRETCHES", &policy.stretches)?;
    array::write(ebpf, "CHILDREN", &policy.children)?;
    array::write(ebpf, "CLASSES", &policy.classes)?;
    array::write(ebpf, "RATES", &policy.rates)?;
    array::write(ebpf, "RESERVES", &policy.reserves)?;
    array::write_at(ebpf, UNITS, policy.units.iter())?;
    array::write(ebpf, "MASKS", &policy.masks)?;
    array::write(ebpf, "NAMES", names)?;
    array::write(ebpf, "SIEVES", &policy.sieves)?;
    array::write(ebpf, "SIEVE_USES", &policy.sieve_uses)
}

/// An array's size, at least one entry.
fn entries(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX).max(1)
}
