//! Compiles a policy to the tables that the datapath reads.

mod classes;
mod coverage;
mod index;
mod listed;
mod masks;
mod rates;
mod sieves;
mod slots;
mod sources;

use limiter_common::{
    limit::MAX_LIMITS,
    policy::{Class, Dimension, LimitEntry, Node, Shape, Slot, Stretch, Tables},
    reason::Action,
    sieve::{Sieve, SieveUse},
    strategy::{self, Budget},
};
use thiserror::Error;

use self::{classes::Classes, index::Indexed, masks::Sets, rates::Rates, slots::Slots};
use super::{Policy, Rate, TooManyUnits, Units};

/// A policy that the datapath cannot hold.
#[derive(Debug, Error)]
pub enum CompileError {
    /// A set of limits would not fit one word.
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
    /// The tables would not fit into memory.
    #[error(
        "overrides, subscribers, lists and matches cut addresses and ports into {0} ranges, but at \
         most {MOST_RANGES} fit"
    )]
    TooManyRanges(usize),
    /// The buckets' units would not fit their numbers.
    #[error(transparent)]
    TooManyUnits(#[from] TooManyUnits),
}

/// Ranges of all dimensions together.
const MOST_RANGES: usize = 1 << 24;

/// The tables of one policy, in memory: written to the kernel's maps, and read by the same
/// decision core when it runs natively.
#[derive(Clone, Debug)]
pub struct CompiledPolicy {
    /// How much of everything there is.
    pub shape: Shape,
    /// The limits, by slot.
    pub limits: Vec<LimitEntry>,
    /// How values are divided, until one value of the policy is left.
    pub nodes: Vec<Node>,
    /// Where ranges start, the stretches of one node together.
    pub stretches: Vec<Stretch>,
    /// What is left between those starts.
    pub slots: Vec<Slot>,
    /// The classes; the first two are those of addresses that no prefix contains.
    pub classes: Vec<Class>,
    /// The parameters of the limits' defaults by slot, and behind them those of overrides, those
    /// of one class together.
    pub rates: Vec<Budget>,
    /// The sets of limits by protocol and by TCP flags, and those of ranges.
    pub masks: Vec<u64>,
    /// The sieves, as the policy has them.
    pub sieves: Vec<Sieve>,
    /// Their uses, those of one sieve together.
    pub sieve_uses: Vec<SieveUse>,
    /// The units that buckets count in, those of other policies included.
    pub units: Units,
}

impl CompiledPolicy {
    /// Compiles a policy whose buckets are its own; the slot of a limit is its place in it. `cpus`:
    /// how many CPUs its datapath may run on, which sieves are divided by.
    pub fn new(policy: &Policy, cpus: u32) -> Result<Self, CompileError> {
        Self::with_units(policy, &Units::default(), cpus)
    }

    /// Compiles a policy that goes on with the buckets of others, which count in the units that
    /// are `known`.
    pub fn with_units(policy: &Policy, known: &Units, cpus: u32) -> Result<Self, CompileError> {
        if policy.limits.len() > MAX_LIMITS as usize {
            return Err(CompileError::TooManyLimits(policy.limits.len()));
        }
        let slots = Slots::new(&policy.limits);
        let mut rates = Rates::default();
        let limits = policy
            .limits
            .iter()
            .map(|limit| LimitEntry::new(limit.id, limit.id_format, limit.cost))
            .collect();
        let defaults = policy
            .limits
            .iter()
            .map(|limit| match limit.default {
                Some(rate) => rates.budget(limit, rate),
                // It applies to no class without an override.
                None => Ok(Budget::NONE),
            })
            .collect::<Result<_, CompileError>>()?;

        let mut classes = Classes::new(slots, Sets::new(&policy.limits), defaults);
        let [sources_v4, sources_v6] = sources::compile(policy, &mut rates, &mut classes)?;
        let (classes, mut budgets, mut sets) = classes.into_tables();
        let mut indexed = Indexed::default();
        let mut starts = [Slot::UNUSED; Dimension::COUNT];
        let mut ranges = 0;
        for (dimension, of_dimension) in [
            (Dimension::SourceV4, sources_v4),
            (Dimension::SourceV6, sources_v6),
            (
                Dimension::DestinationV4,
                coverage::destinations_v4(&policy.limits, &mut sets),
            ),
            (
                Dimension::DestinationV6,
                coverage::destinations_v6(&policy.limits, &mut sets),
            ),
            (
                Dimension::SourcePort,
                coverage::source_ports(&policy.limits, &mut sets),
            ),
            (
                Dimension::DestinationPort,
                coverage::destination_ports(&policy.limits, &mut sets),
            ),
        ] {
            ranges += of_dimension.len();
            if ranges > MOST_RANGES {
                return Err(CompileError::TooManyRanges(ranges));
            }
            starts[dimension as usize] = indexed.add(&of_dimension);
        }
        let (sieves, sieve_uses) = sieves::compile(policy, cpus);
        let (units, numbers) = known.intern(&rates.units)?;
        for budget in &mut budgets {
            // A limit that has no default has no unit either.
            for unit in [&mut budget.unit, &mut budget.stamp_unit] {
                if let Some(number) = numbers.get(*unit as usize) {
                    *unit = *number;
                }
            }
        }
        Ok(Self {
            shape: Shape {
                limit_count: index(policy.limits.len()),
                malformed_pass: u32::from(policy.malformed == Action::Pass),
                matches_protocols: u32::from(masks::matches_protocols(&policy.limits)),
                matches_tcp_flags: u32::from(masks::matches_tcp_flags(&policy.limits)),
                odd_units: u32::from(units.have_odd_units()),
                windows: u32::from(has_windows(policy)),
                sieve_uses: index(sieve_uses.len()),
                observing: slots.observing,
                without_tcp: slots.without_tcp,
                without_ports: slots.without_ports,
                later_fragments: slots.later_fragments,
                of_any_protocol: slots.of_any_protocol,
                starts,
                ..Shape::EMPTY
            },
            limits,
            nodes: indexed.nodes,
            stretches: indexed.stretches,
            slots: indexed.slots,
            classes,
            rates: budgets,
            masks: sets.into_table(),
            sieves,
            sieve_uses,
            units,
        })
    }

    /// How many bytes of memory the tables take, without the units, which belong to the buckets.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of_val(&self.limits[..])
            + size_of_val(&self.nodes[..])
            + size_of_val(&self.stretches[..])
            + size_of_val(&self.slots[..])
            + size_of_val(&self.classes[..])
            + size_of_val(&self.rates[..])
            + size_of_val(&self.masks[..])
            + size_of_val(&self.sieves[..])
            + size_of_val(&self.sieve_uses[..])
    }
}

/// An index into a table: no table has more entries than a policy file has bytes.
fn index(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

/// Whether a limit has another strategy than GCRA.
fn has_windows(policy: &Policy) -> bool {
    let mut limits = policy.limits.iter();
    limits.any(|limit| limit.strategy != strategy::Strategy::Gcra)
}

impl Tables for CompiledPolicy {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn limit(&self, slot: u32) -> Option<&LimitEntry> {
        self.limits.get(slot as usize)
    }

    fn node(&self, index: u32) -> Option<&Node> {
        self.nodes.get(index as usize)
    }

    fn stretch(&self, index: u32) -> Option<&Stretch> {
        self.stretches.get(index as usize)
    }

    fn slot(&self, index: u32) -> Option<&Slot> {
        self.slots.get(index as usize)
    }

    fn class(&self, index: u32) -> Option<&Class> {
        self.classes.get(index as usize)
    }

    fn rate(&self, index: u32) -> Option<&Budget> {
        self.rates.get(index as usize)
    }

    fn mask(&self, index: u32) -> Option<&u64> {
        self.masks.get(index as usize)
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
