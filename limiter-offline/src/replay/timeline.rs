//! Counts packets over time by fate, in constant memory.

use limiter_common::reason::{Action, REASON_COUNT, Reason};

use super::ReplayedPacket;

/// The narrowest bin in nanoseconds: shorter ones would show single packets as rates of millions.
const NARROWEST_NS: u64 = 1_000_000;

/// The most bins; a time beyond the last one merges neighbours.
const MOST_BINS: usize = 200;

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It passed.
    Passed,
    /// The limit with this index dropped it.
    DroppedBy(u32),
    /// It was dropped for this reason, not by a limit.
    DroppedFor(Reason),
}

/// Counts packets by time and fate.
#[derive(Clone, Debug)]
pub struct Timeline {
    limits: usize,
    width_ns: u64,
    /// The packets of each fate, by bin.
    bins: Vec<Vec<u64>>,
    end_ns: u64,
}

impl Timeline {
    /// Makes an empty timeline for a number of limits.
    #[must_use]
    pub fn new(limits: usize) -> Self {
        Self {
            limits,
            width_ns: NARROWEST_NS,
            bins: Vec::new(),
            end_ns: 0,
        }
    }

    /// Counts a packet; a time before the first packet counts as the first packet's.
    pub fn add(&mut self, packet: &ReplayedPacket) {
        let t_ns = u64::try_from(packet.t_ns).unwrap_or(0);
        self.end_ns = self.end_ns.max(t_ns);
        let fate = match (packet.action, packet.verdict.refused_by()) {
            (Action::Pass, _) => Fate::Passed,
            (Action::Drop, Some(limit_index)) => Fate::DroppedBy(limit_index),
            (Action::Drop, None) => Fate::DroppedFor(packet.verdict.reason),
        };
        let mut bin = self.bin_of(t_ns);
        while bin >= MOST_BINS {
            self.merge();
            bin = self.bin_of(t_ns);
        }
        if bin >= self.bins.len() {
            self.bins.resize(bin + 1, vec![0; self.columns()]);
        }
        let column = self.column(fate);
        self.bins[bin][column] += 1;
    }

    /// Returns the bin of a time; saturates far beyond the last bin.
    fn bin_of(&self, t_ns: u64) -> usize {
        usize::try_from(t_ns / self.width_ns).unwrap_or(usize::MAX)
    }

    /// Widens the bins: from 1 to 2 to 10 times a power of ten.
    fn merge(&mut self) {
        let power_of_ten = 10_u64.pow(self.width_ns.ilog10());
        let factor = if self.width_ns == power_of_ten { 2 } else { 5 };
        self.width_ns *= factor as u64;
        let columns = self.columns();
        self.bins = self
            .bins
            .chunks(factor)
            .map(|bins| {
                let mut merged = vec![0; columns];
                for bin in bins {
                    for (sum, packets) in merged.iter_mut().zip(bin) {
                        *sum += packets;
                    }
                }
                merged
            })
            .collect();
    }

    fn column(&self, fate: Fate) -> usize {
        match fate {
            Fate::Passed => 0,
            Fate::DroppedBy(limit_index) => 1 + limit_index as usize,
            Fate::DroppedFor(reason) => 1 + self.limits + reason as usize,
        }
    }

    const fn columns(&self) -> usize {
        1 + self.limits + REASON_COUNT as usize
    }

    /// Returns all fates, [`Fate::Passed`] first.
    pub fn fates(&self) -> impl Iterator<Item = Fate> {
        let limits = (0..).take(self.limits).map(Fate::DroppedBy);
        [Fate::Passed]
            .into_iter()
            .chain(limits)
            .chain(Reason::ALL.iter().copied().map(Fate::DroppedFor))
    }

    /// Returns the packets of a fate, bin by bin.
    pub fn packets(&self, fate: Fate) -> impl Iterator<Item = u64> {
        let column = self.column(fate);
        self.bins.iter().map(move |bin| bin[column])
    }

    /// Returns the width of a bin in nanoseconds.
    #[must_use]
    pub const fn width_ns(&self) -> u64 {
        self.width_ns
    }

    /// Returns the time of the last packet, in nanoseconds.
    #[must_use]
    pub const fn end_ns(&self) -> u64 {
        self.end_ns
    }
}

#[cfg(test)]
mod tests {
    use limiter_common::{decide::Verdict, reason::Reason};

    use super::*;

    const MS: u64 = 1_000_000;

    fn packet(t_ns: i64, reason: Reason) -> ReplayedPacket {
        ReplayedPacket {
            number: 1,
            t_ns,
            length: 60,
            cut: false,
            verdict: Verdict::without_limits(reason),
            action: reason.action(Action::Drop),
            source: None,
            strictest: None,
        }
    }

    #[test]
    fn no_packet_is_lost_when_bins_are_merged() {
        let mut timeline = Timeline::new(1);
        let mut widths = Vec::new();
        for second in 0..1_000_i64 {
            for t_ns in [second * 50_000_000, second * 50_000_000 + 1] {
                timeline.add(&packet(t_ns, Reason::NotIp));
            }
            timeline.add(&packet(0, Reason::MalformedTcp));
            widths.push(timeline.width_ns() / MS);
        }
        widths.dedup();
        assert_eq!(widths, [1, 2, 10, 20, 100, 200, 1_000]);
        let passed: Vec<_> = timeline.packets(Fate::Passed).collect();
        assert_eq!(passed, [40; 50]);
        let malformed = Fate::DroppedFor(Reason::MalformedTcp);
        assert_eq!(timeline.packets(malformed).next(), Some(1_000));
        let banned = Fate::DroppedFor(Reason::Banned);
        assert_eq!(timeline.packets(banned).sum::<u64>(), 0);
        assert_eq!(timeline.packets(Fate::DroppedBy(0)).sum::<u64>(), 0);
    }

    #[test]
    fn before_the_first_packet_is_at_its_start() {
        let mut timeline = Timeline::new(0);
        timeline.add(&packet(-5, Reason::NotIp));
        assert_eq!(timeline.packets(Fate::Passed).collect::<Vec<_>>(), [1]);
    }
}
