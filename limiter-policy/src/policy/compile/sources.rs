//! The class of each source address: turns nested prefixes into sorted, disjoint ranges.

use ipnet::IpNet;
use limiter_common::{address::Family, strategy::Parameters};

use super::{
    CompileError,
    classes::{Classes, Numbering, Settings},
    index::Range,
    list_effect::ListEffect,
    rates::Rates,
};
use crate::policy::{OverrideId, Policy, SubscriberNumber};

/// The first and the last address of a prefix, left-aligned in 128 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Block {
    pub(super) family: Family,
    pub(super) first: u128,
    pub(super) last: u128,
}

impl Block {
    pub(super) fn of(prefix: IpNet) -> Self {
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

/// The position of an IPv4 address in 128 bits.
const V4_SHIFT: u32 = 96;

/// The setting of one prefix.
pub(super) enum PrefixSetting {
    Subscriber(SubscriberNumber),
    Override(u32, Parameters),
    Listed(ListEffect),
}

/// Returns the ranges of sources of both families, starting at address 0; empty for a family without
/// prefixes.
pub(super) fn compile(
    policy: &Policy,
    rates: &mut Rates,
    classes: &mut Classes,
) -> Result<[Vec<Range>; 2], CompileError> {
    let mut prefix_settings: Vec<(Block, PrefixSetting)> = Vec::new();
    for (limit_index, limit) in (0..).zip(&policy.limits) {
        for other in &limit.overrides {
            let parameters = rates.parameters(limit, other.rate)?;
            // Overrides by name are found by the name.
            match &other.id {
                OverrideId::Prefix(prefix) => {
                    prefix_settings.push((
                        Block::of(*prefix),
                        PrefixSetting::Override(limit_index, parameters),
                    ));
                }
                OverrideId::Subscriber(number) => {
                    classes.override_subscriber(*number, limit_index, parameters);
                }
                OverrideId::Name(_)
                | OverrideId::PrefixAndName(..)
                | OverrideId::SubscriberAndName(..) => {}
            }
        }
    }
    for (number, prefixes) in &policy.subscribers {
        let blocks = prefixes.iter().map(|prefix| Block::of(*prefix));
        prefix_settings.extend(blocks.map(|block| (block, PrefixSetting::Subscriber(*number))));
    }
    for list in &policy.lists {
        if let Some(listed) = ListEffect::of(policy, &list.name) {
            let blocks = list.prefixes.iter().map(|prefix| Block::of(*prefix));
            prefix_settings.extend(blocks.map(|block| (block, PrefixSetting::Listed(listed))));
        }
    }
    Ok(ranges_of_families(
        prefix_settings,
        &Settings::default(),
        classes,
    ))
}

/// Returns the ranges of both families: the settings of prefixes, and `outside` between them. Empty for a
/// family without prefixes.
pub(super) fn ranges_of_families(
    mut prefix_settings: Vec<(Block, PrefixSetting)>,
    outside: &Settings,
    classes: &mut impl Numbering,
) -> [Vec<Range>; 2] {
    // Outer prefixes come before inner ones.
    prefix_settings.sort_unstable_by_key(|(block, _)| (block.first, u128::MAX - block.last));
    [Family::V4, Family::V6].map(|family| ranges(family, &prefix_settings, outside, classes))
}

/// Walks over the prefixes by first address, with a stack of the open ones: prefixes nest and never overlap
/// partially.
fn ranges(
    family: Family,
    prefix_settings: &[(Block, PrefixSetting)],
    outside: &Settings,
    classes: &mut impl Numbering,
) -> Vec<Range> {
    let of_family = || {
        let settings = prefix_settings.iter();
        settings.filter(|(block, _)| block.family == family)
    };
    let mut ranges = Ranges {
        family,
        outside,
        // A prefix starts a range, and another one after it.
        closed: Vec::with_capacity(1 + 2 * of_family().count()),
        open: Vec::new(),
    };
    for (block, setting) in of_family() {
        ranges.close_before(block.first, classes);
        let mut settings = ranges.settings();
        match setting {
            PrefixSetting::Subscriber(number) => settings.subscriber = Some(*number),
            PrefixSetting::Override(limit_index, parameters) => {
                settings.set(*limit_index, *parameters);
            }
            PrefixSetting::Listed(listed) => settings.listed |= *listed,
        }
        ranges.start(block.first, settings.clone(), classes);
        ranges.open.push((block.last, settings));
    }
    ranges.close_before(u128::MAX, classes);
    ranges.closed
}

struct Ranges<'s> {
    family: Family,
    outside: &'s Settings,
    /// The finished ranges. The last one ends at the next one's start.
    closed: Vec<Range>,
    /// The last addresses of the open prefixes and their settings, the innermost last.
    open: Vec<(u128, Settings)>,
}

impl Ranges<'_> {
    /// Returns the settings of the innermost open prefix.
    fn settings(&self) -> Settings {
        let innermost = self.open.last().map(|(_, settings)| settings);
        innermost.unwrap_or(self.outside).clone()
    }

    /// Closes the open prefixes that end before `address`: the outer ones apply again.
    fn close_before(&mut self, address: u128, classes: &mut impl Numbering) {
        while let Some((last, _)) = self.open.last()
            && *last < address
        {
            let after = last + 1;
            self.open.pop();
            // If prefixes end together, only the outermost starts a range after them.
            if self.open.last().is_none_or(|(outer, _)| *outer >= after) {
                self.start(after, self.settings(), classes);
            }
        }
    }

    /// Starts a range, which ends the previous one.
    fn start(&mut self, address: u128, settings: Settings, classes: &mut impl Numbering) {
        if self.closed.is_empty() && address > 0 {
            let class = classes.of(self.family, self.outside.clone());
            self.closed.push(Range {
                start: 0,
                value: class,
            });
        }
        let class = classes.of(self.family, settings);
        let same_start = self.closed.last().is_some_and(|last| last.start == address);
        if same_start {
            self.closed.pop();
        }
        if self.closed.last().is_none_or(|last| last.value != class) {
            self.closed.push(Range {
                start: address,
                value: class,
            });
        }
    }
}
