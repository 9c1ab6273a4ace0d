//! The settings of the standing of sources, as the datapath reads them.

/// The settings of the standing of sources; constants to the kernel's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Settings {
    /// The number of lines of the table of known sources, a power of two; 0: the policy does not
    /// use standing.
    pub lines: u32,
    /// The number of lines of the memory of first tries, a power of two.
    pub first_try_lines: u32,
    /// The prefix length of an IPv6 source, at most 64.
    pub ipv6_prefix: u32,
    /// The number of separate occasions after which a source is familiar; 0: never.
    pub visits: u32,
    /// The shortest time between two occasions, in nanoseconds.
    pub apart_ns: u64,
    /// The earliest retry: the time after the refusal, in nanoseconds.
    pub retry_after_ns: u64,
    /// The latest retry: the time after the refusal, in nanoseconds; at most
    /// [`Self::LONGEST_RETRY_NS`].
    pub retry_within_ns: u64,
    /// The time for which a source is remembered after its last visit, in nanoseconds.
    pub remember_ns: u64,
    /// 1: a source that completes a TCP handshake with this host is proven.
    pub handshakes_prove: u32,
    /// The time before a shortage, in ticks, by which a source must have gained its standing; a
    /// later gain is fresh.
    pub fresh_ticks: u32,
    /// The number of visits that a CPU applies in a tick while standing matters; of the following
    /// visits it applies [a part](super::VisitCount::ONE_IN).
    pub recorded_visits: u64,
}

impl Settings {
    /// The longest time between a refusal and its retry, in nanoseconds: first tries keep eight
    /// bits of time, in steps of 50 ms.
    pub const LONGEST_RETRY_NS: u64 = 12_000_000_000;

    /// The settings of a policy that does not use standing.
    pub const NONE: Self = Self {
        lines: 0,
        first_try_lines: 0,
        ipv6_prefix: 64,
        visits: 0,
        apart_ns: 0,
        retry_after_ns: 0,
        retry_within_ns: 0,
        remember_ns: 0,
        handshakes_prove: 0,
        fresh_ticks: 0,
        recorded_visits: u64::MAX,
    };
}
