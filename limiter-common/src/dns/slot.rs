//! The table of a policy's names.

use super::NameLoops;
use crate::policy::Tables;

/// The most slots that a look-up reads.
pub const MOST_PROBES: u32 = 16;

/// Returns the index of the slot of a hash, or `u32::MAX` if the policy does not have the name.
///
/// Most look-ups end at the first slot, so they call no function.
#[must_use]
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the lowest bits are meant")]
pub fn find_slot<T: Tables, L: NameLoops>(tables: &T, hash: u64, loops: &L) -> u32 {
    let hash = hash.max(1);
    let index = hash as u32 & tables.features().name_slots.wrapping_sub(1);
    match tables.name(index) {
        Some(slot) if slot.hash == hash => index,
        Some(slot) if slot.hash != 0 => loops.probe_further(tables, hash),
        _ => u32::MAX,
    }
}

/// Continues [`find_slot`] from the second slot on.
#[must_use]
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the lowest bits are meant")]
pub fn probe_further<T: Tables>(tables: &T, hash: u64) -> u32 {
    let mask = tables.features().name_slots.wrapping_sub(1);
    // The verifier needs a constant bound.
    for probe in 1..MOST_PROBES {
        let index = (hash as u32).wrapping_add(probe) & mask;
        let Some(slot) = tables.name(index) else {
            break;
        };
        if slot.hash == hash {
            return index;
        }
        if slot.hash == 0 {
            break;
        }
    }
    u32::MAX
}
