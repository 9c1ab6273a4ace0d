//! The table of sets of limits: one for each protocol, one for each value of the TCP flags, and
//! those of ranges.

use std::collections::HashMap;

use limiter_common::{
    limit::Cost,
    packet::{FLAG_ACK, FLAG_SYN, PROTOCOL_TCP, PROTOCOLS_WITH_PORTS},
};

use super::{
    limit_sets::{needs_tcp, set_of},
    number::index,
};
use crate::policy::{Limit, TcpFlags};

/// The flags of TCP segments that open a connection.
const OPENS_CONNECTION: TcpFlags = TcpFlags {
    set: FLAG_SYN,
    clear: FLAG_ACK,
};

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

/// Returns the sets by protocol and by TCP flags.
fn by_number(limits: &[Limit]) -> Vec<u64> {
    let protocols = (0..=u8::MAX).map(|protocol| {
        set_of(limits, |limit| {
            let protocols = protocols(limit);
            protocols.is_empty() || protocols.contains(&protocol)
        })
    });
    let tcp_flags = (0..=u8::MAX).map(|flags| {
        set_of(limits, |limit| {
            tcp_flags(limit).all(|one| matches(one, flags))
        })
    });
    protocols.chain(tcp_flags).collect()
}

pub(super) fn matches_protocols(limits: &[Limit]) -> bool {
    limits.iter().any(|limit| !protocols(limit).is_empty())
}

pub(super) fn matches_tcp_flags(limits: &[Limit]) -> bool {
    limits.iter().any(needs_tcp)
}

/// Returns the protocols that a limit counts; empty: all.
///
/// They are the protocols that have the fields it matches on, since a later fragment reveals only
/// its protocol.
fn protocols(limit: &Limit) -> &[u8] {
    if !limit.matching.protocols.is_empty() {
        &limit.matching.protocols
    } else if limit.matching.tcp_flags.is_some() {
        &[PROTOCOL_TCP]
    } else if limit.matching.needs_ports() {
        &PROTOCOLS_WITH_PORTS
    } else {
        &[]
    }
}

/// Returns the conditions on a TCP segment's flags for a limit to count it.
fn tcp_flags(limit: &Limit) -> impl Iterator<Item = TcpFlags> {
    let opens_connection = (limit.cost == Cost::NewConnections).then_some(OPENS_CONNECTION);
    limit.matching.tcp_flags.into_iter().chain(opens_connection)
}

const fn matches(wanted: TcpFlags, flags: u8) -> bool {
    flags & wanted.set == wanted.set && flags & wanted.clear == 0
}
