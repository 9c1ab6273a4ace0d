//! Compiles server names. Userspace looks them up once for each connection, so the kernel has no table of
//! them.

use std::collections::HashMap;

use limiter_common::{
    limit::KeyPart,
    name_hash::{unkeyed_hash, zone_number},
    packet::{NameMatch, PROTOCOL_TCP, PROTOCOL_UDP},
    policy::Features,
    table::HashKey,
};

use super::limit_sets::set_of;
use crate::policy::{DnsName, Limit, Mode, Policy, UntilKnown};

/// The policy's settings for the server names that clients ask for.
#[derive(Clone, Debug, Default)]
pub struct ServerNames {
    names: HashMap<DnsName, NameSettings>,
    /// The limits that count by name.
    all: u64,
    /// Limits that count TCP connections, and limits that count QUIC flows.
    of_tcp: u64,
    of_quic: u64,
    /// Limits with one bucket for each name of the section `server-names`.
    by_key: u64,
    /// Limits that count any name.
    of_any: u64,
    /// Each limit with `otherwise`, and the other limits of its kind.
    otherwise: Vec<[u64; 2]>,
    /// Limits on open connections.
    connections: u64,
    /// Limits in mode `enforce`.
    enforcing: u64,
    /// Whether data is held until the name is known.
    holds: bool,
}

/// The settings of a name, without its ancestors' settings.
#[derive(Clone, Copy, Debug, Default)]
struct NameSettings {
    /// Whether it is in the section `server-names`.
    is_key: bool,
    /// The limits on this very name.
    of_name: u64,
    /// The limits on the names below it.
    below: u64,
}

impl ServerNames {
    pub(super) fn new(policy: &Policy) -> Self {
        let limits = &policy.limits;
        let all = set_of(limits, |limit| {
            limit.counts_by_server_name() && limit.mode != Mode::Off
        });
        if all == 0 {
            return Self::default();
        }
        let mut names: HashMap<DnsName, NameSettings> = HashMap::new();
        let by_key = set_of(limits, is_of_server_names);
        if by_key != 0 {
            for name in &policy.server_names {
                names.entry(name.clone()).or_default().is_key = true;
            }
        }
        for (limit_index, limit) in (0_u32..).zip(limits) {
            for pattern in &limit.matching.server_names {
                let said = names.entry(pattern.name.clone()).or_default();
                let set = if pattern.below {
                    &mut said.below
                } else {
                    &mut said.of_name
                };
                *set |= 1 << limit_index;
            }
        }
        Self {
            names,
            all,
            of_tcp: all & set_of(limits, |limit| limit.protocols().contains(&PROTOCOL_TCP)),
            of_quic: all
                & set_of(limits, |limit| {
                    !limit.counts_connections() && limit.protocols().contains(&PROTOCOL_UDP)
                }),
            by_key,
            of_any: all & set_of(limits, |limit| limit.matching.server_names.is_empty()),
            otherwise: otherwise(limits),
            connections: all & set_of(limits, Limit::counts_connections),
            enforcing: all & set_of(limits, |limit| limit.mode == Mode::Enforce),
            holds: policy.until_known == UntilKnown::Hold,
        }
    }

    /// Returns whether a connection's data is held until its name is known.
    #[must_use]
    pub const fn holds(&self) -> bool {
        self.holds
    }

    /// Returns the limits on connections that count them by their names.
    #[must_use]
    pub const fn connections(&self) -> u64 {
        self.connections
    }

    /// Returns whether any limit counts QUIC flows.
    #[must_use]
    pub const fn are_of_quic(&self) -> bool {
        self.of_quic != 0
    }

    /// Returns the limits that count a name in any protocol, and the number of the longest name in the
    /// section `server-names` that is the name or an ancestor.
    #[must_use]
    pub fn match_name(&self, name: &DnsName) -> NameMatch {
        self.match_among(self.all, Some(name))
    }

    /// Returns the settings for the name of a TCP connection. `None`: the connection has no name, so only
    /// `'*'` counts it.
    #[must_use]
    pub fn match_tcp_name(&self, name: Option<&DnsName>) -> NameMatch {
        self.match_among(self.of_tcp, name)
    }

    /// Returns the settings for the name of a QUIC flow.
    #[must_use]
    pub fn match_quic_name(&self, name: Option<&DnsName>) -> NameMatch {
        self.match_among(self.of_quic, name)
    }

    /// Returns the settings for a name, restricted to the limits in `these`.
    fn match_among(&self, these: u64, name: Option<&DnsName>) -> NameMatch {
        let mut limits = name.map_or(0, |_| self.of_any);
        let mut key = None;
        // All names are below the root.
        let root = DnsName::default();
        let with_ancestors = name.into_iter().cloned();
        let ancestors = name.map_or_else(|| vec![root], |name| name.ancestors().collect());
        let is_name = |index| name.is_some() && index == 0;
        for (index, one) in with_ancestors.chain(ancestors).enumerate() {
            let Some(said) = self.names.get(&one) else {
                continue;
            };
            limits |= if is_name(index) {
                said.of_name
            } else {
                said.below
            };
            if said.is_key && key.is_none() {
                key = Some(one);
            }
        }
        if key.is_none() {
            limits &= !self.by_key;
        }
        limits &= these;
        for [these, others] in &self.otherwise {
            if limits & others != 0 {
                limits &= !these;
            }
        }
        NameMatch {
            limits,
            zone: key.map_or(0, |key| zone_number(&key.wire())),
            ..NameMatch::NOTHING
        }
    }

    /// Returns the features with the fields about server names; the rest is copied from `other`.
    /// `until_known` decides on data that arrives before the name.
    pub(super) fn features(&self, until_known: UntilKnown, other: &Features) -> Features {
        Features {
            by_server_name: self.all,
            server_names: self.number(),
            holding: match until_known {
                UntilKnown::Pass => 0,
                UntilKnown::Hold => self.enforcing,
            },
            ..*other
        }
    }

    /// Returns a fingerprint of the settings: different settings collide with a chance of 2^-64. 0: no
    /// settings. Running programs remember the fingerprint, so all versions must compute the same.
    #[must_use]
    pub fn number(&self) -> u64 {
        if self.all == 0 {
            return 0;
        }
        let mut names: Vec<_> = self.names.iter().collect();
        names.sort_unstable_by_key(|(name, _)| *name);
        let key = HashKey::default();
        let Self {
            of_tcp, of_quic, ..
        } = *self;
        let mut limits = key.words_hash(&[of_tcp, of_quic, self.by_key, self.of_any]);
        for [these, others] in &self.otherwise {
            limits = key.words_hash(&[limits, *these, *others]);
        }
        let number = names.into_iter().fold(limits, |number, (name, said)| {
            let name = unkeyed_hash(&name.wire());
            let is_key = said.is_key.into();
            key.words_hash(&[number, name, is_key, said.of_name, said.below])
        });
        number.max(1)
    }
}

/// Returns the server names by the numbers that name their buckets; empty if no limit needs them.
#[must_use]
pub fn server_names_by_number(policy: &Policy) -> HashMap<u64, DnsName> {
    let names = match set_of(&policy.limits, is_of_server_names) {
        0 => &[],
        _ => &policy.server_names[..],
    };
    super::names::by_number(names)
}

/// Returns the limits by name with `otherwise`, each with the other limits of its kind.
fn otherwise(limits: &[Limit]) -> Vec<[u64; 2]> {
    let by_name = (0_u32..).zip(limits).filter(|(_, limit)| {
        limit.matching.otherwise && limit.counts_by_server_name() && limit.mode != Mode::Off
    });
    let with_others = by_name.map(|(limit_index, limit)| {
        let others = set_of(limits, |other| {
            // The same rule as for limits without names.
            let has_effect = other.mode == Mode::Enforce || other.mode == limit.mode;
            let is_other = !other.matching.otherwise && other.counts_by_server_name();
            is_other && has_effect && other.is_of_kind(limit)
        });
        [1 << limit_index, others]
    });
    with_others.collect()
}

fn is_of_server_names(limit: &Limit) -> bool {
    limit.id_format.key_part() == Some(KeyPart::ServerName)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    fn names(text: &str) -> ServerNames {
        let config = config::parse(text, "test");
        ServerNames::new(&config.unwrap_or_else(|errors| panic!("{errors}")).policy)
    }

    #[test]
    fn the_longest_name_owns_and_every_pattern_counts() {
        let names = names(
            "server-names: [example, b.example]\nlimits:\n  \
             A: {id: server-name, cost: bytes, rate: 9k/s}\n  \
             B: {id: total, cost: bytes, rate: 9k/s, match: {server-name: [a.example, '*.b.example']}}\n  \
             C: {id: server-name, cost: bytes, rate: 9k/s, match: {server-name: '*.b.example'}}\n  \
             D: {id: total, cost: packets, rate: 9k/s}\n",
        );
        let number = |name: &str| zone_number(&name.parse::<DnsName>().unwrap().wire());
        for (name, limits, key) in [
            ("a.example", 0b011, number("example")),
            ("x.a.example", 0b001, number("example")),
            ("b.example", 0b001, number("b.example")),
            ("x.y.b.example", 0b111, number("b.example")),
            ("xb.example", 0b001, number("example")),
            ("other", 0, 0),
        ] {
            let asked = names.match_name(&name.parse().unwrap());
            assert_eq!((asked.limits, asked.zone), (limits, key), "{name}");
        }
    }

    #[test]
    fn whatever_is_left_is_also_without_a_name() {
        let names = names(
            "limits:\n  \
             A: {id: total, cost: connections, limit: 9, match: {server-name: [a.example, '*.b.example']}}\n  \
             B: {id: total, cost: connections, limit: 9, match: {server-name: c.example}}\n  \
             C: {id: total, cost: connections, limit: 9, otherwise: true, match: {server-name: '*'}}\n  \
             D: {id: total, cost: packets, rate: 9k/s, match: {server-name: '*'}}\n",
        );
        for (name, limits) in [
            (Some("a.example"), 0b1001),
            (Some("x.b.example"), 0b1001),
            (Some("b.example"), 0b1100),
            (Some("c.example"), 0b1010),
            (None, 0b1100),
        ] {
            let parsed = name.map(|name| name.parse().unwrap());
            assert_eq!(
                names.match_tcp_name(parsed.as_ref()).limits,
                limits,
                "{name:?}"
            );
        }
        assert_eq!(names.connections(), 0b0111);
    }

    #[test]
    fn each_protocol_has_its_limits_and_what_is_left_by_them() {
        let names = names(
            "limits:\n  \
             A: {id: total, cost: bytes, rate: 9k/s, match: {server-name: a.example, protocol: tcp}}\n  \
             B: {id: total, cost: bytes, rate: 9k/s, match: {server-name: b.example, protocol: [tcp, udp]}}\n  \
             C: {id: total, cost: bytes, rate: 9k/s, otherwise: true, \
             match: {server-name: '*', protocol: [tcp, udp]}}\n",
        );
        for (name, by_tcp, by_quic) in [
            ("a.example", 0b001, 0b100),
            ("b.example", 0b010, 0b010),
            ("c.example", 0b100, 0b100),
        ] {
            let name = name.parse().unwrap();
            let found = [
                names.match_tcp_name(Some(&name)),
                names.match_quic_name(Some(&name)),
            ];
            assert_eq!(found.map(|asked| asked.limits), [by_tcp, by_quic], "{name}");
        }
        assert!(names.are_of_quic());
    }

    #[test]
    fn policies_that_say_the_same_have_the_same_number() {
        let limit = |rest: &str| {
            let text = format!("limits: {{B: {{id: total, cost: bytes, rate: {rest}}}}}\n");
            names(&text).number()
        };
        let one = limit("9k/s, match: {server-name: [a.example, b.example]}");
        assert_eq!(
            one,
            limit("8k/s, match: {server-name: [b.example, a.example]}")
        );
        assert_ne!(one, limit("9k/s, match: {server-name: a.example}"));
        assert_ne!(
            one,
            limit("9k/s, match: {server-name: [a.example, b.example], protocol: udp}")
        );
        assert_eq!(limit("9k/s"), 0);
        assert_eq!(
            limit("9k/s, mode: 'off', match: {server-name: a.example}"),
            0
        );
    }
}
