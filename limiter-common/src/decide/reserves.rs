//! The reserves of limits against the source of a packet.

use super::{
    Scratch,
    indices::{contains, limit_indices},
};
use crate::{policy::Tables, standing::Standing};

/// Returns the reserve that a packet from a source of that standing must leave at the limit at an
/// index: for a bucket, in ticks of its states; for a limit on connections, a number of
/// connections. The parameters are at `rate_index`.
#[inline(always)]
pub fn reserve_of<T: Tables>(
    tables: &T,
    limit_index: u32,
    rate_index: u32,
    standing: Standing,
) -> u64 {
    if !contains(tables.features().reserving_anything(), limit_index) {
        return 0;
    }
    match tables.reserves(rate_index) {
        Some(reserves) => reserves.from(standing),
        None => 0,
    }
}

/// Makes the current packet, which `limits` let pass, leave their reserves against unknown
/// sources; returns whether all of them still let it pass.
#[inline(always)]
pub fn passes_above_reserves<T: Tables, Location>(
    tables: &T,
    scratch: &mut Scratch<Location>,
    limits: u64,
) -> bool {
    for limit_index in limit_indices(tables) {
        if contains(limits, limit_index) && !passes_above_reserve(tables, scratch, limit_index) {
            return false;
        }
    }
    true
}

/// Returns whether one limit lets the packet pass above its reserve.
#[inline(always)]
pub fn passes_above_reserve<T: Tables, Location>(
    tables: &T,
    scratch: &mut Scratch<Location>,
    limit_index: u32,
) -> bool {
    let rate_index = scratch.packet.rate_index(tables, limit_index);
    let reserve = reserve_of(tables, limit_index, rate_index, Standing::Unknown);
    let plan = &mut scratch.charge(limit_index).plan;
    plan.reserve = reserve;
    plan.passes_above_own_reserve()
}
