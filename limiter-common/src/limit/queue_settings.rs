//! How clients wait for a limit on connections, as the datapath reads it.

/// The queue for a limit on connections. All zero: no queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct QueueSettings {
    /// The interned id of the limit.
    pub limit: u64,
    /// The maximum number of clients in one key's queue.
    pub size: u64,
    /// The wait after which a client is turned away, in nanoseconds; 0: never.
    pub max_age_ns: u64,
}

impl QueueSettings {
    /// The settings of a limit without a queue.
    pub const NONE: Self = Self {
        limit: 0,
        size: 0,
        max_age_ns: 0,
    };
}
