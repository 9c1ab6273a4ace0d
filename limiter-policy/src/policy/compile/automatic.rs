//! Limits whose rate moves while the policy stays: automatic ones, and parts of what a fleet has in common.

use limiter_common::policy::LimitEntry;

use super::limit_sets::set_of;
use crate::policy::{Limit, automatic::interval_of};

/// Returns the limits whose rate moves.
pub(super) fn limits(limits: &[Limit]) -> u64 {
    set_of(limits, Limit::has_moving_rate)
}

/// Returns the entry of a limit.
pub(super) fn entry(limit: &Limit) -> LimitEntry {
    let entry = LimitEntry::of_names(limit.id, limit.id_format, limit.name_kind(), limit.cost);
    let in_common = limit.in_common();
    let entry = match in_common {
        Some(_) => entry.of_host(),
        None => entry,
    };
    let of_ceiling = match in_common {
        Some((whole, _)) => Some(whole),
        None => limit.ceiling.map(interval_of),
    };
    // An interval is at most a second.
    match of_ceiling.and_then(|interval| u32::try_from(interval).ok()) {
        Some(interval) => entry.with_interval_of_ceiling(interval),
        None => entry,
    }
}
