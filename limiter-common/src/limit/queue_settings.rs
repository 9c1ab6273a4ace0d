//! How clients wait for a limit on connections, as the datapath reads it.

/// How clients wait for a limit. All zero: they do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct QueueSettings {
    /// The interned id of the limit.
    pub limit: u64,
    /// How many may wait in one owner's queue.
    pub size: u64,
    /// After what time a client that waits is turned away, in nanoseconds; 0: never.
    pub max_age_ns: u64,
}

impl QueueSettings {
    /// Those of a limit without a queue.
    pub const NONE: Self = Self {
        limit: 0,
        size: 0,
        max_age_ns: 0,
    };
}
