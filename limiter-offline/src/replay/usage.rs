//! The usage of the limits by a single source, packet by packet.
//!
//! It is comparable with a limit's count only for a capture of one source: then each limit charges a single
//! bucket, regardless of its ids. Every packet is kept, so the capture must be short.

use std::collections::BTreeMap;

use limiter_common::{address::Address, limit::Cost, reason::Action};

use super::ReplayedPacket;

/// The most packets to keep.
const MOST_PACKETS: usize = 4_096;

/// A packet of the source.
#[derive(Clone, Copy, Debug)]
struct Packet {
    t_ns: u64,
    length: u64,
    /// The limits that it was charged to.
    charged: u64,
    /// The limit that dropped it.
    dropped_by: Option<u32>,
}

/// The packets of a capture's only source.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    source: Option<Address>,
    packets: Vec<Packet>,
    /// Whether there are several sources or too many packets.
    is_lost: bool,
}

impl Usage {
    /// Adds a packet; a time before the first packet counts as the first packet's.
    pub fn add(&mut self, packet: &ReplayedPacket) {
        let Some(source) = packet.source else {
            // No limit counts a packet without a valid source.
            return;
        };
        if self.is_lost {
            return;
        }
        if *self.source.get_or_insert(source) != source || self.packets.len() == MOST_PACKETS {
            self.packets.clear();
            self.is_lost = true;
            return;
        }
        let verdict = &packet.verdict;
        let charged = match packet.action {
            Action::Pass => verdict.matched & !verdict.would_drop,
            Action::Drop => 0,
        };
        self.packets.push(Packet {
            t_ns: u64::try_from(packet.t_ns).unwrap_or(0),
            length: packet.length,
            charged,
            dropped_by: verdict.refused_by(),
        });
    }

    /// Returns the tokens of a limit that passed within the last `period_ns`: the time of each change in
    /// nanoseconds, and the new number. `None`: there are several sources or too many packets.
    #[must_use]
    pub fn passed_within(
        &self,
        limit_index: u32,
        period_ns: u64,
        cost: Cost,
    ) -> Option<Vec<(u64, u64)>> {
        if self.is_lost {
            return None;
        }
        // The change at each time. A period does not include its end.
        let mut changes = BTreeMap::<u64, i64>::new();
        let charged = |packet: &&Packet| packet.charged >> limit_index & 1 == 1;
        for packet in self.packets.iter().filter(charged) {
            let tokens = match cost {
                Cost::Packets
                | Cost::NewConnections
                | Cost::Connections
                | Cost::Handshakes
                | Cost::NewNames => 1,
                Cost::Bytes => i64::try_from(packet.length).unwrap_or(i64::MAX),
            };
            *changes.entry(packet.t_ns).or_default() += tokens;
            let end_ns = packet.t_ns.saturating_add(period_ns);
            *changes.entry(end_ns).or_default() -= tokens;
        }
        let passed = changes.into_iter().scan(0_u64, |passed, (at_ns, more)| {
            *passed = passed.saturating_add_signed(more);
            Some((at_ns, *passed))
        });
        Some(passed.collect())
    }

    /// Returns the times of the packets that a limit dropped, in nanoseconds.
    pub fn dropped_by(&self, limit_index: u32) -> impl Iterator<Item = u64> {
        let dropped = self.packets.iter();
        let dropped = dropped.filter(move |packet| packet.dropped_by == Some(limit_index));
        dropped.map(|packet| packet.t_ns)
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use limiter_common::{decide::Verdict, reason::Reason};

    use super::*;

    fn packet(t_ns: i64, last_byte: u8, reason: Reason) -> ReplayedPacket {
        let mut verdict = Verdict::without_limits(reason);
        verdict.matched = 0b11;
        ReplayedPacket {
            number: 1,
            t_ns,
            length: 60,
            cut: false,
            verdict,
            action: reason.action(Action::Drop),
            source: Some(Address::from(IpAddr::from([10, 0, 0, last_byte]))),
            strictest: None,
        }
    }

    #[test]
    fn a_period_does_not_include_its_end() {
        let mut usage = Usage::default();
        for t_ns in [0, 4, 10, 12] {
            usage.add(&packet(t_ns, 1, Reason::WithinLimits));
        }
        usage.add(&packet(11, 1, Reason::OverLimit));
        let passed = usage
            .passed_within(0, 10, Cost::Packets)
            .unwrap_or_default();
        let expected = [(0, 1), (4, 2), (10, 2), (12, 3), (14, 2), (20, 1), (22, 0)];
        assert_eq!(passed, expected);
        let bytes = usage.passed_within(1, 10, Cost::Bytes).unwrap_or_default();
        assert_eq!(bytes[1], (4, 120));
        assert_eq!(usage.passed_within(2, 10, Cost::Packets), Some(Vec::new()));
    }

    #[test]
    fn several_sources_report_no_usage() {
        let mut usage = Usage::default();
        usage.add(&packet(0, 1, Reason::WithinLimits));
        usage.add(&packet(1, 2, Reason::WithinLimits));
        usage.add(&packet(2, 1, Reason::WithinLimits));
        assert_eq!(usage.passed_within(0, 10, Cost::Packets), None);
        assert_eq!(usage.dropped_by(0).count(), 0);
    }
}
