//! Compiles shared limits (`scope: fleet`).

use limiter_common::{limit::IdFormat, policy::LimitEntry};

use super::limit_sets::set_of;
use crate::policy::Limit;

pub(super) fn limits(limits: &[Limit]) -> u64 {
    set_of(limits, |limit| limit.fleet_nodes.is_some())
}

/// Returns a limit's entry. A shared limit's entry gets this node's minimum share.
pub(super) fn with_minimum_share(entry: LimitEntry, limit: &Limit) -> LimitEntry {
    let Some(minimum_share) = limit.minimum_share() else {
        return entry;
    };
    let entry = entry.with_minimum_share(minimum_share);
    if limit.id_format == IdFormat::Total {
        entry.of_host()
    } else {
        entry
    }
}
