//! How much is kept of flows that are being read.

/// The bounds of a [`Reader`](crate::Reader).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The most flows whose first bytes are kept at a time; at least one.
    pub flows: u32,
    /// The most bytes of all of them, with what finds them in each flow.
    pub bytes: usize,
    /// How many of a flow's first bytes are read; a name behind them is not found.
    pub flow_bytes: u16,
    /// How long after its first piece a flow is forgotten, in nanoseconds.
    pub timeout_ns: u64,
}

impl Default for Settings {
    /// Room for the hellos of today twice over, and for a burst of 65536 of which only the first half
    /// has come.
    fn default() -> Self {
        Self {
            flows: 1 << 16,
            bytes: 1 << 26,
            flow_bytes: 4096,
            timeout_ns: 10_000_000_000,
        }
    }
}
