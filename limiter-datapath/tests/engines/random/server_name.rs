//! Server names that connections ask for, and matches of policies for them.

use limiter_common::packet::{Facts, Transport};
use limiter_policy::policy::{DnsName, NamePattern};
use proptest::{prelude::*, sample::subsequence};

use super::question::{NAMES, name_of, names_of};
use crate::server_name::ConnectionName;

/// The known name of a segment's connection.
pub(crate) fn server_name(facts: &Facts) -> ConnectionName {
    let ports = [facts.source_port, facts.destination_port];
    // No connection has port 0, but the ports read from a later fragment may be 0.
    if facts.transport != Transport::Tcp || ports.contains(&0) {
        return ConnectionName::Nothing;
    }
    let named = &NAMES[1..];
    let number = u64::from(ports[0] ^ ports[1]) + facts.source.low;
    match number % (named.len() as u64 + 2) {
        0 => ConnectionName::Nothing,
        1 => ConnectionName::Nameless,
        other => {
            let name = usize::try_from(other - 2).expect("a few names");
            ConnectionName::Name(name_of(named[name]))
        }
    }
}

/// The names of a policy with buckets, perhaps none.
pub(super) fn server_names() -> impl Strategy<Value = Vec<DnsName>> {
    names_of(0..5)
}

/// The names that a limit may be for. The root never stands for itself alone.
pub(super) fn patterns() -> impl Strategy<Value = Vec<NamePattern>> {
    let names = subsequence(NAMES.to_vec(), 1..4);
    (names, any::<bool>()).prop_map(|(names, below)| {
        let patterns = names.into_iter().map(name_of).map(|name| {
            let below = below || name == DnsName::default();
            NamePattern { name, below }
        });
        let mut patterns: Vec<_> = patterns.collect();
        patterns.sort_unstable();
        patterns
    })
}
