//! Superframes (GRO, GSO, TSO): one frame that stands for many packets, with the headers of the
//! first. The network stack and generic XDP see them; native XDP in drivers runs before packets are
//! merged.

use crate::traffic::Traffic;

/// The fewest header bytes of a packet in a superframe: Ethernet, IPv4 and UDP.
const LEAST_HEADERS: u64 = 14 + 20 + 8;

/// The header bytes of a TCP packet over IPv4 without options, with its Ethernet header.
const TCP_HEADERS: u64 = ETHERNET + 20 + 20;
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

/// Returns the traffic of a frame of `length` bytes from the kernel's records: `gso_size` is the
/// payload of each packet in bytes (0: one packet), `gso_segments` their number (0: unknown).
/// Repeated headers count.
#[must_use]
#[inline(always)]
pub const fn recorded(length: u64, gso_size: u64, gso_segments: u64) -> Traffic {
    if gso_size == 0 || gso_segments == 1 {
        return Traffic::of_frame(length);
    }
    let packets = if gso_segments == 0 {
        length.saturating_sub(TCP_HEADERS).div_ceil(gso_size)
    } else {
        gso_segments
    };
    // The rest is headers if the last packet is full, less if not. Both factors have 32 bits.
    let headers = length.saturating_sub(packets.wrapping_mul(gso_size));
    of_packets(length, packets, headers)
}

/// Returns the traffic of a frame of `length` bytes if its packets are TCP and fill the MTU.
#[must_use]
#[inline(always)]
pub const fn estimated(length: u64, mtu: u64) -> Traffic {
    if length <= mtu + MOST_BEFORE_PACKET || mtu + ETHERNET <= TCP_HEADERS {
        return Traffic::of_frame(length);
    }
    let packets = (length - TCP_HEADERS).div_ceil(mtu + ETHERNET - TCP_HEADERS);
    of_packets(length, packets, TCP_HEADERS)
}

#[inline(always)]
const fn of_packets(length: u64, packets: u64, headers: u64) -> Traffic {
    let packets = if packets == 0 { 1 } else { packets };
    let headers = if headers < LEAST_HEADERS {
        LEAST_HEADERS
    } else {
        headers
    };
    Traffic {
        packets,
        bytes: length + (packets - 1) * headers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn carries(packets: u64, bytes: u64) -> Traffic {
        Traffic { packets, bytes }
    }

    #[test]
    fn what_the_kernel_has_recorded_counts() {
        assert_eq!(recorded(1514, 0, 0), carries(1, 1514));
        assert_eq!(recorded(1514, 1448, 1), carries(1, 1514));
        // 45 packets of 1448 bytes and 66 bytes of headers.
        assert_eq!(recorded(66 + 45 * 1448, 1448, 45), carries(45, 45 * 1514));
        // The last packet has one byte: the headers are between the least and their own.
        assert_eq!(
            recorded(66 + 44 * 1448 + 1, 1448, 45),
            carries(45, 66 + 44 * 1448 + 1 + 44 * 42)
        );
        // From a virtual machine, which does not give the number.
        assert_eq!(recorded(54 + 3 * 1000, 1000, 0), carries(3, 3 * 1054));
        // As small as a sender can make them.
        assert_eq!(recorded(66 + 64, 1, 64), carries(64, 64 * 67));
    }

    #[test]
    fn nothing_that_is_recorded_overflows() {
        for length in [0, 14, 65_535, u32::MAX.into()] {
            for size in [0, 1, u16::MAX.into()] {
                for segments in [0, 1, u16::MAX.into()] {
                    let found = recorded(length, size, segments);
                    assert!(found.packets >= 1 && found.bytes >= length, "{found:?}");
                }
            }
        }
    }

    #[test]
    fn packets_that_fill_the_mtu_are_estimated() {
        assert_eq!(estimated(1514, 1500), carries(1, 1514));
        assert_eq!(estimated(1522, 1500), carries(1, 1522));
        assert_eq!(estimated(54 + 2 * 1460, 1500), carries(2, 2 * 1514));
        assert_eq!(estimated(54 + 2 * 1460 + 1, 1500).packets, 3);
        assert_eq!(estimated(9000, 0), carries(1, 9000));
        assert_eq!(estimated(9000, 40), carries(1, 9000));
    }
}
