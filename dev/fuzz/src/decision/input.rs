//! Turns arbitrary bytes into policies and packets that affect each other.

use std::{collections::BTreeMap, net::IpAddr};

use arbitrary::{Arbitrary, Unstructured};
use ipnet::IpNet;
use limiter_common::{
    limit::{Cost, IdFormat, LimitId, MAX_LIMITS},
    packet::TcpState,
    reason::Action,
    strategy::Strategy,
};
use limiter_policy::policy::{
    Fragments, IcmpTypes, Limit, Match, Mode, Override, OverrideId, Policy, PortRange, Rate,
    TcpFlags,
};
use testbed::{Frame, Tag};

/// More packets in one run find no more bugs than more runs do.
const MAX_PACKETS: usize = 64;

/// The time of the first packet in nanoseconds, late enough for clocks to go back.
const START: u64 = 1 << 40;

/// A policy, and packets for it.
#[derive(Arbitrary, Debug)]
pub(super) struct Input {
    limits: Vec<LimitInput>,
    subscribers: Vec<(Network, u8)>,
    malformed_pass: bool,
    packets: Vec<PacketInput>,
}

#[derive(Arbitrary, Debug)]
struct LimitInput {
    id_format: IdFormatInput,
    cost: CostInput,
    strategy: StrategyInput,
    mode: ModeInput,
    matching: MatchInput,
    default: Option<RateInput>,
    overrides: Vec<(Network, RateInput)>,
}

#[derive(Arbitrary, Debug, Clone, Copy)]
enum IdFormatInput {
    IpAddress,
    Ipv4Range { prefix_length: u8 },
    Ipv6Range { prefix_length: u8 },
    RegId,
    Destination,
    Total,
}

#[derive(Arbitrary, Debug, Clone, Copy)]
enum CostInput {
    Packets,
    Bytes,
    NewConnections,
}

/// A strategy.
#[derive(Debug, Clone, Copy)]
struct StrategyInput(Strategy);

impl<'a> Arbitrary<'a> for StrategyInput {
    fn arbitrary(input: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        // The same choice as a derived implementation, so that earlier findings keep their meaning.
        let number = (u64::from(u32::arbitrary(input)?) * Strategy::ALL.len() as u64) >> 32;
        Ok(Self(Strategy::ALL[number as usize]))
    }

    fn size_hint(depth: usize) -> (usize, Option<usize>) {
        u32::size_hint(depth)
    }
}

#[derive(Arbitrary, Debug, Clone, Copy)]
enum ModeInput {
    Enforce,
    Observe,
    Off,
}

#[derive(Arbitrary, Debug)]
struct MatchInput {
    protocols: Vec<u8>,
    source_ports: Vec<(u16, u16)>,
    destination_ports: Vec<(u16, u16)>,
    tcp_flags: Option<(u8, u8)>,
    destinations: Vec<Network>,
    ignore_fragments: bool,
    /// Bits of connection states.
    tcp_states: u8,
    /// ICMP types; `true` stands for ICMPv6.
    icmp_types: Vec<(bool, u8)>,
}

/// A host's address, or a network around it.
#[derive(Arbitrary, Debug, Clone, Copy)]
struct Network {
    host: Host,
    prefix_length: Option<u8>,
}

#[derive(Arbitrary, Debug, Clone, Copy)]
enum RateInput {
    /// A rate that packets can reach.
    Small { burst: u16, count: u16, period: u16 },
    /// A rate of any size; most are impossible to count.
    Any {
        burst: u64,
        count: u64,
        period_ns: u64,
    },
}

/// One of few hosts, so that packets share buckets.
#[derive(Arbitrary, Debug, Clone, Copy)]
enum Host {
    V4 { network: u8, host: u8 },
    V6 { network: u8, host: u8 },
}

#[derive(Arbitrary, Debug)]
struct PacketInput {
    pause: Pause,
    frame: FrameInput,
}

#[derive(Arbitrary, Debug, Clone, Copy)]
enum Pause {
    Ahead { ns: u32, doublings: u8 },
    Back { us: u8 },
}

#[derive(Arbitrary, Debug)]
enum FrameInput {
    Udp {
        from: Host,
        ports: (u16, u16),
        tags: u8,
        payload: u16,
    },
    Tcp {
        from: Host,
        ports: (u16, u16),
        flags: u8,
    },
    Any {
        bytes: Vec<u8>,
    },
}

impl Input {
    /// Builds the policy. It may fail to compile.
    pub(super) fn policy(&self) -> Policy {
        // No prefix belongs to two subscribers.
        let owners: BTreeMap<IpNet, u64> = self
            .subscribers
            .iter()
            .map(|(network, number)| (network.prefix(), u64::from(*number) + 1))
            .collect();
        let mut subscribers: BTreeMap<u64, Vec<IpNet>> = BTreeMap::new();
        for (prefix, number) in owners {
            subscribers.entry(number).or_default().push(prefix);
        }
        Policy {
            limits: (1..)
                .zip(&self.limits)
                .take(MAX_LIMITS as usize)
                .map(|(id, limit)| limit.limit(LimitId(id)))
                .collect(),
            subscribers,
            sieves: Vec::new(),
            malformed: if self.malformed_pass {
                Action::Pass
            } else {
                Action::Drop
            },
            ..Policy::from(Vec::new())
        }
    }

    /// Builds the frames, with their times in nanoseconds.
    pub(super) fn packets(&self) -> impl Iterator<Item = (u64, Vec<u8>)> {
        let mut now = START;
        self.packets.iter().take(MAX_PACKETS).map(move |packet| {
            now = packet.pause.after(now);
            (now, packet.frame.bytes())
        })
    }
}

impl LimitInput {
    fn limit(&self, id: LimitId) -> Limit {
        let id_format = match self.id_format {
            IdFormatInput::IpAddress => IdFormat::IpAddress,
            IdFormatInput::Ipv4Range { prefix_length } => IdFormat::Ipv4RangeCidr {
                prefix_length: 8 + prefix_length % 25,
            },
            IdFormatInput::Ipv6Range { prefix_length } => IdFormat::Ipv6RangeCidr {
                prefix_length: 16 + prefix_length % 113,
            },
            IdFormatInput::RegId => IdFormat::RegId,
            IdFormatInput::Destination => IdFormat::Destination,
            IdFormatInput::Total => IdFormat::Total,
        };
        let StrategyInput(strategy) = self.strategy;
        let overrides: BTreeMap<_, _> = self
            .overrides
            .iter()
            .filter_map(|(network, rate)| Some((network.id(id_format)?, rate.rate(strategy))))
            .collect();
        let cost = match self.cost {
            CostInput::Packets => Cost::Packets,
            // No configuration has a moving window of bytes.
            CostInput::Bytes if strategy.why_no_bytes().is_some() => Cost::Packets,
            CostInput::Bytes => Cost::Bytes,
            CostInput::NewConnections => Cost::NewConnections,
        };
        Limit {
            id,
            strategy,
            matching: self.matching.matching(),
            mode: match self.mode {
                ModeInput::Enforce => Mode::Enforce,
                ModeInput::Observe => Mode::Observe,
                ModeInput::Off => Mode::Off,
            },
            default: self.default.map(|rate| rate.rate(strategy)),
            overrides: overrides
                .into_iter()
                .map(|(id, rate)| Override {
                    id,
                    rate,
                    comment: None,
                })
                .collect(),
            ..Limit::with_name(&format!("Limit{}", id.0), id_format, cost)
        }
    }
}

impl MatchInput {
    fn matching(&self) -> Match {
        Match {
            protocols: self.protocols.clone(),
            source_ports: ports(&self.source_ports),
            destination_ports: ports(&self.destination_ports),
            tcp_flags: self.tcp_flags.map(|(set, clear)| TcpFlags {
                set,
                clear: clear & !set,
            }),
            destinations: self.destinations.iter().map(|one| one.prefix()).collect(),
            icmp_types: IcmpTypes {
                icmp: self.icmp_types(false),
                icmpv6: self.icmp_types(true),
            },
            fragments: if self.ignore_fragments {
                Fragments::Ignore
            } else {
                Fragments::Count
            },
            server_names: Vec::new(),
            tcp_states: TcpState::NAMED
                .into_iter()
                .filter(|one| self.tcp_states >> *one as u32 & 1 == 1)
                .collect(),
            ..Match::default()
        }
    }

    fn icmp_types(&self, of_icmpv6: bool) -> Vec<u8> {
        let types = self.icmp_types.iter().filter(|(is, _)| *is == of_icmpv6);
        types.map(|(_, number)| *number).collect()
    }
}

fn ports(ports: &[(u16, u16)]) -> Vec<PortRange> {
    let range = |(one, other): &(u16, u16)| *one.min(other)..=*one.max(other);
    ports.iter().map(range).collect()
}

impl Network {
    fn prefix(self) -> IpNet {
        let host = IpNet::from(self.host.address());
        match self.prefix_length {
            None => host,
            Some(length) => {
                let length = length % (host.max_prefix_len() + 1);
                IpNet::new(host.addr(), length).map_or(host, |prefix| prefix.trunc())
            }
        }
    }

    /// Returns the id of an override for the format, if it can have one.
    fn id(self, format: IdFormat) -> Option<OverrideId> {
        let address = self.host.address();
        match format {
            IdFormat::IpAddress => Some(OverrideId::Prefix(self.prefix())),
            IdFormat::RegId => Some(OverrideId::Subscriber(
                u64::from(self.prefix_length.unwrap_or(0)) + 1,
            )),
            IdFormat::Ipv4RangeCidr { prefix_length } if address.is_ipv4() => {
                let range = IpNet::new(address, prefix_length).ok()?;
                Some(OverrideId::Prefix(range.trunc()))
            }
            IdFormat::Ipv6RangeCidr { prefix_length } if address.is_ipv6() => {
                let range = IpNet::new(address, prefix_length).ok()?;
                Some(OverrideId::Prefix(range.trunc()))
            }
            IdFormat::Destination
            | IdFormat::Zone
            | IdFormat::Domain
            | IdFormat::Question
            | IdFormat::ServerName
            | IdFormat::Total
            | IdFormat::Ipv4RangeCidr { .. }
            | IdFormat::Ipv6RangeCidr { .. } => None,
        }
    }
}

impl RateInput {
    fn rate(self, strategy: Strategy) -> Rate {
        let rate = match self {
            Self::Small {
                burst,
                count,
                period,
            } => Rate {
                burst: u64::from(burst) + 1,
                count: u64::from(count) % strategy.largest_count() + 1,
                period_ns: (u64::from(period) + 1) * 1_000,
            },
            Self::Any {
                burst,
                count,
                period_ns,
            } => Rate {
                burst,
                count,
                period_ns,
            },
        };
        Rate {
            burst: if strategy.has_burst() {
                rate.burst
            } else {
                rate.count
            },
            ..rate
        }
    }
}

impl Host {
    fn address(self) -> IpAddr {
        match self {
            Self::V4 { network, host } => [10, 0, network % 3, host % 4].into(),
            Self::V6 { network, host } => {
                let (range, host) = (u16::from(network) % 3, u16::from(host) % 4);
                [0x2001, 0xdb8, range, 0, 0, 0, 0, host].into()
            }
        }
    }
}

impl Pause {
    /// Returns the next time: in total at most years ahead; back by at most the difference of two
    /// CPUs' clocks.
    fn after(self, now: u64) -> u64 {
        match self {
            Self::Ahead { ns, doublings } => now + (u64::from(ns) << (doublings % 18)),
            Self::Back { us } => now - u64::from(us) * 1_000,
        }
    }
}

impl FrameInput {
    fn bytes(&self) -> Vec<u8> {
        let built = match self {
            Self::Any { bytes } => return bytes.clone(),
            Self::Udp {
                from,
                ports: (source, destination),
                tags,
                payload,
            } => {
                let mut frame = to_server(from.address());
                for _ in 0..tags % 4 {
                    frame = frame.tagged(Tag::Customer(5));
                }
                let payload = vec![0; usize::from(payload % 1_400)];
                frame.udp(*source, *destination, &payload)
            }
            Self::Tcp {
                from,
                ports: (source, destination),
                flags,
            } => {
                let segment = to_server(from.address()).tcp_syn(*source, *destination, 0);
                segment.map(|mut bytes| {
                    let header = bytes.len() - 20;
                    bytes[header + 13] = *flags;
                    bytes
                })
            }
        };
        built.expect("a frame of one family")
    }
}

fn to_server(from: IpAddr) -> Frame {
    let server = if from.is_ipv4() {
        [10, 9, 9, 9].into()
    } else {
        [0x2001, 0xdb8, 99, 0, 0, 0, 0, 1].into()
    };
    Frame::new(from, server)
}
