//! The sources with drops, and how long each was held off.

use std::{cmp::Reverse, collections::HashMap, net::IpAddr};

use limiter_common::{address::Address, counters::Traffic, reason::Action};

use super::ReplayedPacket;

/// The most sources to track, which keeps memory below about 100 MB under any flood.
const MOST: usize = 1 << 18;

/// Tracks the sources with drops.
#[derive(Debug, Default)]
pub struct Sources {
    followed: HashMap<Address, SourceDrops>,
    /// Drops of sources beyond [`MOST`].
    missed: u64,
}

#[derive(Debug)]
struct SourceDrops {
    dropped: Traffic,
    /// Drops by limit index; only a few entries.
    by_limit: Vec<(u32, u64)>,
    first_ns: i64,
    last_ns: i64,
    held: LongestHold,
}

/// The longest time of a source without a packet that passed.
#[derive(Debug, Default)]
struct LongestHold {
    /// The time of the first drop since the last pass.
    since_ns: Option<i64>,
    longest_ns: u64,
}

/// A source with drops.
#[derive(Clone, Debug)]
pub struct DroppedSource {
    /// Its address.
    pub address: IpAddr,
    /// Its dropped packets.
    pub dropped: Traffic,
    /// The indices of the limits that dropped it, with their numbers of packets, most first.
    pub by_limit: Vec<(u32, u64)>,
    /// The time of the first drop, in nanoseconds since the capture's first packet.
    pub first_ns: i64,
    /// The time of the last drop, likewise.
    pub last_ns: i64,
    /// The longest time from a drop to the next packet that passed, in nanoseconds.
    pub held_ns: u64,
    /// Whether no packet has passed since, so that `held_ns` extends only to the last drop.
    pub still_held: bool,
}

impl Sources {
    /// Adds a packet.
    pub fn add(&mut self, packet: &ReplayedPacket) {
        let Some(source) = packet.source else {
            return;
        };
        match packet.action {
            Action::Pass => {
                if self.followed.is_empty() {
                    return;
                }
                if let Some(followed) = self.followed.get_mut(&source)
                    && let Some(since_ns) = followed.held.since_ns.take()
                {
                    followed.held.at_least(since_ns, packet.t_ns);
                }
            }
            Action::Drop => self.add_drop(source, packet),
        }
    }

    fn add_drop(&mut self, source: Address, packet: &ReplayedPacket) {
        let full = self.followed.len() >= MOST;
        if full && !self.followed.contains_key(&source) {
            self.missed += 1;
            return;
        }
        let followed = self.followed.entry(source).or_insert_with(|| SourceDrops {
            dropped: Traffic::default(),
            by_limit: Vec::new(),
            first_ns: packet.t_ns,
            last_ns: packet.t_ns,
            held: LongestHold::default(),
        });
        followed.dropped += Traffic::of_frame(packet.length);
        followed.first_ns = followed.first_ns.min(packet.t_ns);
        followed.last_ns = followed.last_ns.max(packet.t_ns);
        followed.held.since_ns.get_or_insert(packet.t_ns);
        if let Some(refused_by) = packet.verdict.refused_by() {
            let limits = &mut followed.by_limit;
            match limits
                .iter_mut()
                .find(|(limit_index, _)| *limit_index == refused_by)
            {
                Some((_, packets)) => *packets += 1,
                None => limits.push((refused_by, 1)),
            }
        }
    }

    /// Returns how many packets of untracked sources were dropped.
    #[must_use]
    pub const fn missed(&self) -> u64 {
        self.missed
    }

    /// Returns the number of tracked sources.
    #[must_use]
    pub fn len(&self) -> usize {
        self.followed.len()
    }

    /// Returns whether no source had drops.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.followed.is_empty()
    }

    /// Returns the sources with the most dropped packets.
    #[must_use]
    pub fn dropped_most(&self, most: usize) -> Vec<DroppedSource> {
        let mut sources: Vec<_> = self.followed.iter().collect();
        sources.sort_by_key(|(address, followed)| {
            (Reverse(followed.dropped.packets), IpAddr::from(**address))
        });
        sources.truncate(most);
        sources
            .into_iter()
            .map(|(address, followed)| followed.summary(*address))
            .collect()
    }
}

impl SourceDrops {
    fn summary(&self, address: Address) -> DroppedSource {
        let mut by_limit = self.by_limit.clone();
        by_limit.sort_by_key(|(limit_index, packets)| (Reverse(*packets), *limit_index));
        // An open hold lasts at least until the last drop.
        let open_ns = self.held.since_ns.map(|since| self.last_ns.abs_diff(since));
        let still_held = open_ns.is_some_and(|open| open >= self.held.longest_ns);
        DroppedSource {
            address: address.into(),
            dropped: self.dropped,
            by_limit,
            first_ns: self.first_ns,
            last_ns: self.last_ns,
            held_ns: self.held.longest_ns.max(open_ns.unwrap_or(0)),
            still_held,
        }
    }
}

impl LongestHold {
    /// Extends the longest hold; counts as zero if the clock went back in between.
    fn at_least(&mut self, since_ns: i64, until_ns: i64) {
        let held_ns = until_ns.saturating_sub(since_ns).max(0).unsigned_abs();
        self.longest_ns = self.longest_ns.max(held_ns);
    }
}

#[cfg(test)]
mod tests {
    use limiter_common::{decide::Verdict, reason::Reason};

    use super::*;

    const SOURCE: Address = Address::v4([192, 0, 2, 1]);

    fn packet(t_ns: i64, reason: Reason, source: Address) -> ReplayedPacket {
        ReplayedPacket {
            number: 1,
            t_ns,
            length: 100,
            cut: false,
            verdict: Verdict::without_limits(reason),
            action: reason.action(Action::Drop),
            source: Some(source),
            strictest: None,
        }
    }

    fn follow(packets: &[(i64, Reason)]) -> DroppedSource {
        let mut sources = Sources::default();
        for (t_ns, reason) in packets {
            sources.add(&packet(*t_ns, *reason, SOURCE));
        }
        sources.dropped_most(1).remove(0)
    }

    #[test]
    fn held_from_the_first_drop_to_the_next_pass() {
        use Reason::{OverLimit, WithinLimits};
        let source = follow(&[
            (0, WithinLimits),
            (10, OverLimit),
            (20, OverLimit),
            (35, WithinLimits),
            (40, OverLimit),
            (50, WithinLimits),
        ]);
        assert_eq!((source.held_ns, source.still_held), (25, false));
        assert_eq!((source.first_ns, source.last_ns), (10, 40));
        assert_eq!((source.dropped.packets, source.dropped.bytes), (3, 300));
    }

    #[test]
    fn a_hold_that_does_not_end_lasts_at_least_to_the_last_drop() {
        let source = follow(&[(10, Reason::OverLimit), (40, Reason::OverLimit)]);
        assert_eq!((source.held_ns, source.still_held), (30, true));
    }

    #[test]
    fn a_flood_of_sources_is_not_followed_for_ever() {
        let mut sources = Sources::default();
        let most = u32::try_from(MOST).unwrap();
        for number in 0..most + 7 {
            let source = Address::v4(number.to_be_bytes());
            sources.add(&packet(0, Reason::OverLimit, source));
        }
        assert_eq!((sources.len(), sources.missed()), (MOST, 7));
    }
}
