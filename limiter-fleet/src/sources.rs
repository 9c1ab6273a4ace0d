//! Known sources: proven by one node, trusted by all.
//!
//! Each node reports only sources that it has proven itself, and its entry about a source stands beside the
//! entries of others: if nodes repeated reports, two of them could keep a source known for ever. An entry
//! ends by itself, and a week after its node last repeated it.

use std::{
    fmt,
    net::{Ipv4Addr, Ipv6Addr},
};

use serde::{Deserialize, Serialize};

use crate::{
    Kind, Name, Refusal,
    replicated::{AFTERWARDS_MS, Entry, MOST_AHEAD_MS, Replicated, Stamp, Update, Value},
};

/// The most active entries of this node.
pub const MOST_OWN_ENTRIES: u64 = 100_000;

/// The latest end of an entry, in seconds from now: a year and a day.
const LONGEST_S: u64 = 366 * 24 * 3_600;

/// How long an entry lasts without being repeated, in milliseconds: a week.
const UNREPEATED_MS: u64 = 7 * 24 * 3_600_000;

/// The age at which a node repeats an entry, in milliseconds: a day.
const REPEATED_MS: u64 = 24 * 3_600_000;

/// How far apart two equal times may be, in seconds: ticks are a little longer than a second.
const SAME_S: u64 = 3;

/// No packet from another host has such a source, or no correct node sends such an entry.
const WRONG: Refusal = Refusal::new("source_wrong", "no node proves such a source");

/// The sending node has another IPv6 prefix length.
const PREFIX: Refusal = Refusal::new("source_prefix", "its node has another `ipv6-prefix`");

const AHEAD: Refusal = Refusal::new(
    "source_ahead",
    "it is from the future: the hosts' clocks disagree",
);

/// A source: an IPv4 address, or the upper half of the addresses of an IPv6 prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Source {
    /// An address.
    V4([u8; 4]),
    /// A prefix, with zeros behind it.
    V6([u8; 8]),
}

/// A source, and the node that reports it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SourceKey {
    /// The source.
    pub source: Source,
    /// The node.
    pub node: Name,
}

/// A node's proof of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Proof {
    /// Since when the source is proven, in seconds since 1970; 0: for longer than matters.
    pub since_s: u64,
    /// Until when the proof holds, in seconds since 1970; 0: it is taken back.
    pub until_s: u64,
    /// Whether the source was proven during a shortage, and has not come long after it.
    pub is_fresh: bool,
    /// The number of leading bits of an IPv6 address that identify a source on its node.
    pub ipv6_prefix: u8,
}

/// A node's update of a proof.
pub type SourceUpdate = Update<Proof>;

impl SourceKey {
    /// Returns the key that is below all keys of a source.
    #[must_use]
    pub fn first_of(source: Source) -> Self {
        Self {
            source,
            node: Name::first(),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(bytes) => Ipv4Addr::from(*bytes).fmt(formatter),
            Self::V6(half) => upper(*half).fmt(formatter),
        }
    }
}

impl fmt::Display for SourceKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.node, self.source)
    }
}

/// Returns the first address of an IPv6 prefix.
fn upper(half: [u8; 8]) -> Ipv6Addr {
    Ipv6Addr::from_bits(u128::from(u64::from_be_bytes(half)) << 64)
}

impl Source {
    /// Checks whether another host may meet the source. `ipv6_prefix` is the number of leading bits of an
    /// IPv6 address that identify a source.
    ///
    /// # Errors
    ///
    /// It may not.
    pub fn check(self, ipv6_prefix: u8) -> Result<(), Refusal> {
        let is_right = match self {
            Self::V4(bytes) => {
                let address = Ipv4Addr::from(bytes);
                bytes[0] != 0
                    && bytes[0] < 240
                    && !address.is_loopback()
                    && !address.is_link_local()
                    && !address.is_multicast()
            }
            Self::V6(half) => {
                let address = upper(half);
                let behind = u64::MAX.unbounded_shr(ipv6_prefix.into());
                let number = u64::from_be_bytes(half);
                number != 0
                    && number & behind == 0
                    && !address.is_multicast()
                    && !address.is_unicast_link_local()
            }
        };
        is_right.then_some(()).ok_or(WRONG)
    }
}

impl Value for Proof {
    type Key = SourceKey;

    /// The number of leading bits of an IPv6 address that identify a source here.
    type Context = u8;

    const KIND: Kind = Kind::Sources;

    // Entries of five nodes with as many as each may have, of this node, and removed ones.
    const MOST: usize = 700_000;

    const MOST_ALIKE: usize = 120_000;

    const IS_RELAYED: bool = false;

    fn ends_ms(&self) -> u64 {
        self.until_s.saturating_mul(1_000)
    }

    fn forgotten_at_ms(&self, stamp: &Stamp, ends_ms: u64) -> u64 {
        let ended_ms = ends_ms.max(stamp.ms).saturating_add(AFTERWARDS_MS);
        ended_ms.min(stamp.ms.saturating_add(UNREPEATED_MS))
    }

    fn check(update: &SourceUpdate, ipv6_prefix: u8, now_ms: u64) -> Result<(), Refusal> {
        let Update {
            key, stamp, value, ..
        } = update;
        if matches!(key.source, Source::V6(_)) && value.ipv6_prefix != ipv6_prefix {
            return Err(PREFIX);
        }
        key.source.check(ipv6_prefix)?;
        let latest_ms = now_ms.saturating_add(MOST_AHEAD_MS);
        if stamp.ms > latest_ms || value.since_s > latest_ms / 1_000 {
            return Err(AHEAD);
        }
        let is_right = key.node == stamp.node
            && value.until_s <= latest_ms / 1_000 + LONGEST_S
            && value.ends_ms() <= update.ends_ms;
        is_right.then_some(()).ok_or(WRONG)
    }

    /// Counts by node.
    fn label<'l>(key: &'l SourceKey, _: &'l Stamp, _: &Name) -> Option<&'l str> {
        Some(key.node.as_str())
    }

    fn share_name(key: &mut SourceKey, name: &Name) {
        if key.node == *name {
            key.node = name.clone();
        }
    }
}

/// The entries of all nodes.
impl Replicated<Proof> {
    fn of(&self, source: Source) -> impl Iterator<Item = (&SourceKey, &Entry<Proof>)> {
        let entries = self.from(SourceKey::first_of(source));
        entries.take_while(move |(key, _)| key.source == source)
    }

    /// Combines the proofs of a source by other nodes, at a time in milliseconds since 1970: from the earliest to the
    /// last end. `None`: there is none.
    #[must_use]
    pub fn proof(&self, source: Source, now_ms: u64) -> Option<Proof> {
        let entries = self.of(source);
        let others = entries.filter(|(key, entry)| key.node != *self.own() && entry.holds(now_ms));
        let proofs = others.map(|(_, entry)| entry.value);
        proofs.reduce(|one, other| Proof {
            since_s: one.since_s.min(other.since_s),
            until_s: one.until_s.max(other.until_s),
            is_fresh: one.is_fresh && other.is_fresh,
            ..one
        })
    }

    /// Returns the sources of up to `most` entries from `first` on, and the key of the next entry.
    #[must_use]
    pub fn page(&self, first: SourceKey, most: usize) -> (Vec<Source>, Option<SourceKey>) {
        let mut keys = self.from(first).map(|(key, _)| key);
        let mut sources: Vec<_> = keys.by_ref().take(most).map(|key| key.source).collect();
        sources.dedup();
        (sources, keys.next().cloned())
    }

    /// Records this node's proof of a source, at a time in milliseconds since 1970. A known proof is replaced
    /// only if the new one ends more than `margin_s` later, or differs otherwise. Returns `false` if there is
    /// no room for it.
    pub fn prove(&mut self, source: Source, proof: Proof, margin_s: u64, now_ms: u64) -> bool {
        if source.check(proof.ipv6_prefix).is_err() {
            return true;
        }
        let proof = Proof {
            until_s: proof.until_s.min(now_ms / 1_000 + LONGEST_S),
            ..proof
        };
        let key = SourceKey {
            source,
            node: self.own().clone(),
        };
        let known = self.get(&key).map(|known| known.value);
        match known.filter(|known| known.until_s > 0) {
            Some(known)
                if known.is_fresh == proof.is_fresh
                    && known.since_s.abs_diff(proof.since_s) <= SAME_S
                    && proof.until_s < known.until_s.saturating_add(margin_s)
                    && proof.until_s.saturating_add(SAME_S) >= known.until_s =>
            {
                return true;
            }
            None if self.active_with(self.own().as_str()) >= MOST_OWN_ENTRIES => return false,
            _ => {}
        }
        self.record(key, proof, 0, now_ms)
    }

    /// Takes back this node's proof of a source unless it `stays`, at a time in milliseconds since 1970; repeats
    /// an old one.
    pub fn renew(&mut self, source: Source, stays: bool, now_ms: u64) {
        let key = SourceKey {
            source,
            node: self.own().clone(),
        };
        let Some(entry) = self.get(&key).filter(|entry| entry.holds(now_ms)) else {
            return;
        };
        let proof = entry.value;
        if !stays {
            let taken_back = Proof {
                since_s: 0,
                until_s: 0,
                is_fresh: false,
                ..proof
            };
            self.record(key, taken_back, 0, now_ms);
        } else if entry.stamp.ms.saturating_add(REPEATED_MS) <= now_ms {
            self.record(key, proof, 0, now_ms);
        }
    }
}

#[cfg(test)]
mod tests;
