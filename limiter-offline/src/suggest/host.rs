//! Finds the host in a capture, to tell packets to the host from packets that it sends.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
    net::IpAddr,
};

use ipnet::IpNet;
use limiter_capture::CapturedFrame;
use limiter_common::{
    address::Address,
    packet::{FLAG_ACK, FLAG_SYN, Facts, Frame as _, Transport},
};

type Hardware = [u8; 6];

/// The group bit of an Ethernet address's first byte.
const GROUP: u8 = 1;

/// A packet's direction; on the loopback interface both fields are true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketDirection {
    /// It comes to the host.
    pub incoming: bool,
    /// The host sends it.
    pub outgoing: bool,
}

/// The mark of the host's packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// Its interface's Ethernet address.
    Hardware(Hardware),
    /// Its IP addresses.
    Addresses(Vec<IpNet>),
    /// None: all packets count as sent to the host.
    Unknown,
}

/// The first packets' facts about one Ethernet address.
#[derive(Default)]
struct AddressFacts {
    frames: usize,
    sources: HashSet<Address>,
    /// The packets of clients to this address, minus the packets of clients from it.
    serves: i64,
}

impl Host {
    /// Returns a frame's direction; the facts are `None` if it has no valid IP packet.
    pub(super) fn way(&self, frame: &CapturedFrame<'_>, facts: Option<&Facts>) -> PacketDirection {
        match self {
            Self::Hardware(address) => {
                let (to, from) = addresses(frame);
                let outgoing = from == Some(*address);
                let to_group = to.is_some_and(|to| to[0] & GROUP != 0) && !outgoing;
                PacketDirection {
                    incoming: to == Some(*address) || to_group,
                    outgoing,
                }
            }
            Self::Addresses(addresses) => {
                let is_one = |address: Address| {
                    let address = IpAddr::from(address);
                    addresses.iter().any(|one| one.contains(&address))
                };
                PacketDirection {
                    incoming: facts.is_some_and(|facts| is_one(destination(facts))),
                    outgoing: facts.is_some_and(|facts| is_one(facts.source)),
                }
            }
            Self::Unknown => PacketDirection {
                incoming: true,
                outgoing: false,
            },
        }
    }

    /// Finds the host by the first frames: its Ethernet address is an end of every frame. Among several such
    /// addresses, like a host and its router, the host sends from fewer IP addresses. If the numbers hardly
    /// differ, it is the end that clients seem to send to.
    pub(super) fn of<'a>(
        frames: impl IntoIterator<Item = (CapturedFrame<'a>, Option<Facts>)>,
    ) -> Self {
        let mut ends: HashMap<Hardware, AddressFacts> = HashMap::new();
        for (frame, facts) in frames {
            let (to, from) = addresses(&frame);
            let serves = facts.as_ref().map_or(0, asks);
            if let Some(from) = from {
                let sender = ends.entry(from).or_default();
                sender.frames += 1;
                sender.serves -= serves;
                sender.sources.extend(facts.map(|facts| facts.source));
            }
            if let Some(to) = to.filter(|to| Some(*to) != from && to[0] & GROUP == 0) {
                let receiver = ends.entry(to).or_default();
                receiver.frames += 1;
                receiver.serves += serves;
            }
        }
        let most = ends.values().map(|seen| seen.frames).max().unwrap_or(0);
        // Tolerates other hosts' broadcasts, in which neither end is the host.
        let is_end = |seen: &AddressFacts| seen.frames * 10 >= most * 9;
        let candidates: Vec<_> = ends.iter().filter(|(_, seen)| is_end(seen)).collect();
        let fewest = candidates.iter().map(|(_, seen)| seen.sources.len()).min();
        let has_few = |seen: &AddressFacts| seen.sources.len() <= 2 * fewest.unwrap_or(0).max(1);
        candidates
            .into_iter()
            .filter(|(_, seen)| has_few(seen))
            .min_by_key(|(address, seen)| {
                (
                    Reverse(seen.serves),
                    seen.sources.len(),
                    Reverse(seen.frames),
                    **address,
                )
            })
            .map_or(Self::Unknown, |(address, _)| Self::Hardware(*address))
    }
}

/// Returns the Ethernet addresses of the receiver and the sender; `None`: the frame has none. Address 0 counts
/// as none: captures of other link types leave it.
fn addresses(frame: &CapturedFrame<'_>) -> (Option<Hardware>, Option<Hardware>) {
    let known = |address: &Hardware| *address != Hardware::default();
    (frame.load(0).filter(known), frame.load(6).filter(known))
}

const fn destination(facts: &Facts) -> Address {
    Address {
        family: facts.source.family,
        high: facts.destination_high,
        low: facts.destination_low,
    }
}

/// Returns 1 if a client seems to send the packet to a server, −1 if a server seems to send it, else 0.
fn asks(facts: &Facts) -> i64 {
    match facts.transport {
        Transport::Tcp if facts.kind.tcp_flags() & FLAG_SYN != 0 => {
            if facts.kind.tcp_flags() & FLAG_ACK == 0 {
                1
            } else {
                -1
            }
        }
        Transport::Ports => match facts.destination_port.cmp(&facts.source_port) {
            std::cmp::Ordering::Less => 1,
            std::cmp::Ordering::Equal => 0,
            std::cmp::Ordering::Greater => -1,
        },
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use limiter_common::packet;
    use testbed::Frame;

    use super::*;

    const HOST: Hardware = [2, 0, 0, 0, 0, 1];
    const ROUTER: Hardware = [2, 0, 0, 0, 0, 2];

    fn frame(from: Hardware, to: Hardware, built: Vec<u8>) -> Vec<u8> {
        let mut frame = built;
        frame[..6].copy_from_slice(&to);
        frame[6..12].copy_from_slice(&from);
        frame
    }

    fn udp(source: &str, destination: &str, from: u16, to: u16) -> Vec<u8> {
        Frame::new(source.parse().unwrap(), destination.parse().unwrap())
            .udp(from, to, b"x")
            .unwrap()
    }

    fn found(frames: &[Vec<u8>]) -> Host {
        Host::of(frames.iter().map(|data| {
            let frame = CapturedFrame {
                data,
                length: data.len(),
            };
            let mut facts = Facts::NONE;
            let parsed = packet::parse(&frame, &mut facts);
            (frame, parsed.is_ok().then_some(facts))
        }))
    }

    #[test]
    fn the_host_is_at_one_end_of_every_frame() {
        let mut both = Vec::new();
        for client in 1..=9 {
            let address = format!("198.51.100.{client}");
            both.push(frame(ROUTER, HOST, udp(&address, "192.0.2.1", 4000, 53)));
            both.push(frame(HOST, ROUTER, udp("192.0.2.1", &address, 53, 4000)));
        }
        assert_eq!(found(&both), Host::Hardware(HOST));
        let incoming: Vec<_> = both.iter().step_by(2).cloned().collect();
        assert_eq!(found(&incoming), Host::Hardware(HOST));
        let outgoing: Vec<_> = both.iter().skip(1).step_by(2).cloned().collect();
        assert_eq!(found(&outgoing), Host::Hardware(HOST));
        // A single client on the same link.
        assert_eq!(found(&both[..2]), Host::Hardware(HOST));
        assert_eq!(found(&both[..1]), Host::Hardware(HOST));
        assert_eq!(found(&both[1..2]), Host::Hardware(HOST));
        // Captures of other link types lack one address, or both.
        let cooked = |data: &Vec<u8>, end: usize| {
            let mut data = data.clone();
            data[end..end + 6].fill(0);
            data
        };
        let known: Vec<_> = (both.iter().zip([6, 0].iter().cycle()))
            .map(|(data, end)| cooked(data, *end))
            .collect();
        assert_eq!(found(&known), Host::Hardware(HOST));
        assert_eq!(found(&[cooked(&known[0], 0)]), Host::Unknown);
        assert_eq!(found(&[]), Host::Unknown);
        assert_eq!(found(&[vec![0; 5]]), Host::Unknown);
    }

    #[test]
    fn which_way_a_frame_goes() {
        let to_host = frame(ROUTER, HOST, udp("198.51.100.1", "192.0.2.1", 4000, 53));
        let from_host = frame(HOST, ROUTER, udp("192.0.2.1", "198.51.100.1", 53, 4000));
        let to_all = frame(ROUTER, [0xff; 6], udp("198.51.100.1", "192.0.2.255", 1, 2));
        let own_to_all = frame(HOST, [0xff; 6], udp("192.0.2.1", "192.0.2.255", 1, 2));
        let foreign = frame(
            ROUTER,
            [2, 0, 0, 0, 0, 3],
            udp("198.51.100.1", "192.0.2.9", 1, 2),
        );
        let by_address = Host::Addresses(vec!["192.0.2.1/32".parse().unwrap()]);
        for (data, hardware, address) in [
            (&to_host, (true, false), (true, false)),
            (&from_host, (false, true), (false, true)),
            (&to_all, (true, false), (false, false)),
            (&own_to_all, (false, true), (false, true)),
            (&foreign, (false, false), (false, false)),
        ] {
            let frame = CapturedFrame {
                data,
                length: data.len(),
            };
            let mut facts = Facts::NONE;
            packet::parse(&frame, &mut facts).unwrap();
            let way = |host: &Host| {
                let way = host.way(&frame, Some(&facts));
                (way.incoming, way.outgoing)
            };
            assert_eq!(way(&Host::Hardware(HOST)), hardware);
            assert_eq!(way(&by_address), address);
            assert_eq!(way(&Host::Unknown), (true, false));
        }
    }
}
