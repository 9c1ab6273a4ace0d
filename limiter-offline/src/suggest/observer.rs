//! Collects the incoming packets of the host's services.

use std::{collections::BTreeMap, convert::Infallible};

use limiter_capture::{CapturedFrame, Packet};
use limiter_common::{
    address::Address,
    counters::Traffic,
    packet::{
        FLAG_ACK, FLAG_SYN, Facts,
        superframe::{HeaderLengths, MOST_BEFORE_PACKET, Packets},
    },
};
use serde::Serialize;

use super::{
    frames::Sink,
    host::PacketDirection,
    ports::Ports,
    record::{FARTHEST_NS, MOST_ENTRIES, MOST_TOTAL_ENTRIES, Record, TrafficCount},
    service::Service,
};

/// The most services. With a full record each, they take some 250 MB.
pub(super) const MOST_SERVICES: usize = 12;

/// The single source in a record of all sources together.
const ALL: Address = Address::v4([0; 4]);

/// The number of packets by direction and treatment.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct PacketCounts {
    /// All packets.
    pub packets: u64,
    /// Packets to a service, which count.
    pub to_services: u64,
    /// Incoming packets that are not IP, are malformed, or are later fragments.
    pub other: u64,
    /// Packets to ports that the host does not seem to serve, including the replies to its own connections.
    pub unserved: u64,
    /// Packets to services beyond the maximum.
    pub beyond: u64,
    /// Packets that the host sends, and packets between other hosts.
    pub not_incoming: u64,
    /// Packets more than a year away from the first one.
    pub out_of_time: u64,
    /// Frames longer than the largest packet: each holds several merged packets.
    pub merged: u64,
}

pub(super) struct ServiceTraffic {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) connections: u64,
    /// The longest frame in bytes.
    pub(super) longest: u64,
    pub(super) sources: Record,
    pub(super) total: Record,
}

impl ServiceTraffic {
    fn new() -> Self {
        Self {
            packets: 0,
            bytes: 0,
            connections: 0,
            longest: 0,
            sources: Record::new(MOST_ENTRIES),
            total: Record::new(MOST_TOTAL_ENTRIES),
        }
    }
}

/// The packets of all services.
pub struct Observation {
    pub(super) services: BTreeMap<Service, ServiceTraffic>,
    pub(super) ways: PacketCounts,
    /// Whether the capture has packets from the host.
    pub(super) two_way: bool,
    /// The earliest and the latest time, in nanoseconds since the first packet.
    pub(super) span: (i64, i64),
}

/// Collects packets.
pub struct Observer {
    /// The services to follow; `None`: all that the host seems to serve.
    only: Option<Vec<Service>>,
    /// The largest IP packet of the link, in bytes.
    mtu: u64,
    ports: Ports,
    services: BTreeMap<Service, ServiceTraffic>,
    ways: PacketCounts,
    first_ns: Option<i128>,
    span: (i64, i64),
}

impl Observer {
    /// Starts to collect the packets to `only`; `None`: to all services that the host seems to serve. A frame
    /// longer than the link's `mtu`, in bytes, was merged by the network card or the kernel: it counts as
    /// several packets, as limits see it.
    #[must_use]
    pub fn new(only: Option<Vec<Service>>, mtu: u32) -> Self {
        Self {
            only,
            mtu: mtu.into(),
            ports: Ports::new(),
            services: BTreeMap::new(),
            ways: PacketCounts::default(),
            first_ns: None,
            span: (0, 0),
        }
    }

    /// Ends the collection.
    #[must_use]
    pub fn finish(self) -> Observation {
        Observation {
            services: self.services,
            ways: self.ways,
            two_way: self.ports.is_two_way(),
            span: self.span,
        }
    }

    fn follows(&self, service: Service) -> bool {
        match &self.only {
            Some(only) => only.contains(&service),
            None => self.ports.serves(service),
        }
    }

    /// Returns the packets in a frame, with their bytes.
    fn traffic_of(&mut self, frame: &CapturedFrame<'_>, facts: &Facts) -> TrafficCount {
        let (packets, headers) = (Packets::Full { mtu: self.mtu }, HeaderLengths::of(frame));
        let Traffic { packets, bytes } = packets.traffic(facts.length.into(), headers);
        self.ways.merged += u64::from(packets > 1);
        let begins = facts.kind.tcp_flags() & (FLAG_SYN | FLAG_ACK) == FLAG_SYN;
        let whole = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        TrafficCount {
            packets: whole(packets),
            bytes: whole(bytes),
            connections: u32::from(begins),
        }
    }

    fn add(&mut self, service: Service, frame: &CapturedFrame<'_>, facts: &Facts, at_ns: i64) {
        let sent = self.traffic_of(frame, facts);
        if !self.services.contains_key(&service) && self.services.len() >= MOST_SERVICES {
            self.ways.beyond += 1;
            return;
        }
        self.ways.to_services += 1;
        let seen = self
            .services
            .entry(service)
            .or_insert_with(ServiceTraffic::new);
        seen.packets += u64::from(sent.packets);
        seen.bytes += u64::from(sent.bytes);
        seen.connections += u64::from(sent.connections);
        seen.longest = seen
            .longest
            .max(u64::from(facts.length).min(self.mtu + MOST_BEFORE_PACKET));
        seen.sources.add(facts.source, at_ns, sent);
        seen.total.add(ALL, at_ns, sent);
    }
}

impl Sink for Observer {
    type Error = Infallible;

    fn observe(&mut self, way: PacketDirection, facts: &Facts) {
        if way.incoming {
            self.ports.incoming(facts);
        }
        if way.outgoing {
            self.ports.outgoing(facts);
        }
    }

    fn take(
        &mut self,
        way: PacketDirection,
        packet: &Packet<'_>,
        facts: Option<&Facts>,
    ) -> Result<(), Infallible> {
        self.ways.packets += 1;
        if let Some(facts) = facts {
            self.observe(way, facts);
        }
        let since_first = packet.time_ns - *self.first_ns.get_or_insert(packet.time_ns);
        let at_ns = i64::try_from(since_first).ok();
        let Some(at_ns) = at_ns.filter(|at_ns| at_ns.unsigned_abs() < FARTHEST_NS.unsigned_abs())
        else {
            self.ways.out_of_time += 1;
            return Ok(());
        };
        self.span = (self.span.0.min(at_ns), self.span.1.max(at_ns));
        if !way.incoming {
            self.ways.not_incoming += 1;
            return Ok(());
        }
        let Some((facts, service)) = facts.and_then(|facts| Some((facts, Service::of(facts)?)))
        else {
            self.ways.other += 1;
            return Ok(());
        };
        if self.follows(service) {
            self.add(service, &packet.frame, facts, at_ns);
        } else {
            self.ways.unserved += 1;
        }
        Ok(())
    }
}
