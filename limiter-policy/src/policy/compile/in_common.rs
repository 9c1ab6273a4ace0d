//! Compiles shared limits (`scope: fleet`).

use limiter_common::{limit::IdFormat, policy::LimitEntry};

use super::limit_sets::set_of;
use crate::policy::Limit;

pub(super) fn limits(limits: &[Limit]) -> u64 {
    set_of(limits, |limit| limit.fleet_nodes.is_some())
}

/// Returns a limit's entry. A shared limit's entry gets this node's minimum share.
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
