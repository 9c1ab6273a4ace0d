//! Divides each dimension (ports, destinations) into ranges, each with the set of limits that match its
//! values.

use std::collections::BTreeMap;

use limiter_common::{address::Family, limit::MAX_LIMITS};

use super::{
    index::Range,
    limit_sets::{bit, set_of},
    masks::MaskTable,
    sources::Block,
};
use crate::policy::{Limit, PortRange};

/// The values from the first to the last, inclusive.
type Values = (u128, u128);

pub(super) fn source_ports(limits: &[Limit], sets: &mut MaskTable) -> Vec<Range> {
    compile(limits, sets, |limit| ports(&limit.matching.source_ports))
}

pub(super) fn destination_ports(limits: &[Limit], sets: &mut MaskTable) -> Vec<Range> {
    compile(limits, sets, |limit| {
        ports(&limit.matching.destination_ports)
    })
}

pub(super) fn dns_types(limits: &[Limit], sets: &mut MaskTable) -> Vec<Range> {
    compile(limits, sets, |limit| {
        let types = limit.matching.dns.types.iter();
        let values: Vec<_> = types
            .map(|one| (u128::from(*one), u128::from(*one)))
            .collect();
        (!values.is_empty()).then_some(values)
    })
}

fn ports(ports: &[PortRange]) -> Option<Vec<Values>> {
    let values = |range: &PortRange| (u128::from(*range.start()), u128::from(*range.end()));
    (!ports.is_empty()).then(|| ports.iter().map(values).collect())
}

pub(super) fn destinations_v4(limits: &[Limit], sets: &mut MaskTable) -> Vec<Range> {
    compile(limits, sets, |limit| destinations(limit, Family::V4))
}

pub(super) fn destinations_v6(limits: &[Limit], sets: &mut MaskTable) -> Vec<Range> {
    compile(limits, sets, |limit| destinations(limit, Family::V6))
}

fn destinations(limit: &Limit, family: Family) -> Option<Vec<Values>> {
    let destinations = &limit.matching.destinations;
    (!destinations.is_empty()).then(|| {
        let blocks = destinations.iter().map(|prefix| Block::of(*prefix));
        blocks
            .filter(|block| block.family == family)
            .map(|block| (block.first, block.last))
            .collect()
    })
}

/// Returns the ranges, starting at 0; empty if all limits match every value. `matched` returns the blocks
/// that a limit matches; `None`: all values.
fn compile(
    limits: &[Limit],
    sets: &mut MaskTable,
    matched: impl Fn(&Limit) -> Option<Vec<Values>>,
) -> Vec<Range> {
    let everywhere = set_of(limits, |limit| matched(limit).is_none());
    // For each value, the limits with a block that starts there or has ended just before.
    let mut edges: BTreeMap<u128, Vec<(u32, i32)>> = BTreeMap::new();
    for (limit_index, limit) in (0..).zip(limits) {
        for (first, last) in matched(limit).into_iter().flatten() {
            edges.entry(first).or_default().push((limit_index, 1));
            if let Some(after) = last.checked_add(1) {
                edges.entry(after).or_default().push((limit_index, -1));
            }
        }
    }
    if everywhere == set_of(limits, |_| true) {
        return Vec::new();
    }
    edges.entry(0).or_default();
    let mut open = [0; MAX_LIMITS as usize];
    let mut set = everywhere;
    let mut ranges: Vec<Range> = Vec::new();
    for (start, changes) in edges {
        for (limit_index, change) in changes {
            open[limit_index as usize] += change;
            if open[limit_index as usize] > 0 {
                set |= bit(limit_index);
            } else {
                set &= !bit(limit_index);
            }
        }
        let value = sets.index_of(set);
        if ranges.last().is_none_or(|last| last.value != value) {
            ranges.push(Range { start, value });
        }
    }
    ranges
}
