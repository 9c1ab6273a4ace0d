//! Superframes (GRO, GSO, TSO): one frame that stands for many packets, with the headers of the
//! first. The network stack and generic XDP see them; native XDP in drivers runs before packets are
//! merged.

use super::{Frame, PROTOCOL_TCP, PROTOCOL_UDP, network};
use crate::{address::Family, traffic::Traffic};

const ETHERNET: u64 = 14;

/// An Ethernet header and two VLAN tags, in bytes.
pub const MOST_BEFORE_PACKET: u64 = ETHERNET + 2 * 4;

/// The source of the number of packets in a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Superframes {
    /// There are none: each frame is one packet.
    #[default]
    None,
    /// The kernel records the number beside the frame.
    Recorded,
    /// Estimated from the frame's length.
    Estimated,
}

/// The offsets and sizes of the kernel's fields about superframes, and the interface's MTU, all in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct SuperframeFields {
    /// The number of a [`Superframes`].
    pub are: u32,
    /// The interface's MTU in bytes.
    pub mtu: u32,
    /// In `struct xdp_buff`: the address of the buffer's start, eight bytes.
    pub hard_start: u32,
    /// In `struct xdp_buff`: the buffer's size with `struct skb_shared_info`, four bytes.
    pub frame_size: u32,
    /// The size of `struct skb_shared_info`, at the end of the buffer.
    pub shared_info: u32,
    /// In `struct skb_shared_info`: the payload of each packet but the last, two bytes.
    pub gso_size: u32,
    /// In `struct skb_shared_info`: the number of packets, two bytes; 0: unknown.
    pub gso_segments: u32,
}

impl SuperframeFields {
    /// The fields of an interface without superframes.
    pub const NONE: Self = Self {
        are: Superframes::None as u32,
        mtu: 0,
        hard_start: 0,
        frame_size: 0,
        shared_info: 0,
        gso_size: 0,
        gso_segments: 0,
    };
}

/// The headers of a frame, each packet of which has the same, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderLengths {
    /// All before the IP header.
    before_packet: u64,
    /// All before the payload of TCP or UDP.
    all: u64,
}

impl HeaderLengths {
    /// TCP over IPv4, both without options.
    const USUAL: Self = Self {
        before_packet: ETHERNET,
        all: ETHERNET + 20 + 20,
    };

    /// Returns the lengths in a frame; where it has neither TCP nor UDP, the usual ones.
    #[inline(always)]
    pub fn of<F: Frame>(frame: &F) -> Self {
        Self::found(frame).unwrap_or(Self::USUAL)
    }

    #[inline(always)]
    fn found<F: Frame>(frame: &F) -> Option<Self> {
        let (family, before_packet) = network(frame)?;
        let packet = frame.without_first(before_packet);
        let header = packet.load::<20>(0)?;
        let (protocol, network) = match family {
            Family::V4 => (header[9], usize::from(header[0] & 0xf) * 4),
            Family::V6 => (header[6], 40),
        };
        let transport = match protocol {
            // Two bytes: from one, LLVM makes a comparison that the verifier does not follow.
            PROTOCOL_TCP => usize::from(packet.load::<2>(network + 12)?[0] >> 4) * 4,
            PROTOCOL_UDP => 8,
            _ => return None,
        };
        Some(Self {
            before_packet: before_packet as u64,
            all: (before_packet + network + transport) as u64,
        })
    }
}

/// The knowledge about the packets in a frame.
#[derive(Clone, Copy, Debug)]
pub enum Packets {
    /// From the kernel's records.
    Recorded {
        /// The payload of each packet but the last, in bytes; 0: the frame is one packet.
        gso_size: u64,
        /// Their number; 0: unknown.
        gso_segments: u64,
    },
    /// They fill an MTU of that many bytes, if the frame is longer.
    Full {
        /// The MTU in bytes.
        mtu: u64,
    },
}

impl Packets {
    /// Returns whether a frame of `length` bytes is one packet. The lengths of its headers then do not matter.
    #[must_use]
    #[inline(always)]
    pub const fn are_one(self, length: u64) -> bool {
        match self {
            Self::Recorded {
                gso_size,
                gso_segments,
            } => gso_size == 0 || gso_segments == 1,
            Self::Full { mtu } => length <= mtu + MOST_BEFORE_PACKET,
        }
    }

    /// Returns the traffic of a frame of `length` bytes. Repeated headers count.
    #[must_use]
    #[inline(always)]
    pub const fn traffic(self, length: u64, headers: HeaderLengths) -> Traffic {
        if self.are_one(length) {
            return Traffic::of_frame(length);
        }
        let HeaderLengths { before_packet, all } = headers;
        match self {
            Self::Recorded {
                gso_size,
                gso_segments,
            } => {
                let packets = if gso_segments == 0 {
                    length.saturating_sub(all).div_ceil(gso_size)
                } else {
                    gso_segments
                };
                // In a tunnel each packet repeats more than the outer headers: the rest of a frame with a full last
                // packet. Both factors have 32 bits.
                let rest = length.saturating_sub(packets.wrapping_mul(gso_size));
                of_packets(length, packets, if rest > all { rest } else { all })
            }
            Self::Full { mtu } => {
                let full = mtu + before_packet;
                if full <= all {
                    return Traffic::of_frame(length);
                }
                of_packets(length, length.saturating_sub(all).div_ceil(full - all), all)
            }
        }
    }
}

#[inline(always)]
const fn of_packets(length: u64, packets: u64, headers: u64) -> Traffic {
    let packets = if packets == 0 { 1 } else { packets };
    Traffic {
        packets,
        bytes: length + (packets - 1) * headers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::BytesFrame;

    const fn carries(packets: u64, bytes: u64) -> Traffic {
        Traffic { packets, bytes }
    }

    const fn lengths(before_packet: u64, all: u64) -> HeaderLengths {
        HeaderLengths { before_packet, all }
    }

    /// TCP with timestamps, over IPv4.
    const TIMESTAMPS: HeaderLengths = lengths(14, 66);

    const fn recorded(
        length: u64,
        gso_size: u64,
        gso_segments: u64,
        headers: HeaderLengths,
    ) -> Traffic {
        let packets = Packets::Recorded {
            gso_size,
            gso_segments,
        };
        packets.traffic(length, headers)
    }

    const fn estimated(length: u64, mtu: u64, headers: HeaderLengths) -> Traffic {
        Packets::Full { mtu }.traffic(length, headers)
    }

    #[test]
    fn the_kernels_records_count() {
        assert_eq!(recorded(1514, 0, 0, TIMESTAMPS), carries(1, 1514));
        assert_eq!(recorded(1514, 1448, 1, TIMESTAMPS), carries(1, 1514));
        let full = recorded(66 + 45 * 1448, 1448, 45, TIMESTAMPS);
        assert_eq!(full, carries(45, 45 * 1514));
        let with_short_last = recorded(66 + 44 * 1448 + 1, 1448, 45, TIMESTAMPS);
        assert_eq!(with_short_last, carries(45, 44 * 1514 + 67));
        // As small as a sender can make them.
        assert_eq!(recorded(66 + 64, 1, 64, TIMESTAMPS), carries(64, 64 * 67));
        // In a VXLAN tunnel each packet repeats 116 bytes, and the frame shows the outer 42.
        let tunnelled = recorded(116 + 3 * 1000, 1000, 3, lengths(14, 42));
        assert_eq!(tunnelled, carries(3, 3 * 1116));
    }

    /// A virtual machine does not give the number.
    #[test]
    fn packets_are_counted_by_their_size() {
        assert_eq!(
            recorded(54 + 3 * 1000, 1000, 0, HeaderLengths::USUAL),
            carries(3, 3 * 1054)
        );
        let full = recorded(66 + 45 * 1448, 1448, 0, TIMESTAMPS);
        assert_eq!(full, carries(45, 45 * 1514));
        let with_short_last = recorded(66 + 44 * 1448 + 1, 1448, 0, TIMESTAMPS);
        assert_eq!(with_short_last, carries(45, 44 * 1514 + 67));
    }

    #[test]
    fn no_record_overflows() {
        for length in [0, 14, 65_535, u32::MAX.into()] {
            for size in [0, 1, u16::MAX.into()] {
                for segments in [0, 1, u16::MAX.into()] {
                    let found = recorded(length, size, segments, TIMESTAMPS);
                    assert!(found.packets >= 1 && found.bytes >= length, "{found:?}");
                }
            }
        }
    }

    #[test]
    fn packets_that_fill_the_mtu_are_estimated() {
        let usual = HeaderLengths::USUAL;
        assert_eq!(estimated(1514, 1500, usual), carries(1, 1514));
        assert_eq!(estimated(1522, 1500, usual), carries(1, 1522));
        assert_eq!(estimated(54 + 2 * 1460, 1500, usual), carries(2, 2 * 1514));
        assert_eq!(estimated(54 + 2 * 1460 + 1, 1500, usual).packets, 3);
        assert_eq!(
            estimated(66 + 45 * 1448, 1500, TIMESTAMPS),
            carries(45, 45 * 1514)
        );
        assert_eq!(estimated(9000, 0, usual), carries(1, 9000));
        assert_eq!(estimated(9000, 40, usual), carries(1, 9000));
    }

    #[test]
    fn headers_are_measured() {
        let of = |parts: &[&[u8]]| HeaderLengths::of(&BytesFrame(&parts.concat()));
        let ethernet = [&[0; 12][..], &[0x08, 0x00]].concat();
        let tagged = [&[0; 12][..], &[0x81, 0, 0, 5, 0x86, 0xdd]].concat();
        let v4 = |protocol| {
            let mut header = [0; 24];
            (header[0], header[9]) = (0x46, protocol);
            header
        };
        let mut v6 = [0; 40];
        (v6[0], v6[6]) = (0x60, PROTOCOL_TCP);
        let mut tcp = [0; 32];
        tcp[12] = 8 << 4;
        let of_v4 = |protocol| of(&[&ethernet, &v4(protocol), &tcp]);
        assert_eq!(of_v4(PROTOCOL_TCP), lengths(14, 14 + 24 + 32));
        assert_eq!(of_v4(PROTOCOL_UDP), lengths(14, 14 + 24 + 8));
        assert_eq!(of_v4(47), HeaderLengths::USUAL);
        assert_eq!(of(&[&tagged, &v6, &tcp]), lengths(18, 18 + 40 + 32));
        assert_eq!(of(&[&ethernet]), HeaderLengths::USUAL);
    }
}
