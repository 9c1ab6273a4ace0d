//! The faults of a simulated world.

/// How often each fault happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    /// How many of a hundred calls are lost, or seconds late; and the same for replies.
    pub(crate) lost: u64,
    pub(crate) late: u64,
    /// How often, in a thousand ticks of a node, it crashes, stalls, is cut off, or its kernel refuses a change.
    pub(crate) crashed: u64,
    pub(crate) stalled: u64,
    pub(crate) cut_off: u64,
    pub(crate) refused: u64,
    /// How often, in a thousand ticks of a node, the store restarts with all, with old or without data, or loses its
    /// data while it runs.
    pub(crate) restarted: u64,
    /// How often, in a thousand ticks of a node, the store's clock is set.
    pub(crate) clock_set: u64,
    /// Whether two nodes may have one name.
    pub(crate) rivals: bool,
}

impl Faults {
    pub(crate) const NONE: Self = Self {
        lost: 0,
        late: 0,
        crashed: 0,
        stalled: 0,
        cut_off: 0,
        refused: 0,
        restarted: 0,
        clock_set: 0,
        rivals: false,
    };

    pub(crate) const EVERY: Self = Self {
        lost: 5,
        late: 5,
        crashed: 5,
        stalled: 5,
        cut_off: 5,
        refused: 2,
        restarted: 2,
        clock_set: 2,
        rivals: true,
    };
}
