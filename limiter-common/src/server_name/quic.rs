//! The state of one QUIC flow, and the datagrams that may have its name.

use super::Meaning;

/// A QUIC flow with a client that has asked for a name. It consists of plain numbers.
///
/// No packet shows its end, which is encrypted. So it is over after a time of silence from its client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct QuicFlow {
    /// The meaning of the name.
    pub meaning: Meaning,
    /// The time of its client's last packet, in nanoseconds, up to [`STEP_NS`] too early.
    seen_ns: u64,
}

/// The longest silence of a client, in nanoseconds. Servers close connections after 30 to 75 s, and firewalls
/// drop them after 120 to 180 s.
const LONGEST_SILENCE_NS: u64 = 120_000_000_000;

/// The resolution of the recorded time, in nanoseconds, so that few packets write.
const STEP_NS: u64 = 1_000_000_000;

/// The shortest datagram in which a client may send an Initial packet, in bytes (RFC 9000, 14.1).
pub const SHORTEST_INITIAL: u32 = 1200;

/// The number of bytes at the start of a datagram that identify an Initial packet.
pub const INITIAL_MARK: usize = 5;

/// The first four bits of an Initial packet, and their version (RFC 9000, 17.2.2; RFC 9369, 3.1 and 3.2): a
/// long header's bit, the fixed bit, and two bits for the type.
const INITIALS: [(u8, u32); 2] = [(0b1100, 1), (0b1101, 0x6b33_43cf)];

/// Whether a datagram with these first bytes begins with an Initial packet of a known version.
#[must_use]
#[inline(always)]
pub const fn begins_with_initial(mark: [u8; INITIAL_MARK]) -> bool {
    let [first, version @ ..] = mark;
    let version = u32::from_be_bytes(version);
    let [one, two] = INITIALS;
    let kind = first >> 4;
    (kind == one.0 && version == one.1) || (kind == two.0 && version == two.1)
}

impl QuicFlow {
    /// Makes a flow with its name read at a time in nanoseconds.
    #[must_use]
    pub const fn new(meaning: Meaning, now_ns: u64) -> Self {
        Self {
            meaning,
            seen_ns: now_ns,
        }
    }

    /// Returns the flow under another policy.
    #[must_use]
    pub const fn with(self, meaning: Meaning) -> Self {
        Self { meaning, ..self }
    }

    /// Whether its client has been silent for so long that the ports may belong to another connection.
    #[must_use]
    #[inline(always)]
    pub const fn is_over(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.seen_ns) >= LONGEST_SILENCE_NS
    }

    /// Records a packet of its client, and returns the policy's result for the name; `None`: the flow is
    /// over.
    #[must_use]
    #[inline(always)]
    pub const fn see(&mut self, now_ns: u64) -> Option<&Meaning> {
        if self.is_over(now_ns) {
            return None;
        }
        if now_ns.saturating_sub(self.seen_ns) >= STEP_NS {
            self.seen_ns = now_ns;
        }
        Some(&self.meaning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_silent_for_long_has_no_name() {
        let mut flow = QuicFlow::new(Meaning::NONE, 5);
        for _ in 0..5 {
            let last = flow.seen_ns + LONGEST_SILENCE_NS - 1;
            assert!(flow.see(last).is_some());
            assert_eq!(flow.seen_ns, last);
            // It writes seldom; another CPU's clock may be behind.
            assert!(flow.see(last + STEP_NS - 1).is_some() && flow.see(0).is_some());
            assert_eq!(flow.seen_ns, last);
        }
        let end = flow.seen_ns + LONGEST_SILENCE_NS;
        assert!(flow.is_over(end) && flow.see(end).is_none());
    }

    #[test]
    fn initial_packets_are_known_by_their_first_bytes() {
        for (mark, expected) in [
            // The low bits are encrypted.
            ([0xc0, 0, 0, 0, 1], true),
            ([0xcf, 0, 0, 0, 1], true),
            ([0xd3, 0x6b, 0x33, 0x43, 0xcf], true),
            // Other types: 0-RTT and Handshake of version 1, Retry of version 2.
            ([0xd0, 0, 0, 0, 1], false),
            ([0xe0, 0, 0, 0, 1], false),
            ([0xc0, 0x6b, 0x33, 0x43, 0xcf], false),
            // A short header; an unknown version, and the version of a negotiation.
            ([0x40, 0, 0, 0, 1], false),
            ([0xc0, 0, 0, 0, 2], false),
            ([0xc0, 0, 0, 0, 0], false),
        ] {
            assert_eq!(begins_with_initial(mark), expected, "{mark:x?}");
        }
    }
}
