//! Server names that connections ask for, and what policies want of them.

use limiter_common::packet::{Facts, Transport};
use limiter_policy::policy::{DnsName, NamePattern};
use proptest::{prelude::*, sample::subsequence};

use super::question::{NAMES, name_of, names_of};
use crate::server_name::Known;

/// Returns what is known of the name of a segment's connection.
pub(crate) fn server_name(facts: &Facts) -> Known {
    let ports = [facts.source_port, facts.destination_port];
    // No connection has port 0, but what a later fragment shows has.
    if facts.transport != Transport::Tcp || ports.contains(&0) {
        return Known::Nothing;
    }
    let named = &NAMES[1..];
    let number = u64::from(ports[0] ^ ports[1]) + facts.source.low;
    match number % (named.len() as u64 + 2) {
        0 => Known::Nothing,
        1 => Known::Nameless,
        other => {
            let name = usize::try_from(other - 2).expect("a few names");
            Known::Name(name_of(named[name]))
        }
    }
}

/// Returns the names of a policy that have buckets, perhaps none.
pub(super) fn server_names() -> impl Strategy<Value = Vec<DnsName>> {
    names_of(0..5)
}

/// Returns the names that a limit may be for. Nothing is the root's own name.
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
