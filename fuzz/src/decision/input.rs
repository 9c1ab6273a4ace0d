//! From arbitrary bytes to policies and packets that have something to do with each other.

use std::{collections::BTreeMap, net::IpAddr};

use arbitrary::Arbitrary;
use ipnet::IpNet;
use limiter_common::limit::{BUILT_IN, BuiltIn, IdFormat};
use limiter_userspace::policy::{Limit, Override, Policy, Rate};
use testbed::{Frame, Tag};

/// More packets in one run find nothing that more runs do not.
const MAX_PACKETS: usize = 64;

/// When the first packet comes, in nanoseconds: late enough that clocks may go back.
const START: u64 = 1 << 40;

/// A policy, and packets for it.
#[derive(Arbitrary, Debug)]
pub(super) struct Input {
    limits: Vec<LimitInput>,
    packets: Vec<PacketInput>,
}

#[derive(Arbitrary, Debug)]
struct LimitInput {
    built_in: u8,
    default: Option<RateInput>,
    overrides: Vec<(Host, RateInput)>,
}

#[derive(Arbitrary, Debug, Clone, Copy)]
enum RateInput {
    /// Of a size that packets can meet.
    Small { burst: u16, count: u16, period: u16 },
    /// Of any size; most cannot be counted.
    Any {
        burst: u64,
        count: u64,
        period_ns: u64,
    },
}

/// One of few, so that they meet in their buckets.
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
    Udp { from: Host, tags: u8, payload: u16 },
    Syn { from: Host },
    Any { bytes: Vec<u8> },
}

impl Input {
    /// The policy. Perhaps one that does not compile.
    pub(super) fn policy(&self) -> Policy {
        // In the order of the ids, and each at most once.
        let limits: BTreeMap<_, _> = self
            .limits
            .iter()
            .map(LimitInput::limit)
            .map(|limit| (limit.id, limit))
            .collect();
        Policy {
            limits: limits.into_values().collect(),
        }
    }

    /// The frames and when they come, in nanoseconds.
    pub(super) fn packets(&self) -> impl Iterator<Item = (u64, Vec<u8>)> {
        let mut now = START;
        self.packets.iter().take(MAX_PACKETS).map(move |packet| {
            now = packet.pause.after(now);
            (now, packet.frame.bytes())
        })
    }
}

impl LimitInput {
    fn limit(&self) -> Limit {
        let BuiltIn {
            name,
            id,
            id_format,
            cost,
        } = BUILT_IN[usize::from(self.built_in) % BUILT_IN.len()];
        let overrides: BTreeMap<_, _> = self
            .overrides
            .iter()
            .filter_map(|(host, rate)| Some((host.bucket(id_format)?, rate.rate())))
            .collect();
        Limit {
            name: name.to_owned(),
            id,
            id_format,
            cost,
            default: self.default.map(RateInput::rate),
            overrides: overrides
                .into_iter()
                .map(|(id, rate)| Override {
                    id,
                    rate,
                    comment: None,
                })
                .collect(),
        }
    }
}

impl RateInput {
    fn rate(self) -> Rate {
        match self {
            Self::Small {
                burst,
                count,
                period,
            } => Rate {
                burst: u64::from(burst) + 1,
                count: u64::from(count) + 1,
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

    /// Whom the host shares its budget with, if it has one.
    fn bucket(self, format: IdFormat) -> Option<IpNet> {
        let address = self.address();
        let length = if address.is_ipv4() {
            format.ipv4_prefix_length()
        } else {
            format.ipv6_prefix_length()
        }?;
        Some(IpNet::new(address, length).ok()?.trunc())
    }
}

impl Pause {
    /// Years ahead at most, all of them together; back as far as the clocks of two CPUs differ.
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
                tags,
                payload,
            } => {
                let mut frame = to_server(from.address());
                for _ in 0..tags % 4 {
                    frame = frame.tagged(Tag::Customer(5));
                }
                frame.udp(1, 2, &vec![0; usize::from(payload % 1_400)])
            }
            Self::Syn { from } => to_server(from.address()).tcp_syn(1, 2, 0),
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
