//! The bounds on the memory for flows being read.

/// The bounds of a [`Reader`](crate::Reader).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The most flows with kept first bytes; at least one.
    pub flows: u32,
    /// The most bytes of all these flows, with the index of the bytes in each flow.
    pub bytes: usize,
    /// The number of a flow's first bytes that are read; a name behind them is not found.
    pub flow_bytes: u16,
    /// The time after its first piece at which a flow is discarded, in nanoseconds.
    pub timeout_ns: u64,
}

impl Default for Settings {
    /// Twice the room for today's hellos, and for a burst of 65536 incomplete ones with only their first half.
    fn default() -> Self {
        Self {
            flows: 1 << 16,
            bytes: 1 << 26,
            flow_bytes: 4096,
            timeout_ns: 10_000_000_000,
        }
    }
}
