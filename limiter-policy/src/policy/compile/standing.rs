//! Compiles the reserves of limits, and the limits that count each standing.

use limiter_common::{
    limit::Cost,
    standing::{Reserves, Standing},
    strategy::Parameters,
};

use super::limit_sets::set_of;
use crate::policy::Limit;

/// Returns the limits that reserve a part of their buckets.
pub(super) fn reserving(limits: &[Limit]) -> u64 {
    set_of(limits, Limit::reserves) & !reserving_connections(limits)
}

/// Returns the limits on connections that reserve some of them.
pub(super) fn reserving_connections(limits: &[Limit]) -> u64 {
    set_of(limits, |limit| {
        limit.reserves() && limit.cost == Cost::Connections
    })
}

/// Returns the limits that count packets of sources of each standing.
pub(super) fn of_each(limits: &[Limit]) -> [u64; Standing::COUNT] {
    Standing::ALL.map(|standing| {
        let others = |limit: &Limit| {
            let counted = &limit.matching.standing;
            !counted.is_empty() && !counted.contains(&standing)
        };
        !set_of(limits, others)
    })
}

/// Returns the reserves for each of `rated`, parameters with the index of their limit; empty if no limit
/// reserves.
pub(super) fn reserves(limits: &[Limit], rated: &[(u32, Parameters)]) -> Vec<Reserves> {
    if !limits.iter().any(Limit::reserves) {
        return Vec::new();
    }
    let all = rated.iter().map(|(limit_index, parameters)| {
        let limit = limits.get(*limit_index as usize);
        let reserve = limit.filter(|limit| limit.reserves())?.reserve?;
        Some(reserve.compiled(&parameters.gcra))
    });
    all.map(|reserves| reserves.unwrap_or(Reserves::NONE))
        .collect()
}
