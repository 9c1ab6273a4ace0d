//! What of a policy is constant to the program: the verifier leaves out what it does not use.

use super::Slot;
use crate::table::HashKey;

/// What is looked up in ranges of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// IPv4 sources; the ranges have classes.
    SourceV4,
    /// IPv6 sources; the ranges have classes.
    SourceV6,
    /// IPv4 destinations; here and below the ranges have sets of limits.
    DestinationV4,
    /// IPv6 destinations.
    DestinationV6,
    /// Source ports.
    SourcePort,
    /// Destination ports.
    DestinationPort,
}

impl Dimension {
    /// How many there are.
    pub const COUNT: usize = 6;
}

/// Where the sets of limits stand.
pub struct Masks;

impl Masks {
    /// By IP protocol number.
    pub const PROTOCOLS: u32 = 0;
    /// By the flags of a TCP segment.
    pub const TCP_FLAGS: u32 = 256;
    /// Those of ranges, as many as the policy has.
    pub const RANGES: u32 = 512;
}

/// How much there is of everything, and which limits are of which kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Shape {
    /// How many limits there are; they stand in the slots from 0 on.
    pub limit_count: u32,
    /// Which interface the program is attached to, by a number of the daemon's.
    pub interface: u32,
    /// 1: malformed packets pass.
    pub malformed_pass: u32,
    /// 1: [`Masks::PROTOCOLS`] are to be looked up.
    pub matches_protocols: u32,
    /// 1: [`Masks::TCP_FLAGS`] are to be looked up.
    pub matches_tcp_flags: u32,
    /// How many lines the table of buckets has, a power of two; 0: buckets are in the hash map.
    pub table_lines: u32,
    /// What happens when a line is full: a [`crate::table::WhenFull`] as its number.
    pub when_full: u32,
    /// 1: there are units whose states are other than TATs in nanoseconds.
    pub odd_units: u32,
    /// How many uses of sieves there are; 0: nobody is scored.
    pub sieve_uses: u32,
    /// 1: there are limits with another strategy than GCRA.
    pub windows: u32,
    /// The secret of the table of buckets, and of the sieves.
    pub hash_key: HashKey,
    /// The limits that only observe.
    pub observing: u64,
    /// The limits that count packets other than TCP.
    pub without_tcp: u64,
    /// The limits that count packets without ports.
    pub without_ports: u64,
    /// The limits that count later fragments of a protocol that they count.
    pub later_fragments: u64,
    /// The limits that count later fragments of which not even the protocol is known.
    pub of_any_protocol: u64,
    /// Where the look-up of each dimension's values starts.
    pub starts: [Slot; Dimension::COUNT],
}

impl Shape {
    /// The shape of a policy without limits.
    pub const EMPTY: Self = Self {
        limit_count: 0,
        interface: 0,
        malformed_pass: 0,
        matches_protocols: 0,
        matches_tcp_flags: 0,
        table_lines: 0,
        when_full: 0,
        odd_units: 0,
        sieve_uses: 0,
        windows: 0,
        hash_key: HashKey {
            first: 0,
            second: 0,
        },
        observing: 0,
        without_tcp: 0,
        without_ports: 0,
        later_fragments: 0,
        of_any_protocol: 0,
        starts: [Slot::UNUSED; Dimension::COUNT],
    };

    /// The limits that do more than observe.
    #[must_use]
    #[inline(always)]
    pub const fn enforcing(&self) -> u64 {
        let all = match 1u64.checked_shl(self.limit_count) {
            Some(bit) => bit - 1,
            None => u64::MAX,
        };
        all & !self.observing
    }

    /// Where the look-up of a dimension's values starts.
    #[must_use]
    #[inline(always)]
    pub const fn start(&self, dimension: Dimension) -> Slot {
        self.starts[dimension as usize]
    }
}
