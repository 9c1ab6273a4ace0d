//! Strategies: by which rule a limit holds its owners to its count and period.

/// By which rule a limit decides. The numbers stand in what is kept from one policy to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// The generic cell rate algorithm: a bucket of `burst` tokens that refills evenly.
    #[default]
    Gcra = 0,
    /// At most `count` from the first packet on until a period later.
    FixedWindow = 1,
    /// At most `count` in any period, by a log of the last ones.
    MovingWindow = 2,
    /// At most `count` in this bucket of a period and, by its share, the one before.
    SlidingWindowCounter = 3,
}

impl Strategy {
    /// Every strategy, in the order of its number.
    pub const ALL: [Self; 4] = [
        Self::Gcra,
        Self::FixedWindow,
        Self::MovingWindow,
        Self::SlidingWindowCounter,
    ];

    /// The strategy's name in configuration files and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gcra => "gcra",
            Self::FixedWindow => "fixed-window",
            Self::MovingWindow => "moving-window",
            Self::SlidingWindowCounter => "sliding-window-counter",
        }
    }
}
