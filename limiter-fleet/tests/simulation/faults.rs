//! The faults of a simulated world.

/// How often each fault happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    /// How many of a hundred messages are lost, duplicated, or seconds late.
    pub(crate) lost: u64,
    pub(crate) repeated: u64,
    pub(crate) late: u64,
    /// After how many of a hundred messages old messages are replayed.
    pub(crate) replayed: u64,
    /// How often, in a thousand ticks, a node crashes, stalls, or is cut off.
    pub(crate) crashed: u64,
    pub(crate) stalled: u64,
    pub(crate) cut_off: u64,
    /// How often, in a thousand ticks, a node loses count of a budget.
    pub(crate) miscounted: u64,
    /// In how many of a hundred ticks a node forgets all the budgets that it may.
    pub(crate) forgotten: u64,
}

impl Faults {
    pub(crate) const NONE: Self = Self {
        lost: 0,
        repeated: 0,
        late: 0,
        replayed: 0,
        crashed: 0,
        stalled: 0,
        cut_off: 0,
        miscounted: 0,
        forgotten: 2,
    };

    pub(crate) const EVERY: Self = Self {
        lost: 15,
        repeated: 10,
        late: 5,
        replayed: 10,
        crashed: 5,
        stalled: 5,
        cut_off: 5,
        miscounted: 5,
        forgotten: 30,
    };
}
