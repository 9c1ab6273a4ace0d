//! Compiles the table of DNS names: zones, names in matches, public suffixes, and names with overrides.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use limiter_common::{
    dns::{DOMAIN_LABELS, MOST_PROBES, question_number},
    limit::{Cost, KeyPart, NameKind},
    name_hash::{NameKeys, hash_of_name, zone_number},
    policy::Features,
    policy::NameSlot,
};

use super::{
    bounds::index,
    classes::Classes,
    index::IndexTables,
    limit_sets::set_of,
    overrides_by_name::{NamedKey, OverridesByName},
};
use crate::policy::{DnsName, DomainLabels, Limit, Mode, NamePattern, OverriddenName, Policy};

/// The most labels of a question's name.
const MOST_LABELS: u64 = 127;

/// The names of a policy, each with its settings.
#[derive(Clone, Debug, Default)]
pub struct NameTable {
    /// The slots without their hashes.
    names: Vec<(HashSource, NameSlot)>,
}

/// The source of a slot's hash; names are as on the wire.
#[derive(Clone, Debug)]
enum HashSource {
    Name(Vec<u8>),
    /// A name, a type and a class.
    Question(Vec<u8>, (u16, u16)),
    ServerName(Vec<u8>),
}

impl HashSource {
    fn hash(&self, keys: &NameKeys) -> u64 {
        let hash = match self {
            Self::Name(wire) => hash_of_name(keys, wire),
            Self::Question(wire, (of_type, class)) => {
                question_number(hash_of_name(keys, wire), *of_type, *class)
            }
            Self::ServerName(wire) => zone_number(wire),
        };
        hash.max(1)
    }
}

impl NameTable {
    /// Compiles zones, names in limits' matches, and names with overrides. Returns the table, and the number
    /// of source ranges that the overrides take.
    pub(super) fn new(
        policy: &Policy,
        mut overridden: OverridesByName<'_>,
        classes: &mut Classes,
        indexed: &mut IndexTables,
    ) -> (Self, usize) {
        let limits = &policy.limits;
        let zones = match set_of(limits, is_of_zones) {
            0 => &[],
            _ => &policy.zones[..],
        };
        let patterns = limits.iter().flat_map(|limit| &limit.matching.dns.names);
        let mut names: BTreeMap<&DnsName, NameSettings> = BTreeMap::new();
        for zone in zones {
            names.entry(zone).or_default().is_zone = true;
        }
        for pattern in patterns {
            names.entry(&pattern.name).or_default();
        }
        let rules = match set_of(limits, is_of_domains) {
            0 => &[],
            _ => &policy.public_suffixes[..],
        };
        let domain_labels = DomainLabels::new(rules);
        for name in domain_labels.names() {
            names.entry(name).or_default();
        }
        let overridden_domains = overridden.names(KeyPart::Domain);
        for name in &overridden_domains {
            names.entry(&name.name).or_default();
        }
        let between = between(names.keys().copied());
        for name in &between {
            names.entry(name).or_default();
        }
        let next_labels = next_labels(&names);
        let everything = set_of(limits, |limit| limit.matching.dns.names.is_empty());
        for (name, said) in &mut names {
            said.record_limits(name, limits);
        }
        let keys_of = |name: &DnsName, question: Option<&OverriddenName>| {
            if limits.iter().all(|limit| limit.overrides.is_empty()) {
                // There may be many names.
                return Vec::new();
            }
            // Below a public suffix there are longer names, or none of this policy.
            let keys = [
                policy
                    .zone_of(name)
                    .map(|zone| (KeyPart::Zone, zone.into())),
                (domain_labels.registered(name)).map(|domain| (KeyPart::Domain, domain.into())),
                question.map(|question| (KeyPart::Question, question.clone())),
            ];
            keys.into_iter().flatten().collect::<Vec<NamedKey>>()
        };
        let mut slots = Vec::with_capacity(names.len());
        for (name, said) in &names {
            let above: Vec<(DnsName, NameSettings)> = name
                .ancestors()
                .filter_map(|one| names.get(&one).map(|said| (one, *said)))
                .collect();
            let below_others = above.iter().fold(0, |set, (_, said)| set | said.below);
            let zone = if said.is_zone {
                Some((*name).clone())
            } else {
                let mut zones = above.into_iter().filter(|(_, said)| said.is_zone);
                zones.next().map(|(name, _)| name)
            };
            let of_name = everything | said.of_name | below_others;
            let below = everything | said.below | below_others;
            let slot = NameSlot {
                zone: zone.map_or(0, |zone| zone_number(&zone.wire())),
                of_name: classes.sets().index_of(of_name),
                below: classes.sets().index_of(below),
                domain_labels: u16::try_from(domain_labels.of(name)).unwrap_or(u16::MAX),
                next_labels: next_labels.get(*name).copied().unwrap_or(0),
                overrides: overridden.of(keys_of(name, None), classes, indexed),
                hash: 0,
            };
            slots.push((HashSource::Name(name.wire()), slot));
        }
        let questions = overridden.names(KeyPart::Question);
        let server_names = overridden.names(KeyPart::ServerName);
        let questions = questions
            .iter()
            .filter_map(|one| Some((one, one.question?)));
        let questions = questions.map(|(one, question)| {
            let hashed = HashSource::Question(one.name.wire(), question);
            (hashed, keys_of(&one.name, Some(one)))
        });
        let server_names = server_names.iter().map(|one| {
            let key = (KeyPart::ServerName, one.clone());
            (HashSource::ServerName(one.name.wire()), vec![key])
        });
        for (hashed, keys) in questions.chain(server_names) {
            let overrides = overridden.of(keys, classes, indexed);
            let slot = NameSlot {
                overrides,
                ..NameSlot::default()
            };
            slots.push((hashed, slot));
        }
        (Self { names: slots }, overridden.ranges)
    }

    pub(super) const fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns the slots, hashed with these secrets; their number is a power of two, or 0.
    #[must_use]
    pub fn slots(&self, keys: &NameKeys) -> Vec<NameSlot> {
        if self.names.is_empty() {
            return Vec::new();
        }
        let mut size = (2 * self.names.len()).next_power_of_two();
        loop {
            if let Some(slots) = self.place(keys, size) {
                return slots;
            }
            size *= 2;
        }
    }

    /// Places the names in `size` slots; `None`: a name has no free slot within the reach of a look-up.
    fn place(&self, keys: &NameKeys, size: usize) -> Option<Vec<NameSlot>> {
        let mut slots = vec![NameSlot::default(); size];
        for (hashed, slot) in &self.names {
            let hash = hashed.hash(keys);
            let free = (0..u64::from(MOST_PROBES)).find_map(|probe| {
                let at = hash.wrapping_add(probe) & (size as u64 - 1);
                let at = usize::try_from(at).ok()?;
                (slots[at].hash == 0).then_some(at)
            });
            slots[free?] = NameSlot { hash, ..*slot };
        }
        Some(slots)
    }

    /// Returns the features with the fields about these names; the rest is copied from `other`.
    pub(super) fn features(
        &self,
        limits: &[Limit],
        slot_count: usize,
        other: &Features,
    ) -> Features {
        let counts = self.names.iter().filter_map(|(hashed, _)| match hashed {
            HashSource::Name(wire) => Some(label_count(wire)),
            HashSource::Question(..) | HashSource::ServerName(_) => None,
        });
        let counts: BTreeSet<u64> = counts.collect();
        let mut from_fewest = counts.iter().copied();
        let fewest_labels = from_fewest.next().unwrap_or(u64::MAX);
        let most_labels = counts.last().copied().unwrap_or(0);
        let by_domain = set_of(limits, is_of_domains);
        // Most public suffixes of one label have longer ones below them. Starting at the second-fewest number
        // of labels, the search takes at most two steps for nearly all domains.
        let next = from_fewest.next().filter(|_| by_domain != 0);
        let first_labels = next.unwrap_or(fewest_labels);
        let by_question = set_of(limits, |limit| is_of(limit, NameKind::Question));
        let by_new_name = set_of(limits, |limit| {
            limit.cost == Cost::NewNames && limit.mode != Mode::Off
        });
        let hashed_labels = if by_question | by_new_name != 0 {
            MOST_LABELS
        } else if by_domain != 0 {
            // A domain has one label more than its suffix, and a suffix may have one more than its rule's
            // name.
            let of_domains = self.names.iter().map(|(_, slot)| slot.domain_labels);
            let of_domains = of_domains.fold(DOMAIN_LABELS, |most, labels| most.max(labels.into()));
            u64::from(of_domains).max(most_labels)
        } else {
            most_labels
        };
        Features {
            name_slots: index(slot_count),
            fewest_labels,
            first_labels,
            hashed_labels,
            by_name: set_of(limits, |limit| {
                limit.counts_by_question() && limit.mode != Mode::Off
            }),
            by_zone: set_of(limits, is_of_zones),
            by_domain,
            by_question,
            by_new_name,
            of_any_name: set_of(limits, |limit| limit.matching.dns.names.is_empty()),
            ..*other
        }
    }
}

/// Returns the features with the table of cached names, if a limit needs it.
pub(super) fn with_cached_names(policy: &Policy, other: &Features) -> Features {
    if other.by_new_name == 0 {
        return *other;
    }
    Features {
        name_lines: policy.cached_names.lines().into(),
        names_cached_for_ns: policy.cached_names.cached_for_ns,
        ..*other
    }
}

/// Returns the zones by the numbers that name their buckets; empty if no limit needs zones.
#[must_use]
pub fn zones_by_number(policy: &Policy) -> HashMap<u64, DnsName> {
    let zones = match set_of(&policy.limits, is_of_zones) {
        0 => &[],
        _ => &policy.zones[..],
    };
    by_number(zones)
}

/// Returns names by the numbers that name their buckets.
pub(super) fn by_number(names: &[DnsName]) -> HashMap<u64, DnsName> {
    let numbered = names
        .iter()
        .map(|name| (zone_number(&name.wire()), name.clone()));
    numbered.collect()
}

/// The settings of a name, without its ancestors' settings.
#[derive(Clone, Copy, Default)]
struct NameSettings {
    is_zone: bool,
    of_name: u64,
    below: u64,
}

impl NameSettings {
    /// Records the limits that count questions for the name, and for the names below it.
    fn record_limits(&mut self, name: &DnsName, limits: &[Limit]) {
        let with = |below| {
            let name = name.clone();
            let pattern = NamePattern { name, below };
            set_of(limits, |limit| limit.matching.dns.names.contains(&pattern))
        };
        self.of_name = with(false);
        self.below = with(true);
    }
}

fn is_of_zones(limit: &Limit) -> bool {
    is_of(limit, NameKind::Zone)
}

fn is_of_domains(limit: &Limit) -> bool {
    is_of(limit, NameKind::Domain)
}

fn is_of(limit: &Limit, name_kind: NameKind) -> bool {
    limit.name_kind() == Some(name_kind)
}

/// Returns the ancestors of names that have the same number of labels as another name. They must be in the
/// table: the search goes from the shortest to the longest suffix, and stops at the first miss.
fn between<'n>(names: impl Iterator<Item = &'n DnsName> + Clone) -> BTreeSet<DnsName> {
    let counts: BTreeSet<usize> = names.clone().map(DnsName::label_count).collect();
    names
        .flat_map(DnsName::ancestors)
        .filter(|name| counts.contains(&name.label_count()))
        .collect()
}

/// Returns, for each name with names below it, the number of labels of the shortest one.
fn next_labels<'n>(names: &BTreeMap<&'n DnsName, NameSettings>) -> HashMap<&'n DnsName, u16> {
    let mut next = HashMap::new();
    for name in names.keys() {
        // A name has at most 63 labels.
        let labels = u16::try_from(name.label_count()).unwrap_or(u16::MAX);
        let mut above = name.ancestors();
        if let Some((above, _)) = above.find_map(|one| names.get_key_value(&one)) {
            let fewest = next.entry(*above).or_insert(labels);
            *fewest = labels.min(*fewest);
        }
    }
    next
}

fn label_count(wire: &[u8]) -> u64 {
    let mut count = 0;
    let mut rest = wire;
    while let Some((length, behind)) = rest.split_first()
        && *length != 0
    {
        rest = behind.get(usize::from(*length)..).unwrap_or_default();
        count += 1;
    }
    count
}
