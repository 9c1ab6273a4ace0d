//! Counts of received packets, per source address.

use std::{collections::HashMap, net::IpAddr};

/// Counts of received packets, per source address.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// The totals of each source.
    pub sources: HashMap<IpAddr, Count>,
    /// The total of packets without an IP source, such as ARP.
    pub other: Count,
    /// Packets that the counting socket lost to a full buffer. Above zero, the rest is not exact.
    pub lost: u64,
}

/// Totals of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// The number of packets.
    pub packets: u64,
    /// Their bytes: UDP payloads, or whole frames of a [`crate::RawSink`].
    pub bytes: u64,
    /// [`crate::monotonic_ns`] just after the first was received; zero without any.
    pub first_ns: u64,
    /// [`crate::monotonic_ns`] just after the last was received; zero without any.
    pub last_ns: u64,
}

impl Tally {
    /// Returns the totals of a source.
    #[must_use]
    pub fn of(&self, source: IpAddr) -> Count {
        self.sources.get(&source).copied().unwrap_or_default()
    }

    /// Returns the number of packets from all IP sources together.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.sources.values().map(|count| count.packets).sum()
    }

    pub(crate) fn add(&mut self, source: Option<IpAddr>, bytes: usize, now_ns: u64) {
        let count = match source {
            Some(source) => self.sources.entry(source).or_default(),
            None => &mut self.other,
        };
        if count.packets == 0 {
            count.first_ns = now_ns;
        }
        count.packets += 1;
        count.bytes += bytes as u64;
        count.last_ns = now_ns;
    }
}
