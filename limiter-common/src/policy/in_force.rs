//! The current rate or share of limits that change while the policy stays.

use super::Tables;
use crate::{
    key::BucketKey,
    limit::LimitId,
    strategy::gcra::{Gcra, Parts},
};

/// Returns the emission interval in force at the time `now_ns`, in nanoseconds, of the limit at an
/// index with an automatic rate; `at_floor` are its parameters at its floor.
#[inline(always)]
pub fn interval_in_force<T: Tables>(
    tables: &T,
    limit_index: u32,
    at_floor: &Gcra,
    now_ns: u64,
) -> u64 {
    match tables.limit(limit_index) {
        Some(limit) => {
            let rate = tables.current_rate(LimitId(limit.id));
            limit.interval_in_force(rate, at_floor.emission_interval, now_ns)
        }
        // The policy compiler rules this out.
        None => at_floor.emission_interval,
    }
}

/// Returns the share in force at the time `now_ns` of a bucket of the shared limit at an index, and
/// counts the tokens that a packet wants of it.
#[inline(always)]
pub fn share_in_force<T: Tables>(
    tables: &T,
    limit_index: u32,
    bucket: &BucketKey,
    wanted: u64,
    now_ns: u64,
) -> Parts {
    let own = tables.key_share(bucket, wanted, now_ns);
    match tables.limit(limit_index) {
        Some(limit) => limit.share_in_force(own),
        // The policy compiler rules this out.
        None => Parts::LEAST,
    }
}
