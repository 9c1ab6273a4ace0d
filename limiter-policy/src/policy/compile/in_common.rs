//! Limits whose budget a fleet has in common.

use limiter_common::{limit::IdFormat, policy::LimitEntry};

use super::limit_sets::set_of;
use crate::policy::Limit;

/// Returns the limits whose budget a fleet has in common.
pub(super) fn limits(limits: &[Limit]) -> u64 {
    set_of(limits, |limit| limit.fleet_nodes.is_some())
}

/// Returns the entry of the same limit with the floor of a node, if a fleet has its budget in common.
pub(super) fn with_floor(entry: LimitEntry, limit: &Limit) -> LimitEntry {
    let Some(floor) = limit.floor() else {
        return entry;
    };
    let entry = entry.with_floor(floor);
    if limit.id_format == IdFormat::Total {
        entry.of_host()
    } else {
        entry
    }
}
