//! The table of sets of limits: one for each protocol, for each value of the TCP flags and for each kind
//! of DNS message, and those of ranges.

use std::collections::HashMap;

use super::{
    limit_sets::{needs_tcp, set_of},
    number::index,
};
use crate::policy::Limit;

/// The numbers of kinds of DNS messages, with their flags.
const DNS_KINDS: u8 = 64;

/// Sets of limits, at the indices of [`limiter_common::policy::Masks`].
pub(super) struct Sets {
    table: Vec<u64>,
    /// The indices of the ranges' sets so far.
    indices: HashMap<u64, u32>,
}

impl Sets {
    pub(super) fn new(limits: &[Limit]) -> Self {
        Self {
            table: by_number(limits),
            indices: HashMap::new(),
        }
    }

    /// Returns the index of a range's set.
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

/// Returns the sets by protocol, by TCP flags and by the kind of a DNS message.
fn by_number(limits: &[Limit]) -> Vec<u64> {
    let protocols = (0..=u8::MAX).map(|protocol| {
        set_of(limits, |limit| {
            let protocols = limit.protocols();
            protocols.is_empty() || protocols.contains(&protocol)
        })
    });
    let tcp_flags = (0..=u8::MAX).map(|flags| set_of(limits, |limit| limit.counts_segment(flags)));
    let kinds =
        (0..DNS_KINDS).map(|kind| set_of(limits, |limit| limit.matching.dns.has_kind(kind)));
    protocols.chain(tcp_flags).chain(kinds).collect()
}

pub(super) fn matches_protocols(limits: &[Limit]) -> bool {
    limits.iter().any(|limit| !limit.protocols().is_empty())
}

pub(super) fn matches_tcp_flags(limits: &[Limit]) -> bool {
    limits.iter().any(needs_tcp)
}
