//! The table of a policy's names.

use crate::policy::Tables;

/// The most slots that a look-up reads.
pub const MOST_PROBES: u32 = 16;

/// Returns the index of the slot of a hash; `u32::MAX`: the policy does not have the name.
#[must_use]
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the lowest bits are meant")]
pub fn find_slot<T: Tables>(tables: &T, hash: u64) -> u32 {
    let mask = tables.shape().name_slots.wrapping_sub(1);
    let hash = hash.max(1);
    // The verifier needs a constant bound.
    for probe in 0..MOST_PROBES {
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
