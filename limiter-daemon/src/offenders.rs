//! Lists dropped sources and names by limit, with the number of drops and the names they asked for.

use std::{cmp::Reverse, collections::HashMap, net::IpAddr};

use limiter_common::{
    address::{Address, Family},
    key::Key,
    limit::{COOKIE_LIMITS, LimitId},
    offender::{Dropper, Offender, OffenderKey},
};
use limiter_datapath::kernel::{Datapath, DatapathError, monotonic_now};
use limiter_policy::{
    config::{Offenders, nearest::UnknownName},
    policy::{KeyNames, Policy, QuestionNames, key_id},
};
use limiter_protocol::{
    ALL_PACKETS, Grouping, LastDrop, MAX_OFFENDERS, OffenderList, OffenderQuery, OffenderStatus,
};
use thiserror::Error;

use super::{labels::limit_by_name, texts::Texts};

/// Why offenders cannot be listed.
#[derive(Debug, Error)]
pub(super) enum OffendersError {
    /// Offenders are not recorded.
    #[error(
        "offenders are not recorded: the configuration has `offenders: {{capacity: 0}}`; give it \
         room, such as 65536, and start the daemon again"
    )]
    Off,
    /// No such limit.
    #[error(transparent)]
    UnknownLimit(#[from] UnknownName),
    /// The offenders could not be read.
    #[error(transparent)]
    Datapath(#[from] DatapathError),
}

/// Returns the offenders with the most drops, the most first. `texts`: the daemon's texts of names, if one runs.
pub(super) fn list(
    datapath: &Datapath,
    texts: Option<&Texts>,
    query: &OffenderQuery,
) -> Result<OffenderList, OffendersError> {
    let settings = datapath.settings();
    let policy = &datapath.manifest().policy;
    if settings.offenders == Offenders::OFF {
        return Err(OffendersError::Off);
    }
    let limit = match &query.limit {
        Some(name) => Some(limit_by_name(policy, name)?),
        None => None,
    };
    let recorded = datapath.offenders()?;
    let now = monotonic_now();
    let kept = match query.by {
        Grouping::Address | Grouping::Range => &recorded.offenders,
        Grouping::Name => {
            if let Some(texts) = texts {
                texts.read(datapath);
            }
            &recorded.names
        }
    };
    let asked_for = kept
        .iter()
        .filter(|(key, _)| limit.is_none_or(|limit| limit.0 == key.limit));
    let mut groups = grouped(asked_for, query.by);
    // Filtered after the sum: otherwise a range's count would fall with each address that rests.
    groups.retain(|group| is_within(&group.total, now, query.within_ns));
    groups.truncate(query.count.min(MAX_OFFENDERS) as usize);
    Ok(OffenderList {
        capacity: settings.offenders.capacity,
        remembered: recorded.remembered(),
        forgotten: recorded.forgotten(),
        recorded: recorded.counts.recorded,
        skipped: recorded.counts.skipped,
        lower_bound: recorded.is_lower_bound(),
        offenders: groups
            .into_iter()
            .filter_map(|group| {
                let (limit, sieve) = droppers(policy, group.limit, group.by)?;
                Some(OffenderStatus {
                    limit,
                    sieve,
                    id: key_text(datapath, texts, &group.key),
                    addresses: group.addresses,
                    drops: group.total.drops,
                    first_drop_ago_ns: now.saturating_sub(group.total.first_drop_ns),
                    last_drop_ago_ns: now.saturating_sub(group.total.last_drop_ns),
                })
            })
            .collect(),
    })
}

/// Formats the key of dropped packets: a name by its text, in visible ASCII, if it is known.
pub(super) fn key_text(datapath: &Datapath, texts: Option<&Texts>, key: &Key) -> String {
    let text = match key {
        Key::Number(key_part, number) => key_part
            .name_kind()
            .and_then(|kind| texts?.get(kind, *number)),
        _ => None,
    };
    // The text is a domain's or a question's, so it serves as both.
    let question_names = text.map(|text| QuestionNames {
        domain: Some(text.clone()),
        question: text,
    });
    let names = KeyNames {
        interface: "",
        zones: Some(datapath.zones()),
        server_names: Some(datapath.server_names_by_number()),
        question_names: question_names.as_ref(),
    };
    key_id(key, &names)
}

/// Whether an offender was last dropped at most `within_ns` before `now_ns`.
fn is_within(offender: &Offender, now_ns: u64, within_ns: Option<u64>) -> bool {
    within_ns.is_none_or(|within| now_ns.saturating_sub(offender.last_drop_ns) <= within)
}

/// Returns the last remembered drop of an address, by any limit.
pub(super) fn last_drop(
    datapath: &Datapath,
    address: IpAddr,
) -> Result<Option<LastDrop>, DatapathError> {
    let policy = &datapath.manifest().policy;
    let recorded = datapath.offenders()?;
    let now = monotonic_now();
    let address = Address::from(address);
    let of_address = recorded
        .offenders
        .iter()
        .filter(|(key, _)| key.address() == address);
    Ok(of_address
        .max_by_key(|(_, offender)| offender.last_drop_ns)
        .and_then(|(key, offender)| {
            let (limit, sieve) = droppers(policy, key.limit, key.dropper())?;
            Some(LastDrop {
                limit,
                sieve,
                drops: offender.drops,
                lower_bound: recorded.is_lower_bound(),
                first_drop_ago_ns: now.saturating_sub(offender.first_drop_ns),
                last_drop_ago_ns: now.saturating_sub(offender.last_drop_ns),
            })
        }))
}

/// The number of leading bits that name a group.
pub(super) const fn prefix_length(by: Grouping, family: Family) -> u8 {
    match (by, family) {
        (Grouping::Range, Family::V4) => 24,
        (Grouping::Range, Family::V6) => 64,
        (_, Family::V4) => 32,
        (_, Family::V6) => 128,
    }
}

/// Returns the name of the limit with an interned id, or of the section for limits of answers; `None`: the policy has
/// no such limit.
pub(super) fn limit_name(policy: &Policy, id: u16) -> Option<String> {
    if COOKIE_LIMITS.contains(&LimitId(id)) {
        return policy.makes_syn_cookies().then(|| "answers".to_owned());
    }
    let mut limits = policy.limits.iter();
    let limit = limits.find(|limit| limit.id == LimitId(id))?;
    Some(limit.name.clone())
}

/// Returns the names of the limit that dropped packets, or [`ALL_PACKETS`] if none did, and of the sieve, if one
/// dropped them. `None`: the policy has no such limit or sieve.
fn droppers(policy: &Policy, limit: u16, by: Dropper) -> Option<(String, Option<String>)> {
    match (by, limit) {
        (Dropper::Budget, _) => Some((limit_name(policy, limit)?, None)),
        (Dropper::Sieve, 0) => {
            let uses = policy.sieve_uses().into_iter();
            let sieves = uses.filter(|used| used.limit.is_none());
            let names = sieves.filter_map(|used| policy.sieves.get(used.sieve?));
            let names: Vec<&str> = names.map(|sieve| sieve.name.as_str()).collect();
            let is_there = !names.is_empty();
            is_there.then(|| (ALL_PACKETS.to_owned(), Some(names.join(", "))))
        }
        (Dropper::Sieve, _) => {
            let mut limits = policy.limits.iter();
            let limit = limits.find(|one| one.id == LimitId(limit))?;
            Some((limit.name.clone(), Some(limit.ip_rep.clone()?)))
        }
    }
}

/// Offenders of one limit, or of its sieve, reported as one.
struct Group {
    /// The limit's interned id.
    limit: u16,
    by: Dropper,
    /// The address, the range, or the name.
    key: Key,
    addresses: u64,
    total: Offender,
}

impl Group {
    fn add(&mut self, offender: &Offender) {
        let total = &mut self.total;
        self.addresses += u64::from(matches!(self.key, Key::Source { .. }));
        total.drops += offender.drops;
        total.first_drop_ns = total.first_drop_ns.min(offender.first_drop_ns);
        total.last_drop_ns = total.last_drop_ns.max(offender.last_drop_ns);
    }
}

/// Groups the offenders, most drops first.
fn grouped<'o>(
    offenders: impl IntoIterator<Item = &'o (OffenderKey, Offender)>,
    by: Grouping,
) -> Vec<Group> {
    let mut groups = HashMap::<(u16, Dropper, Key), Group>::new();
    for (key, offender) in offenders {
        let group_key = group_key(key, by);
        groups
            .entry((key.limit, key.dropper(), group_key))
            .and_modify(|group| group.add(offender))
            .or_insert(Group {
                limit: key.limit,
                by: key.dropper(),
                key: group_key,
                addresses: u64::from(matches!(group_key, Key::Source { .. })),
                total: *offender,
            });
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_unstable_by_key(|group| {
        // The fields behind the drops make the order reproducible.
        let most = Reverse((group.total.drops, group.total.last_drop_ns));
        (most, group.limit, group.by, sort_key(&group.key))
    });
    groups
}

/// Returns the key under which a grouping reports an offender.
fn group_key(key: &OffenderKey, by: Grouping) -> Key {
    if let Some((key_part, number)) = key.name() {
        return Key::Number(key_part, number);
    }
    let prefix_length = prefix_length(by, key.address().family);
    Key::Source {
        address: key.address().masked(prefix_length),
        prefix_length,
    }
}

/// Returns the fields by which keys are sorted.
fn sort_key(key: &Key) -> (Option<IpAddr>, u64) {
    match key {
        Key::Source { address, .. } | Key::Destination(address) => {
            (Some(IpAddr::from(*address)), 0)
        }
        Key::Number(_, number) => (None, *number),
    }
}

#[cfg(test)]
mod tests {
    use limiter_common::limit::KeyPart;

    use super::*;

    fn offender(limit: u16, address: &str, drops: u64, times: [u64; 2]) -> (OffenderKey, Offender) {
        let address: IpAddr = address.parse().unwrap();
        let [first_drop_ns, last_drop_ns] = times;
        let offender = Offender {
            drops,
            first_drop_ns,
            last_drop_ns,
        };
        let key = OffenderKey::new(LimitId(limit), Dropper::Budget, &address.into());
        (key, offender)
    }

    #[test]
    fn the_last_drop_tells_whether_it_was_within_a_time() {
        let (_, offender) = offender(1, "192.0.2.1", 5, [10, 20]);
        assert!(is_within(&offender, 50, None));
        assert!(is_within(&offender, 50, Some(30)));
        assert!(!is_within(&offender, 50, Some(29)));
        // The offender was dropped after the clock was read.
        assert!(is_within(&offender, 15, Some(0)));
    }

    #[test]
    fn groups_add_up() {
        let offenders = [
            offender(1, "192.0.2.1", 5, [10, 20]),
            offender(1, "192.0.2.2", 6, [5, 15]),
            offender(2, "192.0.2.2", 30, [7, 7]),
            offender(1, "192.0.3.1", 11, [1, 30]),
            offender(1, "2001:db8::1:1", 2, [3, 4]),
            offender(1, "2001:db8::2:2", 3, [2, 3]),
            offender(1, "2001:db8:0:1::", 4, [1, 1]),
        ];
        let check = |by, expected: &[(u16, &str, u64, u64, [u64; 2])]| {
            let groups = grouped(&offenders, by);
            let found = groups.iter().map(|group| {
                let times = [group.total.first_drop_ns, group.total.last_drop_ns];
                let id = key_id(&group.key, &KeyNames::default());
                (group.limit, id, group.addresses, group.total.drops, times)
            });
            let expected = expected.iter().map(|(limit, id, addresses, drops, times)| {
                (*limit, (*id).to_owned(), *addresses, *drops, *times)
            });
            assert!(found.eq(expected), "{by:?}");
        };
        check(
            Grouping::Range,
            &[
                (2, "192.0.2.0/24", 1, 30, [7, 7]),
                // Equal drops: the later one first.
                (1, "192.0.3.0/24", 1, 11, [1, 30]),
                (1, "192.0.2.0/24", 2, 11, [5, 20]),
                (1, "2001:db8::/64", 2, 5, [2, 4]),
                (1, "2001:db8:0:1::/64", 1, 4, [1, 1]),
            ],
        );
        check(
            Grouping::Address,
            &[
                (2, "192.0.2.2", 1, 30, [7, 7]),
                (1, "192.0.3.1", 1, 11, [1, 30]),
                (1, "192.0.2.2", 1, 6, [5, 15]),
                (1, "192.0.2.1", 1, 5, [10, 20]),
                (1, "2001:db8:0:1::", 1, 4, [1, 1]),
                (1, "2001:db8::2:2", 1, 3, [2, 3]),
                (1, "2001:db8::1:1", 1, 2, [3, 4]),
            ],
        );
    }

    #[test]
    fn names_have_no_addresses() {
        let of = |limit, key_part, number, drops| {
            let (_, record) = offender(limit, "192.0.2.1", drops, [1, 2]);
            (
                OffenderKey::of_name(LimitId(limit), key_part, number),
                record,
            )
        };
        let names = [
            of(1, KeyPart::Zone, 7, 5),
            of(1, KeyPart::Domain, 7, 6),
            of(2, KeyPart::ServerName, 7, 7),
        ];
        let groups = grouped(&names, Grouping::Name);
        let found: Vec<_> = groups
            .iter()
            .map(|group| (group.limit, group.key, group.addresses, group.total.drops))
            .collect();
        assert_eq!(
            found,
            [
                (2, Key::Number(KeyPart::ServerName, 7), 0, 7),
                (1, Key::Number(KeyPart::Domain, 7), 0, 6),
                (1, Key::Number(KeyPart::Zone, 7), 0, 5),
            ]
        );
    }
}
