//! Compiles limits with `otherwise`, which count the packets that no other limit of their kind counts.

use limiter_common::policy::{FallbackLimits, MOST_OTHERWISE};

use super::limit_sets::set_of;
use crate::policy::{Limit, Mode};

/// Returns the kinds with such limits.
pub(super) fn kinds(limits: &[Limit]) -> [FallbackLimits; MOST_OTHERWISE] {
    let mut kinds = [FallbackLimits::NONE; MOST_OTHERWISE];
    let mut known = 0;
    let mut free = kinds.iter_mut();
    for limit in limits {
        if !limit.matching.otherwise || limit.mode == Mode::Off {
            continue;
        }
        let alike = set_of(limits, |other| {
            other.matching.otherwise && other.mode == limit.mode && other.is_of_kind(limit)
        });
        if alike & !known != 0
            && let Some(kind) = free.next()
        {
            known |= alike;
            let others = set_of(limits, |other| {
                // An observing limit must not change an enforcing one.
                let has_effect = other.mode == Mode::Enforce || other.mode == limit.mode;
                // Between limits by server name, the look-up of the name decides, later.
                let is_by_name = limit.counts_by_server_name() && other.counts_by_server_name();
                let is_other = !other.matching.otherwise && !is_by_name;
                is_other && has_effect && other.is_of_kind(limit)
            });
            *kind = FallbackLimits {
                limits: alike,
                others,
            };
        }
    }
    kinds
}
