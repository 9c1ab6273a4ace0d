//! Compiles automatic rates.

use limiter_common::policy::LimitEntry;

use super::limit_sets::set_of;
use crate::policy::{Limit, automatic::interval_of};

pub(super) fn limits(limits: &[Limit]) -> u64 {
    set_of(limits, |limit| limit.ceiling.is_some())
}

pub(super) fn entry(limit: &Limit) -> LimitEntry {
    let entry = LimitEntry::of_names(limit.id, limit.id_format, limit.name_kind(), limit.cost);
    let of_ceiling = limit.ceiling.map(interval_of);
    // An interval is at most a second.
    match of_ceiling.and_then(|interval| u32::try_from(interval).ok()) {
        Some(interval) => entry.with_interval_of_ceiling(interval),
        None => entry,
    }
}
