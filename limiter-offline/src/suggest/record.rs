//! The record of a service's packets by source and time, in bounded memory.
//!
//! It is exact while there is room. After that it samples ranges of addresses (an IPv4 /24, an IPv6 /48) by a
//! keyed hash: a flood of forged sources cannot choose the sample, and each range is kept whole or dropped.
//! With few ranges it merges each source's packets within a time slot instead.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    net::IpAddr,
};

use limiter_common::{
    address::{Address, Family},
    limit::{Cost, IPV4_RANGE, IPV6_RANGE},
};
use limiter_policy::policy::embedding_of;

/// The most sources of a record.
pub(super) const MOST_SOURCES: usize = 1 << 16;

/// The most entries of a record: with [`MOST_SOURCES`] it takes less than 20 MiB.
pub(super) const MOST_ENTRIES: usize = 1 << 19;

/// The most entries of a record without sources.
pub(super) const MOST_TOTAL_ENTRIES: usize = 1 << 16;

/// With more ranges than this, half of them are enough.
const ENOUGH_RANGES: usize = 1024;

/// At or below this number, all ranges are kept, however long the time slots get.
const FEW_RANGES: usize = 16;

/// The first time slot, in nanoseconds, and the length from which on ranges are dropped instead, if there are
/// enough.
const FIRST_SLOT_NS: u64 = 1_000_000;
const LONG_SLOT_NS: u64 = 64_000_000;

/// Beyond this many sources of an IPv6 range, a source is a /64; beyond the second number, it is the whole
/// range.
const MOST_ADDRESSES: u32 = 1024;
const MOST_NETWORKS: u32 = 4096;
const NETWORK: u8 = 64;

/// Times differ from the first by less than this many nanoseconds (a year).
pub(super) const FARTHEST_NS: i64 = 1 << 55;

/// A source's packets at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TrafficCount {
    /// Packets.
    pub(super) packets: u32,
    /// Bytes of their frames.
    pub(super) bytes: u32,
    /// Packets that begin a TCP connection.
    pub(super) connections: u32,
}

impl TrafficCount {
    fn checked_add(self, other: Self) -> Option<Self> {
        Some(Self {
            packets: self.packets.checked_add(other.packets)?,
            bytes: self.bytes.checked_add(other.bytes)?,
            connections: self.connections.checked_add(other.connections)?,
        })
    }

    /// Returns the counted packets, and the tokens of each. An entry's bytes are split evenly among its
    /// packets.
    pub(super) const fn amount(self, cost: Cost) -> (u32, u64) {
        match cost {
            Cost::Packets | Cost::NewNames => (self.packets, 1),
            Cost::NewConnections | Cost::Connections | Cost::Handshakes => (self.connections, 1),
            Cost::Bytes => {
                let each = match self.packets {
                    0 => 0,
                    packets => self.bytes.div_ceil(packets),
                };
                (self.packets, each as u64)
            }
        }
    }
}

/// A source's packets at one time, in the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Nanoseconds since the first packet; the absolute value is less than [`FARTHEST_NS`].
    pub(super) at_ns: i64,
    /// The number of the source.
    pub(super) source: u32,
    /// The packets.
    pub(super) sent: TrafficCount,
}

pub(super) struct Record<H = RandomState> {
    most_entries: usize,
    hash: H,
    /// How often the sample of ranges was halved.
    halvings: u32,
    /// The length of a time slot in nanoseconds; 0: all times are exact.
    slot_ns: u64,
    numbers: HashMap<Address, u32>,
    sources: Vec<Source>,
    /// The number of sources in each range.
    ranges: HashMap<Address, u32>,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy)]
struct Source {
    address: Address,
    /// The index of its last entry.
    last: usize,
}

impl Record {
    pub(super) fn new(most_entries: usize) -> Self {
        Self::with_hash(most_entries, RandomState::new())
    }
}

impl<H: BuildHasher> Record<H> {
    fn with_hash(most_entries: usize, hash: H) -> Self {
        Self {
            most_entries,
            hash,
            halvings: 0,
            slot_ns: 0,
            numbers: HashMap::new(),
            sources: Vec::new(),
            ranges: HashMap::new(),
            entries: Vec::new(),
        }
    }

    /// Returns the entries, in order of arrival.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the addresses of the sources, by their numbers.
    pub(super) fn sources(&self) -> impl ExactSizeIterator<Item = Address> {
        self.sources.iter().map(|source| source.address)
    }

    /// Returns the inverse of the sampled fraction of ranges.
    pub(super) const fn one_in(&self) -> u64 {
        1 << self.halvings
    }

    /// Returns the length of the time slots in nanoseconds; 0: all times are exact.
    pub(super) const fn slot_ns(&self) -> u64 {
        self.slot_ns
    }

    /// Adds an address's packets at a time less than [`FARTHEST_NS`] from the first.
    pub(super) fn add(&mut self, address: Address, at_ns: i64, sent: TrafficCount) {
        let range = range_of(address);
        loop {
            if !self.keeps(range) {
                return;
            }
            if self.entries.len() < self.most_entries && self.sources.len() < MOST_SOURCES {
                break;
            }
            self.make_room();
        }
        let source = self.number(address, range);
        self.push(Entry {
            at_ns,
            source,
            sent,
        });
    }

    fn keeps(&self, range: Address) -> bool {
        let hash = self.hash.hash_one((range, "range"));
        self.halvings == 0 || hash >> (u64::BITS - self.halvings) == 0
    }

    /// Returns the number of an address's source.
    fn number(&mut self, address: Address, range: Address) -> u32 {
        if let Some(number) = self.numbers.get(&address) {
            return *number;
        }
        let of_range = self.ranges.entry(range).or_insert(0);
        let named = match address.family {
            Family::V6 if *of_range >= MOST_NETWORKS => range,
            Family::V6 if *of_range >= MOST_ADDRESSES => address.masked(NETWORK),
            _ => address,
        };
        let next = self.sources.len();
        *self.numbers.entry(named).or_insert_with(|| {
            *of_range += 1;
            self.sources.push(Source {
                address: named,
                last: usize::MAX,
            });
            u32::try_from(next).unwrap_or(u32::MAX)
        })
    }

    /// Appends an entry, or merges it into the last one of its source within the same time slot.
    fn push(&mut self, entry: Entry) {
        let next = self.entries.len();
        let source = &mut self.sources[entry.source as usize];
        if self.slot_ns > 0
            && let Some(last) = self.entries.get_mut(source.last)
            && slot(last.at_ns, self.slot_ns) == slot(entry.at_ns, self.slot_ns)
            && let Some(sum) = last.sent.checked_add(entry.sent)
        {
            last.sent = sum;
            return;
        }
        source.last = next;
        self.entries.push(entry);
    }

    fn make_room(&mut self) {
        let ranges = self.ranges.len();
        let slots_are_long = self.slot_ns >= LONG_SLOT_NS;
        if self.sources.len() >= MOST_SOURCES
            || ranges > ENOUGH_RANGES
            || (slots_are_long && ranges > FEW_RANGES)
        {
            self.halve();
        } else {
            self.slot_ns = self.slot_ns.saturating_mul(2).max(FIRST_SLOT_NS);
            let entries = std::mem::take(&mut self.entries);
            self.rebuild(entries);
        }
    }

    /// Drops half of the ranges.
    fn halve(&mut self) {
        self.halvings = (self.halvings + 1).min(u64::BITS - 1);
        let before = std::mem::take(&mut self.sources);
        self.numbers.clear();
        self.ranges.clear();
        let mut renumbered = Vec::with_capacity(before.len());
        for source in before {
            let range = range_of(source.address);
            let number = self.keeps(range).then(|| {
                let number = u32::try_from(self.sources.len()).unwrap_or(u32::MAX);
                *self.ranges.entry(range).or_insert(0) += 1;
                self.numbers.insert(source.address, number);
                self.sources.push(source);
                number
            });
            renumbered.push(number);
        }
        let mut entries = std::mem::take(&mut self.entries);
        entries.retain_mut(|entry| match renumbered[entry.source as usize] {
            Some(number) => {
                entry.source = number;
                true
            }
            None => false,
        });
        self.rebuild(entries);
    }

    fn rebuild(&mut self, entries: Vec<Entry>) {
        for source in &mut self.sources {
            source.last = usize::MAX;
        }
        for entry in entries {
            self.push(entry);
        }
    }
}

/// Returns the range with which an address is sampled. For IPv6 addresses that embed IPv4 ones it is an IPv4
/// range: a larger one would hold many owners' hosts.
fn range_of(address: Address) -> Address {
    address.masked(match IpAddr::from(address) {
        IpAddr::V4(_) => IPV4_RANGE,
        IpAddr::V6(address) if embedding_of(address).is_some() => 128 - (32 - IPV4_RANGE),
        IpAddr::V6(_) => IPV6_RANGE,
    })
}

/// Returns the index of a time's slot. If slots keep growing, one slot finally covers all times.
const fn slot(at_ns: i64, slot_ns: u64) -> u64 {
    at_ns.saturating_add(FARTHEST_NS).unsigned_abs() / slot_ns
}

#[cfg(test)]
mod tests {
    use std::hash::DefaultHasher;

    use super::*;

    /// A hash without a random key, the same in each run.
    #[derive(Default)]
    struct Fixed;

    impl BuildHasher for Fixed {
        type Hasher = DefaultHasher;

        fn build_hasher(&self) -> DefaultHasher {
            DefaultHasher::new()
        }
    }

    const PACKET: TrafficCount = TrafficCount {
        packets: 1,
        bytes: 100,
        connections: 0,
    };

    fn record(most_entries: usize) -> Record<Fixed> {
        Record::with_hash(most_entries, Fixed)
    }

    fn packets(record: &Record<Fixed>) -> u64 {
        let entries = record.entries().iter();
        entries.map(|entry| u64::from(entry.sent.packets)).sum()
    }

    #[test]
    fn exact_while_there_is_room() {
        let mut record = record(100);
        for n in 0..100 {
            record.add(Address::v4([192, 0, 2, n % 3]), i64::from(n) * 10, PACKET);
        }
        assert_eq!((record.one_in(), record.slot_ns()), (1, 0));
        assert_eq!((record.entries().len(), record.sources().len()), (100, 3));
        assert_eq!(record.entries()[7].at_ns, 70);
    }

    #[test]
    fn a_flood_of_sources_is_sampled_by_range() {
        let mut record = record(10_000);
        for n in 0..250_000_u32 {
            record.add(Address::v4(((n << 8) | (n % 2)).to_be_bytes()), 0, PACKET);
            record.add(Address::v4(((n << 8) | 7).to_be_bytes()), 0, PACKET);
            assert!(record.entries().len() <= 10_000);
        }
        assert_eq!(record.slot_ns(), 0);
        let (kept, one_in) = (packets(&record), record.one_in());
        assert!((32..=128).contains(&one_in), "{one_in}");
        let estimate = kept * one_in;
        assert!((400_000..600_000).contains(&estimate), "{estimate}");
        // A range is kept whole.
        assert_eq!(record.sources().len(), 2 * record.ranges.len());
    }

    #[test]
    fn few_busy_sources_are_added_up() {
        let mut record = record(1_000);
        for n in 0..250_000 {
            let source = u8::try_from(n % 5).unwrap();
            record.add(Address::v4([192, 0, source, 1]), n * 4_000, PACKET);
            assert!(record.entries().len() <= 1_000);
        }
        assert_eq!((packets(&record), record.one_in()), (250_000, 1));
        assert_eq!(record.slot_ns(), 8_000_000);
    }

    #[test]
    fn one_ipv6_range_fills_no_record() {
        let mut record = record(MOST_ENTRIES);
        for n in 0..200_000_u64 {
            let high = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0];
            record.add(Address::v6(high, n.to_be_bytes()), 0, PACKET);
            let mut high = [0x20, 1, 0xd, 0xb8, 0, 1, 0, 0];
            high[6..].copy_from_slice(&n.to_be_bytes()[6..]);
            record.add(Address::v6(high, n.to_be_bytes()), 0, PACKET);
        }
        assert_eq!(record.one_in(), 1);
        let most = usize::try_from(MOST_ADDRESSES + 1 + MOST_NETWORKS + 1).unwrap();
        assert!(record.sources().len() <= most, "{}", record.sources().len());
        assert_eq!(packets(&record), 400_000);
    }

    /// One source for the whole network would have the needs of no single client.
    #[test]
    fn ipv4_clients_in_one_ipv6_network_are_many_sources() {
        let mut record = record(MOST_ENTRIES);
        for n in 0..20_000_u32 {
            let [a, b, c, d] = n.to_be_bytes();
            let high = [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0];
            record.add(Address::v6(high, [0, 0, 0, 0, a + 192, b, c, d]), 0, PACKET);
        }
        assert_eq!((record.one_in(), record.sources().len()), (1, 20_000));
    }

    /// Alternating times never share a slot until a single slot covers both.
    #[test]
    fn no_order_of_times_defeats_it() {
        let mut record = record(1_000);
        for n in 0..100_000_i64 {
            let far = if n % 2 == 0 {
                FARTHEST_NS - 1
            } else {
                1 - FARTHEST_NS
            };
            record.add(Address::v4([192, 0, 2, 1]), far, PACKET);
        }
        assert!(record.entries().len() <= 1_000);
        assert_eq!(packets(&record), 100_000);
    }

    #[test]
    fn what_a_limit_counts() {
        let sent = TrafficCount {
            packets: 3,
            bytes: 200,
            connections: 1,
        };
        assert_eq!(sent.amount(Cost::Packets), (3, 1));
        assert_eq!(sent.amount(Cost::Bytes), (3, 67));
        assert_eq!(sent.amount(Cost::NewConnections), (1, 1));
    }
}
