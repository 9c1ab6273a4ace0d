//! Compiles a policy to the tables that the datapath reads.

mod answers;
mod bounds;
mod classes;
mod connections;
mod coverage;
mod index;
mod key_shares;
mod limit_sets;
mod list_effect;
mod masks;
mod names;
mod overrides_by_name;
mod rates;
mod server_names;
mod sieves;
mod sources;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use self::{
    answers::{AnswerLimits, with_limits_of_answers},
    bounds::{MOST_NAMES, MOST_RANGES, index},
    classes::Classes,
    index::IndexTables,
    limit_sets::LimitSets,
    masks::MaskTable,
    overrides_by_name::OverridesByName,
    rates::Rates,
};
pub use self::{
    bounds::CompileError,
    key_shares::{KeyShares, MOST_KEYS},
    names::{NameTable, zones_by_number},
    server_names::{ServerNames, server_names_by_number},
};
use super::{DnsName, Limit, Policy, Units};
use limiter_common::{
    key::BucketKey,
    limit::{LimitId, MAX_LIMITS},
    name_hash::NameKeys,
    policy::NameSlot,
    policy::{Child, Class, Dimension, Features, LimitEntry, Node, Stretch, Tables},
    reason::Action,
    sieve::{Sieve, SieveUse},
    standing::{Reserves, Settings},
    strategy::{
        self, Parameters,
        gcra::{CurrentRate, Parts},
    },
    table::HashKey,
};

/// The tables of one policy in memory. The daemon writes them to the kernel's maps. The same decision core
/// reads them here when it runs natively.
#[derive(Clone, Debug)]
pub struct CompiledPolicy {
    /// The tables' sizes and starts.
    pub features: Features,
    /// The limits, by limit index: the policy's, then the limits of answers.
    pub limits: Vec<LimitEntry>,
    /// The nodes that divide values until each part has a single value of the policy.
    pub nodes: Vec<Node>,
    /// The starts of ranges. The stretches of one node are consecutive.
    pub stretches: Vec<Stretch>,
    /// The content of the ranges: nodes or values.
    pub children: Vec<Child>,
    /// The classes; the first two are for addresses in no prefix.
    pub classes: Vec<Class>,
    /// The parameters: the limits' defaults by limit index, then overrides. The overrides of one class are
    /// consecutive.
    pub rates: Vec<Parameters>,
    /// The reserve for each of these parameters; empty: no limit reserves.
    pub reserves: Vec<Reserves>,
    /// The automatic rates in force, if the core runs natively. In the kernel, the daemon writes them to a
    /// map.
    pub current_rates: BTreeMap<LimitId, CurrentRate>,
    /// The shares in force of shared limits, and the keys that want more, if the core runs natively.
    pub key_shares: KeyShares,
    /// The sets of limits by protocol and kind of packet, then the sets for ranges.
    pub masks: Vec<u64>,
    /// The policy's names, to look up the names in questions.
    pub names: NameTable,
    /// The zones by the numbers that name their buckets; empty if no limit needs zones.
    pub zones: HashMap<u64, DnsName>,
    /// The settings for the server names that clients ask for.
    pub server_names: Arc<ServerNames>,
    /// The names of the section `server-names` by the numbers that name their buckets; empty if no limit
    /// needs them.
    pub server_names_by_number: HashMap<u64, DnsName>,
    /// The secrets of the hash of names.
    pub name_keys: Arc<NameKeys>,
    /// The slots of `names`, hashed with `name_keys`.
    pub name_slots: Vec<NameSlot>,
    /// The sieves, in the policy's order.
    pub sieves: Vec<Sieve>,
    /// The uses of sieves. The uses of one sieve are consecutive.
    pub sieve_uses: Vec<SieveUse>,
    /// The units of bucket states, including units of other policies.
    pub units: Units,
}

impl CompiledPolicy {
    /// Compiles a policy with buckets of its own. A limit's index is its index in the policy.
    /// `cpus` is the number of CPUs that the datapath may run on; sieves are divided by it.
    pub fn new(policy: &Policy, cpus: u32) -> Result<Self, CompileError> {
        Self::with_units(policy, &Units::default(), cpus)
    }

    /// Compiles a policy that continues with other policies' buckets, which use the `known` units.
    pub fn with_units(policy: &Policy, known: &Units, cpus: u32) -> Result<Self, CompileError> {
        let counting = with_limits_of_answers(policy);
        let limit_count = counting.len();
        if limit_count > MAX_LIMITS as usize {
            return Err(CompileError::TooManyLimits(limit_count));
        }
        let limit_sets = LimitSets::new(&counting);
        let mut rates = Rates::default();
        let answers = AnswerLimits::new(policy, &mut rates)?;
        let (limits, defaults) = entries_and_defaults(policy, &answers, &mut rates)?;
        let mut classes = Classes::new(limit_sets, MaskTable::new(&counting), defaults);
        let [sources_v4, sources_v6] = sources::compile(policy, &mut rates, &mut classes)?;
        let mut indexed = IndexTables::default();
        let overridden = OverridesByName::new(policy, &mut rates)?;
        let (names, mut ranges) = NameTable::new(policy, overridden, &mut classes, &mut indexed);
        if names.len() > MOST_NAMES {
            return Err(CompileError::TooManyNames(names.len()));
        }
        let (classes, of_limits, mut sets) = classes.into_tables();
        let reserves = limit_sets::reserves(&policy.limits, &of_limits);
        let parameters = of_limits.into_iter().map(|(_, parameters)| parameters);
        let mut parameters: Vec<Parameters> = parameters.collect();
        let mut starts = [Child::UNUSED; Dimension::COUNT];
        for (dimension, of_dimension) in ranges_of(&counting, [sources_v4, sources_v6], &mut sets) {
            ranges += of_dimension.len();
            if ranges > MOST_RANGES {
                return Err(CompileError::TooManyRanges(ranges));
            }
            starts[dimension as usize] = indexed.add(&of_dimension);
        }
        let (sieves, sieve_uses) = sieves::compile(policy, cpus);
        let server_names = ServerNames::new(policy);
        let name_keys = NameKeys::new(&HashKey::default());
        let name_slots = names.slots(&name_keys);
        let other = connections::features(&policy.limits);
        let other = names.features(&policy.limits, name_slots.len(), &other);
        let other = names::with_cached_names(policy, &other);
        let other = server_names.features(policy.until_known, &other);
        let (units, numbers) = known.intern(&rates.units)?;
        for parameters in &mut parameters {
            // A limit without a default has no unit.
            for unit in [&mut parameters.unit, &mut parameters.stamp_unit] {
                if let Some(number) = numbers.get(*unit as usize) {
                    *unit = *number;
                }
            }
        }
        Ok(Self {
            features: Features {
                limit_count: index(limit_count),
                malformed_pass: u32::from(policy.malformed == Action::Pass),
                matches_protocols: u32::from(masks::matches_protocols(&counting)),
                matches_tcp_flags: u32::from(masks::matches_tcp_flags(&counting)),
                matches_icmp_types: masks::matches_icmp_types(&counting).into(),
                odd_units: u32::from(units.have_odd_units()),
                windows: u32::from(has_windows(policy)),
                sieve_uses: index(sieve_uses.len()),
                observing: limit_sets.observing,
                overridden_by_name: limit_sets.overridden_by_name,
                only_overridden: limit_sets.only_overridden(),
                without_tcp: limit_sets.without_tcp,
                without_ports: limit_sets.without_ports,
                later_fragments: limit_sets.later_fragments,
                of_any_protocol: limit_sets.of_any_protocol,
                reserving: limit_sets::reserving(&policy.limits),
                reserving_connections: limit_sets::reserving_connections(&policy.limits),
                automatic: limit_sets::automatic(&policy.limits),
                shared: limit_sets::shared(&policy.limits),
                answering_by_standing: answers::by_standing(&policy.limits),
                cookie_port: (policy.dns_cookies_in_use()).map_or(0, |cookies| cookies.port.into()),
                otherwise: limit_sets::fallback_limits(&policy.limits),
                own_connections: policy.exempts_own_connections().into(),
                of_answers: answers.of_families,
                of_cookies: answers.of_cookies,
                of_standing: limit_sets::of_standings(&counting),
                of_tcp_state: limit_sets::of_tcp_states(&counting),
                standing: policy
                    .standing_in_use()
                    .map_or(Settings::NONE, |settings| settings.compiled()),
                starts,
                ..other
            },
            limits,
            nodes: indexed.nodes,
            stretches: indexed.stretches,
            children: indexed.children,
            classes,
            rates: parameters,
            reserves,
            current_rates: BTreeMap::new(),
            key_shares: KeyShares::default(),
            masks: sets.into_table(),
            zones: zones_by_number(policy),
            server_names: Arc::new(server_names),
            server_names_by_number: server_names_by_number(policy),
            name_keys: Arc::new(name_keys),
            name_slots,
            names,
            sieves,
            sieve_uses,
            units,
        })
    }

    /// Returns the same policy with the kernel's secrets, so that natively it finds the same count ids and
    /// names.
    #[must_use]
    pub fn keyed(mut self, hash_key: HashKey, name_keys: NameKeys) -> Self {
        self.name_keys = Arc::new(name_keys);
        self.name_slots = self.names.slots(&self.name_keys);
        self.features.name_slots = index(self.name_slots.len());
        self.features.hash_key = hash_key;
        self
    }

    /// Returns the tables' size in memory, in bytes, without the units, which belong to the buckets.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of_val(&self.limits[..])
            + size_of_val(&self.nodes[..])
            + size_of_val(&self.stretches[..])
            + size_of_val(&self.children[..])
            + size_of_val(&self.classes[..])
            + size_of_val(&self.rates[..])
            + size_of_val(&self.reserves[..])
            + size_of_val(&self.masks[..])
            + size_of_val(&self.name_slots[..])
            + size_of_val(&self.sieves[..])
            + size_of_val(&self.sieve_uses[..])
    }
}

/// Returns the entries of the limits and the parameters of their defaults, in the order of their
/// indices.
fn entries_and_defaults(
    policy: &Policy,
    answers: &AnswerLimits,
    rates: &mut Rates,
) -> Result<(Vec<LimitEntry>, Vec<Parameters>), CompileError> {
    let limits = policy.limits.iter();
    let entries = limits.map(|limit| {
        let first = limit.counted_as(&policy.limits);
        let entry = limit_sets::with_minimum_share(limit_sets::entry_with_ceiling(limit), limit);
        answers::with_answers(entry, limit).counted_as(first)
    });
    let defaults = policy.limits.iter().map(|limit| match limit.default {
        Some(rate) => rates.parameters(limit, rate),
        // It applies only to classes with an override.
        None => Ok(Parameters::NONE),
    });
    let of_answers = answers.parameters.iter().map(|parameters| Ok(*parameters));
    Ok((
        entries.chain(answers.entries.iter().copied()).collect(),
        defaults
            .chain(of_answers)
            .collect::<Result<_, CompileError>>()?,
    ))
}

/// Returns the ranges of each dimension; `sources` has the ranges of each family.
fn ranges_of(
    limits: &[Limit],
    [sources_v4, sources_v6]: [Vec<index::Range>; 2],
    sets: &mut MaskTable,
) -> [(Dimension, Vec<index::Range>); Dimension::COUNT] {
    [
        (Dimension::SourceV4, sources_v4),
        (Dimension::SourceV6, sources_v6),
        (
            Dimension::DestinationV4,
            coverage::destinations_v4(limits, sets),
        ),
        (
            Dimension::DestinationV6,
            coverage::destinations_v6(limits, sets),
        ),
        (Dimension::SourcePort, coverage::source_ports(limits, sets)),
        (
            Dimension::DestinationPort,
            coverage::destination_ports(limits, sets),
        ),
        (Dimension::DnsType, coverage::dns_types(limits, sets)),
    ]
}

/// Returns whether any limit has a strategy other than GCRA.
fn has_windows(policy: &Policy) -> bool {
    let mut limits = policy.limits.iter();
    limits.any(|limit| limit.strategy != strategy::Strategy::Gcra)
}

impl Tables for CompiledPolicy {
    fn features(&self) -> &Features {
        &self.features
    }

    fn limit(&self, limit_index: u32) -> Option<&LimitEntry> {
        self.limits.get(limit_index as usize)
    }

    fn node(&self, index: u32) -> Option<&Node> {
        self.nodes.get(index as usize)
    }

    fn stretch(&self, index: u32) -> Option<&Stretch> {
        self.stretches.get(index as usize)
    }

    fn child(&self, index: u32) -> Option<&Child> {
        self.children.get(index as usize)
    }

    fn class(&self, index: u32) -> Option<&Class> {
        self.classes.get(index as usize)
    }

    fn rate(&self, index: u32) -> Option<&Parameters> {
        self.rates.get(index as usize)
    }

    fn reserves(&self, index: u32) -> Option<&Reserves> {
        self.reserves.get(index as usize)
    }

    fn current_rate(&self, limit: LimitId) -> CurrentRate {
        self.current_rates.get(&limit).copied().unwrap_or_default()
    }

    fn key_share(&self, bucket: &BucketKey, wanted: u64, now_ns: u64) -> Option<Parts> {
        let share = self.key_shares.want(bucket, wanted)?;
        Some(share.in_force(now_ns))
    }

    fn record_demand(&self, bucket: &BucketKey) {
        self.key_shares.record_demand(bucket);
    }

    fn mask(&self, index: u32) -> Option<&u64> {
        self.masks.get(index as usize)
    }

    fn name_keys(&self) -> &NameKeys {
        &self.name_keys
    }

    fn name(&self, index: u32) -> Option<&NameSlot> {
        self.name_slots.get(index as usize)
    }

    fn sieve(&self, index: u32) -> Option<&Sieve> {
        self.sieves.get(index as usize)
    }

    fn sieve_use(&self, index: u32) -> Option<&SieveUse> {
        self.sieve_uses.get(index as usize)
    }
}

#[cfg(test)]
mod tests;
