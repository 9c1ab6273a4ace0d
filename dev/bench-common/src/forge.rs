//! A flood at a server: the times, sources and bytes of its packets.

use crate::{
    frame::{Frame, fold},
    layout::Source,
    origin::{Origin, random},
    pace::Pace,
};

/// The numbers of IP protocols.
const TCP: u64 = 6;
const UDP: u64 = 17;

const V4_CHECKSUM: usize = 24;
const V4_SOURCE: usize = 26;
const V6_SOURCE: usize = 22;
const V4_TRANSPORT: usize = 34;
const V6_TRANSPORT: usize = 54;

/// Offsets in a transport header.
const TCP_SEQUENCE: usize = 4;
const TCP_CHECKSUM: usize = 16;
const TCP_END: usize = 20;
const UDP_CHECKSUM: usize = 6;
const UDP_END: usize = 8;

/// A DNS message begins with its id.
const DNS_ID: usize = UDP_END;
const DNS_ID_END: usize = DNS_ID + 2;

/// Clients do not use ports below this.
const FIRST_PORT: u64 = 1024;

/// A flood and its progress, sent by one CPU.
///
/// Userspace writes it as words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Forge {
    /// When packets are sent.
    pub pace: Pace,
    /// The number of packets sent.
    pub sent: u64,
    /// The number of sources drawn.
    drawn: u64,
    /// How many of these sources have sent again.
    repeated: u64,
    /// After how many nanoseconds each source sends again; 0 means never.
    again_after_ns: u64,
    /// An [`Origin`].
    origin: u64,
    /// The IP protocol.
    protocol: u64,
    /// The sum of the IPv4 header's words, except the source; 0 for IPv6.
    network_sum: u64,
    /// The sum of the words under the transport's checksum, except the changing ones.
    transport_sum: u64,
}

/// A table of the times at which sources were first used. Its size is a power of two.
pub trait Times {
    /// Returns the number of slots.
    fn slots(&self) -> u64;
    /// Returns the first use of the source with this index, in nanoseconds.
    fn at(&self, index: u64) -> u64;
    /// Sets the first use of a source, in place of an earlier source's.
    fn set(&self, index: u64, now_ns: u64);
}

/// The words of [`Forge`] that userspace writes.
pub const FORGE_WORDS: usize = 10;

/// The position of [`Forge::sent`] in them.
pub const FORGE_SENT: usize = 2;

impl Forge {
    /// Makes a flood of frames like `frame`, which has valid checksums. Returns `None` if it is
    /// neither TCP nor DNS over UDP, or has IPv4 options or IPv6 extension headers.
    #[must_use]
    pub fn new(frame: &Frame, origin: Origin, pace: Pace, again_after_ns: u64) -> Option<Self> {
        const ETHERTYPE: usize = 12;
        const ETHERNET: usize = 14;
        let is_v6 = frame.has(ETHERNET) && frame.read(ETHERTYPE) == 0x86dd;
        let transport = if is_v6 { V6_TRANSPORT } else { V4_TRANSPORT };
        if is_v6 != origin.is_v6() || !frame.has(transport) {
            return None;
        }
        let (protocol, source) = if is_v6 {
            (frame.read(20) >> 8, V6_SOURCE..V6_SOURCE + 16)
        } else {
            (frame.read(22) & 0xff, V4_SOURCE..V4_SOURCE + 4)
        };
        let protocol = u64::from(protocol);
        let (checksum, changing, end): (_, &[usize], _) = match protocol {
            TCP => (TCP_CHECKSUM, &[0, TCP_SEQUENCE, TCP_SEQUENCE + 2], TCP_END),
            UDP => (UDP_CHECKSUM, &[0, DNS_ID], DNS_ID_END),
            _ => return None,
        };
        if !frame.has(transport + end) {
            return None;
        }
        // In one's complement, subtracting a word means adding its complement.
        let without = |offset: usize| u64::from(!frame.read(offset));
        let address: u64 = source.step_by(2).map(without).sum();
        let rest: u64 = changing
            .iter()
            .map(|offset| without(transport + offset))
            .sum();
        Some(Self {
            pace,
            sent: 0,
            drawn: 0,
            repeated: 0,
            again_after_ns,
            origin: origin as u64,
            protocol,
            network_sum: if is_v6 {
                0
            } else {
                without(V4_CHECKSUM) + address
            },
            transport_sum: without(transport + checksum) + address + rest,
        })
    }

    /// Returns the map's words.
    #[must_use]
    pub const fn words(&self) -> [u64; FORGE_WORDS] {
        let [interval, due] = self.pace.words();
        [
            interval,
            due,
            self.sent,
            self.drawn,
            self.repeated,
            self.again_after_ns,
            self.origin,
            self.protocol,
            self.network_sum,
            self.transport_sum,
        ]
    }

    /// Turns the frame into the next packet, if one is due; returns whether to send it.
    #[inline(always)]
    pub fn makes(&mut self, frame: &Frame, now_ns: u64, times: &impl Times) -> bool {
        if !self.pace.sends(now_ns) {
            return false;
        }
        let Some(origin) = Origin::of_number(self.origin) else {
            return false;
        };
        let source = origin.source(random(self.next_source(now_ns, times)));
        self.sent += 1;
        // An independent random sequence from the sources'.
        self.write(frame, source, random(!self.sent))
    }

    /// Returns the index of the next source.
    #[inline(always)]
    fn next_source(&mut self, now_ns: u64, times: &impl Times) -> u64 {
        if self.again_after_ns != 0 {
            let earliest = self.drawn.saturating_sub(times.slots());
            if self.repeated < earliest {
                self.repeated = earliest;
            }
            if self.repeated < self.drawn
                && now_ns.saturating_sub(times.at(self.repeated)) >= self.again_after_ns
            {
                self.repeated += 1;
                return self.repeated - 1;
            }
            times.set(self.drawn, now_ns);
        }
        self.drawn += 1;
        self.drawn - 1
    }

    /// Writes the bytes that differ between packets, and the checksums; returns whether there was
    /// room.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "parts of a random number")]
    fn write(&self, frame: &Frame, source: Source, random: u64) -> bool {
        let port = (FIRST_PORT | random & 0xffff) as u16;
        let number = (random >> 32) as u32;
        match (source, self.protocol) {
            (Source::V4(address), UDP) if frame.has(V4_TRANSPORT + DNS_ID_END) => {
                let sum = self.write_v4(frame, address);
                self.write_dns(frame, V4_TRANSPORT, sum, port, number as u16);
            }
            (Source::V4(address), TCP) if frame.has(V4_TRANSPORT + TCP_END) => {
                let sum = self.write_v4(frame, address);
                self.write_tcp(frame, V4_TRANSPORT, sum, port, number);
            }
            (Source::V6(high, low), UDP) if frame.has(V6_TRANSPORT + DNS_ID_END) => {
                let sum = write_v6(frame, high, low);
                self.write_dns(frame, V6_TRANSPORT, sum, port, number as u16);
            }
            (Source::V6(high, low), TCP) if frame.has(V6_TRANSPORT + TCP_END) => {
                let sum = write_v6(frame, high, low);
                self.write_tcp(frame, V6_TRANSPORT, sum, port, number);
            }
            _ => return false,
        }
        true
    }

    /// Writes an IPv4 source with the header's checksum; returns the sum of its words.
    #[inline(always)]
    fn write_v4(&self, frame: &Frame, address: u32) -> u64 {
        frame.write_int(V4_SOURCE, address);
        let sum = sum_of(address);
        frame.write(V4_CHECKSUM, !fold(self.network_sum + sum));
        sum
    }

    #[inline(always)]
    fn write_dns(&self, frame: &Frame, transport: usize, source: u64, port: u16, id: u16) {
        frame.write(transport, port);
        frame.write(transport + DNS_ID, id);
        let sum = self.transport_sum + source + u64::from(port) + u64::from(id);
        // 0 would mean that there is no checksum (RFC 768).
        let checksum = match !fold(sum) {
            0 => 0xffff,
            checksum => checksum,
        };
        frame.write(transport + UDP_CHECKSUM, checksum);
    }

    #[inline(always)]
    fn write_tcp(&self, frame: &Frame, transport: usize, source: u64, port: u16, sequence: u32) {
        frame.write(transport, port);
        frame.write_int(transport + TCP_SEQUENCE, sequence);
        let sum = self.transport_sum + source + u64::from(port) + sum_of(sequence);
        frame.write(transport + TCP_CHECKSUM, !fold(sum));
    }
}

/// Writes an IPv6 source; returns the sum of its words.
#[inline(always)]
fn write_v6(frame: &Frame, high: u64, low: u64) -> u64 {
    frame.write_long(V6_SOURCE, high);
    frame.write_long(V6_SOURCE + 8, low);
    sum_of_long(high) + sum_of_long(low)
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the halves of a word")]
const fn sum_of_long(word: u64) -> u64 {
    sum_of((word >> 32) as u32) + sum_of(word as u32)
}

#[inline(always)]
const fn sum_of(word: u32) -> u64 {
    (word >> 16) as u64 + (word & 0xffff) as u64
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    struct Slots(RefCell<Vec<u64>>);

    impl Slots {
        fn new(slots: usize) -> Self {
            Self(RefCell::new(vec![0; slots]))
        }
    }

    impl Times for Slots {
        fn slots(&self) -> u64 {
            self.0.borrow().len() as u64
        }

        fn at(&self, index: u64) -> u64 {
            self.0.borrow()[usize::try_from(index % self.slots()).unwrap()]
        }

        fn set(&self, index: u64, now_ns: u64) {
            let slot = usize::try_from(index % self.slots()).unwrap();
            self.0.borrow_mut()[slot] = now_ns;
        }
    }

    #[repr(align(2))]
    struct Aligned([u8; 60]);

    fn twice(after_ns: u64) -> Forge {
        let mut bytes = Aligned([0; 60]);
        bytes.0[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
        bytes.0[23] = 17;
        let start = bytes.0.as_mut_ptr().addr();
        // SAFETY: the bytes are ours and outlive the value.
        let frame = unsafe { Frame::new(start, start + 60) };
        Forge::new(&frame, Origin::AnyV4, Pace::UNBOUNDED, after_ns).unwrap()
    }

    #[test]
    fn each_source_sends_again_after_its_time_and_no_more() {
        let mut forge = twice(100);
        let times = Slots::new(1 << 10);
        let mut used: Vec<Vec<u64>> = vec![Vec::new(); 2000];
        for now in 0..1000 {
            let source = forge.next_source(now, &times);
            used[usize::try_from(source).unwrap()].push(now);
        }
        for uses in used.iter().filter(|uses| !uses.is_empty()) {
            match uses[..] {
                [first] => assert!(first >= 799, "{first} was not repeated"),
                [first, second] => assert!(second - first >= 100, "{first}, {second}"),
                _ => panic!("{uses:?}"),
            }
        }
    }

    #[test]
    fn without_room_the_oldest_do_not_send_again() {
        let mut forge = twice(100);
        let times = Slots::new(8);
        for now in 0..100 {
            forge.next_source(now, &times);
        }
        assert_eq!(forge.next_source(300, &times), 92);
    }

    #[test]
    fn words_are_those_of_the_program() {
        assert_eq!(size_of::<Forge>(), FORGE_WORDS * 8);
        let mut forge = twice(100);
        forge.sent = 77;
        assert_eq!(forge.words()[FORGE_SENT], 77);
    }
}
