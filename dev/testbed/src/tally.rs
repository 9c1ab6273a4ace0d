//! What arrived, per source address.

use std::{collections::HashMap, net::IpAddr};

/// What arrived, per source address.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// What each source's packets add up to.
    pub sources: HashMap<IpAddr, Count>,
    /// What came without an IP source: ARP, for one.
    pub other: Count,
    /// What the counting socket lost, its buffer being full: then the rest is not exact.
    pub lost: u64,
}

/// What packets add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How many.
    pub packets: u64,
    /// Their bytes: UDP payloads, or whole frames of a [`crate::RawSink`].
    pub bytes: u64,
    /// [`crate::monotonic_ns`] just after the first was received; zero if there is none.
    pub first_ns: u64,
    /// [`crate::monotonic_ns`] just after the last was received; zero if there is none.
    pub last_ns: u64,
}

impl Tally {
    /// What came from this source.
    #[must_use]
    pub fn of(&self, source: IpAddr) -> Count {
        self.sources.get(&source).copied().unwrap_or_default()
    }

    /// How many packets came from all IP sources together.
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
