//! The table of sets of limits: one for each protocol, each kind of TCP segment and ICMP message, and each
//! kind of DNS message; then the sets for ranges.

use std::collections::HashMap;

use limiter_common::packet::PacketKind;

use super::{
    bounds::index,
    limit_sets::{needs_tcp, set_of},
};
use crate::policy::{Limit, Match};

/// The number of kinds of DNS messages, with their flags.
const DNS_KINDS: u8 = 64;

/// Sets of limits, at the indices of [`limiter_common::policy::Masks`].
pub(super) struct MaskTable {
    table: Vec<u64>,
    /// The index of each set for ranges.
    indices: HashMap<u64, u32>,
}

impl MaskTable {
    pub(super) fn new(limits: &[Limit]) -> Self {
        Self {
            table: by_number(limits),
            indices: HashMap::new(),
        }
    }

    pub(super) fn index_of(&mut self, set: u64) -> u32 {
        *self.indices.entry(set).or_insert_with(|| {
            self.table.push(set);
            index(self.table.len() - 1)
        })
    }

    pub(super) fn into_table(self) -> Vec<u64> {
        self.table
    }
}

/// Returns the sets by protocol, by the [kind of a packet](PacketKind) and by that of a DNS message.
fn by_number(limits: &[Limit]) -> Vec<u64> {
    let protocols = (0..=u8::MAX).map(|protocol| {
        set_of(limits, |limit| {
            let protocols = limit.protocols();
            protocols.is_empty() || protocols.contains(&protocol)
        })
    });
    let segments = (0..=u8::MAX).map(|flags| set_of(limits, |limit| limit.counts_segment(flags)));
    let messages = [
        (Match::ICMP, false),
        (Match::ICMPV6, false),
        (Match::ICMPV6, true),
    ];
    let messages = messages.into_iter().flat_map(|(protocol, on_link)| {
        (0..=u8::MAX).map(move |number| {
            let is_discovery = on_link && PacketKind::NEIGHBOUR_DISCOVERY.contains(&number);
            set_of(limits, |limit| {
                limit.counts_message(protocol, number, is_discovery)
            })
        })
    });
    let kinds =
        (0..DNS_KINDS).map(|kind| set_of(limits, |limit| limit.matching.dns.has_kind(kind)));
    protocols
        .chain(messages)
        .chain(segments)
        .chain(kinds)
        .collect()
}

pub(super) fn matches_protocols(limits: &[Limit]) -> bool {
    limits.iter().any(|limit| !limit.protocols().is_empty())
}

pub(super) fn matches_tcp_flags(limits: &[Limit]) -> bool {
    limits.iter().any(needs_tcp)
}

pub(super) fn matches_icmp_types(limits: &[Limit]) -> bool {
    let mut limits = limits.iter();
    limits.any(|limit| !limit.matching.icmp_types.is_empty())
}
