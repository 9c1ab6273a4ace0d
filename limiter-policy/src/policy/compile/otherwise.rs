//! Limits for what no other limit of their kind counts.

use limiter_common::policy::{MOST_OTHERWISE, Otherwise};

use super::limit_sets::set_of;
use crate::policy::{Limit, Mode};

/// Returns the kinds with such limits.
pub(super) fn kinds(limits: &[Limit]) -> [Otherwise; MOST_OTHERWISE] {
    let mut kinds = [Otherwise::NONE; MOST_OTHERWISE];
    let mut known = 0;
    let mut free = kinds.iter_mut();
    for limit in limits {
        let of_kind = |otherwise| {
            set_of(limits, |other| {
                other.mode != Mode::Off
                    && other.matching.otherwise == otherwise
                    && other.is_of_kind(limit)
            })
        };
        let limits = of_kind(true);
        if limit.matching.otherwise
            && limits & !known != 0
            && let Some(kind) = free.next()
        {
            known |= limits;
            *kind = Otherwise {
                limits,
                others: of_kind(false),
            };
        }
    }
    kinds
}
