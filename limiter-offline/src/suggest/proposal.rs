//! Proposes limits for the observed packets.

use std::cmp::Reverse;

use limiter_common::limit::{Cost, IPV4_RANGE, IPV6_RANGE, IdFormat};
use serde::Serialize;

use super::{
    drops::Drops,
    keys::Keys,
    observer::{Observation, PacketCounts, ServiceTraffic},
    peaks::{Percentiles, peaks},
    rate::{Need, Terms, WINDOW_NS},
    record::{Entry, Record},
    service::Service,
};

/// The most limits of a configuration with answers, and one to spare.
const MOST_LIMITS: usize = 60;

/// With fewer packets no limit is proposed or tested.
const LEAST_PACKETS: u64 = 100;

const SECOND_NS: i64 = 1_000_000_000;

/// The smallest burst that a configuration accepts for bytes.
const ETHERNET_FRAME: u64 = 1514;

/// The prefix length of an IPv6 customer's network.
const IPV6_NETWORK: u8 = 64;

/// The id formats of proposed limits, in this order.
const IDS: [IdFormat; 5] = [
    IdFormat::IpAddress,
    V4_RANGE,
    V6_NETWORK,
    V6_RANGE,
    IdFormat::Total,
];

const V4_RANGE: IdFormat = IdFormat::Ipv4RangeCidr {
    prefix_length: IPV4_RANGE,
};
const V6_NETWORK: IdFormat = IdFormat::Ipv6RangeCidr {
    prefix_length: IPV6_NETWORK,
};
const V6_RANGE: IdFormat = IdFormat::Ipv6RangeCidr {
    prefix_length: IPV6_RANGE,
};

/// The margin between the observed packets and the limits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Margin {
    /// The largest fraction of the observed packets that a limit without head room may drop, from 0 to 1.
    pub most_dropped: f64,
    /// The factor for the burst and the rate of that limit; at least 1.
    pub headroom: f64,
}

/// The proposed limits for all services.
#[derive(Clone, Debug, Serialize)]
pub struct Suggestion {
    /// From the first packet to the last, in nanoseconds.
    pub duration_ns: u64,
    /// The packets by direction.
    pub ways: PacketCounts,
    /// The margin between the observed packets and the limits.
    pub margin: Margin,
    /// The services, busiest first.
    pub services: Vec<ServiceProposal>,
    /// How many limits exceed a configuration's maximum.
    pub left_out: usize,
}

/// The proposed limits for a service.
#[derive(Clone, Debug, Serialize)]
pub struct ServiceProposal {
    /// The service.
    pub service: Service,
    /// The packets to it.
    pub packets: u64,
    /// The bytes of their frames.
    pub bytes: u64,
    /// How many TCP connections they begin.
    pub new_connections: u64,
    /// How many sources were followed.
    pub sources: u64,
    /// The sampling: one in this many ranges of addresses was followed.
    pub one_in: u64,
    /// A source's packets within this many nanoseconds count as one burst; 0: times are exact.
    pub slot_ns: u64,
    /// Its limits; none if there are too few packets.
    pub limits: Vec<Proposal>,
}

/// A proposed limit.
#[derive(Clone, Debug, Serialize)]
pub struct Proposal {
    /// Its name.
    pub name: String,
    /// The format of its ids.
    pub id: &'static str,
    /// The length of the ranges; `None`: the ids are not ranges.
    pub prefix_length: Option<u8>,
    /// The unit that it counts.
    pub cost: Cost,
    /// Its rate.
    #[serde(flatten)]
    pub terms: Terms,
    /// Percentiles over its keys of the most tokens in a second.
    pub peak_1s: Percentiles,
    /// Percentiles over its keys of the most tokens in ten seconds.
    pub peak_10s: Percentiles,
    /// The drops that it would cause.
    pub drops: Drops,
    /// A test on the half of the packets that did not set the rate; `None`: a half has too few packets.
    pub holdout: Option<HoldoutTest>,
}

/// A limit learned from the first half of the time, and the drops it would cause in each half.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct HoldoutTest {
    /// Its rate.
    #[serde(flatten)]
    pub terms: Terms,
    /// The drops in the first half: the estimate.
    pub learned: Drops,
    /// The drops in the second half: the truth.
    pub tested: Drops,
}

impl Suggestion {
    /// Proposes limits that count in these units.
    #[must_use]
    pub fn new(observed: &Observation, costs: &[Cost], margin: Margin) -> Self {
        let (first, last) = observed.span;
        let middle = first.midpoint(last);
        let mut by_packets: Vec<_> = observed.services.iter().collect();
        by_packets.sort_by_key(|(service, seen)| (Reverse(seen.packets), **service));
        let mut room = MOST_LIMITS;
        let mut left_out = 0;
        let services = by_packets.into_iter().map(|(service, seen)| {
            let mut limits = limits(*service, seen, costs, margin, middle);
            left_out += limits.len().saturating_sub(room);
            limits.truncate(room);
            room -= limits.len();
            ServiceProposal {
                service: *service,
                packets: seen.packets,
                bytes: seen.bytes,
                new_connections: seen.connections,
                sources: seen.sources.sources().len() as u64,
                one_in: seen.sources.one_in(),
                slot_ns: seen.sources.slot_ns(),
                limits,
            }
        });
        Self {
            duration_ns: last.abs_diff(first),
            ways: observed.ways,
            margin,
            services: services.collect(),
            left_out,
        }
    }

    /// Returns whether there is no limit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.services
            .iter()
            .all(|service| service.limits.is_empty())
    }
}

/// Proposes limits for a service. `middle`: the time between the halves.
fn limits(
    service: Service,
    seen: &ServiceTraffic,
    costs: &[Cost],
    margin: Margin,
    middle: i64,
) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    for cost in costs {
        for id in IDS {
            let record = match id {
                IdFormat::Total => &seen.total,
                _ => &seen.sources,
            };
            if !says_more(record, id) {
                continue;
            }
            let halves = RecordHalves {
                keys: Keys::of(record, id),
                all: record.entries().iter().collect(),
                middle,
            };
            let least_burst = match cost {
                Cost::Bytes => seen.longest.max(ETHERNET_FRAME),
                Cost::Packets
                | Cost::NewConnections
                | Cost::Connections
                | Cost::Handshakes
                | Cost::NewNames => 1,
            };
            proposals.extend(halves.propose(service, id, *cost, least_burst, margin));
        }
    }
    proposals
}

/// Returns whether a limit of ranges adds to the limits before it: not if each range has a single source.
fn says_more(record: &Record, id: IdFormat) -> bool {
    let count = |id| Keys::of(record, id).count();
    match id {
        V4_RANGE => count(V4_RANGE) < count(id.with_prefix_length(32)),
        V6_RANGE => count(V6_RANGE) < count(V6_NETWORK),
        _ => true,
    }
}

/// The entries of a record, and the time between their halves.
struct RecordHalves<'a> {
    keys: Keys,
    all: Vec<&'a Entry>,
    middle: i64,
}

impl<'a> RecordHalves<'a> {
    fn propose(
        &self,
        service: Service,
        id: IdFormat,
        cost: Cost,
        least_burst: u64,
        margin: Margin,
    ) -> Option<Proposal> {
        let terms = self.terms(&self.all, cost, least_burst, margin)?;
        let drops = self.drops(&self.all, cost, terms)?;
        let peak = |window_ns| {
            let all = self.all.iter().copied();
            Percentiles::of(&peaks(all, &self.keys, cost, window_ns))
        };
        (drops.packets >= LEAST_PACKETS).then(|| Proposal {
            name: name(service, id, cost),
            id: id.name(),
            prefix_length: id.range().map(|range| range.prefix_length),
            cost,
            terms,
            peak_1s: peak(SECOND_NS),
            peak_10s: peak(WINDOW_NS),
            drops,
            holdout: self.holdout(cost, least_burst, margin),
        })
    }

    fn holdout(&self, cost: Cost, least_burst: u64, margin: Margin) -> Option<HoldoutTest> {
        let (first, second): (Vec<&'a Entry>, Vec<&'a Entry>) =
            (self.all.iter()).partition(|entry| entry.at_ns < self.middle);
        let terms = self.terms(&first, cost, least_burst, margin)?;
        let learned = self.drops(&first, cost, terms)?;
        let tested = self.drops(&second, cost, terms)?;
        (learned.packets.min(tested.packets) >= LEAST_PACKETS).then_some(HoldoutTest {
            terms,
            learned,
            tested,
        })
    }

    fn terms(
        &self,
        entries: &[&Entry],
        cost: Cost,
        least_burst: u64,
        margin: Margin,
    ) -> Option<Terms> {
        let need = Need::of(entries, &self.keys, cost, least_burst, margin.most_dropped)?;
        Some(need.terms(margin.headroom))
    }

    fn drops(&self, entries: &[&Entry], cost: Cost, terms: Terms) -> Option<Drops> {
        let gcra = terms.gcra()?;
        Some(Drops::of(entries.iter().copied(), &self.keys, cost, &gcra))
    }
}

/// Names a limit like the built-in ones: `Udp53PacketsPerIPAddress`.
fn name(service: Service, id: IdFormat, cost: Cost) -> String {
    let cost = match cost {
        Cost::Packets => "Packets",
        Cost::Bytes => "Bytes",
        Cost::NewConnections => "NewConnections",
        Cost::Connections => "Connections",
        Cost::Handshakes => "Handshakes",
        Cost::NewNames => "NewNames",
    };
    let per = match id {
        IdFormat::IpAddress => "PerIPAddress".to_owned(),
        IdFormat::Ipv4RangeCidr { .. } => "PerIPv4Range".to_owned(),
        IdFormat::Ipv6RangeCidr { prefix_length } => format!("PerIPv6Range{prefix_length}"),
        IdFormat::RegId => "PerSubscriber".to_owned(),
        IdFormat::Destination => "PerDestination".to_owned(),
        IdFormat::Zone => "PerZone".to_owned(),
        IdFormat::Domain => "PerDomain".to_owned(),
        IdFormat::Question => "PerQuestion".to_owned(),
        IdFormat::ServerName => "PerServerName".to_owned(),
        IdFormat::Total => "Total".to_owned(),
    };
    format!("{}{cost}{per}", service.limit_name())
}

#[cfg(test)]
mod tests;
