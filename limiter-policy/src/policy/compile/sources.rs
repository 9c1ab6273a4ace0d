//! Which class each source address is of: prefixes to sorted ranges.

use ipnet::IpNet;
use limiter_common::{address::Family, strategy::Budget};

use super::{
    CompileError,
    classes::{Classes, Settings},
    index::Range,
    listed::Listed,
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

/// Where an IPv4 address stands in 128 bits.
const V4_SHIFT: u32 = 96;

/// What is said of one prefix itself.
enum Saying {
    Subscriber(SubscriberNumber),
    Override(u32, Budget),
    Listed(Listed),
}

/// The ranges of sources of both families, from address 0 on; none for a family of which the
/// policy has no prefix.
pub(super) fn compile(
    policy: &Policy,
    rates: &mut Rates,
    classes: &mut Classes,
) -> Result<[Vec<Range>; 2], CompileError> {
    let mut sayings: Vec<(Block, Saying)> = Vec::new();
    for (slot, limit) in (0..).zip(&policy.limits) {
        for other in &limit.overrides {
            let budget = rates.budget(limit, other.rate)?;
            match other.id {
                OverrideId::Prefix(prefix) => {
                    sayings.push((Block::of(prefix), Saying::Override(slot, budget)));
                }
                OverrideId::Subscriber(number) => classes.override_subscriber(number, slot, budget),
            }
        }
    }
    for (number, prefixes) in &policy.subscribers {
        let blocks = prefixes.iter().map(|prefix| Block::of(*prefix));
        sayings.extend(blocks.map(|block| (block, Saying::Subscriber(*number))));
    }
    for list in &policy.lists {
        if let Some(listed) = Listed::of(policy, &list.name) {
            let blocks = list.prefixes.iter().map(|prefix| Block::of(*prefix));
            sayings.extend(blocks.map(|block| (block, Saying::Listed(listed))));
        }
    }
    // Outer prefixes before those inside them.
    sayings.sort_unstable_by_key(|(block, _)| (block.first, u128::MAX - block.last));
    Ok([Family::V4, Family::V6].map(|family| ranges(family, &sayings, classes)))
}

/// Walks over the prefixes by first address with a stack of those that are open: prefixes
/// nest, they never overlap in part.
fn ranges(family: Family, sayings: &[(Block, Saying)], classes: &mut Classes) -> Vec<Range> {
    let mut ranges = Ranges {
        family,
        closed: Vec::new(),
        open: Vec::new(),
    };
    for (block, saying) in sayings.iter().filter(|(block, _)| block.family == family) {
        ranges.close_before(block.first, classes);
        let mut settings = ranges.settings();
        match saying {
            Saying::Subscriber(number) => settings.subscriber = Some(*number),
            Saying::Override(slot, budget) => settings.set(*slot, *budget),
            Saying::Listed(listed) => settings.listed |= *listed,
        }
        ranges.start(block.first, settings.clone(), classes);
        ranges.open.push((block.last, settings));
    }
    ranges.close_before(u128::MAX, classes);
    ranges.closed
}

struct Ranges {
    family: Family,
    /// The last of them ends where the next one will start.
    closed: Vec<Range>,
    /// The last addresses of the open prefixes and what holds in them, the innermost last.
    open: Vec<(u128, Settings)>,
}

impl Ranges {
    /// What holds where nothing more is said.
    fn settings(&self) -> Settings {
        self.open
            .last()
            .map_or_else(Settings::default, |(_, settings)| settings.clone())
    }

    /// Closes the open prefixes that end before `address`: what lies outside is on again.
    fn close_before(&mut self, address: u128, classes: &mut Classes) {
        while let Some((last, _)) = self.open.last()
            && *last < address
        {
            let after = last + 1;
            self.open.pop();
            // Of prefixes that end together, only the outermost gives back to what is outside.
            if self.open.last().is_none_or(|(outer, _)| *outer >= after) {
                self.start(after, self.settings(), classes);
            }
        }
    }

    /// Starts a range, which ends the one before.
    fn start(&mut self, address: u128, settings: Settings, classes: &mut Classes) {
        if self.closed.is_empty() && address > 0 {
            let class = classes.of(self.family, Settings::default());
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
