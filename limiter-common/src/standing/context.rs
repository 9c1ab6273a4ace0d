//! The inputs by which a record gives its source a standing.

use super::{Settings, Shortage, Tick};

/// A time, with all other inputs to a record's worth.
#[derive(Clone, Copy, Debug)]
pub struct StandingContext<'a> {
    /// The settings.
    pub settings: &'a Settings,
    /// The latest shortage.
    pub shortage: Shortage,
    /// The time.
    pub now: Tick,
}

impl StandingContext<'_> {
    /// Whether there is a shortage.
    #[must_use]
    #[inline(always)]
    pub const fn is_short(&self) -> bool {
        self.shortage.holds(self.now)
    }
}
