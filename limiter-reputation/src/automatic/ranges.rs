//! The ranges that are banned as one, and their banned members.

use std::collections::HashMap;

use limiter_common::{
    address::{Address, Family},
    ban::BanKey,
};

use super::subject::Subject;

/// The least prefix of one subscriber, who may use any address in it.
const NETWORK: u8 = 64;

/// The prefix of a site, or of a customer with several networks.
const SITE: u8 = 48;

/// Returns the /64 of an IPv6 address. IPv4 addresses have none: a /24 has many unrelated users.
pub(super) fn network_of(limit: u16, address: &Address) -> Option<Subject> {
    let prefix = BanKey::new(address, NETWORK);
    matches!(address.family, Family::V6).then_some(Subject { limit, prefix })
}

pub(super) fn site_of(limit: u16, address: &Address) -> Option<Subject> {
    let prefix = BanKey::new(address, SITE);
    matches!(address.family, Family::V6).then_some(Subject { limit, prefix })
}

/// Returns whether a prefix is a range, and not an address.
pub(super) fn is_range(prefix: &BanKey) -> bool {
    [NETWORK, SITE]
        .map(u16::from)
        .contains(&prefix.prefix_length())
}

/// Returns the range that a prefix is a member of: the /64 of an address, the /48 of a /64.
pub(super) fn around(member: &Subject) -> Option<Subject> {
    let address = member.prefix.address();
    match member.prefix.prefix_length() {
        128 => network_of(member.limit, &address),
        64 => site_of(member.limit, &address),
        _ => None,
    }
}

/// The banned members of ranges, and the ends of their bans in nanoseconds. A range always has fewer members here
/// than it takes to ban it.
#[derive(Debug, Default)]
pub(super) struct Members(HashMap<Subject, HashMap<BanKey, u64>>);

impl Members {
    pub(super) fn add(&mut self, range: Subject, member: BanKey, until_ns: u64) {
        self.0.entry(range).or_default().insert(member, until_ns);
    }

    pub(super) fn of(&self, range: &Subject) -> impl Iterator<Item = &BanKey> {
        let members = self.0.get(range);
        members.into_iter().flat_map(HashMap::keys)
    }

    /// Removes the banned members of a range, and returns them.
    pub(super) fn take(&mut self, range: &Subject) -> Vec<BanKey> {
        let members = self.0.remove(range).unwrap_or_default();
        let mut members: Vec<_> = members.into_keys().collect();
        members.sort_unstable_by_key(|member| {
            let Address { high, low, .. } = member.address();
            (high, low)
        });
        members
    }

    /// Forgets the bans that have ended.
    pub(super) fn end(&mut self, now_ns: u64) {
        self.0.retain(|_, members| {
            members.retain(|_, until_ns| *until_ns > now_ns);
            !members.is_empty()
        });
    }
}
