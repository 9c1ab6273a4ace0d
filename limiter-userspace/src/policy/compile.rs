//! Compiles a policy to the tables that the datapath reads.

use std::collections::HashMap;

use ipnet::IpNet;
use limiter_common::{
    address::Family,
    gcra::Gcra,
    limit::{LimitId, MAX_LIMITS},
    policy::{Class, DEFAULT_CLASS, LimitEntry, Range, Tables},
};
use thiserror::Error;

use super::{Limit, OverrideId, Policy, Rate};

/// A policy that the datapath cannot hold.
#[derive(Debug, Error)]
pub enum CompileError {
    /// The bits of a packet's matching limits would not fit one word.
    #[error("{0} limits are configured, but at most {MAX_LIMITS} fit")]
    TooManyLimits(usize),
    /// A rate that no bucket can count.
    #[error("limit {limit}: {rate:?} is outside what a bucket can count")]
    Rate {
        /// The limit's name.
        limit: String,
        /// The rate.
        rate: Rate,
    },
    /// The look-up's bounded search would not reach every range.
    #[error(
        "the overrides cut the addresses into {0} ranges, but at most {MAX_RANGES} can be searched"
    )]
    TooManyRanges(usize),
}

/// What 24 steps of a binary search can tell apart.
const MAX_RANGES: usize = 1 << 24;

/// The tables of one policy, in memory: written to the kernel's maps, and read by the same
/// decision core when it runs natively.
#[derive(Clone, Debug)]
pub struct CompiledPolicy {
    /// The limits, by slot.
    pub limits: Vec<LimitEntry>,
    /// The ranges of IPv4 addresses; empty when none has an override.
    pub ranges_v4: Vec<Range>,
    /// The ranges of IPv6 addresses; empty when none has an override.
    pub ranges_v6: Vec<Range>,
    /// The classes; the first is that of addresses without an override.
    pub classes: Vec<Class>,
    /// The overrides' parameters, those of one class together.
    pub overrides: Vec<Gcra>,
}

/// What one prefix overrides: the slot of a limit, and its parameters there.
type Override = (u32, Gcra);

impl CompiledPolicy {
    /// Compiles a policy; the slot of a limit is its place in it.
    pub fn new(policy: &Policy) -> Result<Self, CompileError> {
        if policy.limits.len() > MAX_LIMITS as usize {
            return Err(CompileError::TooManyLimits(policy.limits.len()));
        }
        let mut limits = Vec::with_capacity(policy.limits.len());
        let mut prefixes = Vec::new();
        for (slot, limit) in (0..).zip(&policy.limits) {
            let default = limit.default.map(|rate| gcra(limit, rate)).transpose()?;
            limits.push(LimitEntry::new(
                limit.id,
                limit.id_format,
                limit.cost,
                default,
            ));
            for other in &limit.overrides {
                if let OverrideId::Prefix(prefix) = other.id {
                    prefixes.push((Block::of(prefix), (slot, gcra(limit, other.rate)?)));
                }
            }
        }
        // Outer prefixes before those inside them.
        prefixes.sort_by_key(|(block, (slot, _))| (block.first, u128::MAX - block.last, *slot));

        let mut classes = Classes::default();
        let (ranges_v4, ranges_v6) = (
            ranges(Family::V4, &prefixes, &mut classes),
            ranges(Family::V6, &prefixes, &mut classes),
        );
        for ranges in [&ranges_v4, &ranges_v6] {
            if ranges.len() > MAX_RANGES {
                return Err(CompileError::TooManyRanges(ranges.len()));
            }
        }
        Ok(Self {
            limits,
            ranges_v4,
            ranges_v6,
            classes: classes.table,
            overrides: classes.overrides,
        })
    }
}

fn gcra(limit: &Limit, rate: Rate) -> Result<Gcra, CompileError> {
    Gcra::new(rate.burst, rate.count, rate.period_ns).ok_or_else(|| CompileError::Rate {
        limit: limit.name.clone(),
        rate,
    })
}

/// The first and the last address of a prefix, left-aligned in 128 bits.
#[derive(Clone, Copy)]
struct Block {
    family: Family,
    first: u128,
    last: u128,
}

impl Block {
    fn of(prefix: IpNet) -> Self {
        let (family, first) = match prefix {
            IpNet::V4(prefix) => (
                Family::V4,
                u128::from(u32::from(prefix.network())) << V4_SHIFT,
            ),
            IpNet::V6(prefix) => (Family::V6, u128::from(prefix.network())),
        };
        let host_bits = u128::MAX
            .checked_shr(prefix.prefix_len().into())
            .unwrap_or(0);
        Self {
            family,
            first,
            last: first | host_bits,
        }
    }
}

/// Where an IPv4 address stands in 128 bits.
const V4_SHIFT: u32 = 96;

/// The distinct sets of overrides.
struct Classes {
    table: Vec<Class>,
    overrides: Vec<Gcra>,
    known: HashMap<Vec<Override>, u32>,
}

impl Default for Classes {
    fn default() -> Self {
        Self {
            table: vec![Class::default()],
            overrides: Vec::new(),
            known: HashMap::from([(Vec::new(), DEFAULT_CLASS)]),
        }
    }
}

impl Classes {
    /// The class of a set of overrides, sorted by slot.
    fn of(&mut self, set: Vec<Override>) -> u32 {
        if let Some(class) = self.known.get(&set) {
            return *class;
        }
        let class = index(self.table.len());
        self.table.push(Class {
            overridden: set.iter().fold(0, |bits, (slot, _)| bits | 1 << slot),
            first_override: index(self.overrides.len()),
            reserved: 0,
        });
        self.overrides.extend(set.iter().map(|(_, gcra)| *gcra));
        self.known.insert(set, class);
        class
    }
}

/// An index into a table: no table has more entries than a policy file has bytes.
fn index(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

/// The ranges of a family's addresses, from address 0 on, none if no prefix is of it.
///
/// Walks over the prefixes by first address with a stack of those that are open: prefixes
/// nest, they never overlap in part.
fn ranges(family: Family, prefixes: &[(Block, Override)], classes: &mut Classes) -> Vec<Range> {
    let mut ranges = Ranges::default();
    let mut open: Vec<(u128, Vec<Override>)> = Vec::new();
    for (block, (slot, gcra)) in prefixes.iter().filter(|(block, _)| block.family == family) {
        ranges.close_before(block.first, &mut open, classes);
        let mut set = open.last().map_or_else(Vec::new, |(_, set)| set.clone());
        match set.binary_search_by_key(slot, |(slot, _)| *slot) {
            Ok(place) => set[place].1 = *gcra,
            Err(place) => set.insert(place, (*slot, *gcra)),
        }
        ranges.start(block.first, classes.of(set.clone()));
        open.push((block.last, set));
    }
    ranges.close_before(u128::MAX, &mut open, classes);
    ranges.0
}

#[derive(Default)]
struct Ranges(Vec<Range>);

impl Ranges {
    /// Closes the open prefixes that end before `address`: what lies outside is on again.
    fn close_before(
        &mut self,
        address: u128,
        open: &mut Vec<(u128, Vec<Override>)>,
        classes: &mut Classes,
    ) {
        while let Some((last, _)) = open.last()
            && *last < address
        {
            let after = last + 1;
            open.pop();
            // Of prefixes that end together, only the outermost gives back to what is outside.
            if open.last().is_none_or(|(outer, _)| *outer >= after) {
                let set = open.last().map_or_else(Vec::new, |(_, set)| set.clone());
                self.start(after, classes.of(set));
            }
        }
    }

    /// Starts a range, which ends the one before.
    fn start(&mut self, address: u128, class: u32) {
        if self.0.is_empty() && address > 0 {
            self.0.push(range(0, DEFAULT_CLASS));
        }
        let same_start = self.0.last().is_some_and(|last| first_of(*last) == address);
        if same_start {
            self.0.pop();
        }
        if self.0.last().is_none_or(|last| last.class != class) {
            self.0.push(range(address, class));
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "takes the two halves apart"
)]
fn range(address: u128, class: u32) -> Range {
    Range {
        high: (address >> 64) as u64,
        low: address as u64,
        class,
        reserved: 0,
    }
}

fn first_of(range: Range) -> u128 {
    u128::from(range.high) << 64 | u128::from(range.low)
}

impl Tables for CompiledPolicy {
    fn limit_count(&self) -> u32 {
        index(self.limits.len())
    }

    fn limit(&self, slot: u32) -> Option<&LimitEntry> {
        self.limits.get(slot as usize)
    }

    fn range_count(&self, family: Family) -> u32 {
        index(self.ranges_of(family).len())
    }

    fn range(&self, family: Family, index: u32) -> Option<&Range> {
        self.ranges_of(family).get(index as usize)
    }

    fn class(&self, index: u32) -> Option<&Class> {
        self.classes.get(index as usize)
    }

    fn override_at(&self, index: u32) -> Option<&Gcra> {
        self.overrides.get(index as usize)
    }
}

impl CompiledPolicy {
    fn ranges_of(&self, family: Family) -> &[Range] {
        match family {
            Family::V4 => &self.ranges_v4,
            Family::V6 => &self.ranges_v6,
        }
    }

    /// The interned ids of the limits, by slot.
    pub fn limit_ids(&self) -> impl Iterator<Item = LimitId> {
        self.limits.iter().map(|limit| LimitId(limit.id))
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use limiter_common::{
        limit::{Cost, IdFormat},
        policy::{classify, parameters},
    };
    use proptest::prelude::*;

    use super::*;
    use crate::policy::Override;

    fn rate(burst: u64) -> Rate {
        Rate {
            burst,
            count: 1,
            period_ns: 1_000_000_000,
        }
    }

    /// One limit a list of prefixes; the default's burst is 1, the overrides' their number.
    fn policy(limits: &[Vec<IpNet>]) -> Policy {
        let mut burst = 1;
        let limits = (1..).zip(limits).map(|(id, prefixes)| Limit {
            name: format!("Limit{id}"),
            id: LimitId(id),
            id_format: IdFormat::IpAddress,
            cost: Cost::Packets,
            default: Some(rate(1)),
            overrides: prefixes
                .iter()
                .map(|prefix| {
                    burst += 1;
                    Override {
                        id: *prefix,
                        rate: rate(burst),
                        comment: None,
                    }
                })
                .collect(),
        });
        Policy {
            limits: limits.collect(),
        }
    }

    fn compiled_burst(tables: &CompiledPolicy, source: IpAddr, slot: u32) -> u64 {
        let class = classify(tables, source.into());
        let limit = tables.limit(slot).unwrap();
        parameters(tables, limit, class, slot).unwrap().burst
    }

    /// The longest prefix, by asking each.
    fn naive_burst(policy: &Policy, source: IpAddr, slot: usize) -> u64 {
        policy.limits[slot]
            .overrides
            .iter()
            .filter(|other| other.id.contains(&source))
            .max_by_key(|other| other.id.prefix_len())
            .map_or(1, |other| other.rate.burst)
    }

    /// Prefixes crowded into few addresses, so that they nest, touch and repeat.
    fn prefix() -> impl Strategy<Value = IpNet> {
        let v4 = (0u32..64, 0u8..=32).prop_map(|(bits, length)| {
            let shift = if bits % 2 == 0 { 0 } else { 26 };
            IpNet::new(IpAddr::V4((bits << shift).into()), length)
                .unwrap()
                .trunc()
        });
        let v6 = (0u128..64, 0u8..=128).prop_map(|(bits, length)| {
            let shift = [0, 61, 64, 122][(bits % 4) as usize];
            IpNet::new(IpAddr::V6((bits << shift).into()), length)
                .unwrap()
                .trunc()
        });
        prop_oneof![v4, v6]
    }

    proptest! {
        #[test]
        fn the_longest_prefix_wins(
            limits in prop::collection::vec(prop::collection::hash_set(prefix(), 0..24), 1..4),
            probes in prop::collection::vec(prefix(), 1..32),
        ) {
            let limits: Vec<Vec<IpNet>> =
                limits.into_iter().map(|set| set.into_iter().collect()).collect();
            let policy = policy(&limits);
            let tables = CompiledPolicy::new(&policy).unwrap();
            let edges = limits.iter().flatten().chain(&probes)
                .flat_map(|prefix| [prefix.network(), prefix.broadcast()]);
            for source in edges {
                for slot in 0..limits.len() {
                    prop_assert_eq!(
                        compiled_burst(&tables, source, u32::try_from(slot).unwrap()),
                        naive_burst(&policy, source, slot),
                        "{} in slot {}", source, slot
                    );
                }
            }
        }
    }

    #[test]
    fn equal_overrides_share_a_class() {
        let mut policy = policy(&[vec![
            "10.0.0.1/32".parse().unwrap(),
            "10.0.0.9/32".parse().unwrap(),
        ]]);
        for other in &mut policy.limits[0].overrides {
            other.rate = rate(7);
        }
        let tables = CompiledPolicy::new(&policy).unwrap();
        assert_eq!(tables.classes.len(), 2);
        assert_eq!(tables.overrides.len(), 1);
        assert_eq!(tables.ranges_v4.len(), 5);
        assert_eq!(tables.ranges_v6.len(), 0);
    }
}
