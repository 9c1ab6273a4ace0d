//! Finds the sources and ranges that have enough drops.

use std::collections::{HashMap, HashSet};

use limiter_common::{
    ban::BanKey,
    limit::LimitId,
    offender::{Dropper, OffenderKey},
};

use super::{
    Decider, Offence, Subject, alone,
    ranges::{network_of, site_of},
    slice_ns,
};

impl Decider {
    /// Returns all sources and ranges that have enough drops.
    pub(super) fn offences(&self, now_ns: u64) -> Vec<Offence> {
        let mut addresses = Vec::new();
        let mut networks = HashMap::<Subject, Offence>::new();
        for (key, source) in &self.sources {
            let Some(terms) = self.terms.get(&key.limit) else {
                continue;
            };
            let drops = source.window.sum(now_ns / slice_ns(terms));
            if drops == 0 {
                continue;
            }
            if terms.range_after.is_some()
                && let Some(network) = network_of(key.limit, &key.address())
            {
                add_member(&mut networks, network, drops);
            }
            if drops >= terms.after {
                addresses.push(Offence {
                    subject: alone(key),
                    drops,
                    members: 1,
                });
            }
        }
        networks.retain(|network, offence| {
            !self.ungrouped.contains_key(network) && self.is_offence(now_ns, network, offence)
        });
        let sites = self.sites(&networks);
        let is_part = |of: &HashMap<Subject, Offence>, range: Option<Subject>| {
            range.is_some_and(|range| of.contains_key(&range))
        };
        addresses.retain(|offence| {
            let (limit, address) = (offence.subject.limit, offence.prefix().address());
            !is_part(&networks, network_of(limit, &address))
                && !is_part(&sites, site_of(limit, &address))
        });
        let networks = networks.into_values().filter(|offence| {
            let site = site_of(offence.subject.limit, &offence.prefix().address());
            !is_part(&sites, site)
        });
        addresses.extend(networks);
        addresses.extend(sites.into_values());
        addresses
    }

    /// Returns whether a /64 has enough drops of enough addresses; banned ones count, too.
    fn is_offence(&self, now_ns: u64, network: &Subject, offence: &mut Offence) -> bool {
        let Some(terms) = self.terms.get(&network.limit) else {
            return false;
        };
        if offence.drops < terms.after {
            return false;
        }
        let slice = now_ns / slice_ns(terms);
        let is_dropped = |member: &&BanKey| {
            let key = OffenderKey::new(LimitId(network.limit), Dropper::Budget, &member.address());
            let source = self.sources.get(&key);
            source.is_some_and(|source| source.window.sum(slice) > 0)
        };
        let banned = self.members.of(network);
        offence.members += banned.filter(|member| !is_dropped(member)).count() as u64;
        are_enough(terms.range_after, offence.members)
    }

    /// Returns the /48s in which enough /64s offend or are banned.
    fn sites(&self, networks: &HashMap<Subject, Offence>) -> HashMap<Subject, Offence> {
        let mut sites = HashMap::new();
        let mut offending = HashSet::new();
        for offence in networks.values() {
            let Subject { limit, prefix } = offence.subject;
            let is_wanted = self
                .terms
                .get(&limit)
                .is_some_and(|terms| terms.site_after.is_some());
            if let Some(site) = site_of(limit, &prefix.address()).filter(|_| is_wanted) {
                add_member(&mut sites, site, offence.drops);
                offending.insert(offence.subject);
            }
        }
        sites.retain(|site, offence| {
            let banned = self.members.of(site).filter(|member| {
                !offending.contains(&Subject {
                    limit: site.limit,
                    prefix: **member,
                })
            });
            offence.members += banned.count() as u64;
            let terms = self.terms.get(&site.limit);
            !self.ungrouped.contains_key(site)
                && terms.is_some_and(|terms| are_enough(terms.site_after, offence.members))
        });
        sites
    }
}

const fn are_enough(least: Option<u32>, members: u64) -> bool {
    matches!(least, Some(least) if members >= least as u64)
}

/// Adds a member's drops to a range.
fn add_member(ranges: &mut HashMap<Subject, Offence>, range: Subject, drops: u64) {
    let offence = ranges.entry(range).or_insert(Offence {
        subject: range,
        drops: 0,
        members: 0,
    });
    offence.drops += drops;
    offence.members += 1;
}
